package bench

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Step is the result of a load at one rate.
type Step struct {
	Rate      float64   `json:"rate"`     // scheduled requests per second
	Achieved  float64   `json:"achieved"` // successful requests per second, until the last response
	Seconds   float64   `json:"seconds"`
	All       Figures   `json:"all"`
	Kinds     []Figures `json:"kinds"`
	SendDelay Latency   `json:"sendDelay"` // time from the scheduled to the actual start of requests
	Server    *Server   `json:"server,omitempty"`
	Met       bool      `json:"met"`            // of a ladder: the step met the target
	Miss      string    `json:"miss,omitempty"` // of a ladder: the reason why the step missed the target
}

// Progress has the figures of a step so far.
type Progress struct {
	Phase   string // such as "warm-up"
	Rate    float64
	Elapsed time.Duration
	Of      time.Duration
	All     Figures
}

// load sends requests at a rate.
type load struct {
	client   *client
	workload *workload
	random   *rand.Rand    // of arrivals
	inFlight chan struct{} // one element per request in flight
	progress func(Progress)
}

// runStep sends requests for the given duration and waits for the last response.
// Arrivals are a Poisson process, as of independent users. The latency of a
// request counts from its scheduled start. A stall of the server therefore
// lengthens the latency of all requests that are scheduled during the stall.
func (l *load) runStep(ctx context.Context, phase string, rate float64, duration time.Duration) (Step, error) {
	r := newRecorder()
	start := time.Now()
	defer l.reportProgress(ctx, r, Progress{Phase: phase, Rate: rate, Of: duration}, start)()
	var requests sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for offset := l.drawGap(rate); offset < duration; offset += l.drawGap(rate) {
		scheduled := start.Add(offset)
		if !waitUntil(ctx, timer, scheduled) {
			break
		}
		t := l.workload.nextTask()
		r.recordScheduled(t.kind, time.Since(scheduled))
		select {
		case l.inFlight <- struct{}{}:
		default:
			r.notSent(t.kind)
			continue
		}
		requests.Go(func() {
			defer func() { <-l.inFlight }()
			sent := time.Now()
			o := l.client.sendRequest(ctx, &t)
			r.recordOutcome(t.kind, o, scheduled, sent, time.Now())
		})
	}
	requests.Wait()
	return r.measuredStep(start, rate, duration), ctx.Err()
}

// drawGap draws the time to the next arrival.
func (l *load) drawGap(rate float64) time.Duration {
	return time.Duration(l.random.ExpFloat64() / rate * float64(time.Second))
}

// waitUntil waits until a time and reports whether the context is still valid.
func waitUntil(ctx context.Context, timer *time.Timer, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer.Reset(wait)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// reportProgress starts a goroutine that calls l.progress periodically. The
// returned function stops the goroutine and waits for it.
func (l *load) reportProgress(ctx context.Context, r *recorder, p Progress, start time.Time) (stop func()) {
	if l.progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var reporter sync.WaitGroup
	reporter.Go(func() {
		ticker := time.NewTicker(5 * time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_, all := r.figuresByKind()
				p.Elapsed, p.All = time.Since(start), all.toFigures("")
				l.progress(p)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		reporter.Wait()
	}
}

func (r *recorder) measuredStep(start time.Time, rate float64, duration time.Duration) Step {
	kinds, all := r.figuresByKind()
	elapsed := max(duration, r.last.Sub(start))
	return Step{
		Rate: rate, Achieved: float64(all.succeeded) / elapsed.Seconds(), Seconds: elapsed.Seconds(),
		All: all.toFigures(""), Kinds: kinds, SendDelay: latencyOf(r.sendDelay),
	}
}
