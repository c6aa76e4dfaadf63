package stats

import (
	"math"
	"slices"
)

// CellEvidence is the data for the conclusion of a cell of a breakdown: all of one
// look, and what earlier looks said. Comparisons of all looks are in the same order.
type CellEvidence struct {
	Evidence
	// AtPlannedLook has the comparisons of the cell at the planned look. It is nil
	// before that look, and for a cell that had fewer than MinimumVisitors in a
	// variation then.
	AtPlannedLook []Comparison
	// Rank is j if the cell was the j-th one with MinimumVisitors in each variation.
	// It must not depend on results. 0 means that the cell has no rank yet.
	Rank int
}

// CellConclusion is the conclusion of a cell. Decided has the comparisons of the planned
// look if that look decided; otherwise it is nil.
type CellConclusion struct {
	Conclusion
	Decided []Comparison
}

// ConcludeCells draws one conclusion for each cell of a breakdown.
//
// At the planned look, the comparisons are tested by Holm's procedure across the cells
// that have AtPlannedLook, see significantAtPlannedLook. Later looks do not withdraw a
// winner or a loser of that look, except by a sample ratio mismatch.
//
// Otherwise, a comparison of the cell with rank j is conclusive if
//
//	p j (j + 1) < alpha
//
// with p the p-value of its sequence. This p is 10 m times that of the confidence
// sequence for m treatments, see Sequential. The confidence sequence therefore has the
// level alpha2 / (m j (j + 1)), with alpha2 = .1 alpha.
//
// The probability that any look names a wrong winner or loser in any cell is at most
// alpha, for any number of looks and cells. By Bonferroni, it is at most the sum of
//
//   - .9 alpha at the planned look,
//   - alpha2 times the sum of 1 / (j (j + 1)) over all j, which is 1, at all other looks.
//
// A fixed-horizon verdict is adjusted by Holm across the cells of this look. The p-value
// of a cell is the smallest p-value of its comparisons. Those of a cell that passes are
// tested at alpha divided by the cell's factor. Under the Bayesian methodology p is
// twice the smaller of the chances to beat control and not to beat control. A verdict
// that is no longer significant is inconclusive, with the reason
// NOT_SIGNIFICANT_ACROSS_BREAKDOWN.
func ConcludeCells(cells []CellEvidence, o Options) []CellConclusion {
	alpha := o.Alpha()
	fixed := make([]float64, len(cells))
	for i, cell := range cells {
		fixed[i] = math.NaN()
		for _, c := range cell.Comparisons {
			fixed[i] = smaller(fixed[i], c.familyP())
		}
	}
	factors := holmFactors(fixed, alpha)
	significant := significantAtPlannedLook(cells, alpha)
	conclusions := make([]CellConclusion, len(cells))
	for i, cell := range cells {
		now := cell.Evidence
		now.Comparisons = slices.Clone(now.Comparisons)
		for j := range now.Comparisons {
			now.Comparisons[j].weaken(factors[i], alpha)
			now.Comparisons[j].setSignificant(now.Comparisons[j].HoldsAtRank(cell.Rank, o))
		}
		conclusions[i].Conclusion = Conclude(now)
		if !cell.SampleRatioMismatch {
			conclusions[i].keep(cell, significant[i])
		}
	}
	return conclusions
}

// keep replaces the conclusion of this look by that of the planned look, if that is a
// winner or a loser. A verdict of that look is conclusive as long as it is that of this
// look, too.
func (c *CellConclusion) keep(cell CellEvidence, significant []bool) {
	then := slices.Clone(cell.AtPlannedLook)
	for i := range then {
		then[i].setSignificant(significant[i])
	}
	decided := Conclude(Evidence{Comparisons: then})
	if decided.Index < 0 {
		return
	}
	c.Status, c.Index, c.Reasons, c.Decided = decided.Status, decided.Index, decided.Reasons, cell.AtPlannedLook
	for i := range c.Conclusive {
		if decided.Conclusive[i] && then[i].Verdict == cell.Comparisons[i].Verdict {
			c.Conclusive[i] = true
		}
	}
}

// significantAtPlannedLook reports for each comparison at the planned look whether it is
// significant across the cells. The p-values are those of the sequence, which are
// Dunnett's divided by .9. A comparison is significant if Holm's procedure rejects it
// beside the largest p-value of every other cell. With one treatment, this is Holm's
// procedure across the cells.
//
// This is the closed test (Marcus, Peritz and Gabriel, 1976) that tests an intersection
// of hypotheses of k cells by Bonferroni across the cells: it rejects if the smallest
// Dunnett-adjusted p-value is below .9 alpha / k. It errs with probability at most .9
// alpha, whatever the other hypotheses. Holm's procedure with the smallest p-value of
// each cell does not: if each cell has a treatment with an effect, all cells pass, and
// the hypotheses without an effect are tested at .9 alpha / k, .9 alpha / (k-1), …. With 8
// cells and 3 treatments, of which one has an effect, it errs in .08 of simulated
// experiments instead of .05.
func significantAtPlannedLook(cells []CellEvidence, alpha float64) [][]bool {
	largest := make([]float64, len(cells))
	for i, cell := range cells {
		largest[i] = math.NaN()
		for _, c := range cell.AtPlannedLook {
			if p := c.sequentialP(); math.IsNaN(largest[i]) || p > largest[i] {
				largest[i] = p
			}
		}
	}
	significant := make([][]bool, len(cells))
	for i, cell := range cells {
		family := slices.Clone(largest)
		for _, c := range cell.AtPlannedLook {
			family[i] = c.sequentialP()
			significant[i] = append(significant[i], Holm(family)[i] < alpha)
		}
	}
	return significant
}

// smaller returns the smaller number, or the other one if one is NaN.
func smaller(a, b float64) float64 {
	if math.IsNaN(a) || b < a {
		return b
	}
	return a
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

func (c Comparison) sequentialP() float64 {
	if c.Sequential == nil || c.Sequential.PValue == nil {
		return math.NaN()
	}
	return *c.Sequential.PValue
}

// weaken withdraws a verdict that does not hold at alpha divided by the factor. A factor
// of 0 withdraws all.
func (c *Comparison) weaken(factor, alpha float64) {
	if !(factor > 0 && c.familyP()*factor < alpha) && (c.Verdict == VerdictBetter || c.Verdict == VerdictWorse) {
		c.Verdict = VerdictInconclusive
		c.Reasons = append(slices.Clone(c.Reasons), ReasonNotSignificantAcrossBreakdown)
	}
}

// HoldsAtRank reports whether the sequence of a comparison is significant in the cell
// with a rank, see ConcludeCells. It is not with rank 0, and at the planned look, which is
// not part of the confidence sequence.
func (c Comparison) HoldsAtRank(rank int, o Options) bool {
	return c.Sequential != nil && c.Sequential.Significant && !c.Sequential.PlannedLook && rank > 0 && c.sequentialP()*float64(rank)*float64(rank+1) < o.Alpha()
}

// setSignificant sets the significance of the sequence.
func (c *Comparison) setSignificant(significant bool) {
	if c.Sequential != nil {
		s := *c.Sequential
		s.Significant = significant
		c.Sequential = &s
	}
}
