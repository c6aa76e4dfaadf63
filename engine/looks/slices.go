package looks

import (
	"slices"
	"time"

	"lifthouse/engine/moments"
)

// Window is a period of first views.
type Window struct{ From, To time.Time }

// LookWindows returns the periods of first views in a look. Broken weeks divide them.
func (a *Analysis) LookWindows(l Look) []Window {
	var windows []Window
	for _, part := range a.inLooks(l.End) {
		windows = append(windows, Window{part.from, part.to})
	}
	return windows
}

// Slices has the looks at the slices of a breakdown. The j-th slice that reaches enough visitors
// in each variation gets the error budget alpha / (j (j + 1)), from that look on.
type Slices struct {
	of    *Analysis
	order []string
	data  map[string][]lookData
}

// NewSlices returns the slices of a breakdown of the declared question, without looks.
func NewSlices(a *Analysis) *Slices { return &Slices{of: a, data: map[string][]lookData{}} }

// AddLook adds a look. large has the names of the slices with enough visitors, the most visited
// first. rows returns the rows of a slice in the windows of the look; nil: unknown, the slice is
// not in the look.
func (c *Slices) AddLook(l Look, large []string, rows func(name string) []moments.Row) {
	for _, name := range large {
		if !slices.Contains(c.order, name) {
			c.order = append(c.order, name)
		}
	}
	for _, name := range c.order {
		found := lookData{Look: l, Tau: c.of.Primary.Rows[l.Number-1][0].Tau}
		sum := map[key]moments.Moments{}
		for _, r := range rows(name) {
			if !r.ExposedBefore {
				at := keyOf(&r, 0)
				sum[at] = sum[at].Merge(r.Moments)
			}
		}
		var strata []stratum
		addSigned(&strata, sum, 1, c.of.Plan.MultipleExposures, l.End)
		for i := range strata {
			data, visitors := samplesOf(c.of.Plan, &strata[i])
			found.Strata, found.Visitors = append(found.Strata, data), found.Visitors+visitors
		}
		c.data[name] = append(c.data[name], found)
	}
}

// AnalyzeBreakdown returns the results of the looks at each slice, by name.
func (a *Analyzer) AnalyzeBreakdown(c *Slices) map[string]*Analysis {
	all := map[string]*Analysis{}
	for i, name := range c.order {
		found := &Analysis{Schedule: c.of.Schedule, Plan: c.of.Plan, Primary: a.analyzeSums(c.of.Plan, c.of.Schedule, i+1, c.data[name], nil)}
		found.Outcome = found.Primary.FindOutcome(alphaOf(found.Plan))
		all[name] = found
	}
	return all
}
