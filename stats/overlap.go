package stats

import (
	"math"
	"slices"
)

// order is the number of nodes on a panel. Eight nodes integrate a normal
// density over two of its standard deviations with an error of 1e-11. The error
// of partial integrals is 1e-7, and orthogonal to their weights.
const order = 8

// rule is Gauss-Legendre quadrature on [-1, 1] with its partial integrals.
// partial[i][l] is the weight of the value at node l in the integral from -1 to
// node i.
type rule struct {
	nodes, weights [order]float64
	partial        [order][order]float64
}

func newRule() *rule {
	positive := [order / 2]float64{0.183434642495649805, 0.525532409916328986, 0.796666477413626740, 0.960289856497536232}
	weights := [order / 2]float64{0.362683783378361983, 0.313706645877887287, 0.222381034453374471, 0.101228536290376259}
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
	// The sum integrates the Legendre expansion of the interpolating polynomial,
	// by ∫ P_j = (P_{j+1} - P_{j-1}) / (2j + 1).
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

// curve is a normalized density at every node, with the mass below and above
// the node.
type curve struct {
	value, below, above []float64
}

// densityCurve returns the density and its masses below and above every node. Each mass is
// summed from its own end, so small masses keep their digits.
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

// densityValues returns the density at every node and its mass on every panel. The
// total mass is 1.
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
// and likewise with X and Y exchanged. No integrand contains a difference that
// could cancel.
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
	// shift is ∫ f_X f_Y, the derivative of P(X < Y) as X moves to the left.
	// factor is ∫ x f_X(x) f_Y(x) dx, the derivative by the logarithm of a
	// divisor of X.
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

// bestProbabilities returns for each posterior the probability that it is the largest of
// all:
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
