package stats

import (
	"cmp"
	"math"
	"slices"
)

// Stratum has the visitors of control and of one treatment whose first view is in one period of equal shares.
// SmallerShare is the expected share of the smaller variation in the pair, in (0, .5]; 0 means that the observed share
// decides whether the pair is uneven.
type Stratum struct {
	Control, Treatment Sample
	SmallerShare       float64
}

// strata compares a treatment with control over all strata with MinimumVisitors in both variations:
//
//	z(e) = Σ sqrt(I_s) z_s(e) / sqrt(I),  I = Σ I_s,  I_s = nc nt / (nc + nt)
//
// where z_s(e) is the statistic of the hypothesis that the effect is e, on the normal scale. The weight of a stratum
// depends only on its visitors. So a change of shares cannot make a change over time look like an effect.
//
// See Lan and DeMets (1983) for I; Mosteller and Bush (1954) for the weighted sum of z.
type strata struct {
	count       int        // of strata, also of those without a contrast: z_s is 0, because no value varies
	contrasts   []contrast // of the other strata
	roots       []float64  // sqrt(I_s / I) of each contrast
	information float64
	visitors    float64 // in both variations, see alwaysValid
	nonNegative bool
	mixed       bool   // means of control differ in sign
	weak        Reason // why the result is weak
}

// newStrata returns the contrast of all strata, or the reason why there is none. It returns the information even if
// there is no contrast.
func newStrata(all []Stratum, nonNegative bool) (strata, Reason) {
	s := strata{nonNegative: nonNegative}
	missing := ReasonNoVisitors
	least, most := 0.0, 0.0
	for _, stratum := range all {
		if reason := cmp.Or(checkSample(stratum.Control), checkSample(stratum.Treatment)); reason != "" {
			if reason == ReasonInvalidData || reason == ReasonRateUnknown {
				return strata{}, reason
			}
			missing = reason
			continue
		}
		nc, nt := float64(stratum.Control.visitorCount()), float64(stratum.Treatment.visitorCount())
		if math.Min(nc, nt) < MinimumVisitors {
			missing = ReasonTooFewVisitors
			continue
		}
		c, reason := newContrast(stratum, nonNegative)
		information := nc / (nc + nt) * nt
		switch {
		case c != nil:
			s.contrasts, s.roots = append(s.contrasts, c), append(s.roots, math.Sqrt(information))
			s.weak = cmp.Or(s.weak, reason)
		case reason == ReasonZeroVariance:
			missing = reason
		default:
			return strata{}, reason
		}
		if mean, ok := c.(interface{ baseline() float64 }); ok {
			least = math.Min(least, mean.baseline())
			most = math.Max(most, mean.baseline())
		}
		s.information += information
		s.count++
		if s.count == 1 {
			s.visitors = (nc + nt) / information
		}
	}
	s.visitors *= s.information
	for i := range s.roots {
		s.roots[i] /= math.Sqrt(s.information)
	}
	s.mixed = least < 0 && most > 0
	if len(s.contrasts) == 0 {
		return s, missing
	}
	return s, ""
}

// LookInformation returns the information of a look at strata: I (see LookPoint). It is 0 if no stratum has
// MinimumVisitors in both variations, or if a sample is invalid.
func LookInformation(all []Stratum, nonNegative bool) float64 {
	s, _ := newStrata(all, nonNegative)
	return s.information
}

func (m means) baseline() float64 { return m.mc }

// alwaysValid returns the contrast for an always-valid bound and for a posterior. The z of means in strata are not
// corrected for degrees of freedom: such a bound needs a clock that is proportional to I. The clock is the number of
// visitors that the shares of the first stratum would need for I. The standard error of an uneven pair of means is
// widened to the pooled one: both variances are scaled by the same factor. At a 5/95 split of skewed values Welch's
// always-valid bound has an error rate of .09. The widened one has an error rate below alpha.
func alwaysValid(c contrast) contrast {
	switch c := c.(type) {
	case uneven:
		w := c.welch
		if by := w.withPooledVariance().standardError() / w.standardError(); by > 1 && isFinite(by) {
			w.sc, w.st = w.sc*by*by, w.st*by*by
		}
		return w
	case strata:
		c.contrasts = slices.Clone(c.contrasts)
		for i := range c.contrasts {
			c.contrasts[i] = alwaysValid(c.contrasts[i])
			if w, ok := c.contrasts[i].(welch); ok {
				w.student = student{nu: math.Inf(1)}
				c.contrasts[i] = w
			}
		}
		return c
	}
	return c
}

