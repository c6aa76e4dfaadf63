package stats

import "math"

// density is a unimodal posterior of one number, known up to a factor.
type density interface {
	// drop returns -ln(f(x) / f(mode)): 0 at the mode, +Inf outside the support.
	drop(x float64) float64
	// knots cuts the support into panels on which the density is nearly a
	// polynomial, down to 1e-17 of its height.
	knots() []float64
}

// What the panels of a density are cut by: its logarithm falls by deepest in all,
// by steepest on one of them, none being wider than widest standard deviations of
// the normal that touches it there.
const (
	deepest  = 39
	steepest = 4
	widest   = 1.4
)

// beta is the posterior of a rate under a uniform prior, Beta(1 + x, 1 + n - x).
// Its mode is the observed rate x/n, around which its logarithm is
//
//	x log1p(u / p) + (n - x) log1p(-u / (1 - p)),  p = x/n, u its distance,
//
// good to n = 10⁷ and beyond, where the incomplete beta function loses digits.
type beta struct {
	converted, rest float64
	mode            float64
}

func newBeta(r Rate) beta {
	b := beta{converted: float64(r.Converted), rest: float64(r.Visitors - r.Converted)}
	b.mode = b.converted / (b.converted + b.rest)
	return b
}

func (b beta) drop(x float64) float64 {
	if !(x >= 0 && x <= 1) {
		return math.Inf(1)
	}
	u, drop := x-b.mode, 0.0
	if b.converted > 0 {
		drop -= b.converted * math.Log1p(u/b.mode)
	}
	if b.rest > 0 {
		drop -= b.rest * math.Log1p(-u/(1-b.mode))
	}
	return drop
}

func (b beta) mean() float64 { return (b.converted + 1) / (b.converted + b.rest + 2) }

func (b beta) variance() float64 {
	m := b.mean()
	return m * (1 - m) / (b.converted + b.rest + 3)
}

func (b beta) knots() []float64 {
	slopes := func(x float64) (first, second float64) {
		if b.converted > 0 {
			first -= b.converted / x
			second += b.converted / (x * x)
		}
		if b.rest > 0 {
			first += b.rest / (1 - x)
			second += b.rest / ((1 - x) * (1 - x))
		}
		return first, second
	}
	return cut(b, b.mode, 0, 1, slopes)
}

// cut returns the panels of a density from its mode outwards, inside [lower,
// upper]; slopes are the first and second derivative of drop.
func cut(f density, mode, lower, upper float64, slopes func(float64) (first, second float64)) []float64 {
	var left []float64
	for x := mode; x > lower && f.drop(x) < deepest; {
		next := x - panelWidth(slopes, x)
		// Halfway at most, so that a panel never reaches a pole at the boundary;
		// the boundary itself where the density is still high there.
		switch {
		case f.drop(lower) < deepest:
			next = math.Max(next, lower)
		case !math.IsInf(lower, -1):
			next = math.Max(next, lower+(x-lower)/2)
		}
		if !(next < x) {
			break
		}
		x = next
		left = append(left, x)
	}
	points := make([]float64, 0, 2*len(left)+4)
	for i := len(left) - 1; i >= 0; i-- {
		points = append(points, left[i])
	}
	points = append(points, mode)
	for x := mode; x < upper && f.drop(x) < deepest; {
		next := x + panelWidth(slopes, x)
		switch {
		case f.drop(upper) < deepest:
			next = math.Min(next, upper)
		case !math.IsInf(upper, 1):
			next = math.Min(next, upper-(upper-x)/2)
		}
		if !(next > x) {
			break
		}
		x = next
		points = append(points, x)
	}
	return points
}

func panelWidth(slopes func(float64) (first, second float64), x float64) float64 {
	first, second := slopes(x)
	return math.Min(widest/math.Sqrt(second), steepest/math.Abs(first))
}

// gaussian is a normal posterior; sd must be positive.
type gaussian struct {
	mean, sd float64
}

func (g gaussian) drop(x float64) float64 {
	z := (x - g.mean) / g.sd
	return 0.5 * z * z
}

func (g gaussian) knots() []float64 {
	slopes := func(x float64) (first, second float64) {
		return (x - g.mean) / (g.sd * g.sd), 1 / (g.sd * g.sd)
	}
	return cut(g, g.mean, math.Inf(-1), math.Inf(1), slopes)
}

// moved is the posterior of (X - shift) / scale.
type moved struct {
	density
	shift, scale float64
}

func (m moved) drop(x float64) float64 { return m.density.drop(x*m.scale + m.shift) }
