package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/visit"
)

// state is what the choice of a source depends on, besides the plan.
type state struct {
	events   uint64       // approximate number of stored events of the subject
	through  time.Time    // acceptance time of the last stored event
	rollup   *rollupState // the current rollup; nil: none, or it is too old
	ranks    *ranks       // rankings of the subjects' dimensions
	sharded  bool         // the events are on several shards
	declined map[string]string
}

// choose returns the cheapest source that can serve a report, and the reason of
// the choice.
func choose(x *execution, s *state, limits Limits) (chosen source, reason string) {
	if few := limits.inProcessEvents(); s.events <= few {
		return inProcessSource{x}, fmt.Sprintf("the server counts the events of a subject with at most %d of them", few)
	}
	reason = noRollup(x.Plan, s)
	if reason == "" {
		q, _ := newRollupQuery(x.Plan, *s.rollup)
		return rollupSource{x, *s.rollup, s.ranks}, "the cubes " + strings.Join(q.cubes.names(), "; ")
	}
	if why := noSinglePass(x.Plan, s); why != "" {
		return referenceSource{x}, reason + "; " + why
	}
	return singlePassSource{x}, reason
}

// noRollup returns why the rollup cannot serve a report, or an empty text.
func noRollup(p *plan.Plan, s *state) string {
	switch {
	case s.declined[SourceRollup] != "":
		return s.declined[SourceRollup]
	case p.Filters.GoalValue != nil || p.Filters.ZScore != 0:
		return "rollups do not have the values of single goal events"
	case !wholeDay(p.Filters.From) || !wholeDay(p.Filters.To):
		return "rollups have whole days in UTC"
	case p.Interval == query.Hourly:
		return "rollups do not have hours"
	case s.rollup == nil:
		return "there is no current rollup"
	case p.AllEvents && s.rollup.through.Before(s.through):
		return "the rollup does not have all events yet"
	}
	if _, expressible := newRollupQuery(p, *s.rollup); !expressible {
		return "no cube has the attributes and days"
	}
	return ""
}

func wholeDay(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }

// noSinglePass returns why a single pass cannot serve a report, or an empty
// text.
func noSinglePass(p *plan.Plan, s *state) string {
	switch n := len(p.Variations); {
	case s.declined[SourceSinglePass] != "":
		return s.declined[SourceSinglePass]
	case n == 0 || n > maxRanks:
		return fmt.Sprintf("a single pass requires 1 to %d variations", maxRanks)
	case s.sharded && p.Dimension != "":
		return "a shard does not know the most frequent values of the dimension"
	}
	return ""
}

// read returns the rows from the cheapest source that can serve the report, and
// the name of the source.
func read(ctx context.Context, x *execution, s state) (found *visit.Rows, from string, err error) {
	for {
		chosen, _ := choose(x, &s, x.store.limits)
		found, declined, err := chosen.read(ctx)
		if err != nil || declined == "" {
			return found, chosen.name(), err
		}
		s = s.without(chosen.name(), declined)
	}
}

// without returns the state after a source has declined.
func (s state) without(source, why string) state {
	declined := map[string]string{source: why}
	for other, why := range s.declined {
		declined[other] = why
	}
	s.declined = declined
	return s
}

// withoutRollup returns the state for a report that is counted from the events.
func (s state) withoutRollup() state {
	return s.without(SourceRollup, "the report is counted from the events on request")
}
