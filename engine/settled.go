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
var errUnsettled = errors.New("not settled")

// settledHolds is for how long reports are given as of the last settlement
// while none follows; after it they are counted from the events.
const settledHolds = 5 * time.Second

// settledState is what the state of a generation says.
type settledState struct {
	generation      uint64
	sharesSince     int64
	events          uint64
	through, newest time.Time
}

// settledSlots are what differs between reports in sql/settled.sql.
type settledSlots struct {
	slots
	Steps  bool // a facet's days are put into buckets
	Window bool
	Top    bool // only some values of the dimension
	Shares bool // some visitors came before the shares hold
}

// settledColumn is where an attribute is.
func settledColumn(attribute string) string { return string(columns[attribute]) }

// cut are the facets that an answer is read from. Two of them may be one.
type cut struct {
	whole *schema.Facet
	cells *schema.Facet // of the breakdown; nil: there is none
	steps *schema.Facet // of the series; nil: there is none
}

// cut returns the cheapest facets that tell what the report asks for: of the
// visitors' attributes, and of its window by both days.
func (p *Plan) cut(byDays bool) (cut, bool) {
	filtered := p.filteredColumns()
	c := cut{whole: facetFor(filtered, func(f *schema.Facet) bool { return f.FirstDay && f.Day == byDays })}
	found := c.whole != nil
	if p.Dimension != "" {
		needed := append(slices.Clone(filtered), settledColumn(string(p.Dimension)))
		c.cells = facetFor(needed, func(f *schema.Facet) bool { return f.Day == byDays && (f.FirstDay || !byDays) })
		found = found && c.cells != nil
	}
	if p.Interval != "" {
		c.steps = facetFor(filtered, func(f *schema.Facet) bool { return f.Day && (f.FirstDay || !byDays) })
		found = found && c.steps != nil
	}
	return c, found
}

func (c *cut) names() []string {
	names := []string{schema.SettledState}
	for _, f := range []*schema.Facet{c.whole, c.cells, c.steps} {
		if f != nil && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// facetFor returns the first facet that keeps the columns and will do; nil: none.
func facetFor(needed []string, does func(*schema.Facet) bool) *schema.Facet {
	for i := range schema.Facets {
		f := &schema.Facets[i]
		if !f.Rank && does(f) && !slices.ContainsFunc(needed, func(column string) bool { return !f.Keeps(column) }) {
			return f
		}
	}
	return nil
}

func (p *Plan) filteredColumns() []string {
	var needed []string
	for _, filter := range p.Filters.Lists {
		needed = append(needed, settledColumn(filter.Attribute))
	}
	for _, filter := range p.Filters.Texts {
		needed = append(needed, settledColumn(filter.Attribute))
	}
	return needed
}

// windowed says whether the window may leave something out of what was settled
// through the newest event.
func (p *Plan) windowed(newest time.Time) bool {
	return !p.Filters.From.IsZero() || !p.Filters.To.IsZero() && !p.Filters.To.After(newest)
}

// canSettle says whether the sums can express the report at all.
func (p *Plan) canSettle() bool {
	wholeDays := func(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }
	return p.Filters.GoalValue == nil && p.Filters.ZScore == 0 &&
		wholeDays(p.Filters.From) && wholeDays(p.Filters.To) &&
		p.Interval != Hourly
}

// settledAnswer is what the sums say: the rows of the whole, those of the
// breakdown, and the steps of the series.
type settledAnswer struct {
	whole, cells []row
	steps        []step
}

// settled answers the plan from the sums of a generation, of which the state
// was read before, and sets how far the data go. The error is errUnsettled
// where the sums do not do.
func (p *Plan) settled(ctx context.Context, from *store, state settledState) (*settledAnswer, error) {
	const tries = 3 // a settlement may come between two statements
	for range tries {
		p.DataThrough, p.newest = state.through, state.newest
		byDays := p.windowed(state.newest)
		cut, expressible := p.cut(byDays)
		if !expressible {
			return nil, errUnsettled
		}
		q := &settledQuery{plan: p, cut: cut, state: state, byDays: byDays}
		answer, err := q.answer(ctx, from)
		if err != nil {
			return nil, err
		}
		if !q.moved {
			return answer, nil
		}
		state = q.state
	}
	return nil, errUnsettled
}

// results makes the body.
func (a *settledAnswer) results(ctx context.Context, p *Plan, from *store) (*Results, error) {
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
func (e *Engine) Few() uint64 { return e.store.limits.few() }
