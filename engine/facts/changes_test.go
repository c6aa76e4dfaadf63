package facts_test

import (
	"testing"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// TestLifetimesOfOrders has orders of 100 with revisions in any order of arrival, as known ten hours after the order. An
// order counts as one, or as its value.
func TestLifetimesOfOrders(t *testing.T) {
	hour := time.Hour.Milliseconds()
	state := func(at int64, revision uint64, value int64) facts.OrderState {
		return facts.OrderState{Accepted: at * hour, Revision: revision, Amounts: [3]int64{value}}
	}
	cancelled := func(at int64, revision uint64) facts.OrderState {
		return facts.OrderState{Accepted: at * hour, Revision: revision, IsGone: true}
	}
	bare := func(of facts.OrderState) facts.OrderState {
		of.Bare = true
		return of
	}
	unchanged := stats.Lifetime{Age: 10, Amount: 1}
	for name, of := range map[string]struct {
		states []facts.OrderState
		counts stats.Lifetime
		value  stats.Lifetime // without an Amount: the order has none
	}{
		"once":              {[]facts.OrderState{state(0, 0, 100)}, unchanged, stats.Lifetime{Age: 10, Amount: 100}},
		"sent twice":        {[]facts.OrderState{state(0, 1, 100), state(4, 1, 20)}, unchanged, stats.Lifetime{Age: 10, Amount: 100}},
		"increased":         {[]facts.OrderState{state(0, 1, 100), state(4, 2, 120)}, unchanged, stats.Lifetime{Age: 10, Amount: 100}},
		"reduced":           {[]facts.OrderState{state(0, 1, 100), state(4, 2, 70)}, unchanged, stats.Lifetime{Age: 4, Amount: 100, Removed: 30}},
		"reduced twice":     {[]facts.OrderState{state(0, 1, 100), state(4, 2, 70), state(6, 3, 10)}, unchanged, stats.Lifetime{Age: 4, Amount: 100, Removed: 90}},
		"cancelled":         {[]facts.OrderState{state(0, 1, 100), cancelled(7, 2)}, stats.Lifetime{Age: 7, Amount: 1, Removed: 1}, stats.Lifetime{Age: 7, Amount: 100, Removed: 100}},
		"by the shop":       {[]facts.OrderState{state(0, 0, 100), bare(cancelled(7, 2))}, stats.Lifetime{Age: 7, Amount: 1, Removed: 1}, stats.Lifetime{Age: 7, Amount: 100, Removed: 100}},
		"bare, no revision": {[]facts.OrderState{state(0, 0, 100), bare(cancelled(7, 0))}, unchanged, stats.Lifetime{Age: 10, Amount: 100}},
		"restored":          {[]facts.OrderState{state(0, 1, 100), cancelled(3, 2), state(5, 3, 100)}, unchanged, stats.Lifetime{Age: 10, Amount: 100}},
		"older, later":      {[]facts.OrderState{state(0, 5, 100), cancelled(3, 2)}, unchanged, stats.Lifetime{Age: 10, Amount: 100}},
		"arrives cancelled": {[]facts.OrderState{cancelled(2, 1)}, stats.Lifetime{Age: 2, Amount: 1, Removed: 1}, stats.Lifetime{}},
	} {
		h := facts.OrderHistory{States: of.states}
		counts, known := h.LifetimeOf(-1, 10*hour)
		must.That(t, known, "%s: counted %+v, want %+v", name, counts, of.counts)
		check.Equal(t, counts, of.counts, "%s: counted %+v, want %+v", name, counts, of.counts)
		value, known := h.LifetimeOf(0, 10*hour)
		if of.value.Amount == 0 {
			check.That(t, !known, "%s: has the value %+v", name, value)
			continue
		}
		must.That(t, known, "%s: value %+v, want %+v", name, value, of.value)
		check.Equal(t, value, of.value, "%s: value %+v, want %+v", name, value, of.value)
	}
}
