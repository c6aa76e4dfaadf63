package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is how long answers took, in milliseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Figures are what became of the requests of one kind, or of all.
type Figures struct {
	Kind     Kind           `json:"kind,omitempty"` // empty: all
	Asked    int64          `json:"asked"`          // that were due
	Answered int64          `json:"answered"`       // well
	NotSent  int64          `json:"notSent"`        // since too many were under way
	Statuses map[string]int `json:"statuses"`       // of answers that are well, and all failures by status or by fault
	Latency  Latency        `json:"latency"`        // from the intended start to the answer's end, of those answered
	Service  Latency        `json:"service"`        // from the sending on: what a generator that waits would tell
}

// Failed is the share of the requests due that were not answered well.
func (f *Figures) Failed() float64 {
	if f.Asked == 0 {
		return 0
	}
	return 1 - float64(f.Answered)/float64(f.Asked)
}

// Quantile is a point of a latency curve.
type Quantile struct {
	Share        float64 `json:"share"` // of the answers
	Milliseconds float64 `json:"ms"`
}

// Bounds of what is told apart: a microsecond, and ten minutes.
const (
	leastMicros = 1
	mostMicros  = int64(10 * time.Minute / time.Microsecond)
	digits      = 3
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(leastMicros, mostMicros, digits)
}

func note(h *hdrhistogram.Histogram, took time.Duration) {
	_ = h.RecordValue(min(max(took.Microseconds(), leastMicros), mostMicros)) // it is within the bounds
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	at := func(share float64) float64 { return float64(h.ValueAtQuantile(share)) / 1000 }
	return Latency{Mean: h.Mean() / 1000, P50: at(50), P90: at(90), P95: at(95), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1000}
}

// counted is what was measured of one kind.
type counted struct {
	asked, answered, notSent int64
	statuses                 map[string]int
	latency, service         *hdrhistogram.Histogram
}

func newCounted() *counted {
	return &counted{statuses: map[string]int{}, latency: newHistogram(), service: newHistogram()}
}

func (c *counted) figures(kind Kind) Figures {
	f := Figures{Kind: kind, Asked: c.asked, Answered: c.answered, NotSent: c.notSent, Statuses: map[string]int{}, Latency: latencyOf(c.latency), Service: latencyOf(c.service)}
	for name, n := range c.statuses {
		f.Statuses[name] = n
	}
	return f
}

func (c *counted) add(other *counted) {
	c.asked += other.asked
	c.answered += other.answered
	c.notSent += other.notSent
	for name, n := range other.statuses {
		c.statuses[name] += n
	}
	c.latency.Merge(other.latency)
	c.service.Merge(other.service)
}

// measured is what was measured in one step.
type measured struct {
	sync.Mutex
	kinds map[Kind]*counted
	late  *hdrhistogram.Histogram
	last  time.Time // of the answers
}

func newMeasured() *measured {
	return &measured{kinds: map[Kind]*counted{}, late: newHistogram()}
}

func (m *measured) of(kind Kind) *counted {
	if m.kinds[kind] == nil {
		m.kinds[kind] = newCounted()
	}
	return m.kinds[kind]
}

// due notes a request that was due, and how late the generator came to it.
func (m *measured) due(kind Kind, late time.Duration) {
	m.Lock()
	defer m.Unlock()
	m.of(kind).asked++
	note(m.late, late)
}

func (m *measured) notSent(kind Kind) {
	m.Lock()
	defer m.Unlock()
	m.of(kind).notSent++
}

// ended notes an answer, or that there was none. Only answers that are well
// have a latency: a refusal is quick, and would make the rest look so.
func (m *measured) ended(kind Kind, a answered, due, sent, now time.Time) {
	m.Lock()
	defer m.Unlock()
	c := m.of(kind)
	c.statuses[a.name()]++
	if now.After(m.last) {
		m.last = now
	}
	if !a.ok() {
		return
	}
	c.answered++
	note(c.latency, now.Sub(due))
	note(c.service, now.Sub(sent))
}

// figures are those of every kind, and of all together.
func (m *measured) figures() (kinds []Figures, all *counted) {
	m.Lock()
	defer m.Unlock()
	all = newCounted()
	for _, kind := range Kinds {
		if c := m.kinds[kind]; c != nil {
			kinds = append(kinds, c.figures(kind))
			all.add(c)
		}
	}
	return kinds, all
}

// curve has the latency at shares that come ever closer to all.
func curve(h *hdrhistogram.Histogram) []Quantile {
	var points []Quantile
	if h.TotalCount() == 0 {
		return points
	}
	for rest := 1.0; rest*float64(h.TotalCount()) >= 0.5; rest *= 0.8 {
		points = append(points, Quantile{1 - rest, float64(h.ValueAtQuantile(100*(1-rest))) / 1000})
	}
	return points
}
