package stats

import "math"

// means is a pair of independent means. For control and for treatment it holds
// the mean, the variance of the mean, and the degrees of freedom of the
// variance.
type means struct {
	mc, mt float64
	sc, st float64
	fc, ft float64
}

// newMeans returns the pair. A variation without variance takes the pooled variance, because
// equal values of a few visitors do not prove that the next value is equal.
func newMeans(control, treatment Mean) means {
	m := means{
		mc: control.Mean, mt: treatment.Mean,
		sc: control.varianceOfMean(), st: treatment.varianceOfMean(),
		fc: float64(control.Visitors) - 1, ft: float64(treatment.Visitors) - 1,
	}
	switch pooled := m.withPooledVariance(); {
	case m.sc == 0:
		m.sc = pooled.sc
	case m.st == 0:
		m.st = pooled.st
	}
	return m
}

func (m means) observedDifference() float64 { return m.mt - m.mc }

// standardError returns the standard error of the difference.
func (m means) standardError() float64 { return math.Sqrt(m.sc + m.st) }

// degreesOfFreedom returns Satterthwaite's
//
//	nu = (sc + st)² / (sc²/(nc-1) + st²/(nt-1))
//
// where sc and st are the variances of the means. At least one of them must be
// positive.
//
// See Welch (1947).
func (m means) degreesOfFreedom() float64 {
	wc, wt := m.sc/(m.sc+m.st), m.st/(m.sc+m.st)
	return 1 / (wc*wc/m.fc + wt*wt/m.ft)
}

// withPooledVariance returns the pair under equal variances, whose t has nc + nt - 2 degrees of
// freedom. If the split is uneven and values are skewed, its t errs in the opposite direction
// to Welch's.
func (m means) withPooledVariance() means {
	variance := m.sc*((m.fc+1)*(m.fc/(m.fc+m.ft))) + m.st*((m.ft+1)*(m.ft/(m.fc+m.ft)))
	m.sc, m.st = variance/(m.fc+1), variance/(m.ft+1)
	return m
}

// smallerShare returns the share of the smaller variation in the pair.
func (m means) smallerShare() float64 {
	return math.Min(m.fc+1, m.ft+1) / (m.fc + m.ft + 2)
}

// withWidenedError returns the pair with a standard error not below the pooled one. Both
// variances are scaled by the same factor.
func (m means) withWidenedError() means {
	by := m.withPooledVariance().standardError() / m.standardError()
	if by > 1 && isFinite(by) {
		m.sc, m.st = m.sc*by*by, m.st*by*by
	}
	return m
}

// differenceInterval returns d ± q SE.
func (m means) differenceInterval(q float64, significant bool) bounds {
	d, half := m.observedDifference(), q*m.standardError()
	in := bounds{lower: d - half, upper: d + half}
	return in.moveEndToSide(significant, d)
}

// moveEndToSide moves an end near 0 to the side of 0 that the p-value determines. An
// end is near 0 if its distance is at most 1e-9 of the interval's size.
// observed is the effect inside the interval.
func (in bounds) moveEndToSide(significant bool, observed float64) bounds {
	near := 1e-9 * math.Max(math.Abs(observed), math.Min(observed-in.lower, in.upper-observed))
	if observed >= 0 {
		in.lower = nearZero(in.lower, near, significant && observed > 0)
	} else {
		in.upper = -nearZero(-in.upper, near, significant)
	}
	return in
}

func nearZero(end, near float64, positive bool) float64 {
	switch {
	case positive && end <= 0 && end >= -near:
		return 1e-3 * near
	case !positive && end > 0 && end <= near:
		return 0
	}
	return end
}

// liftInterval returns Fieller's interval of the lift d/|mc| at quantile q.
// With g = q² sc/mc² < 1 it contains the lifts L between the roots of
//
//	(mc² - q² sc) L² - 2 (d mc + q² sc) L + d² - q² (sc + st) = 0
//
// for mc > 0. For mc < 0 the interval is mirrored, so a rise from a negative baseline is
// positive. The equation is Fieller's for r = mt/mc with r = 1 + L. Its last term shows that 0
// is outside exactly if |d| > q SE.
//
// With g >= 1 control cannot be distinguished from 0, and the set is not an
// interval. If values are never negative, mc > 0 and mt² > q² st, then the
// larger root is the lower end and the upper end is unbounded. Otherwise both
// ends are NaN. The baseline must not be 0.
//
// See Fieller (1954).
func (m means) liftInterval(q float64, significant, nonNegative bool) (bounds, Reason) {
	if m.mc < 0 {
		mirror := m
		mirror.mc, mirror.mt = -m.mc, -m.mt
		in, reason := mirror.liftInterval(q, significant, false)
		return bounds{lower: -in.upper, upper: -in.lower}, reason
	}
	// All values are in units of the baseline. In these units squares do not
	// overflow as long as the interval is useful.
	d := m.observedDifference() / m.mc
	g := q * q * (m.sc / m.mc / m.mc)
	h := q * q * (m.st / m.mc / m.mc)
	r := m.mt / m.mc
	half := math.Sqrt(g + h)
	a, b, c := 1-g, d+g, (d-half)*(d+half)
	root := math.Sqrt(math.Max(g*r*r+h*(1-g), 0))
	switch {
	case a > 0 && isFinite(g):
		large := (b + math.Copysign(root, b)) / a
		small := c / (b + math.Copysign(root, b))
		in := bounds{lower: math.Min(large, small), upper: math.Max(large, small)}
		return in.moveEndToSide(significant, d), ""
	case nonNegative && r*r > h && m.mt > 0 && isFinite(g):
		lower := (b - root) / a
		if b > 0 || a == 0 {
			lower = c / (b + root)
		}
		in := bounds{lower: lower, upper: math.Inf(1)}
		return in.moveEndToSide(significant, d), ReasonBaselineNotDistinguishable
	}
	return bounds{lower: math.NaN(), upper: math.NaN()}, ReasonBaselineNotDistinguishable
}
