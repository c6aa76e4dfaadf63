package stats

import (
	"math"
	"slices"
)

// Status is what a report as a whole says.
type Status string

// The statuses. The zero value is none of them.
const (
	StatusWinner           Status = "winner"
	StatusLoser            Status = "loser"
	StatusInconclusive     Status = "inconclusive"
	StatusInsufficientData Status = "insufficientData"
	StatusInvalid          Status = "invalid"
)

// Evidence is what a conclusion is drawn from: all comparisons of one population,
// the progress towards the planned sample (1 and above: reached; nil: unknown), and
// whether the traffic was divided as it should have been.
type Evidence struct {
	Comparisons         []Comparison
	Progress            *float64
	SampleRatioMismatch bool
}

// Conclusion names the comparison that decides, by its index, or -1.
type Conclusion struct {
	Status  Status
	Index   int
	Reasons []Reason
	// Conclusive says of each comparison whether its verdict is better or worse
	// and may be acted on: a conclusion was drawn, and the verdict passes the rule
	// by which that was done. Another verdict is only ahead or behind so far.
	Conclusive []bool
}

// Conclude draws the conclusion of a report. The winner is the better treatment
// with the largest difference; with none better, the loser is the worse one with
// the smallest. Either stands only if its always-valid answer is significant or
// the planned sample is reached, under the Bayesian methodology only in the latter
// case; else it is TOO_EARLY, because a test of fixed horizon read at 200 looks errs
// six times out of ten. Traffic that was not divided as planned makes everything
// invalid.
func Conclude(e Evidence, o Options) Conclusion {
	c := e.conclude(o)
	c.Conclusive = make([]bool, len(e.Comparisons))
	for i := range e.Comparisons {
		verdict := e.Comparisons[i].Verdict
		c.Conclusive[i] = c.Index >= 0 && (verdict == VerdictBetter || verdict == VerdictWorse) && e.decisive(i, o)
	}
	return c
}

func (e Evidence) conclude(o Options) Conclusion {
	if e.SampleRatioMismatch {
		return Conclusion{Status: StatusInvalid, Index: -1, Reasons: []Reason{ReasonSampleRatioMismatch}}
	}
	status := StatusWinner
	i := extreme(e.Comparisons, VerdictBetter, 1)
	if i < 0 {
		status, i = StatusLoser, extreme(e.Comparisons, VerdictWorse, -1)
	}
	switch {
	case i >= 0 && !e.decisive(i, o):
		return Conclusion{Status: StatusInconclusive, Index: -1, Reasons: []Reason{ReasonTooEarly}}
	case i >= 0:
		return Conclusion{Status: status, Index: i, Reasons: slices.Clone(e.Comparisons[i].Reasons)}
	}
	c := Conclusion{Status: StatusInsufficientData, Index: -1, Reasons: []Reason{}}
	for _, comparison := range e.Comparisons {
		if comparison.Verdict != VerdictInsufficientData {
			c.Status = StatusInconclusive
		}
		for _, reason := range comparison.Reasons {
			if !slices.Contains(c.Reasons, reason) {
				c.Reasons = append(c.Reasons, reason)
			}
		}
	}
	return c
}

// extreme returns the comparison of this verdict whose difference, times sign, is
// the largest; -1 where there is none.
func extreme(comparisons []Comparison, verdict Verdict, sign float64) int {
	found, largest := -1, math.Inf(-1)
	for i, c := range comparisons {
		if c.Verdict == verdict && c.Difference.Value != nil && sign**c.Difference.Value > largest {
			found, largest = i, sign**c.Difference.Value
		}
	}
	return found
}

// decisive reports whether comparison i may be concluded from now.
func (e Evidence) decisive(i int, o Options) bool {
	if e.Progress != nil && *e.Progress >= 1 {
		return true
	}
	s := e.Comparisons[i].Sequential
	return o.Methodology != MethodologyBayesian && s != nil && s.Significant
}

// ConcludeCells draws one conclusion for each cell of a breakdown, adjusted by Holm
// across the cells: a cell's p-value is the smallest of its comparisons', and the
// comparisons of a cell that passes are judged at alpha over its factor; their
// always-valid answers likewise. Under the Bayesian methodology p is twice the
// smaller of the chances to beat control and not to. What is no longer significant
// counts as inconclusive, for NOT_SIGNIFICANT_ACROSS_BREAKDOWN.
func ConcludeCells(cells []Evidence, o Options) []Conclusion {
	alpha := o.Alpha()
	fixed, sequential := make([]float64, len(cells)), make([]float64, len(cells))
	for i, cell := range cells {
		fixed[i], sequential[i] = math.NaN(), math.NaN()
		for _, c := range cell.Comparisons {
			fixed[i] = smaller(fixed[i], c.familyP())
			sequential[i] = smaller(sequential[i], c.sequentialP())
		}
	}
	factors, always := holmFactors(fixed, alpha), holmFactors(sequential, alpha)
	conclusions := make([]Conclusion, len(cells))
	for i, cell := range cells {
		cell.Comparisons = slices.Clone(cell.Comparisons)
		for j := range cell.Comparisons {
			cell.Comparisons[j].weaken(factors[i], always[i], alpha)
		}
		conclusions[i] = Conclude(cell, o)
	}
	return conclusions
}

func smaller(a, b float64) float64 {
	if math.IsNaN(a) || b < a {
		return b
	}
	return a
}

// familyP is the p-value by which a comparison was judged, NaN for none.
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

// weaken takes back what does not hold at alpha divided by the factors; a factor
// of 0 takes back all.
func (c *Comparison) weaken(fixed, always, alpha float64) {
	if !(fixed > 0 && c.familyP()*fixed < alpha) && (c.Verdict == VerdictBetter || c.Verdict == VerdictWorse) {
		c.Verdict = VerdictInconclusive
		c.Reasons = append(slices.Clone(c.Reasons), ReasonNotSignificantAcrossBreakdown)
	}
	if c.Sequential != nil {
		s := *c.Sequential
		s.Significant = s.Significant && always > 0 && c.sequentialP()*always < alpha
		c.Sequential = &s
	}
}
