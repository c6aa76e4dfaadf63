package ingest

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"

	"lifthouse/schema"
)

// ErrRemoving means that events are being deleted, so that a refresh cannot run.
var ErrRemoving = errors.New("events are being deleted")

// maxRefreshes exceeds the number of concurrent refreshes.
const maxRefreshes = 1 << 20

// refreshes are running computations that store results computed from events,
// such as rollups. A deletion cancels them and blocks new ones until the events
// are deleted, because their results would include the deleted events.
type refreshes struct {
	running *semaphore.Weighted // a deletion acquires all of it

	mu      sync.Mutex
	nextID  int
	cancels map[int]context.CancelCauseFunc
}

func newRefreshes() *refreshes {
	return &refreshes{running: semaphore.NewWeighted(maxRefreshes), cancels: map[int]context.CancelCauseFunc{}}
}

// enter registers a refresh. It returns ErrRemoving if a deletion is running or
// waiting. A later deletion cancels the returned context.
func (r *refreshes) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running.TryAcquire(1) {
		cancel(nil)
		return nil, nil, ErrRemoving
	}
	id := r.nextID
	r.nextID++
	r.cancels[id] = cancel
	return ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.cancels, id)
		cancel(nil)
		r.running.Release(1)
	}, nil
}

// stop cancels the running refreshes, waits for them, and blocks new ones until
// resume is called.
func (r *refreshes) stop(ctx context.Context) (resume func(), err error) {
	r.mu.Lock()
	for _, cancel := range r.cancels {
		cancel(ErrRemoving)
	}
	r.mu.Unlock()
	if err := r.running.Acquire(ctx, maxRefreshes); err != nil {
		return nil, context.Cause(ctx)
	}
	return func() { r.running.Release(maxRefreshes) }, nil
}

// Refresh calls work, which computes something from the events and stores it,
// while no events are deleted. A deletion cancels the context of work. Refresh
// returns ErrRemoving if a deletion is running, or if a failed one is not
// finished.
func (w *Writer) Refresh(ctx context.Context, work func(context.Context) error) error {
	if err := w.resumeRemoval(ctx); err != nil {
		return err
	}
	refreshing, leave, err := w.refreshes.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = work(refreshing)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(refreshing), ErrRemoving) {
		return ErrRemoving
	}
	return err
}

// UpdateRollupManifest updates the manifest after a refresh of rollups.
func (w *Writer) UpdateRollupManifest(ctx context.Context) {
	w.manifest.Update(ctx, schema.RollupTables...)
}

// Exclusively calls work while no write and no refresh is running.
func (w *Writer) Exclusively(ctx context.Context, work func() error) error {
	resume, err := w.refreshes.stop(ctx)
	if err != nil {
		return err
	}
	defer resume()
	return w.Pause(ctx, work)
}

// remove calls work, which deletes events, while no write and no refresh is
// running. If the process is killed meanwhile, the next one finishes the
// deletion. If work fails, the store may still execute a part of the deletion,
// and refreshes are blocked until the store has executed it.
func (w *Writer) remove(ctx context.Context, work func(context.Context) error) error {
	return w.Exclusively(ctx, func() error {
		if err := w.manifest.BeginRemoval(); err != nil {
			return err
		}
		ctx := context.WithoutCancel(ctx) // a partial deletion would leave the counters wrong
		end, err := w.beginRemoval(ctx)
		if err != nil {
			return err
		}
		if err := work(ctx); err != nil {
			w.unfinished.Store(true)
			w.afterWrite(nil)
			return err
		}
		w.unfinished.Store(false)
		w.afterWrite(nil)
		return errors.Join(w.manifest.EndRemoval(ctx), end(ctx))
	})
}

// beginRemoval prevents the refreshes of other processes until end is called.
func (w *Writer) beginRemoval(ctx context.Context) (end func(context.Context) error, err error) {
	if w.rollups == nil {
		return func(context.Context) error { return nil }, nil
	}
	return w.rollups.BeginRemoval(ctx)
}

// resumeRemoval corrects the counters after a failed deletion, once the store has
// executed the mutations that it accepted. Until then it returns ErrRemoving.
func (w *Writer) resumeRemoval(ctx context.Context) error {
	if !w.unfinished.Load() {
		return nil
	}
	left, err := schema.UnfinishedDeletions(ctx, w.conn)
	if err != nil {
		return err
	}
	if left.Statements > 0 {
		return ErrRemoving
	}
	return w.remove(ctx, func(ctx context.Context) error {
		_, err := schema.RepairStats(ctx, w.conn)
		return err
	})
}
