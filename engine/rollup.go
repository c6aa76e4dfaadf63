package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"lifthouse/schema"
)

// errNoRollup reports that a rollup cannot serve a report. The report is
// counted from the events.
var errNoRollup = errors.New("no usable rollup")

// rollupMaxAge is the maximum age of the last refresh while newer events wait.
// After it, reports are counted from the events.
const rollupMaxAge = 5 * time.Second

// rollupState is the state of a generation of a rollup.
type rollupState struct {
	generation      uint64
	sharesSince     int64
	events          uint64
	through, newest time.Time
}

// rollupSlots are the slots of sql/rollup.sql.
type rollupSlots struct {
	slots
	Steps  bool // group the days of a cube into buckets
	Window bool
	Top    bool // select some values of the dimension
	Shares bool // some visitors were exposed before the current shares took effect
}

// cubeColumn returns the column of an attribute.
func cubeColumn(attribute string) string { return string(columns[attribute]) }

// cubeSet has the cubes from which a report is read. They may coincide.
type cubeSet struct {
	whole *schema.Cube
	cells *schema.Cube // for the breakdown; nil: no breakdown
	steps *schema.Cube // for the series; nil: no series
}

// cubeSet returns the cheapest cubes with the filtered attributes, the
// dimension and the days that the report needs. It returns false if there are
// none.
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

// cheapestCube returns the first cube with the columns for which suits is true,
// or nil.
func cheapestCube(needed []string, suits func(*schema.Cube) bool) *schema.Cube {
	for i := range schema.Cubes {
		f := &schema.Cubes[i]
		if !f.Rank && suits(f) && !slices.ContainsFunc(needed, func(column string) bool { return !f.HasAttribute(column) }) {
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

// windowed reports whether the window may exclude visitors or events before the
// newest event.
func (p *Plan) windowed(newest time.Time) bool {
	return !p.Filters.From.IsZero() || !p.Filters.To.IsZero() && !p.Filters.To.After(newest)
}

// fitsRollup reports whether cubes can express the report: no filter on goal
// values, whole days, and no hourly series.
func (p *Plan) fitsRollup() bool {
	wholeDays := func(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }
	return p.Filters.GoalValue == nil && p.Filters.ZScore == 0 &&
		wholeDays(p.Filters.From) && wholeDays(p.Filters.To) &&
		p.Interval != Hourly
}

// rollupAnswer has the rows of the whole report, of the breakdown, and the
// steps of the series.
type rollupAnswer struct {
	whole, cells []row
	steps        []step
}

// fromRollup reads the report from a generation with the given state, and sets
// the freshness of the plan. The error is errNoRollup if that is not possible.
func (p *Plan) fromRollup(ctx context.Context, from *store, state rollupState) (*rollupAnswer, error) {
	const tries = 3 // a refresh may run between two statements
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

// results computes the body.
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

// InProcessEvents returns the maximum number of events of a subject that are
// counted in process. Larger subjects have rollups.
func (e *Engine) InProcessEvents() uint64 { return e.store.limits.inProcessEvents() }
