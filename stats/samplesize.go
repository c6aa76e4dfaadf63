package stats

import (
	"cmp"
	"math"
	"slices"
)

// SamplePlan holds the values that determine the size of an experiment.
type SamplePlan struct {
	// Control is the observed sample of control: the baseline and its variance.
	Control Sample
	// Shares are the traffic shares, control first, in any unit.
	Shares []float64
	// Looks is the number of equal looks up to tau = 1, at least 1.
	Looks int
	// Power is the probability of finding the effect at one of these looks, in (0, 1).
	Power float64
	// Prior is the prior of the lift of a Bayesian campaign, or nil.
	Prior *Prior
}

// SampleSize relates the number of visitors to the lift that a plan finds:
//
//	n = theta² V / (lift mc)²
//
// for the treatment that needs the most visitors. Theta is the drift, the mean of Z at tau = 1. With this drift, the
// first crossing of a bound is upward with the planned power. Theta replaces z_{1-a/2} + z_power of a single look; its
// square is 1.6 % to 5 % larger for 1 to 8 looks. V is the variance of the difference times the number of visitors over
// all variations: the larger of
//
//	vc/share_c + vt/share_t    and that of the pooled variance
//
// where mc and vc are the mean and the variance of control. For rates, vt is the variance of the lifted rate. For means
// it is vc (1 + lift)²: every value is larger by the lift. More buyers of the same values would need less, vc (1 +
// lift).
//
// Under a prior N(mean, sd²) of the lift, the upper bound of look k is
//
//	max(c_k, z_{1-alpha/2} sqrt(1 + SE_k²/sd²) - mean SE_k/sd²),  SE_k = SE / sqrt(tau_k)
//
// where SE is the standard error of the lift at tau = 1.
//
// See Jennison and Turnbull (2000), chapters 3 and 7.
type SampleSize struct {
	plan     SamplePlan
	tau      []float64
	critical []float64
	before   []paths // for each look, the paths within -critical and critical at the looks before it
	z        float64 // z_{1-alpha/2}
	shares   []float64
	theta    float64 // drift at which the bounds are crossed upward with the planned power, without a prior
}

// NewSampleSize returns the relation for a design, or the reason why there is none.
func NewSampleSize(plan SamplePlan, design LookDesign) (*SampleSize, Reason) {
	if reason := plan.faultOf(design); reason != "" {
		return nil, reason
	}
	shares := scaleShares(plan.Shares, 1/sumShares(plan.Shares))
	s := &SampleSize{plan: plan, z: normalQuantile(design.Alpha / 2), shares: shares}
	looks := min(plan.Looks, 100) // more change the required sample by less than 1 %
	var b boundary
	for k := range looks {
		tau := float64(k+1) / float64(looks)
		critical, _ := b.addLook(tau, SpentAlpha(tau, design.Level))
		s.tau = append(s.tau, tau)
		s.critical = append(s.critical, critical)
		s.before = append(s.before, b.paths)
	}
	excess := func(theta float64) float64 { return s.upwardProbability(s.before, s.critical, theta) - s.plan.Power }
	s.theta = solveIncreasing(excess, 0, 4)
	return s, ""
}

// faultOf returns the reason why no sample size can be computed for the plan; empty: there is none.
func (p *SamplePlan) faultOf(design LookDesign) Reason {
	if reason := checkSample(p.Control); reason != "" {
		return reason
	}
	if slices.ContainsFunc(p.Shares, func(share float64) bool { return !(share >= 0) }) {
		return ReasonInvalidData
	}
	_, rate := p.Control.(Rate)
	isPower := p.Power > 0 && p.Power < 1
	isPrior := p.Prior == nil || p.Prior.StandardDeviation > 0
	switch {
	case !(design.Level > 0):
		return ReasonLevel100
	case !rate && p.Control.visitorCount() < 2:
		return ReasonTooFewVisitors
	case p.Control.observedValue() == 0:
		return ReasonBaselineZero
	case !rate && p.Control.variance() == 0:
		return ReasonZeroVariance
	case !p.hasTraffic():
		return ReasonNoTraffic
	case !isPower || !isPrior || p.Looks < 1:
		return ReasonInvalidData
	}
	return ""
}

