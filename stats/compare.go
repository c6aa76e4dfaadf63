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
		c, reason := newContrast(Stratum{control, treatment, SmallerShare(o.Shares, i)}, o.NonNegative)
		pairs[i] = newPair(control, treatment, c, reason)
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
		var c contrast
		switch {
		case reason != "":
		case s.count == 1:
			c, reason = s.contrasts[0], s.weak
		default:
			c, reason = s, s.weak
		}
		pairs[i] = newPair(pooled[0], pooled[i+1], c, reason)
		pairs[i].stratified = true
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
					c.contrast = nil
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

func newPair(control, treatment Sample, c contrast, reason Reason) pair {
	p := pair{control: control, treatment: treatment, contrast: c, reason: reason, test: TestScore}
	if _, isMean := control.(Mean); isMean {
		p.test = TestWelch
	}
	if c != nil {
		p.test, p.statistic, p.nu, p.p = c.testResult()
	}
	return p
}

// frequentistComparison returns the comparison of one pair within its family.
func (c pair) frequentistComparison(family family, o Options) Comparison {
	if c.contrast == nil {
		return c.withoutTest(o)
	}
	adjusted := family.adjustedPValue(c)
	alpha := o.Alpha()
	significant := adjusted < alpha
	tail := family.tail
	if o.Critical > 0 {
		tail = math.Min(tail, normalSurvival(o.Critical))
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
	q := quantileOf(c.contrast, tail)
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
	isComplete := interval != nil && interval[0] != nil && interval[1] != nil
	if reason == "" && !isComplete {
		return nil, ReasonInvalidData
	}
	return interval, reason
}

// withoutTest returns the comparison of a pair without a test.
func (c pair) withoutTest(o Options) Comparison {
	var out Comparison
	out.Difference.Reason, out.Lift.Reason = c.reason, c.reason
	if o.Methodology == MethodologyBayesian {
		out.Bayesian = &Bayesian{Reason: c.reason}
	} else {
		out.Frequentist = &Frequentist{Test: c.test, Correction: CorrectionNone, Reason: c.reason}
	}
	if !c.stratified && c.isComparable() {
		mc := c.control.observedValue()
		d := c.treatment.observedValue() - c.control.observedValue()
		out.Difference.Value = numberOrNil(d)
		if mc != 0 {
			out.Lift.Value = numberOrNil(d / math.Abs(mc))
		}
	}
	c.setVerdict(&out, o)
	return out
}

// isComparable reports whether both samples are valid and of the same kind.
func (c pair) isComparable() bool {
	_, first := c.control.(Rate)
	_, second := c.treatment.(Rate)
	return checkSample(c.control) == "" && checkSample(c.treatment) == "" && first == second
}

// contrast compares one treatment with control, by the test for the metric's kind.
type contrast interface {
	// testResult returns the test, its statistic (positive if the treatment is above control), its degrees of freedom
	// (NaN if it has none) and its p-value.
	testResult() (name Test, statistic, nu, p float64)
	// estimateEffect returns the observed effect, or NaN if there is none.
	estimateEffect(on scale) float64
	// effectInterval returns the interval at critical value q. It excludes 0 exactly if significant is true. The reason
	// explains a missing end of the lift's interval.
	effectInterval(q float64, significant bool, on scale) (bounds, Reason)
	// controlCorrelation returns lambda of the family: the correlation of this contrast's z with the part of z that
	// control contributes.
	controlCorrelation() float64
}

// quantileOf returns the critical value of a contrast's statistic with the given upper tail. An uneven pair has the
// normal quantile, because its two statistics have different degrees of freedom.
func quantileOf(c contrast, tail float64) float64 {
	if w, ok := c.(welch); ok {
		return w.student.quantile(tail)
	}
	return normalQuantile(tail)
}

// newContrast returns the contrast of the samples of a stratum, or none. The reason explains why there is none, or why
// it is weak. nonNegative reports whether values are never below zero.
func newContrast(s Stratum, nonNegative bool) (contrast, Reason) {
	if reason := cmp.Or(checkSample(s.Control), checkSample(s.Treatment)); reason != "" {
		return nil, reason
	}
	switch c := s.Control.(type) {
	case Rate:
		if t, ok := s.Treatment.(Rate); ok {
			return newTable(c, t), ""
		}
	case Mean:
		if t, ok := s.Treatment.(Mean); ok {
			return newContrastOfMeans(c, t, s.SmallerShare, nonNegative)
		}
	}
	return nil, ReasonInvalidData
}

func (t table) testResult() (name Test, statistic, nu, p float64) {
	z := t.z()
	return TestScore, z, math.NaN(), 2 * normalSurvival(math.Abs(z))
}

func (t table) estimateEffect(on scale) float64 {
	switch {
	case on == onDifference:
		return t.observedDifference()
	case t.xc == 0:
		return math.NaN()
	}
	return t.crossDifference() / (t.nt * t.xc)
}

func (t table) effectInterval(q float64, significant bool, on scale) (bounds, Reason) {
	switch {
	case on == onDifference:
		return t.differenceBounds(q, significant), ""
	case t.xc == 0:
		return t.liftInterval(q, significant), ReasonBaselineZero
	}
	return t.liftInterval(q, significant), ""
}

func (t table) controlCorrelation() float64 { return math.Sqrt(t.nt / (t.nt + t.nc)) }

// welch is the contrast of two means by Welch's test.
type welch struct {
	means
	student     student
	nonNegative bool
}

// unevenShare is the share of the smaller variation in a pair of means below which the skewness of the two means does
// not cancel. Simulated A/A errors of revenue at alpha .05 (2 % buyers, log-normal orders): Welch's test alone .050 at
// 50/50, .057 at 70/30 and .29 at 95/5.
const unevenShare = 0.35

func newContrastOfMeans(control, treatment Mean, share float64, nonNegative bool) (contrast, Reason) {
	var weak Reason
	switch {
	case control.Visitors < 2 || treatment.Visitors < 2:
		return nil, ReasonTooFewVisitors
	case control.Variance == 0 && treatment.Variance == 0:
		return nil, ReasonZeroVariance
	case control.Variance == 0 || treatment.Variance == 0:
		weak = ReasonZeroVariance
	}
	m := newMeans(control, treatment)
	w := welch{means: m, student: newStudent(m.degreesOfFreedom()), nonNegative: nonNegative}
	if !w.isValid() {
		return nil, ReasonInvalidData
	}
	if share == 0 {
		share = SmallerShare([]float64{m.fc + 1, m.ft + 1}, 0)
	}
	if share >= unevenShare {
		return w, weak
	}
	pooled := welch{means: m.withPooledVariance(), student: newStudent(m.fc + m.ft), nonNegative: nonNegative}
	if !pooled.isValid() {
		return nil, ReasonInvalidData
	}
	return uneven{welch: w, pooled: pooled}, weak
}

func (w welch) isValid() bool {
	se := w.standardError()
	if se == 0 || !isFinite(se) {
		return false
	}
	return isFinite(w.observedDifference()/se) && isFinite(w.student.nu)
}

func (w welch) z() float64 { return w.observedDifference() / w.standardError() }

func (w welch) testResult() (name Test, statistic, nu, p float64) {
	t := w.z()
	tail, _ := w.student.survival(math.Abs(t))
	return TestWelch, t, w.student.nu, 2 * tail
}

func (w welch) estimateEffect(on scale) float64 {
	switch {
	case on == onDifference:
		return w.observedDifference()
	case w.mc == 0:
		return math.NaN()
	}
	return w.observedDifference() / math.Abs(w.mc)
}

func (w welch) effectInterval(q float64, significant bool, on scale) (bounds, Reason) {
	switch {
	case on == onDifference:
		return w.differenceBounds(q, significant), ""
	case w.mc == 0:
		return bounds{lower: math.NaN(), upper: math.NaN()}, ReasonBaselineZero
	}
	return w.liftInterval(q, significant, w.nonNegative)
}

func (w welch) controlCorrelation() float64 { return math.Sqrt(w.sc / (w.sc + w.st)) }

// uneven is the contrast of two means of very different numbers of visitors, by Welch's and by the pooled t-test.
// Welch's t uses the small variation's own variance. A sample of skewed values that underestimates the mean also
// underestimates this variance, but not the pooled one. The p-value is the larger of the two, and an interval is the
// hull of both, so p-value and interval agree.
type uneven struct {
	welch
	pooled welch
}

func (u uneven) testResult() (name Test, statistic, nu, p float64) {
	_, statistic, nu, p = u.welch.testResult()
	if _, t, f, larger := u.pooled.testResult(); larger > p {
		statistic, nu, p = t, f, larger
	}
	return TestWelchPooled, statistic, nu, p
}

// effectInterval returns the smallest interval that contains those of both tests. It is NaN if either is NaN.
func (u uneven) effectInterval(q float64, significant bool, on scale) (bounds, Reason) {
	tail := normalSurvival(q)
	in, reason := u.welch.effectInterval(u.student.quantile(tail), significant, on)
	pooled, reasonPooled := u.pooled.effectInterval(u.pooled.student.quantile(tail), significant, on)
	hull := bounds{lower: math.Min(in.lower, pooled.lower), upper: math.Max(in.upper, pooled.upper)}
	return hull, cmp.Or(reason, reasonPooled)
}
