package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"lifthouse/schema"
)

// errUnsettled says that a report cannot be had from what is settled, now or
// ever: the events have to be counted.
var errNoRollup = errors.New("not settled")

// settledHolds is for how long reports are given as of the last settlement
// while none follows; after it they are counted from the events.
const rollupMaxAge = 5 * time.Second

// settledState is what the state of a generation says.
type rollupState struct {
	generation      uint64
	sharesSince     int64
	events          uint64
	through, newest time.Time
}

// settledSlots are what differs between reports in sql/rollup.sql.
type rollupSlots struct {
	slots
	Steps  bool // a facet's days are put into buckets
	Window bool
	Top    bool // only some values of the dimension
	Shares bool // some visitors came before the shares hold
}

// settledColumn is where an attribute is.
func cubeColumn(attribute string) string { return string(columns[attribute]) }

// cut are the facets that an answer is read from. Two of them may be one.
type cubeSet struct {
	whole *schema.Cube
	cells *schema.Cube // of the breakdown; nil: there is none
	steps *schema.Cube // of the series; nil: there is none
}

// cut returns the cheapest facets that tell what the report asks for: of the
// visitors' attributes, and of its window by both days.
func (p *Plan) cubeSet(byDays bool) (cubeSet, bool) {
	filtered := p.filteredColumns()
	c := cubeSet{whole: cheapestCube(filtered, func(f *schema.Cube) bool { return f.FirstDay && f.Day == byDays })}
	found := c.whole != nil
	if p.Dimension != "" {
		needed := append(slices.Clone(filtered), cubeColumn(string(p.Dimension)))
		c.cells = cheapestCube(needed, func(f *schema.Cube) bool { return f.Day == byDays && (f.FirstDay || !byDays) })
		found = found && c.cells != nil
	}
	if p.Interval != "" {
		c.steps = cheapestCube(filtered, func(f *schema.Cube) bool { return f.Day && (f.FirstDay || !byDays) })
		found = found && c.steps != nil
	}
	return c, found
}

func (c *cubeSet) names() []string {
	names := []string{schema.StateCube}
	for _, f := range []*schema.Cube{c.whole, c.cells, c.steps} {
		if f != nil && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// facetFor returns the first facet that keeps the columns and will do; nil: none.
func cheapestCube(needed []string, does func(*schema.Cube) bool) *schema.Cube {
	for i := range schema.Cubes {
		f := &schema.Cubes[i]
		if !f.Rank && does(f) && !slices.ContainsFunc(needed, func(column string) bool { return !f.HasAttribute(column) }) {
			return f
		}
	}
	return nil
}

func (p *Plan) filteredColumns() []string {
	var needed []string
	for _, filter := range p.Filters.Lists {
		needed = append(needed, cubeColumn(filter.Attribute))
	}
	for _, filter := range p.Filters.Texts {
		needed = append(needed, cubeColumn(filter.Attribute))
	}
	return needed
}

// windowed says whether the window may leave something out of what was settled
// through the newest event.
func (p *Plan) windowed(newest time.Time) bool {
	return !p.Filters.From.IsZero() || !p.Filters.To.IsZero() && !p.Filters.To.After(newest)
}

// canSettle says whether the sums can express the report at all.
func (p *Plan) fitsRollup() bool {
	wholeDays := func(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }
	return p.Filters.GoalValue == nil && p.Filters.ZScore == 0 &&
		wholeDays(p.Filters.From) && wholeDays(p.Filters.To) &&
		p.Interval != Hourly
}

// settledAnswer is what the sums say: the rows of the whole, those of the
// breakdown, and the steps of the series.
type rollupAnswer struct {
	whole, cells []row
	steps        []step
}

// settled answers the plan from the sums of a generation, of which the state
// was read before, and sets how far the data go. The error is errUnsettled
// where the sums do not do.
func (p *Plan) fromRollup(ctx context.Context, from *store, state rollupState) (*rollupAnswer, error) {
	const tries = 3 // a settlement may come between two statements
	for range tries {
		p.DataThrough, p.newest = state.through, state.newest
		byDays := p.windowed(state.newest)
		cubes, expressible := p.cubeSet(byDays)
		if !expressible {
			return nil, errNoRollup
		}
		q := &rollupQuery{plan: p, cubes: cubes, state: state, byDays: byDays}
		answer, err := q.answer(ctx, from)
		if err != nil {
			return nil, err
		}
		if !q.moved {
			return answer, nil
		}
		state = q.state
	}
	return nil, errNoRollup
}

// results makes the body.
func (a *rollupAnswer) results(ctx context.Context, p *Plan, from *store) (*Results, error) {
	_, span := tracer.Start(ctx, "stats")
	results := newResults(p, a.cells, a.whole)
	span.End()
	var err error
	if p.Interval != "" {
		results.Series, err = p.points(ctx, from, a.steps)
	}
	return results, err
}

// Few is how many events a subject may have whose reports are counted from
// them rather than from what is settled.
func (e *Engine) InProcessEvents() uint64 { return e.store.limits.inProcessEvents() }
