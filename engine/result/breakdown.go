package result

import (
	"slices"
	"strings"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/stats"
)

// The names of cells without a value. A real value with such a name, possibly
// after backslashes, gets another backslash.
const (
	otherValues = "(other)"
	noValue     = "(none)"
)

// breakdown has the evaluated cells of a report.
type breakdown struct {
	plan  *plan.Plan
	names []string
	cells []cellResult
}

// newBreakdown computes the cells without their conclusions.
func newBreakdown(p *plan.Plan, found *moments.Rows) *breakdown {
	names, all := cellsOf(p, found)
	b := &breakdown{plan: p, names: names, cells: make([]cellResult, len(all))}
	onAllCores(len(all), func(i int) { b.cells[i] = all[i].computeResults(p, found) })
	return b
}

// ConcludeCells sets the conclusions of the cells of the breakdown. found has the results of
// the looks at each cell, by name; nil: no looks. Verdicts at a fixed horizon are adjusted
// across the cells.
func (r *Report) ConcludeCells(found map[string]*looks.Analysis) {
	b := r.cells
	comparisons := make([][]stats.Comparison, len(b.cells))
	for i := range b.cells {
		comparisons[i] = slices.Clone(b.cells[i].comparisons)
	}
	stats.WeakenAcrossCells(comparisons, statsOptions(b.plan))
	r.Breakdown = make([]BreakdownCell, len(b.cells))
	for i, weakened := range comparisons {
		j := b.cells[i]
		j.Variations = slices.Clone(j.Variations)
		for t, c := range weakened {
			j.Variations[t+1].Comparison = NewComparison(c)
		}
		j.setConclusion(b.plan, found[b.names[i]])
		r.Breakdown[i] = BreakdownCell{Value: b.names[i], Cell: j.Cell}
	}
}

// LargeCells returns the names of the cells with enough visitors in each variation for a look,
// the most visited first. The cell "(other)" is excluded, because its values change.
func LargeCells(p *plan.Plan, found *moments.Rows) []string {
	visitors := map[string]int64{}
	names, all := cellsOf(p, found)
	for i, c := range all {
		if names[i] != otherValues && c.isLarge(p) {
			visitors[names[i]] = c.visitorsBeforeExclusion()
		}
	}
	return moments.MostVisited(visitors)
}

// RowsOfCell returns the rows of a cell.
func RowsOfCell(found *moments.Rows, name string) []moments.Row {
	var rows []moments.Row
	for _, r := range found.Cells {
		if !r.Others && ShownValue(r.Dimension) == name {
			r.Dimension = ""
			rows = append(rows, r)
		}
	}
	return rows
}

// cellsOf returns the names and the sums of the cells: one for each of the most frequent
// dimension values, and one for all other values.
func cellsOf(p *plan.Plan, found *moments.Rows) (names []string, all []cell) {
	byValue := map[string][]moments.Row{}
	visitors := map[string]int64{}
	var others []moments.Row
	for _, r := range found.Cells {
		if r.Others {
			others = append(others, r)
			continue
		}
		byValue[r.Dimension] = append(byValue[r.Dimension], r)
		if !r.ExposedBefore {
			visitors[r.Dimension] += r.Visitors
		}
	}
	values := moments.MostVisited(visitors)
	add := func(name string, rows []moments.Row) {
		names, all = append(names, name), append(all, sumRows(rows, p.MultipleExposures))
	}
	for _, value := range values[:min(len(values), p.Top)] {
		add(ShownValue(value), byValue[value])
		delete(byValue, value)
	}
	if len(values) > p.Top || len(others) > 0 {
		for _, rows := range byValue {
			others = append(others, rows...)
		}
		add(otherValues, others)
	}
	return names, all
}

// isLarge reports whether each variation with a share has enough visitors for a conclusion. If
// no share is known, all variations must have enough.
func (c *cell) isLarge(p *plan.Plan) bool {
	shares := p.ExpectedShares()
	known := slices.Max(append(shares, 0)) > 0
	for i, share := range shares {
		if (share > 0 || !known) && c.counted[p.Variations[i].ID].Visitors < stats.MinimumVisitors {
			return false
		}
	}
	return true
}

// ShownValue returns the name of the cell for a dimension value.
func ShownValue(value string) string {
	switch strings.TrimLeft(value, `\`) {
	case "":
		if value == "" {
			return noValue
		}
	case otherValues, noValue:
		return `\` + value
	}
	return value
}
