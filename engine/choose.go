package engine

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/engine/visitors"
	"lifthouse/schema"
)

// state is what the choice of a source depends on, besides the plan.
type state struct {
	events   uint64             // approximate number of stored events of the subject
	through  time.Time          // acceptance time of the last stored event
	facts    []*facts.Refresher // nil: they are not used
	rollup   *rollup.Current    // nil: there is none, or it is too old
	sharded  bool               // the events are on several shards
	declined map[string]string
	noted    func(why string) // called when a source cannot serve the report; may be nil
}

// note passes on why a source cannot serve the report.
func (s *state) note(why string) {
	if s.noted != nil {
		s.noted(why)
	}
}

// choose returns the cheapest source that can serve a report, and the reason of
// the choice.
func choose(x *source.Execution, s *state, limits source.Limits) (chosen source.Source, reason string) {
	if s.facts != nil {
		return facts.Source{Execution: x, Shards: s.facts}, "the facts of the subject"
	}
	if few := limits.MaxInProcess(); s.events <= few {
		return source.InProcess{Execution: x}, fmt.Sprintf("the subject has at most %d events; the server counts them", few)
	}
	if reason = noRollup(x.Plan, s); reason == "" {
		if reason = noCubes(x.Plan, s); reason == "" {
			return rollup.Source{Execution: x, Current: s.rollup}, "the cubes " + strings.Join(s.rollup.CubeNames(x.Plan), "; ")
		}
		why := noVisitors(x, s)
		if why == "" {
			return visitors.Source{Execution: x, Shards: s.rollup.Visitors(x.Store), Through: s.rollup.Through, Newest: s.rollup.Newest}, reason
		}
		reason += "; " + why
	}
	if why := noSinglePass(x.Plan, s); why != "" {
		return source.Reference{Execution: x}, reason + "; " + why
	}
	return source.SinglePass{Execution: x}, reason
}

// noRollup returns why the rollup does not have the data of a report, or an empty
// text.
func noRollup(p *plan.Plan, s *state) string {
	switch {
	case s.rollup == nil:
		return "there is no current rollup"
	case p.AllEvents && s.rollup.Lacks:
		return "the rollup does not have all events yet"
	}
	return ""
}

// noVisitors returns why the rows of visitors cannot serve a report, or an empty
// text.
func noVisitors(x *source.Execution, s *state) string {
	switch {
	case s.declined[source.NameVisitors] != "":
		return s.declined[source.NameVisitors]
	case s.rollup.Visitors(x.Store) == nil:
		return fmt.Sprintf("rows of visitors have at most %d variations", visitors.MaxVariations)
	}
	return visitors.Declines(x.Plan, s.rollup.Newest)
}

// noCubes returns why the cubes cannot serve a report, or an empty text.
func noCubes(p *plan.Plan, s *state) string {
	switch {
	case s.declined[source.NameRollup] != "":
		return s.declined[source.NameRollup]
	case p.Filters.GoalValue != nil || p.Filters.ZScore != 0:
		return "cubes do not have the values of single goal events"
	case p.Cap != nil:
		return "cubes do not have the total values of visitors"
	case !wholeDay(p.Filters.From) || !wholeDay(p.Filters.To):
		return "cubes have whole days in UTC"
	case p.Interval == query.Hourly:
		return "cubes do not have hours"
	case s.rollup.CubeNames(p) == nil:
		return rollup.NoCubes
	}
	return ""
}

func wholeDay(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }

// noSinglePass returns why a single pass cannot serve a report, or an empty
// text.
func noSinglePass(p *plan.Plan, s *state) string {
	switch n := len(p.Variations); {
	case s.declined[source.NameSinglePass] != "":
		return s.declined[source.NameSinglePass]
	case n == 0 || n > source.MaxRanks:
		return fmt.Sprintf("a single pass requires 1 to %d variations", source.MaxRanks)
	case s.sharded && p.Dimension != "":
		return "a shard does not know the most frequent values of the dimension"
	}
	return ""
}

// read returns the rows from the cheapest source that can serve the report, and
// the name of the source.
func read(ctx context.Context, x *source.Execution, s state) (found *visit.Rows, from string, err error) {
	for {
		chosen, _ := choose(x, &s, x.Store.Limits)
		if x, err = bounded(ctx, x, chosen.Name()); err != nil {
			return nil, "", err
		}
		chosen, _ = choose(x, &s, x.Store.Limits)
		found, declined, err := chosen.Read(ctx)
		switch {
		case s.lostReplica(err):
			s = s.afterLoss(err)
		case err != nil || declined == "":
			return found, chosen.Name(), err
		default:
			s = s.without(chosen.Name(), declined)
		}
	}
}

// bounded returns the execution with the bounds of goal values and the limit of the
// cap that a source does not find itself.
func bounded(ctx context.Context, x *source.Execution, name string) (*source.Execution, error) {
	if name == source.NameVisitors || name == source.NameFacts {
		return x, nil
	}
	x, err := x.WithOutliers(ctx)
	if err != nil || name == source.NameInProcess {
		return x, err
	}
	return x.WithCap(ctx)
}

// without returns the state after a source has declined.
func (s state) without(source, why string) state {
	s.note(why)
	declined := map[string]string{source: why}
	maps.Copy(declined, s.declined)
	s.declined = declined
	return s
}

// lostReplica reports whether a report failed because a replica with the rollup cannot be
// reached. Others may count the events.
func (s *state) lostReplica(err error) bool {
	return s.rollup != nil && s.rollup.OfReplicas() && schema.Unreachable(err)
}

// afterLoss returns the state after a replica with the rollup was lost.
func (s state) afterLoss(err error) state {
	s.note(err.Error())
	return s.withoutRollup()
}

// withoutRollup returns the state for a report that is counted from the events.
func (s state) withoutRollup() state {
	s.rollup = nil
	return s
}
