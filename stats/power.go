package stats

import "math"

// Plan holds the values that determine the size of an experiment.
type Plan struct {
	// Control is the observed sample of control: the baseline and its variance.
	Control Sample
	// Shares are the traffic shares, control first, as relative weights.
	Shares []float64
	// Visitors is the number of visitors so far, over all variations.
	Visitors int64
	// MinimumEffect is the smallest lift that must be detected, a fraction
	// above 0.
	MinimumEffect float64
	// Power is the probability of detecting MinimumEffect, in (0, 1).
	Power float64
	// VisitorsPerDay is the recent traffic over all variations.
	VisitorsPerDay float64
}

// PowerReport is the progress of an experiment. Numbers of visitors are over
// all variations. Progress is the ratio of the visitors so far to
// RequiredVisitors, and may exceed 1. MinimumDetectableEffect is the smallest
// lift that the visitors so far detect with the planned power. Power is the
// probability that they detect the planned lift. Reason explains the first nil
// field.
type PowerReport struct {
	RequiredVisitors        *int64
	Progress                *float64
	RemainingVisitors       *int64
	DaysRemaining           *int64
	MinimumDetectableEffect *float64
	Power                   *float64
	Reason                  Reason
}

// Power returns the number of visitors that a plan needs and its progress:
//
//	n = (z_{1-a/2} + z_power)² (vc/share_c + vt/share_t) / (mde mc)²
//
// for the treatment that needs the most visitors. Here a is the effective alpha
// of the planned family (see Compare). mc and vc are the mean and the variance
// of control. For rates, vt is the variance of the lifted rate; for means, vt
// is vc.
//
// Under a prior of the lift, which shrinks the effect, z_{1-a/2} is multiplied by
// sqrt(1 + (SE/sd)²), where SE is the standard error of the lift and sd the standard
// deviation of the prior. There a is the part of alpha at the planned look.
//
// The minimum detectable effect and the power solve the same equation for mde
// and for z_power at the visitors so far. So they reach the plan exactly when
// Progress reaches 1.
//
// See Kohavi, Tang and Xu (2020), "Trustworthy Online Controlled Experiments",
// chapter 17.
func Power(plan Plan, o Options) PowerReport {
	s, reason := newSizing(plan, o)
	if reason != "" {
		return PowerReport{Reason: reason}
	}
	out := PowerReport{}
	missing := func(reason Reason) {
		if out.Reason == "" {
			out.Reason = reason
		}
	}
	if reason := s.require(plan, &out); reason != "" {
		missing(reason)
	}
	if plan.Visitors <= 0 {
		missing(ReasonNoVisitors)
		return out
	}
	effect, reason := s.detectable(float64(plan.Visitors))
	if out.MinimumDetectableEffect = number(effect); out.MinimumDetectableEffect == nil {
		missing(reason)
	}
	return out
}

// require sets the fields that depend on the number of required visitors.
func (s sizing) require(plan Plan, out *PowerReport) Reason {
	vt, reason := s.lifted(plan.MinimumEffect)
	if reason != "" {
		return reason
	}
	distance := plan.MinimumEffect * math.Abs(s.mean)
	perVisitor := s.spread(vt)
	if plan.Visitors > 0 {
		se := math.Sqrt(perVisitor / float64(plan.Visitors))
		out.Power = number(normalSurvival(s.bound(se/math.Abs(s.mean)) - distance/se))
	}
	needed, ok := s.required(plan.MinimumEffect, vt)
	if !ok {
		return ReasonBaselineNotDistinguishable
	}
	remaining := max(needed-plan.Visitors, 0)
	out.RequiredVisitors, out.RemainingVisitors = &needed, &remaining
	out.Progress = number(float64(plan.Visitors) / float64(needed))
	days := math.Ceil(float64(remaining) / plan.VisitorsPerDay)
	switch {
	case remaining == 0:
		out.DaysRemaining = new(int64)
	case !(plan.VisitorsPerDay > 0) || !(days < 1<<62):
		return ReasonNoTraffic
	default:
		whole := int64(days)
		out.DaysRemaining = &whole
	}
	return ""
}

// required returns the number of visitors that detect a lift, or false if it is too
// large.
func (s sizing) required(lift, vt float64) (int64, bool) {
	distance, z := lift*math.Abs(s.mean), s.errors(lift)
	required := math.Ceil(z / distance * z / distance * s.spread(vt))
	return max(int64(required), 1), required < 1<<62
}

// bound returns the significant effect in standard errors, for a standard error of
// the lift.
func (s sizing) bound(se float64) float64 {
	if s.prior == 0 {
		return s.critical
	}
	return s.critical * math.Hypot(1, se/s.prior)
}

