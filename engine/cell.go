package engine

import (
	"cmp"
	"fmt"
	"slices"

	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// cell gathers the rows of all visitors, or of one value of the dimension.
type cell struct {
	counted    map[int64]Moments // by variation, unknown ones too
	assigned   map[int64]int64   // visitors since the shares hold, by first variation, before exclusion
	visitors   int64             // before exclusion
	crossovers int64
	earlier    int64
}

// gather sums the rows; excluded crossovers stay out of what is counted.
func gather(rows []row, crossovers string) cell {
	c := cell{counted: map[int64]Moments{}, assigned: map[int64]int64{}}
	for _, r := range rows {
		if r.earlier {
			c.earlier += r.Visitors
			continue
		}
		c.visitors += r.Visitors
		c.assigned[r.variationID] += r.SinceShares
		if r.crossover {
			c.crossovers += r.Visitors
			if crossovers == catalogue.ExcludeCrossovers {
				continue
			}
		}
		c.counted[r.variationID] = c.counted[r.variationID].Merge(r.Moments)
	}
	return c
}

// results computes everything that is said of the cell.
func (c *cell) results(plan *Plan) Cell {
	shown := Cell{Variations: []VariationResults{}, Checks: c.checks(plan)}
	var total Moments
	options := plan.options()
	for _, v := range plan.Variations {
		m := c.counted[v.ID]
		total = total.Merge(m)
		shown.Variations = append(shown.Variations, VariationResults{
			ID: v.ID, Name: v.Name, Control: v.Control, Share: v.Share,
			Counts: newCounts(&m), Metrics: newMetrics(&m, options),
		})
	}
	shown.Totals = newCounts(&total)
	options.NonNegative = total.neverNegative(plan.Metric)
	c.compare(plan, options, shown.Variations)
	return shown
}

// compare sets the comparison of every variation but control, which is first.
func (c *cell) compare(plan *Plan, options stats.Options, shown []VariationResults) {
	if len(shown) == 0 {
		return
	}
	samples := make([]stats.Sample, len(shown))
	for i := range shown {
		m := c.counted[shown[i].ID]
		samples[i] = m.sample(plan.Metric)
	}
	for i, comparison := range stats.Compare(samples[0], samples[1:], options) {
		shown[i+1].Comparison = newComparison(comparison)
	}
}

func (p *Plan) options() stats.Options {
	return stats.Options{
		SignificanceLevel: p.Campaign.SignificanceLevel,
		Methodology:       stats.Methodology(p.Campaign.Methodology),
		PlannedVisitors:   p.Campaign.PlannedVisitors,
		SharesChanged:     p.SharesSince.After(p.from()),
	}
}

func newCounts(m *Moments) Counts {
	return Counts{
		Visitors: m.Visitors, Views: m.Views, ConvertedVisitors: m.Converted, GoalsReached: m.goalsReached(),
		Value: Money{m.Value.Sum}, Profit: Money{m.Profit.Sum}, ExtraValue: Money{m.ExtraValue.Sum},
	}
}

func newMetrics(m *Moments, o stats.Options) Metrics {
	mean := func(metric Metric) Estimate {
		return newEstimate(stats.EstimateMean(m.sample(metric).(stats.Mean), o))
	}
	return Metrics{
		GoalConversionRate:   newEstimate(stats.EstimateRate(stats.Rate{Visitors: m.Visitors, Converted: m.Converted}, o)),
		GoalsPerVisitor:      mean(GoalsPerVisitor),
		ValuePerVisitor:      mean(ValuePerVisitor),
		ProfitPerVisitor:     mean(ProfitPerVisitor),
		ExtraValuePerVisitor: mean(ExtraValuePerVisitor),
		AverageValue:         newEstimate(stats.EstimateRatio(m.average(), o)),
	}
}

func (c *cell) checks(plan *Plan) Checks {
	checks := Checks{
		SampleRatio:       c.sampleRatio(plan),
		MultipleExposures: c.multipleExposures(plan.Crossovers),
		UnknownVariations: c.unknownVariations(plan),
		Window:            WindowCheck{EarlierVisitors: c.earlier},
		Warnings:          []Warning{},
	}
	warn := func(code, format string, args ...any) {
		checks.Warnings = append(checks.Warnings, Warning{code, fmt.Sprintf(format, args...)})
	}
	if checks.SampleRatio.Mismatch {
		warn("SAMPLE_RATIO_MISMATCH", "visitors did not fall on the variations as their shares say (p = %.3g): "+
			"something loses or adds visitors of one variation, and no comparison can be trusted", *checks.SampleRatio.PValue)
	}
	if checks.MultipleExposures.Warning {
		warn("MULTIPLE_EXPOSURES", "%.1f %% of the visitors saw more than one variation", 100*checks.MultipleExposures.Share)
	}
	if len(checks.UnknownVariations) > 0 {
		warn("UNKNOWN_VARIATIONS", "events name variations that the campaign does not have; their visitors are in no variation here")
	}
	if plan.SharesSince.After(plan.from()) {
		warn("SHARES_CHANGED", "the shares changed at %s: earlier visitors were divided differently", formatInstant(plan.SharesSince))
	}
	return checks
}

func (c *cell) sampleRatio(plan *Plan) SampleRatio {
	split, ids := plan.split()
	observed := make([]int64, len(ids))
	for i, id := range ids {
		observed[i] = c.assigned[id]
	}
	check := stats.SampleRatio(observed, split)
	shown := SampleRatio{
		PValue: check.PValue, Expected: check.Expected, Observed: check.Observed,
		Mismatch: check.Mismatch, Reason: check.Reason,
	}
	if shown.Expected == nil {
		shown.Expected = []float64{}
	}
	return shown.inOrderOf(plan.Variations, ids)
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
const warnCrossovers = 0.01

func (c *cell) multipleExposures(rule string) MultipleExposures {
	m := MultipleExposures{Rule: rule, Visitors: c.crossovers}
	if c.visitors > 0 {
		m.Share = float64(c.crossovers) / float64(c.visitors)
	}
	m.Warning = m.Share > warnCrossovers
	return m
}

// maxUnknown bounds how many unknown variations are listed.
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