// hasTraffic reports whether control and a treatment have a share of the traffic.
func (p *SamplePlan) hasTraffic() bool {
	if len(p.Shares) < 2 || math.IsInf(sumShares(p.Shares), 1) {
		return false
	}
	return p.Shares[0] > 0 && slices.Max(p.Shares[1:]) > 0
}

func sumShares(shares []float64) float64 {
	total := 0.0
	for _, share := range shares {
		total += share
	}
	return total
}

// upperBounds returns the upper bounds of Z for a standard error of the lift at tau = 1.
func (s *SampleSize) upperBounds(se float64) []float64 {
	if s.plan.Prior == nil {
		return s.critical
	}
	upper := make([]float64, len(s.tau))
	for k, tau := range s.tau {
		ratio := se / math.Sqrt(tau) / s.plan.Prior.StandardDeviation
		upper[k] = math.Max(s.critical[k],
			s.z*math.Hypot(1, ratio)-s.plan.Prior.Mean/s.plan.Prior.StandardDeviation*ratio)
	}
	return upper
}

// upwardPower returns the probability that the first crossing is upward, at tau <= 1, for a drift and a standard error
// of the lift at tau = 1.
func (s *SampleSize) upwardPower(theta, se float64) float64 {
	if s.plan.Prior == nil {
		return s.upwardProbability(s.before, s.critical, theta)
	}
	upper := s.upperBounds(se)
	return s.upwardProbability(s.pathsBelow(upper), upper, theta)
}

// pathsBelow returns, for each look, the paths above the lower critical values and below upper bounds at the looks
// before it.
func (s *SampleSize) pathsBelow(upper []float64) []paths {
	before := make([]paths, len(s.tau))
	for k := 1; k < len(s.tau); k++ {
		before[k] = before[k-1].pathsWithin(s.tau[k-1], -s.critical[k-1], upper[k-1])
	}
	return before
}

// upwardProbability returns the probability that one of the paths before a look crosses its upper bound there.
func (s *SampleSize) upwardProbability(before []paths, upper []float64, theta float64) float64 {
	sum := 0.0
	for k, p := range before {
		sum += p.probabilityAbove(s.tau[k], upper[k]*math.Sqrt(s.tau[k]), theta)
	}
	return sum
}

// solveIncreasing returns the root of an increasing function above low, or low if there is none.
func solveIncreasing(f func(float64) float64, low, high float64) float64 {
	in := bracket{a: low, b: high, fa: f(low), fb: f(high)}
	if in.fa >= 0 {
		return low
	}
	for in.fb < 0 && in.b < 1e150 {
		in.a = in.b
		in.fa = in.fb
		in.b = 2 * in.b
		in.fb = f(in.b)
	}
	return findRoot(f, in, 1e-11)
}

// driftOfLift returns the drift for a lift. Under a prior its bounds depend on the drift, because SE is lift / theta.
func (s *SampleSize) driftOfLift(lift float64) float64 {
	if s.plan.Prior == nil {
		return s.theta
	}
	excess := func(theta float64) float64 {
		return s.upwardPower(theta, lift/theta) - s.plan.Power
	}
	return solveIncreasing(excess, math.Max(s.theta, 1e-3), 2*math.Max(s.theta, 1))
}

// hypothesis has a treatment's true lift and the effect that a test must reject. This effect is a ratio to control or,
// if the ratio is 1, a difference. Distance is the distance between both, in the metric's unit.
type hypothesis struct {
	lift, ratio, difference, distance float64
}

