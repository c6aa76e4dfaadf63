package results

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"lifthouse/engine/source"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// Admission limits the number of requests that use the store at the same time. A limited number of further requests
// wait briefly for a slot, and all others are rejected. Long waits would double the load, because clients repeat
// requests that take long.
type Admission struct {
	slots   *semaphore.Weighted
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
	slots := int64(math.MaxInt64)
	if q.Slots > 0 {
		slots = int64(q.Slots)
	}
	return &Admission{slots: semaphore.NewWeighted(slots), queue: int64(q.Length), wait: q.Wait, shed: shed}
}

// WaitingRequests returns the number of requests that wait for a slot.
func (g *Admission) WaitingRequests() int64 { return g.waiting.Load() }

// AcquireSlot waits for a slot, which leave releases. The error is a StoreError or the error of the context.
func (g *Admission) AcquireSlot(ctx context.Context) (leave func(), err error) {
	leave = func() { g.slots.Release(1) }
	if g.slots.TryAcquire(1) {
		return leave, nil
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) <= g.queue {
		patient, cancel := context.WithTimeout(ctx, g.wait)
		defer cancel()
		if g.slots.Acquire(patient, 1) == nil {
			return leave, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	g.shed.Inc()
	return nil, &source.StoreError{Fault: source.Busy}
}
