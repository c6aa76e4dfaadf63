package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// means is a pair of independent means. For control and for treatment it holds the mean, the variance of the mean, and
// the degrees of freedom of the variance.
type means struct {
	mc, mt float64
	sc, st float64
	fc, ft float64
}

// newMeans returns the pair. A variation without variance takes the pooled variance, because equal values of a few
// visitors do not prove that the next value is equal.
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
// where sc and st are the variances of the means. At least one of them must be positive.
//
// See Welch (1947).
func (m means) degreesOfFreedom() float64 {
	wc, wt := m.sc/(m.sc+m.st), m.st/(m.sc+m.st)
	return 1 / (wc*wc/m.fc + wt*wt/m.ft)
}

// withPooledVariance returns the pair under equal variances, whose t has nc + nt - 2 degrees of freedom. If the split
// is uneven and values are skewed, its t errs in the opposite direction to Welch's.
func (m means) withPooledVariance() means {
	variance := m.sc*((m.fc+1)*(m.fc/(m.fc+m.ft))) + m.st*((m.ft+1)*(m.ft/(m.fc+m.ft)))
	m.sc, m.st = variance/(m.fc+1), variance/(m.ft+1)
	return m
}

// differenceBounds returns d ± q SE.
func (m means) differenceBounds(q float64, significant bool) bounds {
	d := m.observedDifference()
	half := q * m.standardError()
	in := bounds{lower: d - half, upper: d + half}
	return in.moveEndToSide(significant, d)
}

// moveEndToSide moves an end near 0 to the side of 0 that the p-value determines. An end is near 0 if its distance is
// at most 1e-9 of the interval's size. observed is the effect inside the interval.
func (in bounds) moveEndToSide(significant bool, observed float64) bounds {
	near := 1e-9 * math.Max(math.Abs(observed), math.Min(observed-in.lower, in.upper-observed))
	end := &in.lower
	sign := 1.0
	if observed < 0 {
		end = &in.upper
		sign = -1
	}
	excludes := significant && observed != 0
	switch inward := sign * *end; {
	case excludes && inward <= 0 && inward >= -near:
		*end = sign * 1e-3 * near
	case !excludes && inward > 0 && inward <= near:
		*end = 0
	}
	return in
}

// liftInterval returns Fieller's interval of the lift d/|mc| at quantile q. With g = q² sc/mc² < 1 it contains the
// lifts L between the roots of
//
//	(mc² - q² sc) L² - 2 (d mc + q² sc) L + d² - q² (sc + st) = 0
//
// for mc > 0. For mc < 0 the interval is mirrored, so a rise from a negative baseline is positive. The equation is
// Fieller's for r = mt/mc with r = 1 + L. Its last term shows that 0 is outside exactly if |d| > q SE.
//
// With g >= 1 control cannot be distinguished from 0, and the set is not an interval. If values are never negative, mc
// > 0 and mt² > q² st, then the larger root is the lower end and the upper end is unbounded. Otherwise both ends are
// NaN. The baseline must not be 0.
//
// See Fieller (1954).
func (m means) liftInterval(q float64, significant, nonNegative bool) (bounds, Reason) {
	if m.mc < 0 {
		mirror := m
		mirror.mc, mirror.mt = -m.mc, -m.mt
		in, reason := mirror.liftInterval(q, significant, false)
		return bounds{lower: -in.upper, upper: -in.lower}, reason
	}
	// All values are in units of the baseline. In these units squares do not overflow as long as the interval is
	// useful.
	d := m.observedDifference() / m.mc
	g := q * q * (m.sc / m.mc / m.mc)
	h := q * q * (m.st / m.mc / m.mc)
	r := m.mt / m.mc
	half := math.Sqrt(g + h)
	a, b, c := 1-g, d+g, (d-half)*(d+half)
	root := math.Sqrt(math.Max(g*r*r+h*(1-g), 0))
	hasLowerEnd := nonNegative && r*r > h && m.mt > 0
	switch {
	case a > 0 && isFinite(g):
		large := (b + math.Copysign(root, b)) / a
		small := c / (b + math.Copysign(root, b))
		in := bounds{lower: math.Min(large, small), upper: math.Max(large, small)}
		return in.moveEndToSide(significant, d), ""
	case hasLowerEnd && isFinite(g):
		lower := (b - root) / a
		if b > 0 || a == 0 {
			lower = c / (b + root)
		}
		in := bounds{lower: lower, upper: math.Inf(1)}
		return in.moveEndToSide(significant, d), ReasonBaselineNotDistinguishable
	}
	return bounds{lower: math.NaN(), upper: math.NaN()}, ReasonBaselineNotDistinguishable
}

// normalSurvival returns P(Z > z), accurate far into the tail.
func normalSurvival(z float64) float64 { return 0.5 * math.Erfc(z/math.Sqrt2) }

// normalDensity returns the density of the standard normal at z.
func normalDensity(z float64) float64 { return math.Exp(-0.5*z*z) / math.Sqrt(2*math.Pi) }

