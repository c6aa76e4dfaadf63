package result

import (
	"slices"
	"strings"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/stats"
)

// The names of slices without a value. A real value with such a name, possibly
// after backslashes, gets another backslash.
const (
	otherValues = "(other)"
	noValue     = "(none)"
)

// breakdown has the evaluated slices of a report.
type breakdown struct {
	plan   *plan.Plan
	names  []string
	slices []sliceResult
}

// newBreakdown computes the slices without their conclusions.
func newBreakdown(p *plan.Plan, found *moments.Rows) *breakdown {
	names, all := slicesOf(p, found)
	b := &breakdown{plan: p, names: names, slices: make([]sliceResult, len(all))}
	onAllCores(len(all), func(i int) { b.slices[i] = all[i].computeResults(p, found) })
	return b
}

// ConcludeSlices sets the conclusions of the slices of the breakdown. found has the results of
// the looks at each slice, by name; nil: no looks. Verdicts at a fixed horizon are adjusted
// across the slices.
func (r *Report) ConcludeSlices(found map[string]*looks.Analysis) {
	b := r.breakdown
	comparisons := make([][]stats.Comparison, len(b.slices))
	for i := range b.slices {
		comparisons[i] = slices.Clone(b.slices[i].comparisons)
	}
	stats.WeakenAcrossSlices(comparisons, statsOptions(b.plan))
	r.Breakdown = make([]BreakdownSlice, len(b.slices))
	for i, weakened := range comparisons {
		j := b.slices[i]
		j.Variations = slices.Clone(j.Variations)
		for t, c := range weakened {
			j.Variations[t+1].Comparison = NewComparison(c)
		}
		j.setConclusion(b.plan, found[b.names[i]], true)
		r.Breakdown[i] = BreakdownSlice{Value: b.names[i], Slice: j.Slice}
	}
}

// LargeSlices returns the names of the slices with enough visitors in each variation for a look,
// the most visited first. The slice "(other)" is excluded, because its values change.
func LargeSlices(p *plan.Plan, found *moments.Rows) []string {
	visitors := map[string]int64{}
	names, all := slicesOf(p, found)
	for i, c := range all {
		if names[i] != otherValues && c.isLarge(p) {
			visitors[names[i]] = c.visitorsBeforeExclusion()
		}
	}
	return moments.MostVisited(visitors)
}

// RowsOfSlice returns the rows of a slice.
func RowsOfSlice(found *moments.Rows, name string) []moments.Row {
	var rows []moments.Row
	for _, r := range found.Slices {
		if !r.Others && ShownValue(r.Dimension) == name {
			r.Dimension = ""
			rows = append(rows, r)
		}
	}
	return rows
}

// slicesOf returns the names and the sums of the slices: one for each of the most frequent
// dimension values, and one for all other values.
func slicesOf(p *plan.Plan, found *moments.Rows) (names []string, all []sliceSums) {
	byValue := map[string][]moments.Row{}
	visitors := map[string]int64{}
	var others []moments.Row
	for _, r := range found.Slices {
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
func (c *sliceSums) isLarge(p *plan.Plan) bool {
	shares := p.ExpectedShares()
	known := slices.Max(append(shares, 0)) > 0
	for i, share := range shares {
		if (share > 0 || !known) && c.counted[p.Variations[i].ID].Visitors < stats.MinimumVisitors {
			return false
		}
	}
	return true
}

// ShownValue returns the name of the slice for a dimension value.
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
