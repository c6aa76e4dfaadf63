package bench

import (
	"maps"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is the distribution of latencies, in milliseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Figures has the figures of the requests of one kind, or of all requests. A
// request succeeds if its status is 2xx or 304.
type Figures struct {
	Kind      Kind           `json:"kind,omitempty"` // empty: all kinds
	Scheduled int64          `json:"scheduled"`
	Succeeded int64          `json:"succeeded"`
	NotSent   int64          `json:"notSent"`  // because too many requests were in flight
	Statuses  map[string]int `json:"statuses"` // completed requests by status or error
	Latency   Latency        `json:"latency"`  // of successful requests, from the scheduled start to the end of the response
}

// FailedShare returns the share of scheduled requests that did not succeed.
func (f *Figures) FailedShare() float64 {
	if f.Scheduled == 0 {
		return 0
	}
	return 1 - float64(f.Succeeded)/float64(f.Scheduled)
}

// Failures returns the number of requests that failed or were not sent.
// Requests in flight do not count.
func (f Figures) Failures() int64 {
	completed := int64(0)
	for _, n := range f.Statuses {
		completed += int64(n)
	}
	return completed - f.Succeeded + f.NotSent
}

// Range and precision of the histograms.
const (
	minMicroseconds = 1
	maxMicroseconds = int64(10 * time.Minute / time.Microsecond)
	digits          = 3
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(minMicroseconds, maxMicroseconds, digits)
}

func recordDuration(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(d.Microseconds(), minMicroseconds), maxMicroseconds)) // fails only outside the range
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	at := func(percent float64) float64 { return float64(h.ValueAtQuantile(percent)) / 1000 }
	return Latency{Mean: h.Mean() / 1000, P50: at(50), P90: at(90), P95: at(95), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1000}
}

// counts has the counts and latencies of one kind.
type counts struct {
	scheduled, succeeded, notSent int64
	statuses                      map[string]int
	latency                       *hdrhistogram.Histogram
}

func newCounts() *counts {
	return &counts{statuses: map[string]int{}, latency: newHistogram()}
}

func (c *counts) toFigures(kind Kind) Figures {
	return Figures{
		Kind: kind, Scheduled: c.scheduled, Succeeded: c.succeeded, NotSent: c.notSent, Statuses: maps.Clone(c.statuses),
		Latency: latencyOf(c.latency),
	}
}

func (c *counts) addCounts(other *counts) {
	c.scheduled += other.scheduled
	c.succeeded += other.succeeded
	c.notSent += other.notSent
	for name, n := range other.statuses {
		c.statuses[name] += n
	}
	c.latency.Merge(other.latency)
}

// recorder records the requests of one step. It is safe for concurrent use.
type recorder struct {
	sync.Mutex
	kinds     map[Kind]*counts
	sendDelay *hdrhistogram.Histogram
	last      time.Time // of a response
}

func newRecorder() *recorder {
	return &recorder{kinds: map[Kind]*counts{}, sendDelay: newHistogram()}
}

func (r *recorder) countsOf(kind Kind) *counts {
	if r.kinds[kind] == nil {
		r.kinds[kind] = newCounts()
	}
	return r.kinds[kind]
}

// recordScheduled records a scheduled request and the time since its scheduled start.
func (r *recorder) recordScheduled(kind Kind, delay time.Duration) {
	r.Lock()
	defer r.Unlock()
	r.countsOf(kind).scheduled++
	recordDuration(r.sendDelay, delay)
}

func (r *recorder) notSent(kind Kind) {
	r.Lock()
	defer r.Unlock()
	r.countsOf(kind).notSent++
}

// recordOutcome records the outcome of a request. Only successful requests have a
// latency, because fast error responses would lower the percentiles.
func (r *recorder) recordOutcome(kind Kind, o outcome, scheduled, now time.Time) {
	r.Lock()
	defer r.Unlock()
	c := r.countsOf(kind)
	c.statuses[o.statusName()]++
	if now.After(r.last) {
		r.last = now
	}
	if !o.isSuccess() {
		return
	}
	c.succeeded++
	recordDuration(c.latency, now.Sub(scheduled))
}

// figuresByKind returns the figures of each kind and the counts of all kinds.
func (r *recorder) figuresByKind() (kinds []Figures, all *counts) {
	r.Lock()
	defer r.Unlock()
	all = newCounts()
	for _, kind := range Kinds {
		if c := r.kinds[kind]; c != nil {
			kinds = append(kinds, c.toFigures(kind))
			all.addCounts(c)
		}
	}
	return kinds, all
}
