package stats

import "math"

// posterior compares treatment with control by two independent posteriors.
type posterior struct {
	below, above float64 // P(treatment < control), P(treatment > control)
	// loss is E[(control - treatment)+], the expected loss from shipping the treatment. lossControl is E[(treatment -
	// control)+], the expected loss from keeping control.
	loss, lossControl float64
	// differences and lifts are equal-tailed credible intervals.
	differences, lifts           bounds
	differenceReason, liftReason Reason
	// underPrior reports whether there is a prior of the lift. If so, lift is the posterior mean, and baseline the
	// absolute value of control.
	underPrior     bool
	lift, baseline float64
}

// liftPosterior returns the posterior of a pair under a prior of the lift. Without conversions in control, losses and
// differences are NaN. With alpha 0 there are no intervals.
func (r *rule) liftPosterior(l *lifts, baseline, alpha float64) posterior {
	s := r.summarizePosterior(l, alpha)
	p := posterior{below: s.below, above: s.above, underPrior: true, lift: s.mean, baseline: baseline}
	if baseline == 0 {
		p.baseline, p.differenceReason = math.NaN(), ReasonBaselineZero
	}
	p.loss, p.lossControl = p.baseline*s.loss, p.baseline*s.gain
	if alpha == 0 {
		return p
	}
	tail := alpha / 2
	p.lifts = bounds{
		lower: endOnSide(s.interval.lower, smallestEffect, s.below < tail),
		upper: -endOnSide(-s.interval.upper, smallestEffect, s.above < tail),
	}.sortedBounds()
	p.differences = bounds{lower: p.baseline * p.lifts.lower, upper: p.baseline * p.lifts.upper}
	return p
}

// betaPosterior compares two rates under uniform priors, exactly, by quadrature without random numbers. With alpha 0
// there are no intervals.
//
// See Miller (2015), "Formulas for Bayesian A/B Testing", for the integrals.
func (r *rule) betaPosterior(control, treatment Rate, alpha float64) posterior {
	c, t := newCutBeta(control), newCutBeta(treatment)
	o := r.integrateOverlap(t.beta, c.beta)
	p := posterior{below: o.below, above: o.above, loss: o.short, lossControl: o.over}
	if alpha == 0 {
		return p
	}
	tail := alpha / 2
	z := normalQuantile(tail)
	center, sd := t.mean()-c.mean(), math.Sqrt(t.variance()+c.variance())
	p.differences = bounds{
		lower: endOnSide(r.differenceQuantile(t, c, z, center-z*sd, false), smallestEffect, p.below < tail),
		upper: -endOnSide(-r.differenceQuantile(t, c, z, center+z*sd, true), smallestEffect, p.above < tail),
	}
	logRatio := math.Log(t.mean() / c.mean())
	logSD := math.Sqrt(t.variance()/(t.mean()*t.mean()) + c.variance()/(c.mean()*c.mean()))
	lower := r.ratioQuantile(t, c, z, logRatio-z*logSD, false)
	upper := r.ratioQuantile(t, c, z, logRatio+z*logSD, true)
	p.lifts = bounds{
		lower: endOnSide(math.Expm1(lower), smallestEffect, p.below < tail),
		upper: -endOnSide(-math.Expm1(upper), smallestEffect, p.above < tail),
	}
	p.differences, p.lifts = p.differences.sortedBounds(), p.lifts.sortedBounds()
	return p
}

// sortedBounds returns the bounds in ascending order. The ends of an interval narrower than their last digit may be in
// descending order.
func (in bounds) sortedBounds() bounds {
	return bounds{lower: math.Min(in.lower, in.upper), upper: math.Max(in.lower, in.upper)}
}

// differenceQuantile returns δ with P(X - Y < δ) = P(Z < -z), or P(Z < z) if upper is true. The search starts near
// start.
func (r *rule) differenceQuantile(x, y cutBeta, z, start float64, upper bool) float64 {
	in := bounds{lower: x.points[0] - y.points[len(y.points)-1], upper: x.points[len(x.points)-1] - y.points[0]}
	return probitRoot(z, upper, start, in, func(shift float64) (below, above, slope float64) {
		c := r.integrateCrossing(moved{density: x, shift: shift, scale: 1}, y)
		return c.below, c.above, c.shift
	})
}

