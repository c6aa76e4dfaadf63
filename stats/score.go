package stats

import "math"

// bounds is an interval inside the package. ±Inf is an unbounded end. NaN is an end that cannot be computed.
type bounds struct {
	lower, upper float64
}

// table is the contrast of two rates by the score test, from a two by two table: the converted visitors and all
// visitors of treatment and control, as floats. Both numbers of visitors are at least 1.
type table struct {
	xt, nt, xc, nc float64
}

func newTable(control, treatment Rate) table {
	return table{
		xt: float64(treatment.Converted), nt: float64(treatment.Visitors),
		xc: float64(control.Converted), nc: float64(control.Visitors),
	}
}

func (t table) swapVariations() table { return table{xt: t.xc, nt: t.nc, xc: t.xt, nc: t.nt} }

// crossDifference returns xt nc - xc nt with a single rounding, so equal rates differ by exactly 0 (Kahan's product
// difference).
func (t table) crossDifference() float64 {
	w := t.xc * t.nt
	return math.FMA(t.xt, t.nc, -w) - math.FMA(t.xc, t.nt, -w)
}

func (t table) totalVisitors() float64 { return t.nt + t.nc }

// observedDifference returns the observed pt - pc.
func (t table) observedDifference() float64 { return t.crossDifference() / (t.nt * t.nc) }

// z returns Miettinen and Nurminen's score statistic for the hypothesis of no difference:
//
//	z = d / sqrt(p (1-p) (1/nc + 1/nt) N/(N-1))
//
// with d = pt - pc, p the pooled rate and N = nc + nt. It is 0 if every visitor converted or none did.
//
// See Miettinen and Nurminen (1985), equation 6.
func (t table) z() float64 {
	n := t.totalVisitors()
	x := t.xt + t.xc
	rest := (t.nt - t.xt) + (t.nc - t.xc)
	variance := (x / n) * (rest / n) * (1/t.nc + 1/t.nt) * n / (n - 1)
	if variance <= 0 {
		return 0
	}
	return t.observedDifference() / math.Sqrt(variance)
}

// differenceBounds returns all δ that the score test at critical value q does not reject. The interval contains 0
// exactly if significant is false, regardless of rounding.
//
// Under pt - pc = δ the restricted maximum likelihood estimates satisfy, with a Lagrange multiplier λ,
//
//	xt - nt pt =  λ pt (1-pt)
//	xc - nc pc = -λ pc (1-pc)
//
// and z(δ)² = λ² (pt (1-pt)/nt + pc (1-pc)/nc) (N-1)/N. Both equations are quadratics with closed-form solutions. λ is
// monotone in δ, and z² is monotone in λ. So the ends are the solutions of z² = q². This avoids the cubic of the
// literature and its cancellation. q = ∞ gives [-1, 1].
//
// See Miettinen and Nurminen (1985), equations 7 to 9.
func (t table) differenceBounds(q float64, significant bool) bounds {
	d := t.crossDifference()
	lower := t.lowerDifference(q, significant && d > 0)
	upper := -t.swapVariations().lowerDifference(q, significant && d < 0)
	return bounds{lower: lower, upper: upper}
}

// lowerDifference returns the lower end of the difference's interval. The end is above 0 exactly if positive is true.
func (t table) lowerDifference(q float64, positive bool) float64 {
	if math.IsInf(q, 1) || (t.xt == 0 && t.xc == t.nc) {
		return -1
	}
	// The bounds of λ lie on one side of the pooled estimate, where δ = 0.
	n := t.totalVisitors()
	x := t.xt + t.xc
	rest := (t.nt - t.xt) + (t.nc - t.xc)
	pooled := t.crossDifference() * n / (x * rest)
	in := bounds{lower: 0, upper: math.Inf(1)}
	if positive {
		in.upper = pooled
	} else if pooled > 0 && !math.IsInf(pooled, 1) {
		in.lower = pooled
	}
	lambda := solveLogarithmic(q*q*n/(n-1), in, t.startDifference(q), t.scoreDifference)
	r := t.restrictedDifference(lambda)
	return endOnSide(r.pt-r.pc, t.observedDifference(), positive)
}

// smallestEffect is the size of the effect that callers of endOnSide pass if the size is unknown.
const smallestEffect = 1e-3

// endOnSide returns an interval's end on the side of 0 that the p-value determines. Rounding may have moved the end
// across 0. size is the size of the effect.
func endOnSide(end, size float64, positive bool) float64 {
	if positive {
		return math.Max(end, 1e-12*size)
	}
	return math.Min(end, 0)
}

// startDifference returns an initial value of λ from the variance at the observed rates.
func (t table) startDifference(q float64) float64 {
	variance := t.xt*(t.nt-t.xt)/(t.nt*t.nt*t.nt) + t.xc*(t.nc-t.xc)/(t.nc*t.nc*t.nc)
	if variance <= 0 {
		return math.Max(t.nt, t.nc)
	}
	return q / math.Sqrt(variance)
}

// restricted holds estimates under a restriction, their complements, and the square roots of the two discriminants.
type restricted struct {
	pt, qt, pc, qc, st, sc float64
}

