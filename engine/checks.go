package engine

import (
	"cmp"
	"fmt"
	"slices"

	"lifthouse/stats"
)

func (c *cell) checks(plan *Plan) Checks {
	checks := Checks{
		Leak:              []Leak{},
		MultipleExposures: c.multipleExposures(plan),
		UnknownVariations: c.unknownVariations(plan),
		Window:            WindowCheck{EarlierVisitors: c.exposedBefore},
		Warnings:          []Warning{},
	}
	warn := func(code, format string, args ...any) {
		checks.Warnings = append(checks.Warnings, Warning{code, fmt.Sprintf(format, args...)})
	}
	if plan.DataThrough.IsZero() {
		warn("NO_EVENTS", "nothing is stored of it yet: events that name it will show here, and since when its data are there")
	}
	if plan.Rules.Compare {
		checks.SampleRatio, checks.Leak = c.sampleRatio(plan), c.leak(plan)
	}
	if checks.SampleRatio != nil && checks.SampleRatio.Mismatch {
		warn("SAMPLE_RATIO_MISMATCH", "visitors did not fall on the variations as their shares say (p = %s): "+
			"something loses or adds visitors of one variation, and no comparison can be trusted", Probability(*checks.SampleRatio.PValue))
	}
	if len(checks.Leak) > 0 {
		warn("LEAK", "visitors came to variations that should have none; what sends them there may skew the others too")
	}
	m := checks.MultipleExposures
	if m.Share > multipleExposuresWarning {
		warn("MULTIPLE_EXPOSURES", "%.1f %% of the visitors saw more than one variation", 100*m.Share)
	}
	if m.skewed {
		warn("MULTIPLE_EXPOSURES_SKEWED", "visitors of some variations saw others more often than those of the rest (p = %s)", Probability(*m.PValue))
	}
	if len(checks.UnknownVariations) > 0 {
		warn("UNKNOWN_VARIATIONS", "events name variations that the campaign does not have; their visitors are in no variation here")
	}
	if o := plan.Outliers; o != nil && o.Values < minValues {
		warn("FEW_VALUES", "of %d goal values none can lie 5 standard deviations from their mean: a z-score says little here", o.Values)
	}
	if plan.SharesSince.After(plan.from()) {
		warn("SHARES_CHANGED", "the shares changed at %s: earlier visitors were divided differently", formatInstant(plan.SharesSince))
	}
	return checks
}

func (c *cell) sampleRatio(plan *Plan) *SampleRatio {
	split, ids := plan.split()
	observed := make([]int64, len(ids))
	for i, id := range ids {
		observed[i] = c.firstViews[id].sinceShares
	}
	check := stats.SampleRatio(observed, split)
	shown := SampleRatio{
		PValue: check.PValue, Expected: check.Expected, Observed: check.Observed,
		Mismatch: check.Mismatch, Reason: check.Reason,
	}
	if shown.Expected == nil {
		shown.Expected = []float64{}
	}
	shown = shown.inOrderOf(plan.Variations, ids)
	return &shown
}

// inOrderOf puts the visitors in the order of the report's variations.
func (s SampleRatio) inOrderOf(variations []Variation, ids []int64) SampleRatio {
	expected, observed := make([]float64, 0, len(variations)), make([]int64, 0, len(variations))
	for _, v := range variations {
		at := slices.Index(ids, v.ID)
		observed = append(observed, s.Observed[at])
		if len(s.Expected) > at {
			expected = append(expected, s.Expected[at])
		}
	}
	s.Expected, s.Observed = expected, observed
	return s
}

// warnCrossovers is the share of visitors of several variations above which a
// reader is warned; GrowthBook warns there too.
const multipleExposuresWarning = 0.01

func (c *cell) multipleExposures(plan *Plan) MultipleExposures {
	rule, visitors := make([]int64, len(plan.Variations)), make([]int64, len(plan.Variations))
	for i, v := range plan.Variations {
		arrived := c.firstViews[v.ID]
		rule[i], visitors[i] = arrived.multiExposed, arrived.visitors
	}
	skew := stats.CrossoverSkew(rule, visitors)
	m := MultipleExposures{Rule: plan.MultipleExposures, Visitors: c.multiExposed, PValue: skew.PValue, Reason: skew.Reason, skewed: skew.Skewed}
	if n := c.visitors(); n > 0 {
		m.Share = float64(c.multiExposed) / float64(n)
	}
	m.Warning = m.Share > multipleExposuresWarning || skew.Skewed
	return m
}

// leak lists the variations that get visitors though they should get none.
func (c *cell) leak(plan *Plan) []Leak {
	expected := plan.expectedShares()
	total := c.visitors()
	leaks := []Leak{}
	for id, arrived := range c.firstViews {
		at := slices.IndexFunc(plan.Variations, func(v Variation) bool { return v.ID == id })
		if (at < 0 || expected[at] == 0) && stats.Leak(arrived.visitors, total) {
			leaks = append(leaks, Leak{id, arrived.visitors})
		}
	}
	slices.SortFunc(leaks, func(a, b Leak) int {
		return cmp.Or(cmp.Compare(b.Visitors, a.Visitors), cmp.Compare(a.VariationID, b.VariationID))
	})
	return leaks[:min(len(leaks), maxUnknown)]
}

// maxUnknown bounds how many variations a check lists.
const maxUnknown = 50

func (c *cell) unknownVariations(plan *Plan) []UnknownVariation {
	unknown := []UnknownVariation{}
	for id, m := range c.counted {
		if !slices.ContainsFunc(plan.Variations, func(v Variation) bool { return v.ID == id }) {
			unknown = append(unknown, UnknownVariation{id, m.Visitors, m.Views + m.goalsReached()})
		}
	}
	slices.SortFunc(unknown, func(a, b UnknownVariation) int {
		return cmp.Or(cmp.Compare(b.Visitors, a.Visitors), cmp.Compare(a.VariationID, b.VariationID))
	})
	return unknown[:min(len(unknown), maxUnknown)]
}
