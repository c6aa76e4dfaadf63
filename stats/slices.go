package stats

import (
	"math"
	"slices"
)

// WeakenAcrossSlices withdraws verdicts of breakdown slices that do not hold across all slices, by
// Holm's procedure at alpha. The p-value of a slice is the smallest p-value of its comparisons.
// If a slice passes, its comparisons are tested at alpha divided by the slice's factor. Under the
// Bayesian methodology, p is twice the smaller of the chances to beat and not to beat control.
// A withdrawn verdict is inconclusive, with the reason NOT_SIGNIFICANT_ACROSS_BREAKDOWN.
//
// It is for verdicts at a fixed horizon. For the looks of slices, see LookDesign.ForSlice.
func WeakenAcrossSlices(all [][]Comparison, o Options) {
	smallest := make([]float64, len(all))
	for i, slice := range all {
		smallest[i] = math.NaN()
		for _, c := range slice {
			if p := c.familyP(); math.IsNaN(smallest[i]) || p < smallest[i] {
				smallest[i] = p
			}
		}
	}
	for i, factor := range holmFactors(smallest, o.Alpha()) {
		for j := range all[i] {
			all[i][j].weakenVerdict(factor, o.Alpha())
		}
	}
}

// familyP returns the p-value that decides the significance of a comparison, or
// NaN if there is none.
func (c Comparison) familyP() float64 {
	switch {
	case c.Frequentist != nil && c.Frequentist.AdjustedPValue != nil:
		return *c.Frequentist.AdjustedPValue
	case c.Bayesian != nil && c.Bayesian.ChanceToBeatControl != nil:
		chance := *c.Bayesian.ChanceToBeatControl
		return 2 * math.Min(chance, 1-chance)
	}
	return math.NaN()
}

// weakenVerdict withdraws a verdict that does not hold at alpha divided by the factor. A factor
// of 0 withdraws every verdict.
func (c *Comparison) weakenVerdict(factor, alpha float64) {
	if !(factor > 0 && c.familyP()*factor < alpha) && (c.Verdict == VerdictBetter || c.Verdict == VerdictWorse) {
		c.Verdict = VerdictInconclusive
		c.Reasons = append(slices.Clone(c.Reasons), ReasonNotSignificantAcrossBreakdown)
	}
}