func (s strata) testResult() (name Test, statistic, nu, p float64) {
	name, _, _, _ = s.contrasts[0].testResult()
	z := s.z(0, onDifference)
	return name, z, math.NaN(), 2 * normalSurvival(math.Abs(z))
}

// controlCorrelation returns sqrt(Σ (I_s / I) λ_s²). With it, λ_i λ_j is the correlation of the z of two treatments if
// their shares changed in proportion, and above it otherwise.
func (s strata) controlCorrelation() float64 {
	sum := 0.0
	for i, c := range s.contrasts {
		lambda := s.roots[i] * c.controlCorrelation()
		sum += lambda * lambda
	}
	return math.Sqrt(sum)
}

// scale is the scale of an effect.
type scale bool

const (
	onDifference scale = false
	onLift       scale = true
)

// z returns z(e).
func (s strata) z(e float64, on scale) float64 {
	sum := 0.0
	for i, c := range s.contrasts {
		sum += s.roots[i] * testStatistic(c, e, on)
	}
	return sum
}

// testStatistic returns z_s(e). For rates it is Miettinen and Nurminen's score. For means it is the normal quantile of
// the p-value of (d - e) / SE; for a lift, SE is the standard error in Fieller's interval. For an uneven pair, the
// larger p-value of Welch's and the pooled test counts. It decreases in e near the observed effect.
func testStatistic(c contrast, e float64, on scale) float64 {
	switch c := c.(type) {
	case table:
		switch {
		case e == 0:
			return c.z()
		case on == onLift:
			return c.zOfLift(e)
		}
		return c.zOfDifference(e)
	case uneven:
		a, b := testStatistic(c.welch, e, on), testStatistic(c.pooled, e, on)
		if math.Abs(b) < math.Abs(a) {
			return b
		}
		return a
	case welch:
		if on == onLift {
			return c.student.equivalentZ(c.zOfLift(e))
		}
		return c.student.equivalentZ((c.observedDifference() - e) / c.standardError())
	}
	return math.NaN()
}

// equivalentZ returns the z whose normal tail equals the tail of t.
func (s student) equivalentZ(t float64) float64 {
	if s.nu > largestNu {
		return t
	}
	tail, _ := s.survival(math.Abs(t))
	z := normalQuantile(tail)
	if tail < 1e-300 { // near the smallest float; the logarithm of the tail is -z²/2
		z = math.Min(math.Sqrt(s.nu*math.Log1p(t/s.nu*t)), 1e100)
	}
	return math.Copysign(z, t)
}

// zOfDifference returns the score statistic of the hypothesis pt - pc = delta. It solves for the multiplier λ of
// differenceBounds, in which both restricted rates are closed forms. The statistic is infinite at a delta of ±1 that
// is not the observed difference.
func (t table) zOfDifference(delta float64) float64 {
	d := t.observedDifference()
	switch {
	case delta == d:
		return 0
	case delta > d:
		return -t.swapVariations().zOfDifference(-delta)
	case delta <= -1:
		return math.Inf(1)
	}
	excess := func(lambda float64) float64 {
		r := t.restrictedDifference(lambda)
		return r.pt - r.pc - delta
	}
	in := bracket{fa: d - delta, b: t.startDifference(1)}
	for in.fb = excess(in.b); in.fb > 0; in.fb = excess(in.b) {
		in.a = in.b
		in.fa = in.fb
		in.b = 2 * in.b
		if math.IsInf(in.b, 1) {
			return in.b
		}
	}
	score, _ := t.scoreDifference(findRoot(excess, in, 1e-14))
	return math.Sqrt(score * (t.totalVisitors() - 1) / t.totalVisitors())
}

