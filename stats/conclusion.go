package stats

import (
	"cmp"
	"math"
	"slices"
)

// Status is the conclusion of a report.
type Status string

// The statuses. The zero value is none of them.
const (
	StatusWinner           Status = "winner"
	StatusLoser            Status = "loser"
	StatusInconclusive     Status = "inconclusive"
	StatusInsufficientData Status = "insufficientData"
	StatusInvalid          Status = "invalid"
)

// Evidence is the data for a conclusion: all comparisons of one population, and
// whether the sample ratio is wrong. Pending is the reason if an effect is only
// significant as if this were the only look; empty means ReasonTooEarly.
type Evidence struct {
	Comparisons         []Comparison
	SampleRatioMismatch bool
	Pending             Reason
}

// Conclusion is the conclusion of a report. Index is the index of the deciding
// comparison, or -1.
type Conclusion struct {
	Status  Status
	Index   int
	Reasons []Reason
	// Conclusive reports for each comparison whether its verdict may be acted
	// on. The verdict must be better or worse, the sample ratio right, and the
	// sequence significant. Any other treatment is only ahead or behind so far.
	Conclusive []bool
}

// Conclude draws the conclusion of a report at one look. The winner is the better
// treatment with the largest difference, among those whose sequence is significant.
// If there is none, the loser is the worse treatment with the smallest difference.
// Otherwise the reason is Pending: a fixed-horizon test that is read at 200 looks
// errs six times out of ten. A sample ratio mismatch makes the report invalid.
func Conclude(e Evidence) Conclusion {
	c := e.conclude()
	c.Conclusive = make([]bool, len(e.Comparisons))
	for i := range e.Comparisons {
		c.Conclusive[i] = !e.SampleRatioMismatch && e.Comparisons[i].conclusive()
	}
	return c
}

// conclusive reports whether the verdict holds at every look.
func (c Comparison) conclusive() bool {
	return (c.Verdict == VerdictBetter || c.Verdict == VerdictWorse) && c.Sequential != nil && c.Sequential.Significant
}

func (e Evidence) conclude() Conclusion {
	if e.SampleRatioMismatch {
		return Conclusion{Status: StatusInvalid, Index: -1, Reasons: []Reason{ReasonSampleRatioMismatch}}
	}
	status := StatusWinner
	i := extreme(e.Comparisons, VerdictBetter, 1)
	if i < 0 {
		status, i = StatusLoser, extreme(e.Comparisons, VerdictWorse, -1)
	}
	if i >= 0 {
		return Conclusion{Status: status, Index: i, Reasons: slices.Clone(e.Comparisons[i].Reasons)}
	}
	c := Conclusion{Status: StatusInsufficientData, Index: -1, Reasons: []Reason{}}
	pending := false
	for _, comparison := range e.Comparisons {
		if comparison.Verdict != VerdictInsufficientData {
			c.Status = StatusInconclusive
		}
		pending = pending || comparison.Verdict == VerdictBetter || comparison.Verdict == VerdictWorse
		for _, reason := range comparison.Reasons {
			if !slices.Contains(c.Reasons, reason) {
				c.Reasons = append(c.Reasons, reason)
			}
		}
	}
	if pending {
		c.Reasons = []Reason{cmp.Or(e.Pending, ReasonTooEarly)}
	}
	return c
}

// extreme returns the index of the conclusive comparison with this verdict whose
// difference, times sign, is the largest. It returns -1 if there is none.
func extreme(comparisons []Comparison, verdict Verdict, sign float64) int {
	found, largest := -1, math.Inf(-1)
	for i, c := range comparisons {
		if c.Verdict == verdict && c.conclusive() && c.Difference.Value != nil && sign**c.Difference.Value > largest {
			found, largest = i, sign**c.Difference.Value
		}
	}
	return found
}

// ConcludeCells draws one conclusion for each cell of a breakdown, adjusted by
// Holm across the cells. The p-value of a cell is the smallest p-value of its
// comparisons. The comparisons of a cell that passes are tested at alpha
// divided by the cell's factor. The always-valid results are adjusted likewise.
// Under the Bayesian methodology p is twice the smaller of the chances to beat
// control and not to beat control. A comparison that is no longer significant
// is inconclusive, with the reason NOT_SIGNIFICANT_ACROSS_BREAKDOWN.
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
		conclusions[i] = Conclude(cell)
	}
	return conclusions
}

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

// weaken withdraws verdicts and significance that do not hold at alpha divided
// by the factors. A factor of 0 withdraws all.
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
