package stats

import "math"

// compareBayesian compares each pair by its part of the joint posterior. There is no correction
// for several treatments.
func compareBayesian(comparisons []Comparison, pairs []pair, o Options) {
	r := newRule()
	posteriors, best := r.jointLifts(pairs, o)
	if best == nil {
		posteriors, best = make([]*lifts, len(pairs)), r.bestUnderFlatPriors(pairs)
	}
	for i, c := range pairs {
		if c.contrast == nil {
			comparisons[i] = c.withoutTest(o)
			continue
		}
		comparisons[i] = c.bayesianComparison(r, posteriors[i], o)
		comparisons[i].Bayesian.ChanceToBeBest = best[i+1]
		comparisons[i].Bayesian.ControlChanceToBeBest = best[0]
	}
}

// bayesianComparison returns the comparison of one pair under the given posterior of the lift; nil:
// under flat priors.
func (c pair) bayesianComparison(r *rule, l *lifts, o Options) Comparison {
	alpha := o.Alpha()
	p := c.pairPosterior(r, l, o)
	out := Comparison{
		Bayesian: &Bayesian{
			ChanceToBeatControl: numberOrNil(math.Min(p.above, 1)),
			ExpectedLoss:        numberOrNil(p.loss),
			ExpectedLossControl: numberOrNil(p.lossControl),
			Reason:              p.differenceReason,
		},
		Significant: math.Min(p.below, p.above) < alpha/2,
	}
	out.Difference.Value, out.Lift.Value = numberOrNil(c.contrast.observedDifference()), numberOrNil(c.contrast.observedLift())
	if p.underPrior {
		out.Bayesian.Prior = o.Prior
		out.Difference.Observed, out.Lift.Observed = out.Difference.Value, out.Lift.Value
		out.Difference.Value, out.Lift.Value = numberOrNil(p.baseline*p.lift), numberOrNil(p.lift)
	}
	if alpha == 0 {
		out.Difference.Reason, out.Lift.Reason = ReasonLevel100, ReasonLevel100
	} else {
		out.Difference.Interval, out.Difference.Reason = shownInterval(p.differences, p.differenceReason)
		out.Lift.Interval, out.Lift.Reason = shownInterval(p.lifts, p.liftReason)
	}
	if out.Lift.Value == nil && out.Lift.Reason == "" {
		out.Lift.Reason = ReasonBaselineZero
	}
	c.setVerdict(&out, o)
	if out.Significant && (p.above > p.below) != (c.statistic > 0) && out.Verdict != VerdictInsufficientData {
		// There are so few conversions that the prior outweighs them.
		out.Verdict = VerdictInconclusive
		out.Reasons = append(out.Reasons, ReasonTooFewConversions)
	}
	return out
}

// pairPosterior returns the posterior of a pair from the posterior of its lift. If l is nil, it
// returns the posterior of two rates or of the difference of two means.
func (c pair) pairPosterior(r *rule, l *lifts, o Options) posterior {
	if l != nil {
		return r.liftPosterior(l, math.Abs(c.control.observedValue()), o.Alpha())
	}
	if w, ok := c.contrast.alwaysValid().(welch); ok {
		return normalPosterior(w, o.Alpha())
	}
	control, _ := c.control.(Rate)
	treatment, _ := c.treatment.(Rate)
	return r.betaPosterior(control, treatment, o.Alpha())
}

// bestUnderFlatPriors returns the chances of control and each treatment to be best,
// from the posteriors that give the chances to beat control: with one treatment both
// chances are equal. The chance of a treatment without a test is nil.
//
// The standard error of a pair of means may differ from that of its samples (see newMeans and
// withWidenedError). The variance of control is its smallest variance in any pair, and a treatment gets
// the rest of its pair's variance.
func (r *rule) bestUnderFlatPriors(pairs []pair) []*float64 {
	chances := make([]*float64, len(pairs)+1)
	var all []density
	var places []int
	for i, c := range pairs {
		if c.contrast == nil {
			continue
		}
		if len(all) == 0 {
			all, places = append(all, controlDensity(pairs)), append(places, 0)
		}
		var treatment density
		switch control := all[0].(type) {
		case beta:
			rate, _ := c.treatment.(Rate)
			treatment = newBeta(rate)
		case gaussian:
			m := c.contrast.alwaysValid().(welch).means
			treatment = gaussian{mean: m.mt, sd: math.Sqrt(m.st + m.sc - control.sd*control.sd)}
		}
		all, places = append(all, treatment), append(places, i+1)
	}
	for i, chance := range r.bestProbabilities(all) {
		chances[places[i]] = numberOrNil(math.Min(chance, 1))
	}
	return chances
}

// controlDensity returns the posterior of control under a flat prior. For means, its
// variance is the smallest one in any pair.
func controlDensity(pairs []pair) density {
	out := gaussian{sd: math.Inf(1)}
	for _, c := range pairs {
		if rate, ok := c.control.(Rate); ok {
			return newBeta(rate)
		}
		if c.contrast != nil {
			m := c.contrast.alwaysValid().(welch).means
			out = gaussian{mean: m.mc, sd: math.Min(out.sd, math.Sqrt(m.sc))}
		}
	}
	return out
}
