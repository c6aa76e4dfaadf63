package result

import (
	"fmt"
	"math"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// Complement compares the lift of a variation in a segment with its lift among all other visitors.
type Complement struct {
	Visitors              int64        `json:"visitors"` // others, of the variation
	ControlVisitors       int64        `json:"controlVisitors"`
	Improvement           stats.Effect `json:"improvement"`           // among the others
	ImprovementDifference stats.Effect `json:"improvementDifference"` // in the segment minus among the others
}

// Heterogeneity answers whether the lift differs between the values of the dimension.
type Heterogeneity struct {
	stats.Heterogeneity
	Text string `json:"text"`
}

// addBreakdown adds the slices, each with its complement, and whether they differ. The slice "(other)" does not count
// for that, because its values change.
func (r *Report) addBreakdown(p *plan.Plan, found *moments.Rows, whole *sliceSums) {
	names, all := slicesOf(p, found)
	r.Dimension, r.Breakdown = &p.Dimension, make([]BreakdownSlice, len(all))
	onAllCores(len(all), func(i int) {
		j := all[i].computeResults(p, found)
		j.setConclusion(p, nil, true)
		j.compareWithOthers(p, &all[i], whole)
		r.Breakdown[i] = BreakdownSlice{Value: names[i], Slice: j.Slice}
	})
	if !p.Rules.Compare || len(p.Variations) < 2 {
		return
	}
	effects := make([][]stats.PooledEffect, len(p.Variations)-1)
	for i := range all {
		if names[i] == otherValues {
			continue
		}
		periods := all[i].periodSamples(p)
		for t := range effects {
			strata := make([]stats.Stratum, len(periods))
			for k, period := range periods {
				strata[k] = stats.Stratum{Control: period.Samples[0], Treatment: period.Samples[t+1]}
			}
			effects[t] = append(effects[t], stats.NewPooledEffect(strata))
		}
	}
	// Lifts that differ by less than half the minimum effect hardly matter. At the default of 20 %, this spread finds
	// most in the simulations of TestLongHeterogeneity.
	spread := p.Rules.MDE / 100 / 2
	r.Heterogeneity = NewHeterogeneity(p, stats.MeasureHeterogeneity(effects, spread))
}

// NewHeterogeneity returns the answer with its text, in the words of the methodology.
func NewHeterogeneity(p *plan.Plan, found stats.Heterogeneity) *Heterogeneity {
	h := &Heterogeneity{Heterogeneity: found}
	if isBayesian(p) {
		h.PValue = nil
	}
	switch factor := found.BayesFactor; {
	case factor == nil:
		h.Text = "Whether the lift differs between the segments is not known: " + wording.ExplainReason(h.Reason) + "."
	case isBayesian(p) && *factor < unclearFactor && *factor > 1/unclearFactor:
		h.Text = fmt.Sprintf("The data do not say whether the lift differs between the segments (Bayes factor %s).",
			wording.FormatNumber(*factor, 1))
	case isBayesian(p) && *factor >= 1:
		h.Text = fmt.Sprintf("The data are %s times likelier if the lift differs between the segments than if it is "+
			"the same.", formatFactor(*factor))
	case isBayesian(p):
		h.Text = fmt.Sprintf("The data are %s times likelier if the lift is the same in all segments than if it "+
			"differs.", formatFactor(1 / *factor))
	default:
		text := "The lift does not differ significantly between the segments (p = %s, however often you look)."
		if *h.PValue < statsOptions(p).Alpha() {
			text = "The lift differs between the segments (p = %s, however often you look)."
		}
		h.Text = fmt.Sprintf(text, wording.FormatPValue(*h.PValue))
	}
	return h
}

// unclearFactor is the Bayes factor below which the data say nothing. Factors up to 3 are barely worth mentioning (Kass
// and Raftery 1995).
const unclearFactor = 3.0

// formatFactor formats a Bayes factor of at least 1 with two digits.
func formatFactor(factor float64) string {
	if factor < 10 {
		return wording.FormatNumber(factor, 1)
	}
	const most = 1000
	if factor > most {
		return "more than " + wording.FormatCount(most)
	}
	return wording.FormatCount(int64(math.Round(factor)))
}

// compareWithOthers adds the lifts among the visitors that a segment lacks.
func (j *sliceResult) compareWithOthers(p *plan.Plan, segment, whole *sliceSums) {
	if len(j.comparisons) == 0 {
		return
	}
	others := whole.withoutPart(segment)
	for i, c := range others.compareSamples(p, statsOptions(p)) {
		own, variation := j.Variations[i+1].Comparison, p.Variations[i+1].ID
		own.Complement = &Complement{
			Visitors: others.counted[variation].Visitors, ControlVisitors: others.counted[p.Variations[0].ID].Visitors,
			Improvement: c.Lift, ImprovementDifference: stats.DifferenceOfLifts(own.Improvement, c.Lift),
		}
	}
}

// withoutPart returns the sums over the visitors that are not in a part of them.
func (c *sliceSums) withoutPart(part *sliceSums) sliceSums {
	subtract := func(whole, part map[int64]moments.Moments) map[int64]moments.Moments {
		rest := map[int64]moments.Moments{}
		for id, m := range whole {
			rest[id] = m.Subtract(part[id])
		}
		return rest
	}
	others := sliceSums{counted: subtract(c.counted, part.counted)}
	for i, counted := range c.periods {
		if i < len(part.periods) {
			counted = subtract(counted, part.periods[i])
		}
		others.periods = append(others.periods, counted)
	}
	return others
}
