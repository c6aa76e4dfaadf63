package bench

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Step is a load at one rate, and what was measured.
type Step struct {
	Rate     float64    `json:"rate"`     // requests a second that were due
	Achieved float64    `json:"achieved"` // that were answered well, until the last answer came
	Seconds  float64    `json:"seconds"`
	All      Figures    `json:"all"`
	Kinds    []Figures  `json:"kinds"`
	Late     Latency    `json:"late"`  // how long after their intended start requests were sent: the generator's own delay
	Curve    []Quantile `json:"curve"` // of all latencies
	Server   *Server    `json:"server,omitempty"`
	Met      bool       `json:"met"`           // of a ladder: the target
	Why      string     `json:"why,omitempty"` // it was missed
}

// Live is what is known while a step runs.
type Live struct {
	Phase   string // such as "warm-up"
	Rate    float64
	Elapsed time.Duration
	Of      time.Duration
	All     Figures
	Kinds   []Figures
}

// load sends tasks at a rate, whether or not the answers come.
type load struct {
	client   *client
	workload *workload
	random   *rand.Rand // of arrivals
	underWay chan struct{}
	show     func(Live)
	every    time.Duration
}

// step sends for as long as said and waits for the last answer. Arrivals are a
// Poisson process: independent users. Each request has its intended start,
// from which its latency counts, so that a server that stalls is charged for
// all who would have asked meanwhile.
func (l *load) step(ctx context.Context, phase string, rate float64, lasting time.Duration) (Step, error) {
	m := newMeasured()
	start := time.Now()
	defer l.watch(ctx, m, Live{Phase: phase, Rate: rate, Of: lasting}, start)()
	var sent sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for at := l.gap(rate); at < lasting; at += l.gap(rate) {
		due := start.Add(at)
		if !until(ctx, timer, due) {
			break
		}
		t := l.workload.next()
		m.due(t.kind, time.Since(due))
		select {
		case l.underWay <- struct{}{}:
		default:
			m.notSent(t.kind)
			continue
		}
		sent.Go(func() {
			defer func() { <-l.underWay }()
			sending := time.Now()
			a := l.client.send(ctx, &t)
			m.ended(t.kind, a, due, sending, time.Now())
		})
	}
	sent.Wait()
	return m.step(start, rate, lasting), ctx.Err()
}

// gap is the time to the next arrival.
func (l *load) gap(rate float64) time.Duration {
	return time.Duration(l.random.ExpFloat64() / rate * float64(time.Second))
}

// until waits for an instant; false: the context ended first.
func until(ctx context.Context, timer *time.Timer, at time.Time) bool {
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

// watch shows what is known so far, again and again until it is stopped.
func (l *load) watch(ctx context.Context, m *measured, live Live, start time.Time) (stop func()) {
	if l.show == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(l.every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				kinds, all := m.figures()
				live.Elapsed, live.Kinds, live.All = time.Since(start), kinds, all.figures("")
				l.show(live)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

func (m *measured) step(start time.Time, rate float64, lasting time.Duration) Step {
	kinds, all := m.figures()
	took := max(lasting, m.last.Sub(start))
	return Step{
		Rate: rate, Achieved: float64(all.answered) / took.Seconds(), Seconds: took.Seconds(),
		All: all.figures(""), Kinds: kinds, Late: latencyOf(m.late), Curve: curve(all.latency),
	}
}