// largestSpread returns V of the treatment that needs the most visitors.
func (s *SampleSize) largestSpread(h hypothesis) (float64, Reason) {
	largest := 0.0
	control := s.shares[0]
	rate, isRate := s.plan.Control.(Rate)
	m := s.plan.Control.observedValue()
	vc := s.plan.Control.variance()
	vt := vc * (1 + h.lift) * (1 + h.lift) // every value of a visitor is larger by the lift
	switch lifted := m * (1 + h.lift); {
	case isRate && (lifted >= 1 || m*h.ratio >= 1):
		return 0, ReasonLiftImpossible
	case isRate:
		vt = lifted * (1 - lifted)
	}
	for _, share := range s.shares[1:] {
		if share == 0 {
			continue
		}
		own := h.ratio*h.ratio*vc/control + vt/share
		pooled := (control*vc + share*vt) / (control + share) * (h.ratio*h.ratio/control + 1/share)
		if isRate { // the variance under the hypothesis, from z of expected counts
			const n = 1e9
			t := table{
				xt: n * share * m * (1 + h.lift), nt: n * share, xc: n * control * rate.observedValue(),
				nc: n * control,
			}
			z := t.zOfLift(h.ratio - 1)
			if h.difference != 0 {
				z = t.zOfDifference(h.difference)
			}
			pooled = n * h.distance / z * h.distance / z
		}
		largest = math.Max(largest, math.Max(own, pooled))
	}
	return largest, ""
}

// RequiredVisitors returns the number of visitors over all variations that detects a lift with the planned power. The
// lift is a fraction above 0.
func (s *SampleSize) RequiredVisitors(lift float64) (*int64, Reason) {
	if !(lift > 0) || math.IsInf(lift, 1) {
		return nil, ReasonInvalidData
	}
	return s.visitorsForDrift(hypothesis{
		lift: lift, ratio: 1,
		distance: lift * math.Abs(s.plan.Control.observedValue()),
	}, s.driftOfLift(lift))
}

// RequiredForMargin returns the number of visitors over all variations for a guardrail. With so many visitors, a
// treatment without an effect is safe (see Margin.IsSafe) with the planned power. The calculation uses no prior.
func (s *SampleSize) RequiredForMargin(m Margin) (*int64, Reason) {
	margin, on := m.sizeAndScale()
	if !(margin > 0) || math.IsInf(margin, 1) {
		return nil, ReasonInvalidData
	}
	loss := -margin
	if m.Down {
		loss = margin
	}
	h := hypothesis{ratio: 1, difference: loss, distance: margin}
	if on == onLift {
		h = hypothesis{ratio: 1 + loss, distance: margin * math.Abs(s.plan.Control.observedValue())}
	}
	return s.visitorsForDrift(h, s.theta)
}

func (s *SampleSize) visitorsForDrift(h hypothesis, theta float64) (*int64, Reason) {
	v, reason := s.largestSpread(h)
	if reason != "" {
		return nil, reason
	}
	n := math.Ceil(theta / h.distance * theta / h.distance * v)
	if !(n < 1<<62) {
		return nil, ReasonBaselineNotDistinguishable
	}
	return new(max(int64(n), 1)), ""
}

// standardError returns the standard error of the lift for n visitors over all variations.
func (s *SampleSize) standardError(lift, n float64) (float64, Reason) {
	m := math.Abs(s.plan.Control.observedValue())
	v, reason := s.largestSpread(hypothesis{lift: lift, ratio: 1, distance: lift * m})
	return math.Sqrt(v/n) / m, reason
}

// DetectableLift returns the lift, a fraction, that is detected with the planned power if n visitors over all
// variations have arrived at tau = 1.
func (s *SampleSize) DetectableLift(n float64) (*float64, Reason) {
	if !(n > 0) {
		return nil, ReasonNoVisitors
	}
	most := math.Inf(1)
	if _, rate := s.plan.Control.(Rate); rate {
		most = (1 - 1e-9) * (1/s.plan.Control.observedValue() - 1)
	}
	excess := func(lift float64) float64 {
		se, _ := s.standardError(lift, n)
		return lift - s.theta*se
	}
	if !(most > 1e-9) || excess(most) < 0 {
		return nil, ReasonLiftImpossible
	}
	lift := numberOrNil(solveIncreasing(excess, 1e-9, math.Min(0.1, most)))
	if lift != nil && s.plan.Prior != nil { // bounds under a prior are not below the others, so the lift is not either
		excess = func(lift float64) float64 {
			se, _ := s.standardError(lift, n)
			return s.upwardPower(lift/se, se) - s.plan.Power
		}
		if !math.IsInf(most, 1) && excess(most) < 0 {
			return nil, ReasonLiftImpossible
		}
		lift = numberOrNil(solveIncreasing(excess, *lift, math.Min(1.2**lift, most)))
	}
	if lift == nil || *lift > 1e100 {
		return nil, ReasonBaselineNotDistinguishable
	}
	return lift, ""
}

