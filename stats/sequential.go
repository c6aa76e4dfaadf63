package stats

import (
	"math"
	"slices"
)

// tuning returns rho², for which the confidence sequence is tightest at the
// planned number of visitors:
//
//	rho² = (-2 ln a + ln(1 - 2 ln a)) / N*
//
// See Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2021), section B.2.
func tuning(a, planned float64) float64 {
	return (-2*math.Log(a) + math.Log1p(-2*math.Log(a))) / planned
}

// alwaysValidP returns the p-value of a statistic z after n visitors. The
// p-value is valid at every look:
//
//	p = min(1, sqrt(n rho² + 1) exp(-rho² n z² / (2 (n rho² + 1))))
//
// See Waudby-Smith et al. (2021), Theorem 2.2, solved for alpha.
func alwaysValidP(z, n, rho2 float64) float64 {
	s := n * rho2
	return math.Min(1, math.Exp(0.5*math.Log1p(s)-0.5*s/(s+1)*z*z))
}

// alwaysValidCritical returns k, the bound that |z| crosses with probability at
// most a, for any number of looks:
//
//	k² = ((n rho² + 1) / (n rho²)) ln((n rho² + 1) / a²)
func alwaysValidCritical(n, rho2, a float64) float64 {
	s := n * rho2
	return math.Sqrt((s + 1) / s * (math.Log1p(s) - 2*math.Log(a)))
}

// PlannedLookShare is the part of alpha that belongs to the planned look. The rest
// belongs to the confidence sequence, so that both together err with probability
// alpha at most, by Bonferroni. With .9, the planned look keeps .788 of a power of
// .80.
const PlannedLookShare = 0.9

// sequence is one sequence of simultaneous level 1 - alpha over all looks and all
// treatments. At the planned look, its bound is Dunnett's at PlannedLookShare alpha.
// At all other looks, it is the bound of the confidence sequence at the rest of
// alpha, divided by the number of treatments with a share:
//
//	p = min(1, adjusted p / .9)       at the planned look
//	p = min(1, 10 m p of the sequence) elsewhere
type sequence struct {
	o       Options
	planned family // at the planned look
	pairs   int
	m       float64
}

func newSequence(pairs []pair, o Options) sequence {
	s := sequence{o: o, pairs: len(pairs), m: float64(o.withShare(len(pairs)))}
	if o.PlannedLook && o.Alpha() > 0 {
		s.planned = newFamily(pairs, PlannedLookShare*o.Alpha())
	}
	return s
}

// result returns the result of pair i. There is none below 100 visitors in a
// variation, where the normal approximation fails: p was 1e-11 for some pairs of two
// visitors. There is none for a treatment without a share, which m does not count.
func (s sequence) result(i int, c pair) *Sequential {
	alpha := s.o.Alpha()
	missing := c.reason
	switch {
	case c.contrast == nil:
	case alpha == 0:
		missing = ReasonLevel100
	case !s.o.hasShare(i):
		missing = ReasonNoTraffic
	case min(c.control.visitors(), c.treatment.visitors()) < MinimumVisitors:
		missing = ReasonTooFewVisitors
	case s.o.PlannedLook:
		return s.atPlannedLook(c)
	default:
		return s.always(i, c)
	}
	return &Sequential{PlannedLook: s.o.PlannedLook, Reason: missing, LiftReason: missing}
}

func (s sequence) atPlannedLook(c pair) *Sequential {
	p := math.Min(1, s.planned.adjusted(c)/PlannedLookShare)
	out := &Sequential{PlannedLook: true, PValue: number(p), Significant: p < s.o.Alpha()}
	q := c.contrast.quantile(s.planned.tail)
	out.Difference, out.Reason = shown(c.contrast.differences(q, out.Significant), "")
	out.Lift, out.LiftReason = shown(c.contrast.lifts(q, out.Significant))
	return out
}

func (s sequence) always(i int, c pair) *Sequential {
	p, a, rho2 := s.alwaysP(i, c)
	always := c.contrast.always()
	out := &Sequential{PValue: number(p), Significant: p < s.o.Alpha()}
	k := alwaysValidCritical(always.visitors(), rho2, a)
	out.Difference, out.Reason = shown(always.differences(k, out.Significant), "")
	out.Lift, out.LiftReason = shown(always.lifts(k, out.Significant))
	return out
}

// alwaysP returns the p-value of a pair elsewhere than at the planned look, the error
// rate of its confidence sequence, and rho².
func (s sequence) alwaysP(i int, c pair) (p, a, rho2 float64) {
	always := c.contrast.always()
	a = (1 - PlannedLookShare) * s.o.Alpha() / s.m
	rho2 = tuning(a, s.o.plannedVisitors(i, s.pairs))
	p = alwaysValidP(always.z(), always.visitors(), rho2)
	return math.Min(1, p*s.m/(1-PlannedLookShare)), a, rho2
}

// AnySignificant reports whether the sequence is significant for a treatment, as
// Compare would say. It costs much less.
func AnySignificant(control Sample, treatments []Sample, o Options) bool {
	if o.PlannedLook {
		return slices.ContainsFunc(Compare(control, treatments, o), func(c Comparison) bool { return c.Sequential.Significant })
	}
	s := sequence{o: o, pairs: len(treatments), m: float64(o.withShare(len(treatments)))}
	for i, treatment := range treatments {
		c := newPair(control, treatment, o.pairRules(i))
		if c.contrast == nil || o.Alpha() == 0 || !o.hasShare(i) || min(control.visitors(), treatment.visitors()) < MinimumVisitors {
			continue
		}
		if p, _, _ := s.alwaysP(i, c); p < o.Alpha() {
			return true
		}
	}
	return false
}
