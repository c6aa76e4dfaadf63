package engine

import (
	"context"
	"fmt"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"slices"
	"strings"
	"time"
)

// The sources of the rows of a report.
const (
	SourceInProcess  = "in-process"  // the server counts the events; for subjects with few events
	SourceRollup     = "rollup"      // cubes of the rollup
	SourceSinglePass = "single-pass" // the store counts the events in one pass
	SourceReference  = "reference"   // the store counts the events by lists per visitor
)

// source returns the rows of a report.
type source interface {
	// name is one of the names of sources.
	name() string
	// read returns the rows. If the source turns out to be unable to serve the
	// report, read returns the reason, and another source must serve it.
	read(ctx context.Context) (found *answer, declined string, err error)
}

// answer has the rows of a report and what they include.
type answer struct {
	whole    []row     // the rows of the whole report
	cells    []row     // the rows of the breakdown; equal to whole unless they are incomplete
	steps    []step    // what each bucket of the series adds; with a z-score, before the removal of outliers
	through  time.Time // acceptance time of the last event; zero: no events
	newest   time.Time // latest event time; zero: no events
	outliers *Outliers // bounds of goal values; nil: no z-score
}

// answer returns rows that were read from the events.
func (x *execution) answer(rows []row, steps []step) *answer {
	return &answer{whole: rows, cells: rows, steps: steps, through: x.stored.ingested, newest: x.stored.newest, outliers: x.outliers}
}

// state is what the choice of a source depends on, besides the plan.
type state struct {
	events   uint64       // approximate number of stored events of the subject
	through  time.Time    // acceptance time of the last stored event
	rollup   *rollupState // the current rollup; nil: none, or it is too old
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
		return rollupSource{x, *s.rollup}, "the cubes " + strings.Join(q.cubes.names(), "; ")
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
func (x *execution) read(ctx context.Context, s state) (found *answer, from string, err error) {
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

// steps returns what each bucket of the series adds, before the removal of
// outliers; nil without a series.
func (x *execution) steps(ctx context.Context) ([]step, error) {
	if x.Interval == "" {
		return nil, nil
	}
	query, err := x.withoutOutliers().seriesQuery()
	if err != nil {
		return nil, err
	}
	return scanSteps(ctx, x.store, query)
}

// variationIDs returns the ids of the variations in ascending order.
func (x *execution) variationIDs() []int64 {
	ids := make([]int64, len(x.Variations))
	for i, v := range x.Variations {
		ids[i] = v.ID
	}
	slices.Sort(ids)
	return ids
}
