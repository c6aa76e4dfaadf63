package ingest

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"

	"lifthouse/schema"
)

// ErrRemoving says that events are being removed, so that nothing may be
// computed from them for longer than a report.
var ErrRemoving = errors.New("events are being removed")

// maxRefreshes is more than the refreshes that run at once.
const maxRefreshes = 1 << 20

// refreshes are computations whose results outlive the events that they read:
// the settled sums. A removal ends those that run and keeps others out until
// the events are gone, or else what it removes would come back with them.
type refreshes struct {
	running *semaphore.Weighted // all of it is held by a removal

	mu      sync.Mutex
	nextID  int
	cancels map[int]context.CancelCauseFunc
}

func newRefreshes() *refreshes {
	return &refreshes{running: semaphore.NewWeighted(maxRefreshes), cancels: map[int]context.CancelCauseFunc{}}
}

// enter lets a refresh begin unless a removal is under way or waits. A removal
// that comes ends the returned context.
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

// stop ends the refreshes that run and keeps others out until resume is called.
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
// while no event is removed. A removal that comes ends its context. The error
// is ErrRemoving where a removal is under way, or one that failed is not
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

// ListSettled has the manifest list the parts that a refresh made.
func (w *Writer) UpdateRollupManifest(ctx context.Context) { w.manifest.Update(ctx, "rollups") }

// Exclusively calls work while nothing is written and nothing is refreshed.
func (w *Writer) Exclusively(ctx context.Context, work func() error) error {
	resume, err := w.refreshes.stop(ctx)
	if err != nil {
		return err
	}
	defer resume()
	return w.Pause(ctx, work)
}

// remove calls work, which removes events, while nothing is written and nothing
// is refreshed. A process that is killed meanwhile leaves a note, by which the
// next one finishes the removal. Of one that fails the store may still carry
// out a part: until it has, nothing is refreshed.
func (w *Writer) remove(ctx context.Context, work func(context.Context) error) error {
	return w.Exclusively(ctx, func() error {
		if err := w.manifest.BeginRemoval(); err != nil {
			return err
		}
		ctx := context.WithoutCancel(ctx) // half done, the counters would be wrong
		if err := work(ctx); err != nil {
			w.unfinished.Store(true)
			return err
		}
		w.unfinished.Store(false)
		w.afterWrite(ctx)
		return w.manifest.EndRemoval(ctx)
	})
}

// resumeRemoval makes counters agree after a removal that failed, once the
// store has carried out what it took on of it.
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
