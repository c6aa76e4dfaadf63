package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// normalSurvival returns P(Z > z), accurate far into the tail.
func normalSurvival(z float64) float64 { return 0.5 * math.Erfc(z/math.Sqrt2) }

// normalDensity returns the density of the standard normal at z.
func normalDensity(z float64) float64 { return math.Exp(-0.5*z*z) / math.Sqrt(2*math.Pi) }

// normalQuantile returns z with P(Z > z) = tail. It returns +Inf for a tail of
// 0.
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

// largestNu is the number of degrees of freedom at which the t and normal
// distributions agree to the last bit.
const largestNu = 1e17

func newStudent(nu float64) student {
	return student{nu: nu, scale: gammaRatio(nu/2) / math.SqrtPi}
}

// gammaRatio returns Γ(a + 1/2) / Γ(a). From a = 20 on, it uses the difference of two Stirling
// series, because the difference of two Lgamma values would cancel.
func gammaRatio(a float64) float64 {
	if a < 20 {
		above, _ := math.Lgamma(a + 0.5)
		below, _ := math.Lgamma(a)
		return math.Exp(above - below)
	}
	stirling := func(x float64) float64 {
		s := 1 / (x * x)
		return (1./12 - s*(1./360-s*(1./1260-s*(1./1680-s/1188)))) / x
	}
	return math.Sqrt(a) * math.Exp(a*math.Log1p(0.5/a)-0.5+stirling(a+0.5)-stirling(a))
}

// survival returns P(T > t) for t >= 0, and t times the density at t:
//
//	P(T > t) = I_x(nu/2, 1/2) / 2,  x = nu / (nu + t²)
//
// It uses a series around the center and a continued fraction in the tail. The
// usual implementations of the regularized incomplete beta function lose digits
// at a million degrees of freedom.
//
// See DLMF 8.17.7 and 15.8.1.
func (s student) survival(t float64) (tail, density float64) {
	switch {
	case t <= 0:
		return 0.5, 0
	case s.nu > largestNu:
		return normalSurvival(t), t * normalDensity(t)
	}
	// The ratio is computed first, because t² may overflow. The tail is then 0,
	// except for tiny nu.
	h := t / math.Sqrt(s.nu)
	logX := -2 * math.Log(h)
	if h < 1e100 {
		logX = -math.Log1p(h * h)
	}
	y := 1 / (1 + 1/(h*h))
	density = s.scale * math.Exp(0.5*s.nu*logX) * math.Sqrt(y)
	if y*(s.nu+1) < 9 && y < 0.6 {
		return 0.5 - density*betaSeries(0.5, s.nu/2, y), density
	}
	return density * tailFraction(s.nu/2+1, 1/(h*h)) / (s.nu * y), density
}

// betaSeries returns the sum of Π (a+b+j)/(a+1+j) y, which is I_y(a, b) a B(a,
// b) / (y^a (1-y)^b). All its terms are positive.
func betaSeries(a, b, y float64) float64 {
	sum, term := 1.0, 1.0
	for k := range 1000 {
		j := float64(k)
		term *= (a + b + j) / (a + 1 + j) * y
		sum += term
		if term < 1e-17*sum {
			break
		}
	}
	return sum
}

// tailFraction returns 2F1(1/2, 1; c; -z) for c > 1 and z > 0 by Gauss's continued fraction.
// All terms of the fraction are positive, so nothing cancels, however large c and z are.
//
// See DLMF 15.7.5.
func tailFraction(c, z float64) float64 {
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
	return 1 / f
}

// quantile returns t with P(T > t) = tail, for a tail below one half. It returns +Inf for a
// tail of 0. It uses Newton's method on the logarithms of t and tail. The survival function is
// concave in them, so every start converges.
func (s student) quantile(tail float64) float64 {
	z := normalQuantile(tail)
	if math.IsInf(z, 1) || s.nu > largestNu {
		return z
	}
	t := s.startValue(tail, z)
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

// startValue returns an initial value of the quantile: Abramowitz and Stegun 26.7.5,
// or the exact quantile of two degrees of freedom where that series fails.
func (s student) startValue(tail, z float64) float64 {
	z2 := z * z
	if s.nu < 5 || z2 > s.nu {
		return math.Max((1-2*tail)/math.Sqrt(2*tail*(1-tail)), 1e-8)
	}
	g1 := z * (z2 + 1) / 4
	g2 := z * (3 + z2*(16+5*z2)) / 96
	g3 := z * (-15 + z2*(17+z2*(19+3*z2))) / 384
	return math.Max(z+(g1+(g2+g3/s.nu)/s.nu)/s.nu, 1e-8)
}
