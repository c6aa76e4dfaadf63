package stats

import "math"

// liftInterval returns all lifts r - 1 that the score test of pt = r pc at
// critical value q does not reject. The upper end is unbounded if control has
// no conversion. The interval contains 0 exactly if significant is false.
//
// Under pt = r pc the restricted estimates are, with a multiplier μ,
//
//	pt = (xt - μ) / (nt - μ),  pc = (xc + μ) / (nc + μ)
//	z² = μ² (qt/(xt-μ) + qc/(xc+μ)) (N-1)/N
//
// where qt and qc are the observed shares that did not convert. z² increases with |μ|, and r
// decreases as μ increases, so the ends are roots of a cubic in μ.
//
// See Miettinen and Nurminen (1985), equations 10 to 12.
func (t table) liftInterval(q float64, significant bool) bounds {
	d := t.crossDifference()
	lower := t.lowerLift(q, significant && d > 0)
	mirrored := t.swapVariations().lowerLift(q, significant && d < 0)
	upper := math.Inf(1)
	if mirrored > -1 {
		upper = -mirrored / (1 + mirrored)
	}
	return bounds{lower: lower, upper: upper}
}

// lowerLift returns the lower end of the lift's interval. The end is above 0
// exactly if positive is true. It is -1 if the treatment has no conversion.
func (t table) lowerLift(q float64, positive bool) float64 {
	if t.xt == 0 || math.IsInf(q, 1) {
		return -1
	}
	target := q * q * t.totalVisitors() / (t.totalVisitors() - 1)
	if t.xt == t.nt {
		return endOnSide(t.lowerLiftAllConverted(target), smallestEffect, positive)
	}
	mu := t.solveMultiplier(target, positive)
	return endOnSide(t.liftAt(mu), smallestEffect, positive)
}

// liftAt returns pt/pc - 1 at μ without cancellation if the rates are nearly
// equal.
func (t table) liftAt(mu float64) float64 {
	rest := (t.nt - t.xt) + (t.nc - t.xc)
	return math.Max((t.crossDifference()-mu*rest)/((t.nt-mu)*(t.xc+mu)), -1)
}

// solveMultiplier solves the cubic
//
//	target (xt-μ)(xc+μ) = μ² (qt (xc+μ) + qc (xt-μ))
//
// for μ in (0, xt). The argument positive selects the side of the pooled
// estimate.
func (t table) solveMultiplier(target float64, positive bool) float64 {
	qt, qc := (t.nt-t.xt)/t.nt, (t.nc-t.xc)/t.nc
	if t.xc == 0 {
		b := qc*t.xt + target
		return 2 * target * t.xt / (b + math.Sqrt(b*b+4*(qt-qc)*target*t.xt))
	}
	lower, upper := 0.0, t.xt
	pooled := t.crossDifference() / ((t.nt - t.xt) + (t.nc - t.xc))
	if positive {
		upper = math.Min(upper, pooled)
	} else {
		lower = math.Max(lower, pooled)
	}
	mu := math.Sqrt(target / (qt/t.xt + qc/t.xc))
	if !(mu > lower && mu < upper) {
		mu = lower + (upper-lower)/2
	}
	last := math.Inf(1)
	for range 300 {
		a, b := t.xt-mu, t.xc+mu
		weight := qt*b + qc*a
		value := target*a*b - mu*mu*weight
		slope := target*(a-b) - 2*mu*weight - mu*mu*(qt-qc)
		if value > 0 {
			lower = mu
		} else {
			upper = mu
		}
		next := mu - value/slope
		if !(next > lower && next < upper) || math.Abs(next-mu) > last/2 {
			next = lower + (upper-lower)/2
		}
		if math.Abs(next-mu) <= 1e-14*mu || next == lower || next == upper {
			return next
		}
		mu, last = next, math.Abs(next-mu)
	}
	return mu
}

// lowerLiftAllConverted is lowerLift for a treatment whose visitors all
// converted. pt remains 1 until μ reaches nt, and then decreases at a fixed pc.
func (t table) lowerLiftAllConverted(target float64) float64 {
	qc := (t.nc - t.xc) / t.nc
	limit := t.nt * t.nt * qc / (t.xc + t.nt)
	if target < limit {
		mu := (target + math.Sqrt(target*target+4*qc*target*t.xc)) / (2 * qc)
		return (t.nc - t.xc) / (t.xc + mu)
	}
	pc := (t.xc + t.nt) / (t.nc + t.nt)
	unexplained := (target - limit) / t.nt
	pt := 1 / (1 + unexplained)
	return ((t.nc-t.xc)/(t.nc+t.nt) - unexplained*pt) / pc
}