// normalQuantile returns z with P(Z > z) = tail. It returns +Inf for a tail of 0.
func normalQuantile(tail float64) float64 {
	if tail <= 0 {
		return math.Inf(1)
	}
	if tail >= 1 {
		return math.Inf(-1)
	}
	return -mathext.NormalQuantile(tail)
}

// student is Student's t distribution with nu degrees of freedom, nu > 0.
type student struct {
	nu float64
	// scale is 1/B(nu/2, 1/2).
	scale float64
}

// largestNu is the number of degrees of freedom at which the t and normal distributions agree to the last bit.
const largestNu = 1e17

func newStudent(nu float64) student {
	a := nu / 2
	var ratio float64 // Γ(a + 1/2) / Γ(a)
	if a < 20 {
		above, _ := math.Lgamma(a + 0.5)
		below, _ := math.Lgamma(a)
		ratio = math.Exp(above - below)
	} else { // the difference of two Lgamma values would cancel; that of two Stirling series does not
		stirling := func(x float64) float64 {
			s := 1 / (x * x)
			return (1./12 - s*(1./360-s*(1./1260-s*(1./1680-s/1188)))) / x
		}
		ratio = math.Sqrt(a) * math.Exp(a*math.Log1p(0.5/a)-0.5+stirling(a+0.5)-stirling(a))
	}
	return student{nu: nu, scale: ratio / math.SqrtPi}
}

// survival returns P(T > t) for t >= 0, and t times the density at t:
//
//	P(T > t) = I_x(nu/2, 1/2) / 2,  x = nu / (nu + t²)
//
// It uses a series of positive terms around the center and a continued fraction in the tail. The usual implementations
// of the regularized incomplete beta function lose digits at a million degrees of freedom.
//
// See DLMF 8.17.7, 15.7.5 and 15.8.1.
func (s student) survival(t float64) (tail, density float64) {
	switch {
	case t <= 0:
		return 0.5, 0
	case s.nu > largestNu:
		return normalSurvival(t), t * normalDensity(t)
	}
	// The ratio is computed first, because t² may overflow. The tail is then 0, except for tiny nu.
	h := t / math.Sqrt(s.nu)
	logX := -2 * math.Log(h)
	if h < 1e100 {
		logX = -math.Log1p(h * h)
	}
	y := 1 / (1 + 1/(h*h))
	density = s.scale * math.Exp(0.5*s.nu*logX) * math.Sqrt(y)
	if !(y*(s.nu+1) < 9 && y < 0.6) {
		// 2F1(1/2, 1; c; -z) by Gauss's continued fraction. All terms of the fraction are positive, so nothing cancels,
		// however large c and z are.
		c, z := s.nu/2+1, 1/(h*h)
		f, up, down := 1.0, 1.0, 0.0
		for k := range 2000 {
			m := float64(k / 2)
			term := (0.5 + m) * (c - 1 + m) / ((c - 1 + 2*m) * (c + 2*m)) * z
			if k%2 == 1 {
				m++
				term = m * (c - 1.5 + m) / ((c + 2*m - 2) * (c + 2*m - 1)) * z
			}
			// Lentz's forward evaluation of 1 + term / (1 + …).
			down = 1 / (1 + term*down)
			up = 1 + term/up
			step := up * down
			f *= step
			if math.Abs(step-1) < 1e-16 {
				break
			}
		}
		return density * (1 / f) / (s.nu * y), density
	}
	// the sum of Π (a+b+j)/(a+1+j) y for a = 1/2 and b = nu/2, which is I_y(a, b) a B(a, b) / (y^a (1-y)^b)
	sum, term := 1.0, 1.0
	for j := 0.0; j < 1000 && term >= 1e-17*sum; j++ {
		term *= (0.5 + s.nu/2 + j) / (1.5 + j) * y
		sum += term
	}
	return 0.5 - density*sum, density
}

// quantile returns t with P(T > t) = tail, for a tail below one half. It returns +Inf for a tail of 0. It uses Newton's
// method on the logarithms of t and tail. The survival function is concave in them, so every start converges.
func (s student) quantile(tail float64) float64 {
	z := normalQuantile(tail)
	if math.IsInf(z, 1) || s.nu > largestNu {
		return z
	}
	// The start is that of Abramowitz and Stegun 26.7.5, or the exact quantile of two degrees of freedom where that
	// series fails.
	z2, t := z*z, (1-2*tail)/math.Sqrt(2*tail*(1-tail))
	if s.nu >= 5 && z2 <= s.nu {
		g1 := z * (z2 + 1) / 4
		g2 := z * (3 + z2*(16+5*z2)) / 96
		g3 := z * (-15 + z2*(17+z2*(19+3*z2))) / 384
		t = z + (g1+(g2+g3/s.nu)/s.nu)/s.nu
	}
	t = math.Max(t, 1e-8)
	logTail := math.Log(tail)
	for range 1000 {
		p, density := s.survival(t)
		if p < 1e-300 && logTail > -600 {
			t /= 2 // beyond the digits of a float
			continue
		}
		step := (math.Log(p) - logTail) * p / density
		t *= math.Exp(math.Min(step, 5))
		if math.Abs(step) < 1e-9 {
			break
		}
	}
	return t
}