// PowerAt returns the probability that a treatment with a lift is found to be better, if n visitors over all variations
// have arrived at tau = 1. Of a lift below 0, that is an error.
func (s *SampleSize) PowerAt(lift, n float64) (*float64, Reason) {
	if !(n > 0) || lift == 0 || !(lift > -1) {
		return nil, ReasonNoVisitors
	}
	se, reason := s.standardError(lift, n)
	if reason != "" {
		return nil, reason
	}
	return numberOrNil(s.upwardPower(lift/se, se)), ""
}

// PowerCurve returns PowerAt as a function of the lift, which is much faster for many lifts. Of a lift for which there
// is no power, it is 0. Under a prior, the paths before each look are those within the bounds of one lift, best the
// detectable one, or nil if there is none: they change little with the lift.
func (s *SampleSize) PowerCurve(n float64, detectable *float64) func(lift float64) float64 {
	before := s.before
	if s.plan.Prior != nil {
		const small = 0.01
		if se, reason := s.standardError(*cmp.Or(detectable, new(small)), n); reason == "" {
			before = s.pathsBelow(s.upperBounds(se))
		}
	}
	const certain = 6 // drift beyond the bounds at which the power is 0 or 1
	return func(lift float64) float64 {
		if !(n > 0) || lift == 0 || !(lift > -1) {
			return 0
		}
		se, reason := s.standardError(lift, n)
		theta := lift / se
		if reason != "" || !(theta > -certain) {
			return 0
		}
		upper := s.upperBounds(se)
		if theta > slices.Max(upper)+certain {
			return 1
		}
		return s.upwardProbability(before, upper, theta)
	}
}

// SampleProgress is the progress of an experiment. Numbers of visitors are over all variations. Progress is the ratio
// of the visitors so far to RequiredVisitors, and may exceed 1. MinimumDetectableEffect and Power are for the visitors
// so far. Reason explains the first nil field.
type SampleProgress struct {
	RequiredVisitors        *int64   `json:"requiredVisitors"`
	Progress                *float64 `json:"progress"`
	RemainingVisitors       *int64   `json:"remainingVisitors"`
	DaysRemaining           *int64   `json:"daysRemaining"`
	MinimumDetectableEffect *float64 `json:"minimumDetectableEffect"` // a lift, as a fraction
	Power                   *float64 `json:"power"`
	Reason                  Reason   `json:"reason,omitempty"`
}

// ProgressTowards returns the progress towards the sample that detects a lift. It uses the visitors so far and the
// recent visitors per day, both over all variations.
func (s *SampleSize) ProgressTowards(lift float64, visitors int64, perDay float64) SampleProgress {
	var p SampleProgress
	p.RequiredVisitors, p.Reason = s.RequiredVisitors(lift)
	if required := p.RequiredVisitors; required != nil {
		remaining := max(*required-visitors, 0)
		p.RemainingVisitors = &remaining
		p.Progress = numberOrNil(float64(visitors) / float64(*required))
		switch days := math.Ceil(float64(remaining) / perDay); {
		case remaining == 0:
			p.DaysRemaining = new(int64)
		case !(perDay > 0) || !(days < 1<<62):
			p.Reason = cmp.Or(p.Reason, ReasonNoTraffic)
		default:
			p.DaysRemaining = new(int64(days))
		}
	}
	var effect, power Reason
	p.MinimumDetectableEffect, effect = s.DetectableLift(float64(visitors))
	p.Power, power = s.PowerAt(lift, float64(visitors))
	p.Reason = cmp.Or(p.Reason, effect, power)
	return p
}

// Margin is the largest loss that a guardrail accepts: Relative, a fraction of control's value above 0, or if that is
// 0, Absolute, in the metric's unit. Down means that lower values are better.
type Margin struct {
	Relative, Absolute float64
	Down               bool
}