// restrictedDifference returns the restricted estimates for a λ > 0. Each is computed from the form of its quadratic
// that avoids cancellation.
func (t table) restrictedDifference(lambda float64) restricted {
	st := math.Sqrt((t.nt-lambda)*(t.nt-lambda) + 4*lambda*(t.nt-t.xt))
	sc := math.Sqrt((t.nc-lambda)*(t.nc-lambda) + 4*lambda*t.xc)
	r := restricted{
		pt: 2 * t.xt / (t.nt + lambda + st),
		qc: 2 * (t.nc - t.xc) / (t.nc + lambda + sc),
		st: st, sc: sc,
	}
	if lambda < t.nt {
		r.qt = 2 * (t.nt - t.xt) / (t.nt - lambda + st)
	} else {
		r.qt = (st + (lambda - t.nt)) / (2 * lambda)
	}
	if lambda < t.nc {
		r.pc = 2 * t.xc / (t.nc - lambda + sc)
	} else {
		r.pc = (sc + (lambda - t.nc)) / (2 * lambda)
	}
	return r
}

// scoreDifference returns z² N/(N-1) at λ and its logarithmic slope.
func (t table) scoreDifference(lambda float64) (score, slope float64) {
	r := t.restrictedDifference(lambda)
	vt, vc := r.pt*r.qt, r.pc*r.qc
	v := vt/t.nt + vc/t.nc
	return lambda * lambda * v, 1 + (vt/r.st+vc/r.sc)/v
}

// solveLogarithmic returns x in the bracket with f(x) = target, for an f that increases from 0. It uses Newton's method
// on the logarithms, and bisection if a step is more than half of the previous one. f returns its value and its
// logarithmic slope x f'(x) / f(x).
func solveLogarithmic(target float64, in bounds, start float64, f func(float64) (value, slope float64)) float64 {
	if target <= 0 {
		return in.lower
	}
	x := start
	last := math.Inf(1)
	if !(x > in.lower && x < in.upper) {
		x = pointBetween(in)
	}
	for range 300 {
		value, slope := f(x)
		if value < target {
			in.lower = x
		} else {
			in.upper = x
		}
		miss := math.Log(target / value)
		step := miss / slope
		next := x * math.Exp(step)
		// A tiny step far from the target indicates a kink, where the slope is undefined.
		kink := math.Abs(step) < 1e-9 && math.Abs(miss) > 1e-6
		isInside := next > in.lower && next < in.upper
		if !isInside || math.Abs(step) > last/2 || kink {
			next = pointBetween(in)
		}
		if math.Abs(next-x) <= 1e-13*x || next == in.lower || next == in.upper {
			return next
		}
		x, last = next, math.Abs(math.Log(next/x))
	}
	return x
}

// pointBetween returns a point inside a bracket of positive numbers. The upper end may be infinite.
func pointBetween(in bounds) float64 {
	lower, upper := in.lower, in.upper
	switch {
	case math.IsInf(upper, 1) && lower == 0:
		return 1
	case math.IsInf(upper, 1):
		return 4 * lower
	case lower == 0:
		return upper / 16
	}
	return lower + (upper-lower)/2
}

// liftInterval returns all lifts r - 1 that the score test of pt = r pc at critical value q does not reject. The upper
// end is unbounded if control has no conversion. The interval contains 0 exactly if significant is false.
//
// Under pt = r pc the restricted estimates are, with a multiplier μ,
//
//	pt = (xt - μ) / (nt - μ),  pc = (xc + μ) / (nc + μ)
//	z² = μ² (qt/(xt-μ) + qc/(xc+μ)) (N-1)/N
//
// where qt and qc are the observed shares that did not convert. z² increases with |μ|, and r decreases as μ increases,
// so the ends are roots of a cubic in μ.
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

// lowerLift returns the lower end of the lift's interval. The end is above 0 exactly if positive is true. It is -1 if
// the treatment has no conversion.
func (t table) lowerLift(q float64, positive bool) float64 {
	if t.xt == 0 || math.IsInf(q, 1) {
		return -1
	}
	target := q * q * t.totalVisitors() / (t.totalVisitors() - 1)
	var lift float64
	if t.xt == t.nt {
		// pt remains 1 until μ reaches nt, and then decreases at a fixed pc.
		qc := (t.nc - t.xc) / t.nc
		if limit := t.nt * t.nt * qc / (t.xc + t.nt); target < limit {
			mu := (target + math.Sqrt(target*target+4*qc*target*t.xc)) / (2 * qc)
			lift = (t.nc - t.xc) / (t.xc + mu)
		} else {
			pc, unexplained := (t.xc+t.nt)/(t.nc+t.nt), (target-limit)/t.nt
			pt := 1 / (1 + unexplained)
			lift = ((t.nc-t.xc)/(t.nc+t.nt) - unexplained*pt) / pc
		}
	} else {
		mu := t.solveMultiplier(target, positive)
		rest := (t.nt - t.xt) + (t.nc - t.xc)
		// pt/pc - 1 at μ, without cancellation if the rates are nearly equal
		lift = math.Max((t.crossDifference()-mu*rest)/((t.nt-mu)*(t.xc+mu)), -1)
	}
	return endOnSide(lift, smallestEffect, positive)
}

// solveMultiplier solves the cubic
//
//	target (xt-μ)(xc+μ) = μ² (qt (xc+μ) + qc (xt-μ))
//
// for μ in (0, xt). The argument positive selects the side of the pooled estimate.
func (t table) solveMultiplier(target float64, positive bool) float64 {
	qt, qc := (t.nt-t.xt)/t.nt, (t.nc-t.xc)/t.nc
	if t.xc == 0 {
		b := qc*t.xt + target
		return 2 * target * t.xt / (b + math.Sqrt(b*b+4*(qt-qc)*target*t.xt))
	}
	lower := 0.0
	upper := t.xt
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
