package stats

import (
	"math"
	"slices"
)

// order is the number of nodes on a panel. Eight integrate a normal density over
// two of its standard deviations to 1e-11, and their partial integrals to 1e-7 with
// an error orthogonal to what they are weighed by.
const order = 12

// rule is Gauss and Legendre's quadrature on [-1, 1] with its partial integrals:
// partial[i][l] weighs the value at node l in the integral from -1 to node i.
type rule struct {
	nodes, weights [order]float64
	partial        [order][order]float64
}

func newRule() *rule {
	positive := [order / 2]float64{
		0.125233408511468915, 0.367831498998180194, 0.587317954286617447,
		0.769902674194304687, 0.904117256370474857, 0.981560634246719251,
	}
	weights := [order / 2]float64{
		0.249147045813402785, 0.233492536538354809, 0.203167426723065922,
		0.160078328543346226, 0.106939325995318431, 0.0471753363865118272,
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
	// The interpolating polynomial's Legendre coefficients, each integrated by
	// ∫ P_j = (P_{j+1} - P_{j-1}) / (2j + 1).
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

// panels are the cuts of several densities together, and the values of each at
// the nodes of all of them.
type panels struct {
	rule   *rule
	points []float64
}

func (r *rule) panels(densities ...density) panels {
	p := panels{rule: r}
	for _, f := range densities {
		if m, ok := f.(moved); ok {
			for _, x := range m.knots() {
				p.points = append(p.points, (x-m.shift)/m.scale)
			}
			continue
		}
		p.points = append(p.points, f.knots()...)
	}
	slices.Sort(p.points)
	p.points = slices.Compact(p.points)
	return p
}

func (p panels) count() int { return max(len(p.points)-1, 0) }

// node returns the position of a node and half the width of its panel.
func (p panels) node(panel, i int) (x, half float64) {
	a, b := p.points[panel], p.points[panel+1]
	half = (b - a) / 2
	return a + half*(1+p.rule.nodes[i]), half
}

// curve is a normalised density at every node, with the mass on either side.
type curve struct {
	value, below, above []float64
}

func (p panels) curve(f density) curve {
	n := p.count() * order
	all := make([]float64, 3*n)
	c := curve{value: all[:n], below: all[n : 2*n], above: all[2*n:]}
	masses := make([]float64, p.count())
	total := 0.0
	for panel := range p.count() {
		half := 0.0
		for i := range order {
			var x float64
			x, half = p.node(panel, i)
			if drop := f.drop(x); drop < 3*deepest {
				v := math.Exp(-drop)
				c.value[panel*order+i] = v
				masses[panel] += p.rule.weights[i] * v
			}
		}
		masses[panel] *= half
		total += masses[panel]
	}
	if total == 0 {
		return c
	}
	p.accumulate(c, masses, total)
	return c
}

// accumulate fills below from the left and above from the right, so that each
// keeps its digits where it is small, and divides everything by the total mass.
func (p panels) accumulate(c curve, masses []float64, total float64) {
	left := 0.0
	for panel := range p.count() {
		half := (p.points[panel+1] - p.points[panel]) / 2
		values := c.value[panel*order : (panel+1)*order]
		for i := range order {
			inside := 0.0
			for l, v := range values {
				inside += p.rule.partial[i][l] * v
			}
			c.below[panel*order+i] = math.Max(left+half*inside, 0) / total
		}
		left += masses[panel]
	}
	right := 0.0
	for panel := p.count() - 1; panel >= 0; panel-- {
		half := (p.points[panel+1] - p.points[panel]) / 2
		values := c.value[panel*order : (panel+1)*order]
		for i := range order {
			outside := 0.0
			for l, v := range values {
				outside += (p.rule.weights[l] - p.rule.partial[i][l]) * v
			}
			c.above[panel*order+i] = math.Max(right+half*outside, 0) / total
		}
		right += masses[panel]
	}
	for i := range c.value {
		c.value[i] /= total
	}
}

// overlap compares two independent posteriors X and Y.
type overlap struct {
	below, above float64 // P(X < Y), P(X > Y)
	short, over  float64 // E[(Y-X)+], E[(X-Y)+]
	// touch is ∫ f_X f_Y, and momentum ∫ x f_X(x) f_Y(x) dx: how P(X < Y) grows with
	// a shift of X to the left, and with the logarithm of a factor.
	touch, momentum float64
}

// overlap integrates over the panels of both:
//
//	P(X < Y) = ∫ F_X f_Y,  E[(Y-X)+] = ∫ F_X (1 - F_Y)
//
// and the mirror images, without a difference anywhere.
func (r *rule) overlap(x, y density) overlap {
	p := r.panels(x, y)
	cx, cy := p.curve(x), p.curve(y)
	var o overlap
	for panel := range p.count() {
		for i := range order {
			at, half := p.node(panel, i)
			w, k := half*r.weights[i], panel*order+i
			o.below += w * cx.below[k] * cy.value[k]
			o.above += w * cx.above[k] * cy.value[k]
			o.short += w * cx.below[k] * cy.above[k]
			o.over += w * cx.above[k] * cy.below[k]
			touch := w * cx.value[k] * cy.value[k]
			o.touch += touch
			o.momentum += at * touch
		}
	}
	return o
}

// best returns for each posterior the chance that it is the largest of all:
//
//	P_i = ∫ f_i Π_{j≠i} F_j
func (r *rule) best(all []density) []float64 {
	p := r.panels(all...)
	curves := make([]curve, len(all))
	for i, f := range all {
		curves[i] = p.curve(f)
	}
	chances := make([]float64, len(all))
	after := make([]float64, len(all)+1)
	for panel := range p.count() {
		for node := range order {
			_, half := p.node(panel, node)
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
