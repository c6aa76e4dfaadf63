package stats

import "math"

// compareBayesian compares each pair by its posterior, independently of the
// others. There is no correction for several treatments.
func compareBayesian(comparisons []Comparison, pairs []pair, control Sample, treatments []Sample, o Options) {
	r := newRule()
	best := r.bestByLift(pairs, o)
	if best == nil {
		best = r.chancesToBeBest(append([]Sample{control}, treatments...))
	}
	for i, c := range pairs {
		if c.contrast == nil {
			comparisons[i] = c.withoutTest(o)
			continue
		}
		comparisons[i] = c.bayesian(r, o)
		comparisons[i].Bayesian.ChanceToBeBest = best[i+1]
		comparisons[i].Bayesian.ControlChanceToBeBest = best[0]
	}
}

func (c pair) bayesian(r *rule, o Options) Comparison {
	alpha := o.Alpha()
	p := c.posterior(r, o)
	out := Comparison{
		Bayesian: &Bayesian{
			ChanceToBeatControl: number(math.Min(p.above, 1)),
			ExpectedLoss:        number(p.loss),
			ExpectedLossControl: number(p.lossControl),
		},
		Significant: math.Min(p.below, p.above) < alpha/2,
	}
	out.Difference.Value, out.Lift.Value = number(c.contrast.difference()), number(c.contrast.lift())
	if p.underPrior {
		out.Bayesian.Prior = o.Prior
		out.Difference.Observed, out.Lift.Observed = out.Difference.Value, out.Lift.Value
		out.Difference.Value, out.Lift.Value = number(p.baseline*p.lift), number(p.lift)
	}
	if alpha == 0 {
		out.Difference.Reason, out.Lift.Reason = ReasonLevel100, ReasonLevel100
	} else {
		out.Difference.Interval, out.Difference.Reason = shown(p.differences, p.differenceReason)
		out.Lift.Interval, out.Lift.Reason = shown(p.lifts, p.liftReason)
	}
	if out.Lift.Value == nil && out.Lift.Reason == "" {
		out.Lift.Reason = ReasonBaselineZero
	}
	c.conclude(&out, o)
	if out.Significant && (p.above > p.below) != (c.statistic > 0) && out.Verdict != VerdictInsufficientData {
		// A few conversions, which the prior outweighs.
		out.Verdict = VerdictInconclusive
		out.Reasons = append(out.Reasons, ReasonTooFewConversions)
	}
	return out
}

// posterior returns the posterior under the prior of the lift. Under flat priors, or
// if the baseline is a mean of 0, it is that of two rates or of the difference of
// two means.
func (c pair) posterior(r *rule, o Options) posterior {
	if o.Prior != nil {
		if l, ok := liftsOf(c.contrast, *o.Prior); ok {
			return r.liftPosterior(&l, math.Abs(c.control.value()), o.Alpha())
		}
	}
	if w, ok := c.contrast.always().(welch); ok {
		return normalPosterior(w, o.Alpha())
	}
	control, _ := c.control.(Rate)
	treatment, _ := c.treatment.(Rate)
	return r.betaPosterior(control, treatment, o.Alpha())
}

// chancesToBeBest returns for each sample the chance that its rate or mean is
// the largest. It is nil for samples without data, and for all means if none
// varies.
func (r *rule) chancesToBeBest(samples []Sample) []*float64 {
	chances := make([]*float64, len(samples))
	var all []density
	var places []int
	point := smallestError(samples) * 1e-7
	for i, s := range samples {
		if checkSample(s) != "" {
			continue
		}
		switch s := s.(type) {
		case Rate:
			all, places = append(all, newBeta(s)), append(places, i)
		case Mean:
			if s.Visitors < 2 || point == 0 {
				continue
			}
			// A mean whose values are all equal is a point, or nearly a point.
			sd := math.Max(math.Sqrt(s.varianceOfMean()), point)
			all, places = append(all, gaussian{mean: s.Mean, sd: sd}), append(places, i)
		}
	}
	for i, chance := range r.best(all) {
		chances[places[i]] = number(math.Min(chance, 1))
	}
	return chances
}

// smallestError returns the smallest standard error above 0, or 0 if there is
// none.
func smallestError(samples []Sample) float64 {
	smallest := math.Inf(1)
	for _, s := range samples {
		if m, ok := s.(Mean); ok && m.check() == "" && m.Visitors > 1 && m.Variance > 0 {
			smallest = math.Min(smallest, math.Sqrt(m.varianceOfMean()))
		}
	}
	if !finite(smallest) {
		return 0
	}
	return smallest
}
