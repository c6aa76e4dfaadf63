package stats

import (
	"cmp"
	"math"
)

// Compare compares every treatment with control and returns the comparisons in the order of the treatments. The
// treatments form one family at the alpha of the options. All samples must be of one kind, Rate or Mean. A treatment
// without data gets a comparison with a Reason and is not part of the family. See the package documentation for the
// methods.
func Compare(control Sample, treatments []Sample, o Options) []Comparison {
	pairs := make([]pair, len(treatments))
	for i, treatment := range treatments {
		pairs[i] = newPair(Stratum{control, treatment, SmallerShare(o.Shares, i)}, o.NonNegative)
	}
	return comparePairs(pairs, o)
}

// Period has the samples of the visitors whose first view is in one period of equal shares, control first, and the
// shares of that period, in any unit.
type Period struct {
	Samples []Sample
	Shares  []float64
}

// ComparePeriods is like Compare for visitors whose shares changed. pooled has the samples of all periods together,
// control first. A treatment is compared within the periods that have MinimumVisitors in both variations, see strata:
// pooled visitors would show a change over time as an effect. The effect is unknown if no period has them. If only one
// has them, the test is that of this period. Otherwise the statistic is z, also for means.
//
// A posterior uses z of all periods, too.
func ComparePeriods(pooled []Sample, periods []Period, o Options) []Comparison {
	pairs := make([]pair, len(pooled)-1)
	for i := range pairs {
		all := make([]Stratum, len(periods))
		for k, period := range periods {
			all[k] = Stratum{period.Samples[0], period.Samples[i+1], SmallerShare(period.Shares, i)}
		}
		s, reason := newStrata(all, o.NonNegative)
		pairs[i] = s.newPair(pooled[0], pooled[i+1], reason)
	}
	return comparePairs(pairs, o)
}

func comparePairs(pairs []pair, o Options) []Comparison {
	comparisons := make([]Comparison, len(pairs))
	if o.Methodology == MethodologyBayesian { // each pair by its part of the joint posterior
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
		return comparisons
	}
	family := newFamily(pairs, o.Alpha())
	for i, pair := range pairs {
		comparisons[i] = pair.frequentistComparison(family, o)
	}
	return comparisons
}

// pair is a treatment and control with their contrast. If there is no test, contrast is nil. The reason explains why
// there is none, or why it is weak.
type pair struct {
	control, treatment Sample
	contrast           contrast
	reason             Reason
	test               Test
	statistic, nu, p   float64
	stratified         bool // the shares changed, so the pooled samples show no effect
}

func newPair(s Stratum, nonNegative bool) pair {
	c := pair{control: s.Control, treatment: s.Treatment, test: testOf(s.Control)}
	c.contrast, c.reason = newContrast(s, nonNegative)
	if c.contrast != nil {
		c.test, c.statistic, c.nu, c.p = c.contrast.testResult()
	}
	return c
}

// testOf returns the test of a sample with another one of its kind.
func testOf(s Sample) Test {
	if _, ok := s.(Mean); ok {
		return TestWelch
	}
	return TestScore
}

// frequentistComparison returns the comparison of one pair within its family.
func (c pair) frequentistComparison(family family, o Options) Comparison {
	if c.contrast == nil {
		return c.withoutTest(o)
	}
	adjusted := family.adjustedPValue(c)
	alpha := o.Alpha()
	significant, tail := adjusted < alpha, family.tail
	if o.Critical > 0 {
		tail = normalSurvival(o.Critical)
		significant = c.p < 2*tail
	}
	out := Comparison{
		Frequentist: &Frequentist{
			Test:             c.test,
			Statistic:        numberOrNil(c.statistic),
			DegreesOfFreedom: numberOrNil(c.nu),
			PValue:           numberOrNil(c.p),
			AdjustedPValue:   numberOrNil(adjusted),
			Correction:       family.correction,
		},
		Significant: significant,
	}
	q := c.contrast.quantile(tail)
	observe := func(on scale) Effect {
		e := Effect{Value: numberOrNil(c.contrast.estimateEffect(on)), Reason: ReasonLevel100}
		if alpha > 0 {
			e.Interval, e.Reason = shownInterval(c.contrast.effectInterval(q, significant, on))
		}
		if e.Value == nil {
			e.Reason = cmp.Or(e.Reason, ReasonInvalidData)
		}
		return e
	}
	out.Difference, out.Lift = observe(onDifference), observe(onLift)
	c.setVerdict(&out, o)
	return out
}

// shownInterval returns the interval of a result. If an end is missing, the returned reason says why. If an end exceeds
// the range of floating point, the interval is nil and the reason is ReasonInvalidData.
func shownInterval(in bounds, reason Reason) (*Interval, Reason) {
	interval := in.toInterval()
	if reason == "" && (interval == nil || interval[0] == nil || interval[1] == nil) {
		return nil, ReasonInvalidData
	}
	return interval, reason
}

// withoutTest returns the comparison of a pair without a test.
func (c pair) withoutTest(o Options) Comparison {
	out := Comparison{Verdict: VerdictInsufficientData}
	out.Difference.Reason, out.Lift.Reason = c.reason, c.reason
	if o.Methodology == MethodologyBayesian {
		out.Bayesian = &Bayesian{Reason: c.reason}
	} else {
		out.Frequentist = &Frequentist{Test: c.test, Correction: CorrectionNone, Reason: c.reason}
	}
	if !c.stratified && c.isComparable() {
		mc, d := c.control.observedValue(), c.treatment.observedValue()-c.control.observedValue()
		out.Difference.Value = numberOrNil(d)
		if mc != 0 {
			out.Lift.Value = numberOrNil(d / math.Abs(mc))
		}
	}
	out.Reasons = c.verdictReasons(out, o)
	return out
}

// isComparable reports whether both samples are valid and of the same kind.
func (c pair) isComparable() bool {
	_, first := c.control.(Rate)
	_, second := c.treatment.(Rate)
	return checkSample(c.control) == "" && checkSample(c.treatment) == "" && first == second
}
