package results

import (
	"context"
	"sync/atomic"
	"time"

	"lifthouse/engine/source"

	"github.com/prometheus/client_golang/prometheus"
)

// Admission limits the number of requests that use the store at the same time. A
// limited number of further requests wait briefly for a slot, and all others are
// rejected. Long waits would double the load, because clients repeat requests that
// take long.
type Admission struct {
	slots   chan struct{} // nil: no limit
	waiting atomic.Int64
	queue   int64
	wait    time.Duration
	shed    prometheus.Counter
}

// Queue sets the sizes of an admission.
type Queue struct {
	Slots  int           // requests that use the store at the same time; 0: no limit
	Length int           // waiting requests
	Wait   time.Duration // maximum wait
}

// NewAdmission returns an admission that counts the rejected requests.
func NewAdmission(q Queue, shed prometheus.Counter) *Admission {
	g := &Admission{queue: int64(q.Length), wait: q.Wait, shed: shed}
	if q.Slots > 0 {
		g.slots = make(chan struct{}, q.Slots)
	}
	return g
}

// WaitingRequests returns the number of requests that wait for a slot.
func (g *Admission) WaitingRequests() int64 { return g.waiting.Load() }

// AcquireSlot waits for a slot, which leave releases. The error is a StoreError or
// the error of the context.
func (g *Admission) AcquireSlot(ctx context.Context) (leave func(), err error) {
	if g.slots == nil {
		return func() {}, nil
	}
	leave = func() { <-g.slots }
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.queue {
		g.shed.Inc()
		return nil, &source.StoreError{Fault: source.Busy}
	}
	patience := time.NewTimer(g.wait)
	defer patience.Stop()
	select {
	case g.slots <- struct{}{}:
		return leave, nil
	case <-patience.C:
		g.shed.Inc()
		return nil, &source.StoreError{Fault: source.Busy}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
