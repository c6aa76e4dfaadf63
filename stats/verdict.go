package stats

import (
	"math"
	"slices"
)

// MinimumVisitors is the minimum number of visitors of each variation for a verdict. Below this
// or another minimum count, the normal approximation is unreliable.
const MinimumVisitors = 100

// The other minimum counts of a verdict.
const (
	minimumConversions = 5  // converted, and unconverted, in both variations together
	minimumNonzero     = 20 // visitors with a value, in each variation
)

// setVerdict sets the verdict and the reasons of a comparison after its numbers
// are set.
func (c pair) setVerdict(out *Comparison, o Options) {
	out.Reasons = c.verdictReasons(*out, o)
	switch {
	case len(c.insufficientReasons()) > 0:
		out.Verdict = VerdictInsufficientData
	case !out.Significant:
		out.Verdict = VerdictInconclusive
	case c.statistic > 0:
		out.Verdict = VerdictBetter
	default:
		out.Verdict = VerdictWorse
	}
}

// verdictReasons returns why the verdict is weak and why numbers are missing, each
// reason once.
func (c pair) verdictReasons(out Comparison, o Options) []Reason {
	reasons := []Reason{}
	add := func(more ...Reason) {
		for _, reason := range more {
			if reason != "" && !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
	}
	add(c.reason)
	add(c.insufficientReasons()...)
	add(out.Difference.Reason, out.Lift.Reason)
	if o.Alpha() == 0 {
		add(ReasonLevel100)
	}
	return reasons
}

// insufficientReasons returns why the data are insufficient for a verdict.
func (c pair) insufficientReasons() []Reason {
	if checkSample(c.control) != "" || checkSample(c.treatment) != "" || !sameKind(c.control, c.treatment) {
		return nil
	}
	var reasons []Reason
	if min(c.control.visitorCount(), c.treatment.visitorCount()) < MinimumVisitors {
		reasons = append(reasons, ReasonTooFewVisitors)
	}
	switch control := c.control.(type) {
	case Rate:
		treatment, _ := c.treatment.(Rate)
		converted := float64(control.Converted) + float64(treatment.Converted)
		rest := float64(control.Visitors-control.Converted) + float64(treatment.Visitors-treatment.Converted)
		if math.Min(converted, rest) < minimumConversions {
			reasons = append(reasons, ReasonTooFewConversions)
		}
	case Mean:
		treatment, _ := c.treatment.(Mean)
		if control.fewNonzero() || treatment.fewNonzero() {
			reasons = append(reasons, ReasonTooFewNonzero)
		}
	}
	return reasons
}

func (m Mean) fewNonzero() bool { return m.Nonzero >= 0 && m.Nonzero < minimumNonzero }
