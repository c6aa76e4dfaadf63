package rollup

import (
	"context"
	"slices"
	"time"

	"lifthouse/engine/generation"
	"lifthouse/engine/visitors"
)

const (
	// compactEvery is the number of refreshes between two looks at the rows that
	// cancel others.
	compactEvery = 64
	// maxCancelled is the share of such rows above which the rows are written
	// again. Reports are slower by about twice this share.
	maxCancelled = 0.2
	// replacedAge is the time for which replaced rows are kept, because a report
	// has several statements. A report that takes longer is counted from the
	// events.
	replacedAge = time.Minute
	// sweepInterval is the time between two deletions of replaced rows, because a
	// deletion in a shared bucket writes the whole bucket again.
	sweepInterval = 5 * time.Minute
	// sharedSweepInterval is the same for what other processes left.
	sharedSweepInterval = time.Hour
)

// replaced is a generation that a newer one has replaced.
type replaced struct {
	generation.ID
	at time.Time
}

// compactIfSparse writes the rows of visitors again if too many cancel each other.
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

// compact writes the rows of visitors again, as of the state, and publishes them.
// The cells stay as they are.
func (s *builder) compact(ctx context.Context, d *backlog) error {
	next := *d.state
	if err := s.rebuildRows(ctx, d, &next, next.position()); err != nil {
		return err
	}
	if err := s.publish(ctx, &next, func(ctx context.Context) error { return complete(ctx, s.conn, d.subject, &next) }); err != nil {
		return err
	}
	s.replace(d.state.Visitors.ID)
	*d.state = next
	return nil
}

// rebuildRows writes a new generation of rows of visitors from the events, and
// sets it in the state.
func (s *builder) rebuildRows(ctx context.Context, d *backlog, next *State, through position) error {
	known := next.Visitors.Variations
	next.Visitors = visitors.Generation{}
	if len(known) > visitors.MaxVariations {
		return nil
	}
	id, err := s.newGeneration(ctx, "rows", d.subject, next.Events >= largeEvents)
	if err != nil {
		return err
	}
	g := visitors.New(id, known)
	for _, bounds := range visitorRanges(next.Events) {
		if err := g.Rebuild(ctx, s.conn, d.order, d.visitorParams(through, bounds)); err != nil {
			return err
		}
	}
	next.Visitors = g
	return nil
}

// replace records that newer generations have replaced some.
func (s *builder) replace(some ...generation.ID) {
	for _, id := range some {
		if id.Number != 0 {
			s.replaced = append(s.replaced, replaced{id, time.Now()})
		}
	}
}

// sweepIfDue deletes rows that no report reads any more: what an earlier process
// left, and replaced generations. It must be called before the first refresh, so
// that next returns no number of an earlier process, even if the clock was set back.
func (s *builder) sweepIfDue(ctx context.Context) error {
	switch {
	case s.sweptAt.IsZero():
	case s.shared != nil && time.Since(s.sweptAt) >= sharedSweepInterval:
	case len(s.replaced) == 0 || time.Since(s.replaced[0].at) < replacedAge:
		return nil
	case !s.replaced[0].HasOwnBucket() && time.Since(s.sweptAt) < sweepInterval:
		return nil
	}
	states, err := readStates(ctx, s.conn)
	if err != nil {
		return err
	}
	for _, state := range states {
		s.last = max(s.last, state.Generation.Number, state.Visitors.LastEpoch())
	}
	var kept []generation.ID
	s.replaced = slices.DeleteFunc(s.replaced, func(r replaced) bool { return time.Since(r.at) >= replacedAge })
	for _, r := range s.replaced {
		kept = append(kept, r.ID)
	}
	claimed, err := s.shared.claimed(ctx, nil)
	if err != nil {
		return err
	}
	kept = append(kept, claimed...)
	if err := sweep(ctx, s.conn, s.shared, states, kept); err != nil {
		return err
	}
	s.sweptAt = time.Now()
	return nil
}
