package looks

import (
	"slices"
	"time"

	"lifthouse/engine/visit"
)

// OneWindow returns the time from which the first views of the visitors of all looks are, or
// false if they are not in one window with equal shares.
func (a *Analysis) OneWindow() (from time.Time, one bool) {
	parts := partsOf(a.Plan, a.days)
	if len(parts) != 1 {
		return time.Time{}, false
	}
	return parts[0].from, true
}

// Cells are the looks at the cells of a breakdown. The j-th cell to have enough visitors in
// each variation has the error budget alpha / (j (j + 1)), from that look on.
type Cells struct {
	of    *Analysis
	order []string
	data  map[string][]lookData
}

// NewCells returns the cells of a breakdown of the declared question, without looks. The
// subject has one window.
func NewCells(a *Analysis) *Cells { return &Cells{of: a, data: map[string][]lookData{}} }

// Add adds a look. large has the names of the cells with enough visitors, the most visited
// first, and rows returns the rows of a cell.
func (c *Cells) Add(l Look, large []string, rows func(name string) []visit.Row) {
	for _, name := range large {
		if !slices.Contains(c.order, name) {
			c.order = append(c.order, name)
		}
	}
	tau := c.of.Primary.Rows[l.Number-1][0].Tau
	for _, name := range c.order {
		sum := map[key]visit.Moments{}
		for _, r := range rows(name) {
			if !r.ExposedBefore {
				at := key{r.VariationID, r.MultiExposed}
				sum[at] = sum[at].Merge(r.Moments)
			}
		}
		s := stratum{period: partsOf(c.of.Plan, c.of.days)[0].period, counted: map[int64]visit.Moments{}, firstViews: map[int64]int64{}}
		s.add(sum, 1, c.of.Plan.MultipleExposures)
		data, visitors := samplesOf(c.of.Plan, &s)
		c.data[name] = append(c.data[name], lookData{Look: l, Tau: tau, Visitors: visitors, Strata: []stratumData{data}})
	}
}

// Cells returns what the looks found of each cell, by name.
func (a *Analyzer) Cells(c *Cells) map[string]*Analysis {
	all := map[string]*Analysis{}
	for i, name := range c.order {
		found := &Analysis{Schedule: c.of.Schedule, Plan: c.of.Plan, Primary: a.analyze(c.of.Plan, c.of.Schedule, i+1, c.data[name], nil)}
		found.Outcome = found.Primary.Outcome(alphaOf(found.Plan))
		all[name] = found
	}
	return all
}
