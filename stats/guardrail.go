package stats

import "math"

// Guardrail is a metric that a treatment must not harm by more than a margin.
type Guardrail struct {
	// Margin is the largest acceptable loss as a fraction of control's value. It is
	// above 0. If it is 0, AbsoluteMargin is the largest acceptable loss in the
	// metric's unit.
	Margin         float64
	AbsoluteMargin float64
	// Down reports whether lower values are better.
	Down bool
	// Competing is the number of guardrails of the campaign. With the primary metric,
	// they divide the error rate of harm.
	Competing int
}

// GuardrailStatus says whether a treatment harms a guardrail.
type GuardrailStatus string

// The statuses. The zero value is none of them.
const (
	GuardrailSafe        GuardrailStatus = "safe"
	GuardrailHarmed      GuardrailStatus = "harmed"
	GuardrailNotYetKnown GuardrailStatus = "notYetKnown"
)

// GuardrailResult is what the looks say of a treatment. Look is the look that decided,
// or -1. Lower and Upper bound the effect in the good direction at the last look with
// data, as a fraction with a Margin, and in the metric's unit with an AbsoluteMargin:
// Lower is one-sided at the level of safety, Upper at that of harm. Nil means
// unbounded or unknown. Required is the number of visitors, over all variations, that
// show with the planned power that a treatment without an effect is safe.
type GuardrailResult struct {
	Status       GuardrailStatus
	Look         int
	Lower, Upper *float64
	Required     *int64
	Reason       Reason
}

// Guard returns the result of each treatment. The looks are the ends of full days, and
// plannedLook is the index of the planned one, or -1.
//
// In the good direction, with loss as a negative effect:
//
//	safe    a lower bound is above -margin: at the planned look one-sided at
//	        .9 alpha / m, elsewhere the always-valid one at .1 alpha / m
//	harmed  the always-valid upper bound at .1 alpha / (m (k + 1)) is below -margin
//
// for m treatments with a share and k guardrails. The first look with a result decides,
// except that harm may follow safety. So a treatment whose effect is exactly -margin is
// safe at any look with probability at most alpha, and one without harm is harmed with
// probability at most .1 alpha k / (k + 1) over all guardrails. A bound that cannot be
// computed, and fewer than 100 visitors in a variation, decide nothing.
func Guard(looks []Look, plannedLook int, g Guardrail, plan DecisionPlan, o Options) []GuardrailResult {
	if len(looks) == 0 || len(looks[0].Samples) < 2 {
		return nil
	}
	results := make([]GuardrailResult, len(looks[0].Samples)-1)
	for t := range results {
		r := &results[t]
		r.Status, r.Look, r.Reason = GuardrailNotYetKnown, -1, ReasonTooFewVisitors
		for i, look := range looks {
			r.add(i, g.at(look, t, i == plannedLook, o))
		}
		r.Required = g.required(looks[len(looks)-1].Samples[0], t, plan, o)
	}
	return results
}

// guarded has the bounds of a treatment at one look.
type guarded struct {
	lower, upper, margin float64
	reason               Reason
}

// add adds a look.
func (r *GuardrailResult) add(look int, at guarded) {
	r.Reason = at.reason
	r.Lower, r.Upper = number(at.lower), number(at.upper)
	if at.reason != "" {
		return
	}
	switch {
	case at.upper < -at.margin && r.Status != GuardrailHarmed:
		r.Status, r.Look = GuardrailHarmed, look
	case at.lower > -at.margin && r.Status == GuardrailNotYetKnown:
		r.Status, r.Look = GuardrailSafe, look
	}
}

// at returns the bounds of a treatment at one look.
func (g Guardrail) at(look Look, treatment int, plannedLook bool, o Options) guarded {
	unknown := guarded{lower: math.NaN(), upper: math.NaN()}
	o.NonNegative = look.NonNegative
	control, other := look.Samples[0], look.Samples[treatment+1]
	c := newPair(control, other, o.pairRules(treatment))
	switch {
	case c.contrast == nil:
		unknown.reason = c.reason
		return unknown
	case o.Alpha() == 0:
		unknown.reason = ReasonLevel100
		return unknown
	case !o.hasShare(treatment):
		unknown.reason = ReasonNoTraffic
		return unknown
	case min(control.visitors(), other.visitors()) < MinimumVisitors:
		unknown.reason = ReasonTooFewVisitors
		return unknown
	}
	m, pairs := float64(o.withShare(len(look.Samples)-1)), len(look.Samples)-1
	always := c.contrast.always()
	critical := func(a float64) float64 {
		a *= 2 // of a sequence whose two sides have a each
		return alwaysValidCritical(always.visitors(), tuning(a, o.plannedVisitors(treatment, pairs)), a)
	}
	rest := (1 - PlannedLookShare) * o.Alpha() / m
	found := guarded{margin: g.Margin}
	if g.Margin == 0 {
		found.margin = g.AbsoluteMargin
	}
	sequence := func(a float64) (lower, upper float64, reason Reason) {
		k := critical(a)
		return g.bounds(always, k, math.Abs(always.z()) > k)
	}
	if plannedLook {
		tail := PlannedLookShare * o.Alpha() / m
		found.lower, _, found.reason = g.bounds(c.contrast, c.contrast.quantile(tail), c.p < 2*tail)
	} else {
		found.lower, _, found.reason = sequence(rest)
	}
	_, found.upper, _ = sequence(rest / float64(g.Competing+1))
	return found
}

// bounds returns the interval of the effect in the good direction at critical value q,
// beyond which the statistic is significant. A missing bound is NaN.
func (g Guardrail) bounds(c contrast, q float64, significant bool) (lower, upper float64, reason Reason) {
	var in bounds
	if g.Margin == 0 {
		in = c.differences(q, significant)
	} else {
		in, reason = c.lifts(q, significant)
	}
	if g.Down {
		in.lower, in.upper = -in.upper, -in.lower
	}
	if !math.IsNaN(in.lower) && !math.IsNaN(in.upper) {
		reason = ""
	}
	return in.lower, in.upper, reason
}

// required returns the number of visitors that show with the planned power that a
// treatment without an effect is safe:
//
//	n = (z_{1-a} + z_power)² (r0² vc/share_c + vc/share_t) / (margin mc)²
//
// with a = .9 alpha / m, and r0 = 1 - margin the ratio to control at the margin (1 +
// margin if lower is better, 1 with an absolute margin, which replaces margin mc).
// It returns nil if it is not known.
func (g Guardrail) required(control Sample, treatment int, plan DecisionPlan, o Options) *int64 {
	if checkSample(control) != "" || treatment+1 >= len(plan.Shares) || o.Alpha() == 0 {
		return nil
	}
	total := 0.0
	for _, share := range plan.Shares {
		total += share
	}
	sc, st := plan.Shares[0]/total, plan.Shares[treatment+1]/total
	ratio, distance := 1-g.Margin, g.Margin*math.Abs(control.value())
	if g.Down {
		ratio = 1 + g.Margin
	}
	if g.Margin == 0 {
		ratio, distance = 1, g.AbsoluteMargin
	}
	m := float64(o.withShare(len(plan.Shares) - 1))
	z := normalQuantile(PlannedLookShare*o.Alpha()/m) + normalQuantile(1-plan.Power)
	n := math.Ceil(z / distance * z / distance * control.variance() * (ratio*ratio/sc + 1/st))
	if !finite(n) || n >= 1<<62 || n < 1 {
		return nil
	}
	required := int64(n)
	return &required
}
