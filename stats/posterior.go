package stats

import "math"

// posterior compares treatment with control by the posterior of the lift.
type posterior struct {
	below, above float64 // P(lift < 0), P(lift > 0)
	// loss is E[(control - treatment)+], the expected loss from shipping the treatment. lossControl is E[(treatment -
	// control)+], the expected loss from keeping control.
	loss, lossControl float64
	// difference and lift are posterior means, differences and lifts equal-tailed credible intervals.
	difference, lift   float64
	differences, lifts bounds
	differenceReason   Reason
}

// pairPosterior returns the posterior of a pair. baseline is the absolute value of control. If it is 0, no visitor of
// control converted: losses and differences are NaN. With alpha 0 there are no intervals.
func (r *rule) pairPosterior(l *lifts, baseline, alpha float64) posterior {
	s := r.summarizePosterior(l, alpha)
	p := posterior{below: s.below, above: s.above, lift: s.mean}
	if baseline == 0 {
		baseline, p.differenceReason = math.NaN(), ReasonBaselineZero
	}
	p.loss, p.lossControl, p.difference = baseline*s.loss, baseline*s.gain, baseline*s.mean
	if alpha == 0 {
		return p
	}
	tail := alpha / 2
	p.lifts = bounds{
		lower: endOnSide(s.interval.lower, smallestEffect, s.below < tail),
		upper: -endOnSide(-s.interval.upper, smallestEffect, s.above < tail),
	}.sortedBounds()
	p.differences = bounds{lower: baseline * p.lifts.lower, upper: baseline * p.lifts.upper}
	return p
}

// sortedBounds returns the bounds in ascending order. The ends of an interval narrower than their last digit may be in
// descending order.
func (in bounds) sortedBounds() bounds {
	return bounds{lower: math.Min(in.lower, in.upper), upper: math.Max(in.lower, in.upper)}
}

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

// bayesianComparison returns the comparison of one pair under the given posterior of the lift.
func (c pair) bayesianComparison(r *rule, l *lifts, o Options) Comparison {
	alpha := o.Alpha()
	p := r.pairPosterior(l, math.Abs(c.control.observedValue()), alpha)
	out := Comparison{
		Bayesian: &Bayesian{
			ChanceToBeatControl: numberOrNil(math.Min(p.above, 1)),
			ExpectedLoss:        numberOrNil(p.loss),
			ExpectedLossControl: numberOrNil(p.lossControl),
			Prior:               o.Prior,
			Reason:              p.differenceReason,
		},
		Difference: Effect{
			Value:    numberOrNil(p.difference),
			Observed: numberOrNil(c.contrast.observedDifference()),
		},
		Lift:        Effect{Value: numberOrNil(p.lift), Observed: numberOrNil(c.contrast.observedLift())},
		Significant: math.Min(p.below, p.above) < alpha/2,
	}
	if alpha == 0 {
		out.Difference.Reason, out.Lift.Reason = ReasonLevel100, ReasonLevel100
	} else {
		out.Difference.Interval, out.Difference.Reason = shownInterval(p.differences, p.differenceReason)
		out.Lift.Interval, out.Lift.Reason = shownInterval(p.lifts, "")
	}
	c.setVerdict(&out, o)
	if out.Significant && (p.above > p.below) != (c.statistic > 0) && out.Verdict != VerdictInsufficientData {
		// There are so few conversions that the prior outweighs them.
		out.Verdict = VerdictInconclusive
		out.Reasons = append(out.Reasons, ReasonTooFewConversions)
	}
	return out
}
