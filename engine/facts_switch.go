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

// useFacts makes the engine read facts, of each shard of the store, in place of events and rollups. Only tests do so,
// until the facts replace both.
func (e *Engine) useFacts(shards ...*facts.Refresher) { e.facts = shards }

// stored returns what is known of the stored events of a subject.
func (e *Engine) stored(ctx context.Context, of plan.Subject) (source.Stored, error) {
	if e.facts == nil {
		return e.Totals.Stored(ctx, of)
	}
	var s source.Stored
	for _, shard := range e.facts {
		at, err := shard.Position(ctx)
		if err != nil {
			return source.Stored{}, source.StoreFailure(ctx, err)
		}
		totals := shard.Totals(of)
		s = s.With(totals.AllEvents(), time.UnixMilli(at.Through), time.UnixMilli(totals.Newest))
	}
	return s.OrNone(), nil
}

// firstView returns when the first view of a subject happened, and when the first one was accepted. It returns false
// if there is none.
func (e *Engine) firstView(ctx context.Context, of plan.Subject) (looks.FirstView, bool, error) {
	if e.facts == nil {
		return e.store.FirstView(ctx, of)
	}
	extent := e.facts[0].Totals(of).Extent
	for _, shard := range e.facts[1:] {
		on := shard.Totals(of).Extent
		extent.Extend(&on)
	}
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
	var goals []int64
	for _, shard := range e.facts {
		goals = slices.AppendSeq(goals, maps.Keys(shard.Totals(of).Goals))
	}
	return goals, nil
}

// factsVersion returns a number that changes whenever a report of the subject may change: with its facts, and
// with the day of the last acceptance.
func (e *Engine) factsVersion(ctx context.Context, of plan.Subject) (version uint64, known bool) {
	day := int64(0)
	for _, shard := range e.facts {
		at, err := shard.Position(ctx)
		if err != nil {
			return 0, false
		}
		version ^= shard.Totals(of).Version
		day = max(day, at.Through/(24*time.Hour).Milliseconds())
	}
	return version ^ uint64(day), true //nolint:gosec // days
}

// factsValues adds the most frequent values of the attribute.
func (e *Engine) factsValues(ctx context.Context, p *plan.Plan, found *Values, most int) error {
	values, err := facts.Source{Execution: &source.Execution{Plan: p, Store: e.store}, Shards: e.facts}.ReadValues(ctx, found.Dimension)
	for i, v := range values {
		if found.Visitors += v.Visitors; i < most {
			found.Values = append(found.Values, ObservedValue(v))
		}
	}
	found.DistinctValues = int64(len(values))
	return err
}
