package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
)

// useFacts makes the engine read facts in place of events and rollups. Only tests do so, until
// the facts replace both.
func (e *Engine) useFacts(r *facts.Refresher) { e.facts = r }

// stored returns what is known of the stored events of a subject.
func (e *Engine) stored(ctx context.Context, of plan.Subject) (source.Stored, error) {
	if e.facts == nil {
		return e.Totals.Stored(ctx, of)
	}
	at, err := e.facts.Position(ctx)
	if err != nil {
		return source.Stored{}, source.StoreFailure(ctx, err)
	}
	totals := e.facts.Totals(of)
	s := source.Stored{Visitors: totals.Visitors, Ingested: time.UnixMilli(at.Through), Newest: time.UnixMilli(totals.Newest)}
	for _, n := range totals.Events {
		s.Events += uint64(n) //nolint:gosec // not negative
	}
	return s.OrNone(), nil
}

// firstView returns when the first view of a subject happened, and when the first one was accepted. It returns false
// if there is none.
func (e *Engine) firstView(ctx context.Context, of plan.Subject) (looks.FirstView, bool, error) {
	if e.facts == nil {
		return e.store.FirstView(ctx, of)
	}
	extent := e.facts.Totals(of).Extent
	if extent.FirstView == 0 {
		return looks.FirstView{}, false, nil
	}
	return looks.FirstView{Time: time.UnixMilli(extent.FirstView).UTC(), Accepted: time.UnixMilli(extent.FirstAccepted).UTC()}, true, nil
}

// observedGoals returns the ids of the goals with stored events of a subject.
func (e *Engine) observedGoals(ctx context.Context, of plan.Subject) ([]int64, error) {
	if e.facts == nil {
		return e.Totals.Goals(ctx, of)
	}
	return slices.Collect(maps.Keys(e.facts.Totals(of).Goals)), nil
}

// factsVersion returns a number that changes whenever a report of the subject may change: with its facts, and
// with the day of the last acceptance.
func (e *Engine) factsVersion(ctx context.Context, of plan.Subject) (uint64, bool) {
	at, err := e.facts.Position(ctx)
	return e.facts.Totals(of).Version ^ uint64(at.Through/(24*time.Hour).Milliseconds()), err == nil //nolint:gosec // days
}
