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
// difference, times sign, is the largest. It returns -1 if there is none. Under a prior
// of the lift there is no posterior difference if control is 0; then it is the observed
// one.
func extreme(comparisons []Comparison, verdict Verdict, sign float64) int {
	found, largest := -1, math.Inf(-1)
	for i, c := range comparisons {
		difference := cmp.Or(c.Difference.Value, c.Difference.Observed)
		if c.Verdict == verdict && c.conclusive() && difference != nil && sign**difference > largest {
			found, largest = i, sign**difference
		}
	}
	return found
}
