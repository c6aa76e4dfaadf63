package rollup

import (
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
)

// readSlots are the slots of sql/rollup.sql.
type readSlots struct {
	source.Slots
	Steps  bool // group the days of a cube into buckets
	Window bool
	Top    bool // select some values of the dimension
	ByGoal bool // read several goals
	Shares bool // some visitors were exposed before the current shares took effect
}

// cubeColumn returns the column of an attribute.
func cubeColumn(attribute string) string { return string(source.Columns[attribute]) }

// cubeSet has the cubes from which a report is read. They may coincide.
type cubeSet struct {
	whole *cube
	cells *cube // for the breakdown; nil: no breakdown
	steps *cube // for the series; nil: no series
}

// cubesFor returns the cheapest cubes with the filtered attributes, the
// dimension and the days that the report needs. It returns false if there are
// none.
func cubesFor(p *plan.Plan, byDays bool) (cubeSet, bool) {
	filtered := filteredColumns(p)
	c := cubeSet{whole: cheapestCube(filtered, func(f *cube) bool { return f.firstDay && f.day == byDays })}
	found := c.whole != nil
	if p.Dimension != "" {
		needed := append(slices.Clone(filtered), cubeColumn(string(p.Dimension)))
		c.cells = cheapestCube(needed, func(f *cube) bool { return f.day == byDays && (f.firstDay || !byDays) })
		found = found && c.cells != nil
	}
	if p.Interval != "" {
		c.steps = cheapestCube(filtered, func(f *cube) bool { return f.day && (f.firstDay || !byDays) })
		found = found && c.steps != nil
	}
	return c, found
}

func (c *cubeSet) names() []string {
	names := []string{stateName}
	for _, f := range []*cube{c.whole, c.cells, c.steps} {
		if f != nil && !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	return names
}

// cheapestCube returns the first cube with the columns for which suits is true,
// or nil.
func cheapestCube(needed []string, suits func(*cube) bool) *cube {
	for i := range cubes {
		f := &cubes[i]
		if !f.rank && suits(f) && f.has(needed) {
			return f
		}
	}
	return nil
}

func filteredColumns(p *plan.Plan) []string {
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
func windowed(p *plan.Plan, newest time.Time) bool {
	return !p.Filters.From.IsZero() || !p.Filters.To.IsZero() && !p.Filters.To.After(newest)
}
