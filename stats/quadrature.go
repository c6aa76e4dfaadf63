package stats

import (
	"math"
	"slices"
)

// density is a unimodal posterior of one number, known up to a factor.
type density interface {
	// logDrop returns -ln(f(x) / f(mode)): 0 at the mode, +Inf outside the support.
	logDrop(x float64) float64
	// panelEnds divides the support into panels on which the density is nearly a polynomial. The panels extend to where
	// the density is exp(-deepest) of its maximum.
	panelEnds(deepest float64) []float64
}

const (
	// steepest is the maximum change of the logarithm of a density on one panel. The constant widest is the maximum
	// width of a panel, in standard deviations of the normal density that touches the density there.
	steepest = 4
	widest   = 1.75
	// deep is the depth for chances and losses. It includes all their mass even if the posteriors are far apart.
	// shallow is the depth for intervals.
	deep    = 80
	shallow = 26
)

// beta is the posterior of a rate under a uniform prior, Beta(1 + x, 1 + n - x). Its mode is the observed rate x/n. Its
// logarithm relative to the mode is
//
//	x log1p(u / p) + (n - x) log1p(-u / (1 - p)),  p = x/n, u the distance from the mode
//
// This formula is accurate to n = 10⁷ and beyond, where the incomplete beta function loses digits.
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