// sizeAndScale returns the margin and the scale on which it is given.
func (m Margin) sizeAndScale() (float64, scale) {
	if m.Relative > 0 {
		return m.Relative, onLift
	}
	return m.Absolute, onDifference
}

// IsSafe reports whether a look shows that the loss is less than the margin: the lower end of its interval, in the good
// direction, is above -margin. A treatment that loses exactly the margin appears safe at any look with a probability of
// about Alpha/2.
func (m Margin) IsSafe(r LookResult) bool {
	margin, on := m.sizeAndScale()
	in := r.Difference.Interval
	if on == onLift {
		in = r.Lift.Interval
	}
	if in == nil {
		return false
	}
	lower, upper := in[0], in[1]
	if m.Down {
		return upper != nil && *upper < margin
	}
	return lower != nil && *lower > -margin
}

// HarmRule holds the settings that the harm bounds of all guardrails of a campaign share.
type HarmRule struct {
	Alpha      float64 // of the campaign
	Treatments int     // with a share of traffic
	Guardrails int     // without the primary metric, which counts as one more
	// PlannedVisitors is the planned number of visitors of the pair, at which the bound is tightest; 0 means 5,000. It
	// must never depend on results.
	PlannedVisitors float64
}

// Harm has the upper bound of a treatment's effect in the good direction, on the scale of the margin. Upper is nil,
// with a Reason, if the bound is infinite or unknown. Below reports that the bound is below -margin, which is harm at a
// look. Breaks reports that the bound of the lift is also below -20 %, which is harm at the end of any full day:
// weekdays rarely differ so much. A harmless weekend of -20 % is below a margin of 5 % in .73 of the campaigns.
type Harm struct {
	Upper         *float64
	Below, Breaks bool
	Reason        Reason
}

// HarmBound returns the always-valid upper bound of the effect. Its one-sided error rate is
//
//	.1 alpha / (m (k + 1))
//
// for m treatments and k guardrails, for any number of days: all bounds of a campaign together err with probability
// alpha/10 at most. See alwaysValidCritical.
func (m Margin) HarmBound(all []Stratum, nonNegative bool, rule HarmRule) Harm {
	s, reason := newStrata(all, nonNegative)
	switch {
	case reason != "":
		return Harm{Reason: reason}
	case !(rule.Alpha > 0):
		return Harm{Reason: ReasonLevel100}
	}
	planned := rule.PlannedVisitors
	if !(planned > 0) {
		planned = 5000
	}
	// The two sides of a confidence sequence have equal error rates.
	a := 2 * 0.1 * rule.Alpha / float64(max(rule.Treatments, 1)*(rule.Guardrails+1))
	s, _ = alwaysValid(s).(strata)
	critical := alwaysValidCritical(s.visitors, tuningParameter(a, planned), a)
	upper := func(on scale) (float64, Reason) {
		in, reason := s.effectInterval(critical, math.Abs(s.z(0, on)) > critical, on)
		if m.Down {
			return -in.lower, reason
		}
		return in.upper, reason
	}
	margin, on := m.sizeAndScale()
	bound, reason := upper(on)
	lift, _ := upper(onLift)
	h := Harm{Upper: numberOrNil(bound), Below: bound < -margin}
	h.Breaks = h.Below && lift < -0.2
	if h.Upper == nil {
		h.Reason = cmp.Or(reason, ReasonInvalidData)
	}
	return h
}

// tuningParameter returns rho², for which the always-valid bound is tightest at the planned number of visitors:
//
//	rho² = (-2 ln a + ln(1 - 2 ln a)) / N*
//
// See Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2021), section B.2.
func tuningParameter(a, planned float64) float64 {
	return (-2*math.Log(a) + math.Log1p(-2*math.Log(a))) / planned
}

// alwaysValidCritical returns k, the bound that |z| crosses with probability at most a, for any number of looks:
//
//	k² = ((n rho² + 1) / (n rho²)) ln((n rho² + 1) / a²)
//
// See Waudby-Smith et al. (2021), Theorem 2.2.
func alwaysValidCritical(n, rho2, a float64) float64 {
	s := n * rho2
	return math.Sqrt((s + 1) / s * (math.Log1p(s) - 2*math.Log(a)))
}
