package rollup

import (
	"context"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema/ingest"

	"golang.org/x/sync/errgroup"
)

// Refreshers maintain the rollups of each server of a store; nil: none.
type Refreshers []*Refresher

// NewRefreshers returns the refreshers of a store, and sets them in its rollups.
func NewRefreshers(writer *ingest.Writer, of *Set) Refreshers {
	var all Refreshers
	for _, x := range of.Indexes() {
		all = append(all, New(x.conn, writer, x))
	}
	return all
}

// Follow refreshes the rollups at the given interval until the context ends.
func (all Refreshers) Follow(ctx context.Context, every time.Duration) {
	var running errgroup.Group
	for _, s := range all {
		running.Go(func() error {
			s.Follow(ctx, every)
			return nil
		})
	}
	_ = running.Wait()
}

// RefreshAll refreshes the rollups of all subjects, although another process may do so.
func (all Refreshers) RefreshAll(ctx context.Context) error {
	for _, s := range all {
		if err := s.index.ifReached(ctx, func(ctx context.Context, _ *Index) error { return s.RefreshAll(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// Rebuild rebuilds the rollups of all subjects, and calls done for each.
func (all Refreshers) Rebuild(ctx context.Context, done func(plan.Subject, time.Duration, error)) error {
	for _, s := range all {
		if err := s.index.ifReached(ctx, func(ctx context.Context, _ *Index) error { return s.Rebuild(ctx, done) }); err != nil {
			return err
		}
	}
	return nil
}
