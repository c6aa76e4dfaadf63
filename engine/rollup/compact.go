package rollup

import (
	"context"
	"time"

	"lifthouse/engine/visitors"
)

const (
	// compactEvery is the number of refreshes between two looks at the rows that
	// cancel others.
	compactEvery = 64
	// maxCancelled is the share of such rows above which the rows are written
	// anew. Reports are slower by about twice this share.
	maxCancelled = 0.2
	// replacedAge is the time for which replaced rows are kept, because a report
	// has several statements. A report that takes longer is counted from the
	// events.
	replacedAge = time.Minute
)

// replacedRows is a generation of rows that a newer one has replaced.
type replacedRows struct {
	visitors.Generation
	at time.Time
}

// compactIfSparse writes the rows of visitors anew if too many cancel each other.
func (s *builder) compactIfSparse(ctx context.Context, d *backlog) error {
	g := &d.state.Visitors
	if g.Number == 0 || g.Refreshes[s.epochs[d.subject].number]%compactEvery != 0 {
		return nil
	}
	share, err := g.Cancelling(ctx, s.conn)
	if err != nil || share < maxCancelled {
		return err
	}
	return s.compact(ctx, d)
}

// compact writes the rows of visitors anew, as of the state, and publishes them.
// The cells stay as they are.
func (s *builder) compact(ctx context.Context, d *backlog) error {
	next := *d.state
	if err := s.rebuildRows(ctx, d, &next, next.Through); err != nil {
		return err
	}
	if err := complete(ctx, s.conn, d.subject, &next); err != nil {
		return err
	}
	s.replaced[d.state.Visitors.Number] = replacedRows{d.state.Visitors, time.Now()}
	*d.state = next
	return s.sweep(ctx)
}

// rebuildRows writes a new generation of rows of visitors from the events, and
// sets it in the state.
func (s *builder) rebuildRows(ctx context.Context, d *backlog, next *State, through time.Time) error {
	known := next.Visitors.Variations
	next.Visitors = visitors.Generation{}
	if len(known) > visitors.MaxVariations {
		return nil
	}
	g, err := visitors.New(ctx, s.conn, s.next(), known, next.Events >= largeEvents)
	if err != nil {
		return err
	}
	for i, bounds := range visitorRanges(next.Events) {
		g.Refreshes[g.Number] = uint32(i) + 1 //nolint:gosec // few
		if err := g.Rebuild(ctx, s.conn, g.Number, g.Refreshes[g.Number], d.visitorParams(through, bounds)); err != nil {
			return err
		}
	}
	next.Visitors = g
	return nil
}

// sweep deletes rows that no report reads any more.
func (s *builder) sweep(ctx context.Context) error {
	var kept []visitors.Generation
	for number, rows := range s.replaced {
		if time.Since(rows.at) > replacedAge {
			delete(s.replaced, number)
			continue
		}
		kept = append(kept, rows.Generation)
	}
	return sweep(ctx, s.conn, kept)
}