// ratioQuantile returns ln r with P(X / Y < r) = P(Z < -z), or P(Z < z) if upper is true. The search starts near start.
func (r *rule) ratioQuantile(x, y cutBeta, z, start float64, upper bool) float64 {
	in := bounds{lower: math.Inf(-1), upper: math.Inf(1)}
	return probitRoot(z, upper, start, in, func(logRatio float64) (below, above, slope float64) {
		c := r.integrateCrossing(moved{density: x, scale: math.Exp(logRatio)}, y)
		return c.below, c.above, c.factor
	})
}

// probitRoot solves P(x) = P(Z < ∓z) for an increasing P. f returns P, its complement and its derivative. The method is
// Newton's on the normal quantile of P, which is nearly linear. It uses bisection if a step is more than half of the
// previous one.
func probitRoot(
	z float64, upper bool, start float64, in bounds, f func(float64) (below, above, slope float64),
) float64 {
	target := -z
	if upper {
		target = z
	}
	// The first step must not exceed 1, a factor of e in a ratio.
	x, last := start, 2.0
	if !(x > in.lower && x < in.upper) {
		x = halfwayPoint(in, x)
	}
	for range 200 {
		below, above, slope := f(x)
		score := -normalQuantile(below)
		if below > above {
			score = normalQuantile(above)
		}
		if score < target {
			in.lower = x
		} else {
			in.upper = x
		}
		step := (target - score) * normalDensity(score) / slope
		if math.Abs(target-score) < 1e-5 {
			return x + step
		}
		next := x + step
		if !(next > in.lower && next < in.upper) || math.Abs(step) > last/2 {
			next = halfwayPoint(in, x)
		}
		if next == x {
			return x
		}
		x, last = next, math.Abs(next-x)
	}
	return x
}

// halfwayPoint returns a point between the bounds, or a point beyond x if a bound is infinite.
func halfwayPoint(in bounds, x float64) float64 {
	switch {
	case math.IsInf(in.upper, 1):
		return x + 1 + math.Abs(x)
	case math.IsInf(in.lower, -1):
		return x - 1 - math.Abs(x)
	}
	return in.lower + (in.upper-in.lower)/2
}

// normalPosterior compares two means under flat priors. The posterior of the difference is normal with the observed
// difference d and its standard error:
//
//	chance = Φ(k),  k = d / SE
//	loss   = SE φ(k) - d Φ(-k),  lossControl = SE φ(k) + d Φ(k)
//
// The interval of the lift is Fieller's with the normal quantile.
func normalPosterior(w welch, alpha float64) posterior {
	d, se := w.observedDifference(), w.standardError()
	k := d / se
	p := posterior{
		below: normalSurvival(k), above: normalSurvival(-k),
		loss:        se * math.Max(normalDensity(k)-k*normalSurvival(k), 0),
		lossControl: se * math.Max(normalDensity(k)+k*normalSurvival(-k), 0),
	}
	if alpha == 0 {
		return p
	}
	q := normalQuantile(alpha / 2)
	significant := math.Min(p.below, p.above) < alpha/2
	p.differences = w.differenceBounds(q, significant)
	p.lifts, p.liftReason = w.liftBounds(q, significant)
	return p
}

// compareBayesian compares each pair by its part of the joint posterior. There is no correction for several treatments.
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

// bayesianComparison returns the comparison of one pair under the given posterior of the lift; nil: under flat priors.
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
	out.Difference.Value, out.Lift.Value = numberOrNil(c.contrast.observedDifference()),
		numberOrNil(c.contrast.observedLift())
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

// pairPosterior returns the posterior of a pair from the posterior of its lift. If l is nil, it returns the posterior
// of two rates or of the difference of two means.
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

// bestUnderFlatPriors returns the chances of control and each treatment to be best, from the posteriors that give the
// chances to beat control: with one treatment both chances are equal. The chance of a treatment without a test is nil.
//
// The standard error of a pair of means may differ from that of its samples (see newMeans and withWidenedError). The
// variance of control is its smallest variance in any pair, and a treatment gets the rest of its pair's variance.
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

// controlDensity returns the posterior of control under a flat prior. For means, its variance is the smallest one in
// any pair.
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
