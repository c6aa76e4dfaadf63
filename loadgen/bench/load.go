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

// progressPeriod is the time between two reports of progress.
const progressPeriod = 5 * time.Second

// runStep sends requests for the given duration and waits for the last response.
// Arrivals are a Poisson process, as of independent users. The latency of a
// request counts from its scheduled start. A stall of the server therefore
// lengthens the latency of all requests that are scheduled during the stall.
func (l *load) runStep(ctx context.Context, phase string, rate float64, duration time.Duration) (Step, error) {
	r := newRecorder()
	start := time.Now()
	shown := start // time of the last progress
	var requests sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for offset := l.drawGap(rate); offset < duration; offset += l.drawGap(rate) {
		scheduled := start.Add(offset)
		if !waitUntil(ctx, timer, scheduled) {
			break
		}
		if l.progress != nil && time.Since(shown) >= progressPeriod {
			shown = time.Now()
			_, all := r.figuresByKind()
			l.progress(Progress{Phase: phase, Rate: rate, Elapsed: time.Since(start), Of: duration, All: all.toFigures("")})
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
			o := l.client.sendRequest(ctx, &t)
			r.recordOutcome(t.kind, o, scheduled, time.Now())
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

func (r *recorder) measuredStep(start time.Time, rate float64, duration time.Duration) Step {
	kinds, all := r.figuresByKind()
	elapsed := max(duration, r.last.Sub(start))
	return Step{
		Rate: rate, Achieved: float64(all.succeeded) / elapsed.Seconds(), Seconds: elapsed.Seconds(),
		All: all.toFigures(""), Kinds: kinds, SendDelay: latencyOf(r.sendDelay),
	}
}
