package stats

import "math"

// breakerLift is the loss, as a lift, beyond which a guardrail is harmed on a day without a
// look. Weekdays rarely differ so much: a harmless weekend of -20 % is below a margin of
// 5 % in .73 of the campaigns.
const breakerLift = -0.2

// Margin is the largest loss that a guardrail accepts: Relative, a fraction of control's
// value above 0, or if that is 0, Absolute, in the metric's unit. Down means that lower
// values are better.
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

// inGoodDirection returns an interval in the good direction: a loss is negative.
func (m Margin) inGoodDirection(in bounds) bounds {
	if m.Down {
		return bounds{lower: -in.upper, upper: -in.lower}
	}
	return in
}

// IsSafe reports whether a look shows that the loss is less than the margin: the lower end of
// its interval, in the good direction, is above -margin. A treatment that loses exactly the
// margin appears safe at any look with a probability of about Alpha/2.
func (m Margin) IsSafe(r LookResult) bool {
	margin, on := m.sizeAndScale()
	in := r.Difference.Interval
	if on == onLift {
		in = r.Lift.Interval
	}
	if in == nil {
		return false
	}
	end := in.Lower
	if m.Down {
		end = in.Upper
	}
	return end != nil && (m.Down && *end < margin || !m.Down && *end > -margin)
}

// DefaultPlannedVisitors is the number of visitors of a pair at which the harm bound is
// tightest, for campaigns without planned visitors.
const DefaultPlannedVisitors = 5000

// HarmRule holds the settings that the harm bounds of all guardrails of a campaign share.
type HarmRule struct {
	Alpha      float64 // of the campaign
	Treatments int     // with a share of traffic
	Guardrails int     // without the primary metric, which counts as one more
	// PlannedVisitors is the planned number of visitors of the pair, at which the bound is
	// tightest; 0 means DefaultPlannedVisitors. It must never depend on results.
	PlannedVisitors float64
}

// Harm has the upper bound of a treatment's effect in the good direction, on the scale of the
// margin. Upper is nil, with a Reason, if the bound is infinite or unknown. Below reports that
// the bound is below -margin, which is harm at a look. Breaks reports that the bound of the
// lift is also below -20 %, which is harm at the end of any full day.
type Harm struct {
	Upper         *float64
	Below, Breaks bool
	Reason        Reason
}

// HarmBound returns the always-valid upper bound of the effect. Its one-sided error rate is
//
//	.1 alpha / (m (k + 1))
//
// for m treatments and k guardrails, for any number of days: all bounds of a campaign
// together err with probability alpha/10 at most. See alwaysValidCritical.
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
		planned = DefaultPlannedVisitors
	}
	// The two sides of a confidence sequence have equal error rates.
	a := 2 * 0.1 * rule.Alpha / float64(max(rule.Treatments, 1)*(rule.Guardrails+1))
	s = s.withLargerErrors()
	critical := alwaysValidCritical(s.visitors, tuningParameter(a, planned), a)
	upper := func(on scale) (float64, Reason) {
		in, reason := s.effectInterval(critical, math.Abs(s.z(0, on)) > critical, on)
		return m.inGoodDirection(in).upper, reason
	}
	margin, on := m.sizeAndScale()
	bound, reason := upper(on)
	lift, _ := upper(onLift)
	h := Harm{Upper: numberOrNil(bound), Below: bound < -margin}
	h.Breaks = h.Below && lift < breakerLift
	if h.Upper == nil {
		h.Reason = reason
		if reason == "" {
			h.Reason = ReasonInvalidData
		}
	}
	return h
}

// tuningParameter returns rho², for which the always-valid bound is tightest at the planned number
// of visitors:
//
//	rho² = (-2 ln a + ln(1 - 2 ln a)) / N*
//
// See Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2021), section B.2.
func tuningParameter(a, planned float64) float64 {
	return (-2*math.Log(a) + math.Log1p(-2*math.Log(a))) / planned
}

// alwaysValidCritical returns k, the bound that |z| crosses with probability at
// most a, for any number of looks:
//
//	k² = ((n rho² + 1) / (n rho²)) ln((n rho² + 1) / a²)
//
// See Waudby-Smith et al. (2021), Theorem 2.2.
func alwaysValidCritical(n, rho2, a float64) float64 {
	s := n * rho2
	return math.Sqrt((s + 1) / s * (math.Log1p(s) - 2*math.Log(a)))
}
