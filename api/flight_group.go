package api

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"lifthouse/schema/catalogue"
)

// flights are computations that several requests wait for, by what they
// compute. golang.org/x/sync/singleflight would not do: it cannot end a
// computation that nobody waits for any more, and a panic in one of its
// channels' computations ends the process.
type flightGroup struct {
	mu    sync.Mutex
	under map[string]*flight
}

type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int
	body    []byte
	err     error
}

// join waits for the computation under way of this key, or begins it, and
// says whether it was under way. It goes on when who began it leaves, and ends
// when the last one does.
func (f *flightGroup) join(ctx context.Context, key string, compute func(context.Context) ([]byte, error)) (body []byte, joined bool, err error) {
	f.mu.Lock()
	if f.under == nil {
		f.under = map[string]*flight{}
	}
	run, joined := f.under[key]
	if !joined {
		detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
		run = &flight{done: make(chan struct{}), cancel: cancel}
		f.under[key] = run
		go f.do(detached, key, run, compute)
	}
	run.waiting++
	f.mu.Unlock()
	select {
	case <-run.done:
		return run.body, joined, run.err
	case <-ctx.Done():
		f.leave(key, run)
		return nil, joined, context.Cause(ctx)
	}
}

func (f *flightGroup) do(ctx context.Context, key string, run *flight, compute func(context.Context) ([]byte, error)) {
	defer func() {
		if cause := recover(); cause != nil {
			slog.ErrorContext(ctx, "panic", "requestId", recordOf(ctx).requestID, "panic", catalogue.RedactTokens(fmt.Sprint(cause)), "stack", string(debug.Stack()))
			run.err = fmt.Errorf("panic: %v", cause)
		}
		run.cancel()
		f.mu.Lock()
		f.forget(key, run)
		f.mu.Unlock()
		close(run.done)
	}()
	run.body, run.err = compute(ctx)
}

func (f *flightGroup) leave(key string, run *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run.waiting--
	if run.waiting == 0 {
		f.forget(key, run) // in one step with the count: nobody joins what is ending
		run.cancel()
	}
}

// forget lets the next request begin anew. It is called with the lock held.
func (f *flightGroup) forget(key string, run *flight) {
	if f.under[key] == run {
		delete(f.under, key)
	}
}
