package results

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
)

// flightGroup shares running computations between requests with equal keys. golang.org/x/sync/singleflight is not used:
// it cannot cancel a computation that no request waits for any more, and a panic in its DoChan ends the process.
type flightGroup[T any] struct {
	mu    sync.Mutex
	under map[string]*flight[T]
}

type flight[T any] struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int
	found   T
	err     error
}

// joinFlight waits for the running computation of the key, or starts one, and reports whether it was already running. A
// computation continues when the request that started it leaves, and is cancelled when the last request leaves.
func (f *flightGroup[T]) joinFlight(
	ctx context.Context, key string, compute func(context.Context) (T, error),
) (found T, joined bool, err error) {
	f.mu.Lock()
	if f.under == nil {
		f.under = map[string]*flight[T]{}
	}
	run, joined := f.under[key]
	if !joined {
		detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
		run = &flight[T]{done: make(chan struct{}), cancel: cancel}
		f.under[key] = run
		go f.runFlight(detached, key, run, compute)
	}
	run.waiting++
	f.mu.Unlock()
	select {
	case <-run.done:
		return run.found, joined, run.err
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		if run.waiting--; run.waiting == 0 {
			f.removeFlight(key, run) // with the lock of the count, so that no request joins a cancelled computation
			run.cancel()
		}
		return found, joined, context.Cause(ctx)
	}
}

func (f *flightGroup[T]) runFlight(
	ctx context.Context, key string, run *flight[T], compute func(context.Context) (T, error),
) {
	defer func() {
		if cause := recover(); cause != nil {
			slog.ErrorContext(ctx, "panic", "panic", catalogue.RedactTokens(fmt.Sprint(cause)), "stack",
				string(debug.Stack()))
			run.err = fmt.Errorf("panic: %v", cause)
		}
		run.cancel()
		f.mu.Lock()
		f.removeFlight(key, run)
		f.mu.Unlock()
		close(run.done)
	}()
	run.found, run.err = compute(ctx)
}

// removeFlight removes a computation. The caller must hold the lock.
func (f *flightGroup[T]) removeFlight(key string, run *flight[T]) {
	if f.under[key] == run {
		delete(f.under, key)
	}
}

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
