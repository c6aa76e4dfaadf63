package stats

import (
	"math"
	"slices"
)

// density is a unimodal posterior of one number, known up to a factor.
type density interface {
	// logDrop returns -ln(f(x) / f(mode)): 0 at the mode, +Inf outside the support.
	logDrop(x float64) float64
	// panelEnds divides the support into panels on which the density is nearly a
	// polynomial. The panels extend to where the density is exp(-deepest) of
	// its maximum.
	panelEnds(deepest float64) []float64
}

const (
	// steepest is the maximum change of the logarithm of a density on one
	// panel. The constant widest is the maximum width of a panel, in standard
	// deviations of the normal density that touches the density there.
	steepest = 4
	widest   = 1.75
	// deep is the depth for chances and losses. It includes all their mass even
	// if the posteriors are far apart. shallow is the depth for intervals.
	deep    = 80
	shallow = 26
)

// beta is the posterior of a rate under a uniform prior, Beta(1 + x, 1 + n -
// x). Its mode is the observed rate x/n. Its logarithm relative to the mode is
//
//	x log1p(u / p) + (n - x) log1p(-u / (1 - p)),  p = x/n, u the distance from the mode
//
// This formula is accurate to n = 10⁷ and beyond, where the incomplete beta
// function loses digits.
type beta struct {
	converted, rest float64
	mode            float64
}

func newBeta(r Rate) beta {
	b := beta{converted: float64(r.Converted), rest: float64(r.Visitors - r.Converted)}
	b.mode = b.converted / (b.converted + b.rest)
	return b
}

func (b beta) logDrop(x float64) float64 {
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

func (b beta) panelEnds(deepest float64) []float64 {
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
	return cutPanels(b, b.mode, bounds{lower: 0, upper: 1}, deepest, slopes)
}

// cutPanels returns the panels of a density from its mode outwards, inside its
// support. slopes returns the first and second derivative of drop.
func cutPanels(f density, mode float64, support bounds, deepest float64, slopes func(float64) (first, second float64)) []float64 {
	points := []float64{mode}
	for x := mode; x > support.lower && f.logDrop(x) < deepest; {
		next := x - panelWidth(slopes, x)
		// If the density is still high at the boundary, the panel may end there. Otherwise it
		// ends at most halfway to the boundary, so no panel reaches a pole.
		switch {
		case f.logDrop(support.lower) < deepest:
			next = math.Max(next, support.lower)
		case !math.IsInf(support.lower, -1):
			next = math.Max(next, support.lower+(x-support.lower)/2)
		}
		if !(next < x) {
			break
		}
		x = next
		points = append(points, x)
	}
	slices.Reverse(points)
	for x := mode; x < support.upper && f.logDrop(x) < deepest; {
		next := x + panelWidth(slopes, x)
		switch {
		case f.logDrop(support.upper) < deepest:
			next = math.Min(next, support.upper)
		case !math.IsInf(support.upper, 1):
			next = math.Min(next, support.upper-(support.upper-x)/2)
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

func (g gaussian) logDrop(x float64) float64 {
	z := (x - g.mean) / g.sd
	return 0.5 * z * z
}

func (g gaussian) panelEnds(deepest float64) []float64 {
	slopes := func(x float64) (first, second float64) {
		return (x - g.mean) / (g.sd * g.sd), 1 / (g.sd * g.sd)
	}
	return cutPanels(g, g.mean, bounds{lower: math.Inf(-1), upper: math.Inf(1)}, deepest, slopes)
}

// moved is the posterior of (X - shift) / scale. Its knots are transformed in the same way.
type moved struct {
	density
	shift, scale float64
}

func (m moved) logDrop(x float64) float64 { return m.density.logDrop(x*m.scale + m.shift) }

func (m moved) panelEnds(deepest float64) []float64 {
	points := m.density.panelEnds(deepest)
	for i, x := range points {
		points[i] = (x - m.shift) / m.scale
	}
	return points
}

// cutBeta is a beta with stored shallow knots.
type cutBeta struct {
	beta
	points []float64
}

func newCutBeta(r Rate) cutBeta {
	b := newBeta(r)
	return cutBeta{beta: b, points: b.panelEnds(shallow)}
}

func (c cutBeta) panelEnds(float64) []float64 { return slices.Clone(c.points) }
