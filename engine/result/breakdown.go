package result

import (
	"slices"
	"strings"

	"lifthouse/engine/plan"
	"lifthouse/engine/visit"
	"lifthouse/stats"
)

// The names of cells without a value. A real value with such a name, possibly
// after backslashes, gets another backslash.
const (
	otherValues = "(other)"
	noValue     = "(none)"
)

// breakdown are the evaluated cells of a report.
type breakdown struct {
	plan        *plan.Plan
	decision    *Decision
	plannedLook bool // the report is the planned look
	names       []string
	cells       []cellResult
	large       []bool // see cell.isLarge
}

// newBreakdown computes the cells without their conclusions.
func newBreakdown(p *plan.Plan, found *visit.Rows, decision *Decision, plannedLook bool) *breakdown {
	names, all := cellsOf(p, found)
	b := &breakdown{plan: p, decision: decision, plannedLook: plannedLook, names: names}
	b.cells, b.large = make([]cellResult, len(all)), make([]bool, len(all))
	onAllCores(len(all), func(i int) {
		b.cells[i], b.large[i] = all[i].evaluate(p, found, plannedLook), all[i].isLarge(p)
	})
	return b
}

// cellsOf returns the names and the sums of a cell for each of the most frequent values
// of the dimension, and of one for all others.
func cellsOf(p *plan.Plan, found *visit.Rows) (names []string, all []cell) {
	byValue := map[string][]visit.Row{}
	visitors := map[string]int64{}
	var others []visit.Row
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
	values := visit.MostVisited(visitors)
	add := func(name string, rows []visit.Row) {
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

// isLarge reports whether each variation with a share has enough visitors for a
// conclusion. All have a share if no share is known.
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

// ShownValue returns the name of the cell of a value of the dimension.
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
