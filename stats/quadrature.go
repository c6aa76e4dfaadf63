package stats

import "math"

const (
	// steepest is the maximum change of the logarithm of a density on one panel. The constant widest is the maximum
	// width of a panel, in standard deviations of the normal density that touches the density there.
	steepest = 4
	widest   = 1.75
	// deep is the depth of one posterior. It includes the mass of chances and losses far from the mode. shallow is the
	// depth of the joint posterior of several treatments.
	deep    = 80
	shallow = 26
)

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
		r.nodes[low] = -node
		r.nodes[high] = node
		r.weights[low], r.weights[high] = weights[i], weights[i]
	}
	var legendre [order][order + 1]float64
	for i, x := range r.nodes {
		legendre[i][0] = 1
		legendre[i][1] = x
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

// panels divide the support of a posterior. On each of them, its density is nearly a polynomial.
type panels struct {
	rule   *rule
	points []float64
}

func (p panels) panelCount() int { return max(len(p.points)-1, 0) }

// nodeAt returns the position of a node and half the width of its panel.
func (p panels) nodeAt(panel, i int) (x, half float64) {
	a, b := p.points[panel], p.points[panel+1]
	half = (b - a) / 2
	return a + half*(1+p.rule.nodes[i]), half
}

// integrateAdaptively returns the integral of f from a to b. The interval is halved, at most depth times, until the 7
// and 15 point rules of Gauss and Kronrod agree within the absolute tolerance.
//
// See Kronrod (1965); nodes and weights as in QUADPACK's qk15.
func integrateAdaptively(f func(float64) float64, a, b, tolerance float64, depth int) float64 {
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
	if difference == 0 || difference*math.Min(1, math.Pow(200*difference/scale, 0.5)) <= tolerance || depth == 0 {
		return half * fine
	}
	return integrateAdaptively(f, a, center, tolerance/2, depth-1) +
		integrateAdaptively(f, center, b, tolerance/2, depth-1)
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
