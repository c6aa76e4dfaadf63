package looks

import (
	"slices"
	"time"

	"lifthouse/engine/moments"
)

// Window is a period of first views with equal shares.
type Window struct {
	From, To time.Time
	period   int
}

// LookWindows returns the periods of first views in a look. Changes of shares and broken weeks
// divide them.
func (a *Analysis) LookWindows(l Look) []Window {
	var windows []Window
	for _, p := range partsOf(a.Plan, a.inLooks(l.End)) {
		windows = append(windows, Window{p.from, p.to, p.period})
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
// first. rows returns the rows of a slice in each window of the look; nil: unknown, the slice is
// not in the look.
func (c *Slices) AddLook(l Look, large []string, rows func(name string) [][]moments.Row) {
	for _, name := range large {
		if !slices.Contains(c.order, name) {
			c.order = append(c.order, name)
		}
	}
	windows := c.of.LookWindows(l)
	for _, name := range c.order {
		found := lookData{Look: l, Tau: c.of.Primary.Rows[l.Number-1][0].Tau}
		var strata []stratum
		for i, of := range rows(name) {
			sum := map[key]moments.Moments{}
			for _, r := range of {
				if !r.ExposedBefore {
					at := key{r.VariationID, r.MultiExposed}
					sum[at] = sum[at].Merge(r.Moments)
				}
			}
			s := stratumOf(&strata, windows[i].period)
			s.addSigned(sum, 1, c.of.Plan.MultipleExposures)
		}
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
