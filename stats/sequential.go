package stats

import "math"

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

// sequential returns the always-valid result of a pair within a family of the
// given size. It uses a = alpha/size (Bonferroni), because each treatment is
// looked at without the others. It has no values below 100 visitors in a variation,
// where the normal approximation fails: p was 1e-11 for some pairs of two visitors.
func (c pair) sequential(size int, o Options) *Sequential {
	alpha := o.Alpha()
	if alpha == 0 {
		return &Sequential{Reason: ReasonLevel100, LiftReason: ReasonLevel100}
	}
	if min(c.control.visitors(), c.treatment.visitors()) < minimumVisitors {
		return &Sequential{Reason: ReasonTooFewVisitors, LiftReason: ReasonTooFewVisitors}
	}
	m, always := float64(size), c.contrast.always()
	rho2 := tuning(alpha/m, o.plannedVisitors())
	n := always.visitors()
	p := math.Min(1, m*alwaysValidP(always.z(), n, rho2))
	out := &Sequential{PValue: number(p), Significant: p < alpha}
	k := alwaysValidCritical(n, rho2, alpha/m)
	out.Difference, out.Reason = shown(always.differences(k, out.Significant), "")
	out.Lift, out.LiftReason = shown(always.lifts(k, out.Significant))
	return out
}
