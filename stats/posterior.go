package stats

import "math"

// compareBayesian compares each pair by its part of the joint posterior. There is no correction for several treatments.
func compareBayesian(comparisons []Comparison, pairs []pair, o Options) {
	r := newRule()
	posteriors, best := r.jointLifts(pairs, o)
	for i, c := range pairs {
		if posteriors[i] == nil {
			if c.contrast != nil {
				c.reason = ReasonBaselineZero
			}
			comparisons[i] = c.withoutTest(o)
			continue
		}
		comparisons[i] = c.bayesianComparison(r, posteriors[i], o)
		comparisons[i].Bayesian.ChanceToBeBest = best[i+1]
		comparisons[i].Bayesian.ControlChanceToBeBest = best[0]
	}
}

// bayesianComparison returns the comparison of one pair under the given posterior of the lift. Values and losses are
// posterior means, and intervals are equal-tailed credible intervals. If the mean of control is 0, no visitor of control
// converted, and there are neither losses nor differences.
func (c pair) bayesianComparison(r *rule, l *lifts, o Options) Comparison {
	alpha, baseline, reason := o.Alpha(), math.Abs(c.control.observedValue()), Reason("")
	p := r.summarizePosterior(l, alpha)
	if baseline == 0 {
		baseline, reason = math.NaN(), ReasonBaselineZero
	}
	out := Comparison{
		Bayesian: &Bayesian{
			ChanceToBeatControl: numberOrNil(math.Min(p.above, 1)),
			ExpectedLoss:        numberOrNil(baseline * p.loss),
			ExpectedLossControl: numberOrNil(baseline * p.gain),
			Prior:               o.Prior,
			Reason:              reason,
		},
		Difference: Effect{
			Value:    numberOrNil(baseline * p.mean),
			Observed: numberOrNil(c.contrast.estimateEffect(onDifference)),
		},
		Lift:        Effect{Value: numberOrNil(p.mean), Observed: numberOrNil(c.contrast.estimateEffect(onLift))},
		Significant: math.Min(p.below, p.above) < alpha/2,
	}
	if alpha == 0 {
		out.Difference.Reason, out.Lift.Reason = ReasonLevel100, ReasonLevel100
	} else {
		lower := endOnSide(p.interval.lower, smallestEffect, p.below < alpha/2)
		upper := -endOnSide(-p.interval.upper, smallestEffect, p.above < alpha/2)
		// The ends of an interval narrower than their last digit may be in descending order.
		lifts := bounds{lower: math.Min(lower, upper), upper: math.Max(lower, upper)}
		differences := bounds{lower: baseline * lifts.lower, upper: baseline * lifts.upper}
		out.Difference.Interval, out.Difference.Reason = shownInterval(differences, reason)
		out.Lift.Interval, out.Lift.Reason = shownInterval(lifts, "")
	}
	c.setVerdict(&out, o)
	if out.Significant && (p.above > p.below) != (c.statistic > 0) && out.Verdict != VerdictInsufficientData {
		// There are so few conversions that the prior outweighs them.
		out.Verdict = VerdictInconclusive
		out.Reasons = append(out.Reasons, ReasonTooFewConversions)
	}
	return out
}