// estimateEffect returns the effect at which z is 0, or NaN if there is none. With one stratum it is the observed
// effect. There is no lift if the baselines of the strata differ in sign.
func (s strata) estimateEffect(on scale) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range s.contrasts {
		if e := c.estimateEffect(on); isFinite(e) && (on == onDifference || !s.mixed) {
			low = math.Min(low, e)
			high = math.Max(high, e)
		}
	}
	switch f := func(e float64) float64 { return s.z(e, on) }; {
	case low > high:
		return math.NaN()
	case low == high && s.count == 1, f(low) <= 0:
		return low
	case f(high) < 0:
		return findRoot(f, bracket{low, high, f(low), f(high)}, 1e-13)
	case f(high) > 0: // a control without conversions has no lift
		high, _ = s.findCrossing(high, 1, 0, on)
	}
	return high
}

// effectInterval returns all e with |z(e)| <= critical. The interval excludes 0 exactly if significant is true. For one
// stratum it is the interval of the contrast. The reason explains a missing end of the lift, as for one stratum.
// Without a finite upper end, the lift of values that are never negative has a lower end, and any other lift has none.
func (s strata) effectInterval(critical float64, significant bool, on scale) (bounds, Reason) {
	if s.count == 1 {
		return s.onlyInterval(critical, significant, on)
	}
	missing := bounds{lower: math.NaN(), upper: math.NaN()}
	if on == onLift && s.mixed {
		return missing, ReasonBaselineNotDistinguishable
	}
	from := s.findInside(critical, on)
	_, rate := s.contrasts[0].(table)
	lower, _ := s.findCrossing(from, -1, critical, on)
	upper, bounded := s.findCrossing(from, 1, -critical, on)
	in := bounds{lower: lower, upper: upper}
	switch {
	case on == onDifference:
		return in.moveEndToSide(significant, from), ""
	case math.IsNaN(from):
		return missing, ReasonBaselineZero
	case rate && bounded, !rate && s.z(unboundedLift, on) < -critical:
		return in.moveEndToSide(significant, from), ""
	case rate:
		in.upper = math.Inf(1)
		return in.moveEndToSide(significant, from), ReasonBaselineZero
	case s.nonNegative && from > -1 && s.z(-1, on) > critical:
		in.upper = math.Inf(1)
		return in.moveEndToSide(significant, from), ReasonBaselineNotDistinguishable
	}
	return missing, ReasonBaselineNotDistinguishable
}

// findInside returns an effect inside the interval: the estimate, or one with a small z if rates have no conversion in
// control. Then z is above 0 and falls to 0.
func (s strata) findInside(critical float64, on scale) float64 {
	effect := s.estimateEffect(on)
	_, rate := s.contrasts[0].(table)
	if !rate || !math.IsNaN(effect) {
		return effect
	}
	for effect = 1; s.z(effect, on) > critical/2; {
		effect *= 2
	}
	return effect
}

// onlyInterval returns the interval of the only stratum. Its quantile for few values is that of Student's distribution.
func (s strata) onlyInterval(critical float64, significant bool, on scale) (bounds, Reason) {
	contrast := s.contrasts[0]
	w, isMean := contrast.(welch)
	if isMean && !(w.student.nu > largestNu) {
		critical = w.student.quantile(normalSurvival(critical))
	}
	return contrast.effectInterval(critical, significant, on)
}

// unboundedLift is a lift at which z of means has reached its limit.
const unboundedLift = 1e12

// findCrossing returns the effect at which z crosses a value, in the direction ±1 from an effect. It returns false if z
// does not cross the value. The effect is then the end of the possible range, such as -1 or 1 for rates.
func (s strata) findCrossing(from, direction, value float64, on scale) (float64, bool) {
	step := 1e-6
	least := math.Inf(-1)
	most := math.Inf(1)
	if _, rate := s.contrasts[0].(table); rate {
		least = -1
		if on == onDifference {
			most = 1
		}
	}
	if mean, ok := s.contrasts[0].(interface{ standardError() float64 }); ok && on == onDifference {
		step = mean.standardError()
	}
	excess := func(e float64) float64 { return s.z(e, on) - value }
	in := bracket{a: from, fa: excess(from)}
	for isFinite(in.a) {
		in.b = math.Max(least, math.Min(most, in.a+direction*step))
		in.fb = excess(in.b)
		if in.fb*direction <= 0 {
			return findRoot(excess, in, 1e-13), true
		}
		if in.b == least || in.b == most {
			return in.b, false
		}
		in.a = in.b
		in.fa = in.fb
		step = 2 * step
	}
	return in.a, false
}