// errors returns the x at which a lift of x standard errors is detected: x = bound +
// z_power.
func (s sizing) errors(lift float64) float64 {
	low, high := math.Max(s.critical+s.power, 0), math.Max(s.critical+s.power, 0)
	if s.prior == 0 || low == 0 {
		return low
	}
	above := func(x float64) float64 { return x - s.bound(lift/x) - s.power }
	for above(high) < 0 {
		high *= 2
	}
	return findRoot(above, bracket{low, high, above(low), above(high)}, 1e-12)
}

// sizing holds the terms of a plan's equation: the baseline and its variance,
// both quantiles, and two shares. The shares are those of control and of the
// smallest treatment, which needs the most visitors.
type sizing struct {
	rate            bool
	mean, variance  float64
	critical, power float64
	control, least  float64
	prior           float64 // standard deviation of the prior of the lift; 0: none
}

func newSizing(plan Plan, o Options) (sizing, Reason) {
	if reason := checkSample(plan.Control); reason != "" {
		return sizing{}, reason
	}
	_, rate := plan.Control.(Rate)
	s := sizing{rate: rate, mean: plan.Control.value(), variance: plan.Control.variance(), power: normalQuantile(1 - plan.Power)}
	alpha := o.Alpha()
	switch {
	case alpha == 0:
		return s, ReasonLevel100
	case !rate && plan.Control.visitors() < 2:
		return s, ReasonTooFewVisitors
	case s.mean == 0:
		return s, ReasonBaselineZero
	case !rate && s.variance == 0:
		return s, ReasonZeroVariance
	case !(plan.MinimumEffect > 0) || math.IsInf(plan.MinimumEffect, 1) || !(plan.Power > 0 && plan.Power < 1) || plan.Visitors < 0:
		return s, ReasonInvalidData
	}
	if o.Methodology == MethodologyBayesian && o.Prior != nil {
		s.prior = o.Prior.StandardDeviation
		alpha *= PlannedLookShare
	}
	return s, s.divide(plan.Shares, alpha, o.Methodology)
}

// divide sets the shares and the critical value of their family.
func (s *sizing) divide(shares []float64, alpha float64, methodology Methodology) Reason {
	total := 0.0
	for _, share := range shares {
		if !(share >= 0) {
			return ReasonInvalidData
		}
		total += share
	}
	if total <= 0 || math.IsInf(total, 1) {
		return ReasonNoTraffic
	}
	s.control, s.least = shares[0]/total, math.Inf(1)
	var lambdas []float64
	for _, share := range shares[1:] {
		if share > 0 {
			s.least = math.Min(s.least, share/total)
			lambdas = append(lambdas, math.Sqrt(share/(shares[0]+share)))
		}
	}
	if s.control == 0 || len(lambdas) == 0 {
		return ReasonNoTraffic
	}
	s.critical = normalQuantile(alpha / 2)
	if methodology != MethodologyBayesian && len(lambdas) > 1 {
		s.critical = family{size: len(lambdas), loadings: newLoadings(lambdas)}.critical(alpha)
	}
	return ""
}

// spread returns the variance of the difference times the total number of
// visitors.
func (s sizing) spread(vt float64) float64 { return s.variance/s.control + vt/s.least }

// lifted returns the variance of a treatment with the given lift.
func (s sizing) lifted(lift float64) (float64, Reason) {
	if !s.rate {
		return s.variance, ""
	}
	rate := s.mean * (1 + lift)
	if rate >= 1 {
		return 0, ReasonLiftImpossible
	}
	return rate * (1 - rate), ""
}

// detectable returns the lift that n visitors detect with the planned power, or
// NaN if there is none. Under a prior, the bound depends on the standard error.
func (s sizing) detectable(n float64) (lift float64, reason Reason) {
	z := math.Max(s.critical+s.power, 0)
	lift, reason = s.detectableAt(n, z)
	if s.prior == 0 || z == 0 {
		return lift, reason
	}
	for range 100 {
		before := z
		z = math.Max(s.bound(lift/z)+s.power, 0)
		if lift, reason = s.detectableAt(n, z); !finite(lift) || math.Abs(z-before) < 1e-14*z {
			break
		}
	}
	return lift, reason
}

// detectableAt returns the lift of z standard errors, or NaN if there is none. The
// variance of a rate depends on the lift. So for rates the result is the larger root
// of (pt - pc)² = z² (vc/nc + pt (1-pt)/nt).
func (s sizing) detectableAt(n, z float64) (float64, Reason) {
	if !s.rate {
		return z * math.Sqrt(s.spread(s.variance)/n) / math.Abs(s.mean), ReasonBaselineNotDistinguishable
	}
	h := z * z / (n * s.least)
	a := 1 + h
	b := 2*s.mean + h
	c := s.mean*s.mean - z*z*s.variance/(n*s.control)
	rate := (b + math.Sqrt(math.Max(b*b-4*a*c, 0))) / (2 * a)
	if rate >= 1 {
		return math.NaN(), ReasonLiftImpossible
	}
	return rate/s.mean - 1, ""
}
