package results

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"lifthouse/schema/catalogue"
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
	remove := func() { // with the lock, so that no request joins a cancelled computation
		if f.under[key] == run {
			delete(f.under, key)
		}
		run.cancel()
	}
	if !joined {
		detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
		run = &flight[T]{done: make(chan struct{}), cancel: cancel}
		f.under[key] = run
		go func() {
			defer close(run.done)
			defer func() {
				if cause := recover(); cause != nil {
					slog.ErrorContext(detached, "panic", "panic", catalogue.RedactTokens(fmt.Sprint(cause)), "stack",
						string(debug.Stack()))
					run.err = fmt.Errorf("panic: %v", cause)
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				remove()
			}()
			run.found, run.err = compute(detached)
		}()
	}
	run.waiting++
	f.mu.Unlock()
	select {
	case <-run.done:
		return run.found, joined, run.err
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		run.waiting--
		if run.waiting == 0 {
			remove()
		}
		return found, joined, context.Cause(ctx)
	}
}