// cutPanels returns the panels of a density from its mode outwards, inside its support. slopes returns the first and
// second derivative of drop.
func cutPanels(
	f density, mode float64, support bounds, deepest float64, slopes func(float64) (first, second float64),
) []float64 {
	points := []float64{mode}
	for x := mode; x > support.lower && f.logDrop(x) < deepest; {
		next := x - panelWidth(slopes, x)
		// If the density is still high at the boundary, the panel may end there. Otherwise it ends at most halfway to
		// the boundary, so no panel reaches a pole.
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

// order is the number of nodes on a panel. Eight nodes integrate a normal density over two of its standard deviations
// with an error of 1e-11. The error of partial integrals is 1e-7, and orthogonal to their weights.
const order = 8

// rule is Gauss-Legendre quadrature on [-1, 1] with its partial integrals. partial[i][l] is the weight of the value at
// node l in the integral from -1 to node i.
type rule struct {
	nodes, weights [order]float64
	partial        [order][order]float64
}

func newRule() *rule {
	positive := [order / 2]float64{
		0.183434642495649805, 0.525532409916328986, 0.796666477413626740,
		0.960289856497536232,
	}
	weights := [order / 2]float64{
		0.362683783378361983, 0.313706645877887287, 0.222381034453374471,
		0.101228536290376259,
	}
	r := &rule{}
	for i, node := range positive {
		low, high := order/2-1-i, order/2+i
		r.nodes[low], r.nodes[high] = -node, node
		r.weights[low], r.weights[high] = weights[i], weights[i]
	}
	var legendre [order][order + 1]float64
	for i, x := range r.nodes {
		legendre[i][0], legendre[i][1] = 1, x
		for j := 1; j < order; j++ {
			k := float64(j)
			legendre[i][j+1] = ((2*k+1)*x*legendre[i][j] - k*legendre[i][j-1]) / (k + 1)
		}
	}
	// The sum integrates the Legendre expansion of the interpolating polynomial, by ∫ P_j = (P_{j+1} - P_{j-1}) / (2j +
	// 1).
	for i := range order {
		for l := range order {
			sum := 1 + r.nodes[i]
			for j := 1; j < order; j++ {
				sum += legendre[l][j] * (legendre[i][j+1] - legendre[i][j-1])
			}
			r.partial[i][l] = r.weights[l] / 2 * sum
		}
	}
	return r
}

// panels are the common panels of several densities.
type panels struct {
	rule   *rule
	points []float64
}

func (r *rule) newPanels(deepest float64, densities ...density) panels {
	p := panels{rule: r}
	for _, f := range densities {
		p.points = append(p.points, f.panelEnds(deepest)...)
	}
	slices.Sort(p.points)
	p.points = slices.Compact(p.points)
	return p
}

func (p panels) panelCount() int { return max(len(p.points)-1, 0) }

// nodeAt returns the position of a node and half the width of its panel.
func (p panels) nodeAt(panel, i int) (x, half float64) {
	a, b := p.points[panel], p.points[panel+1]
	half = (b - a) / 2
	return a + half*(1+p.rule.nodes[i]), half
}

// curve is a normalized density at every node, with the mass below and above the node.
type curve struct {
	value, below, above []float64
}

// densityCurve returns the density and its masses below and above every node. Each mass is summed from its own end, so
// small masses keep their digits.
func (p panels) densityCurve(f density) curve {
	value, masses := p.densityValues(f)
	n := p.panelCount() * order
	c := curve{value: value, below: make([]float64, n), above: make([]float64, n)}
	left, right := 0.0, 0.0
	for panel := range p.panelCount() {
		half := (p.points[panel+1] - p.points[panel]) / 2
		values := value[panel*order : (panel+1)*order]
		for i := range order {
			inside := 0.0
			for l, v := range values {
				inside += p.rule.partial[i][l] * v
			}
			c.below[panel*order+i] = math.Max(left+half*inside, 0)
		}
		left += masses[panel]
	}
	for panel := p.panelCount() - 1; panel >= 0; panel-- {
		half := (p.points[panel+1] - p.points[panel]) / 2
		values := value[panel*order : (panel+1)*order]
		for i := range order {
			outside := 0.0
			for l, v := range values {
				outside += (p.rule.weights[l] - p.rule.partial[i][l]) * v
			}
			c.above[panel*order+i] = math.Max(right+half*outside, 0)
		}
		right += masses[panel]
	}
	return c
}

// densityValues returns the density at every node and its mass on every panel. The total mass is 1.
func (p panels) densityValues(f density) (value, masses []float64) {
	value, masses = make([]float64, p.panelCount()*order), make([]float64, p.panelCount())
	total := 0.0
	for panel := range p.panelCount() {
		half := (p.points[panel+1] - p.points[panel]) / 2
		for i := range order {
			x, _ := p.nodeAt(panel, i)
			if drop := f.logDrop(x); drop < 700 {
				v := math.Exp(-drop)
				value[panel*order+i] = v
				masses[panel] += p.rule.weights[i] * v
			}
		}
		masses[panel] *= half
		total += masses[panel]
	}
	if total == 0 {
		return value, masses
	}
	for i := range value {
		value[i] /= total
	}
	for i := range masses {
		masses[i] /= total
	}
	return value, masses
}

// overlap compares two independent posteriors X and Y.
type overlap struct {
	below, above float64 // P(X < Y), P(X > Y)
	short, over  float64 // E[(Y-X)+], E[(X-Y)+]
}

// integrateOverlap integrates over the panels of both:
//
//	P(X < Y) = ∫ F_X f_Y,  E[(Y-X)+] = ∫ F_X (1 - F_Y)
//
// and likewise with X and Y exchanged. No integrand contains a difference that could cancel.
func (r *rule) integrateOverlap(x, y density) overlap {
	p := r.newPanels(deep, x, y)
	cx, cy := p.densityCurve(x), p.densityCurve(y)
	var o overlap
	for panel := range p.panelCount() {
		for i := range order {
			_, half := p.nodeAt(panel, i)
			w, k := half*r.weights[i], panel*order+i
			o.below += w * cx.below[k] * cy.value[k]
			o.above += w * cx.above[k] * cy.value[k]
			o.short += w * cx.below[k] * cy.above[k]
			o.over += w * cx.above[k] * cy.below[k]
		}
	}
	return o
}

// crossing holds P(X < Y), P(X > Y) and the derivatives of P(X < Y).
type crossing struct {
	below, above float64 // P(X < Y), P(X > Y)
	// shift is ∫ f_X f_Y, the derivative of P(X < Y) as X moves to the left. factor is ∫ x f_X(x) f_Y(x) dx, the
	// derivative by the logarithm of a divisor of X.
	shift, factor float64
}

func (r *rule) integrateCrossing(x, y density) crossing {
	p := r.newPanels(shallow, x, y)
	cx := p.densityCurve(x)
	value, _ := p.densityValues(y)
	var c crossing
	for panel := range p.panelCount() {
		for i := range order {
			at, half := p.nodeAt(panel, i)
			k := panel*order + i
			w := half * r.weights[i] * value[k]
			c.below += w * cx.below[k]
			c.above += w * cx.above[k]
			c.shift += w * cx.value[k]
			c.factor += w * cx.value[k] * at
		}
	}
	return c
}

// bestProbabilities returns for each posterior the probability that it is the largest of all:
//
//	P_i = ∫ f_i Π_{j≠i} F_j
func (r *rule) bestProbabilities(all []density) []float64 {
	p := r.newPanels(shallow, all...)
	curves := make([]curve, len(all))
	for i, f := range all {
		curves[i] = p.densityCurve(f)
	}
	chances := make([]float64, len(all))
	after := make([]float64, len(all)+1)
	for panel := range p.panelCount() {
		for node := range order {
			_, half := p.nodeAt(panel, node)
			k := panel*order + node
			after[len(all)] = 1
			for i := len(all) - 1; i >= 0; i-- {
				after[i] = after[i+1] * curves[i].below[k]
			}
			before := half * r.weights[node]
			for i := range all {
				chances[i] += before * curves[i].value[k] * after[i+1]
				before *= curves[i].below[k]
			}
		}
	}
	return chances
}

// integratePanels returns the integral of f over the panels between consecutive points. Each panel is halved until the
// 7 and 15 point rules of Gauss and Kronrod agree within the absolute tolerance. Points must be in ascending order.
//
// See Kronrod (1965); nodes and weights as in QUADPACK's qk15.
func integratePanels(f func(float64) float64, points []float64, tolerance float64) float64 {
	sum := 0.0
	for i := 1; i < len(points); i++ {
		sum += integrateAdaptively(f, points[i-1], points[i], tolerance/float64(len(points)), 40)
	}
	return sum
}

func integrateAdaptively(f func(float64) float64, a, b, tolerance float64, depth int) float64 {
	value, err := kronrodEstimate(f, a, b)
	if err <= tolerance || depth == 0 {
		return value
	}
	middle := a + (b-a)/2
	return integrateAdaptively(f, a, middle, tolerance/2, depth-1) + integrateAdaptively(f, middle, b,
		tolerance/2, depth-1)
}

// kronrodEstimate returns the 15 point estimate on [a, b] and a bound of its error.
func kronrodEstimate(f func(float64) float64, a, b float64) (value, err float64) {
	nodes := [...]float64{
		0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
		0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
		0.586087235467691130294144691693129, 0.405845151377397166906606412076961,
		0.207784955007898467600689403773245,
	}
	weights := [...]float64{
		0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
		0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
		0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
		0.204432940075298892414161999234649,
	}
	gauss := [...]float64{
		0.129484966168869693270611432679082, 0.279705391489276667901467771423780,
		0.381830050505118944950369775488975,
	}
	const middleWeight, middleGauss = 0.209482141084727828012999174891714, 0.417959183673469387755102040816327
	center, half := a+(b-a)/2, (b-a)/2
	y := f(center)
	fine, coarse := middleWeight*y, middleGauss*y
	for i, node := range nodes {
		y := f(center-half*node) + f(center+half*node)
		fine += weights[i] * y
		if i%2 == 1 {
			coarse += gauss[i/2] * y
		}
	}
	// The difference of the two rules is the error of the coarse rule. For a smooth f the error of the fine rule is
	// about the square of this difference.
	difference := math.Abs(half * (fine - coarse))
	scale := math.Abs(half*fine) + difference
	if difference == 0 {
		return half * fine, 0
	}
	return half * fine, difference * math.Min(1, math.Pow(200*difference/scale, 0.5))
}

// bracket is an interval [a, b] at whose ends a function has values of opposite sign, fa and fb.
type bracket struct{ a, b, fa, fb float64 }

// findRoot returns x in the bracket with f(x) = 0. It uses Chandrupatla's method: inverse quadratic interpolation where
// it is safe, and bisection otherwise.
//
// See Chandrupatla (1997).
func findRoot(f func(float64) float64, in bracket, tolerance float64) float64 {
	a, b, fa, fb := in.a, in.b, in.fa, in.fb
	var c, fc float64
	step := 0.5
	for range 200 {
		x := a + step*(b-a)
		fx := f(x)
		if (fx > 0) == (fa > 0) {
			c, fc = a, fa
		} else {
			c, b, fc, fb = b, a, fb, fa
		}
		a, fa = x, fx
		best := a
		if math.Abs(fb) < math.Abs(fa) {
			best = b
		}
		limit := tolerance*math.Abs(best) + 1e-300
		room := limit / math.Abs(b-c)
		if fa == 0 || fb == 0 || room > 0.5 {
			return best
		}
		step = 0.5
		xi, phi := (a-b)/(c-b), (fa-fb)/(fc-fb)
		if phi*phi < xi && (1-phi)*(1-phi) < 1-xi {
			step = fa/(fb-fa)*fc/(fb-fc) + (c-a)/(b-a)*fa/(fc-fa)*fb/(fc-fb)
		}
		step = math.Min(1-room, math.Max(room, step))
	}
	return a
}
