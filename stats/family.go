package stats

import (
	"cmp"
	"math"
	"slices"
)

// largestLoading is the maximum lambda. Without this limit, a control far noisier than its treatments would make the
// family's correlation singular.
const largestLoading = 1 - 1e-9

// family is the set of all comparisons with one control that have a p-value.
type family struct {
	size       int
	correction Correction
	// tail is half the effective alpha. If each comparison is tested at the effective alpha, the error rate of the
	// whole family is alpha.
	tail     float64
	loadings []loading
}

// loading is a lambda, sigma = sqrt(1 - lambda²), and the number of comparisons with this lambda.
type loading struct {
	lambda, sigma float64
	count         float64
}

func newFamily(pairs []pair, alpha float64) family {
	f := family{correction: CorrectionNone, tail: alpha / 2}
	var lambdas []float64
	for _, c := range pairs {
		if c.contrast != nil {
			lambdas = append(lambdas, c.contrast.controlCorrelation())
		}
	}
	f.size = len(lambdas)
	if f.size < 2 {
		return f
	}
	f.correction = CorrectionDunnett
	f.loadings = newLoadings(lambdas)
	if alpha > 0 {
		f.tail = normalSurvival(f.criticalValue(alpha))
	}
	return f
}

func newLoadings(lambdas []float64) []loading {
	slices.Sort(lambdas)
	var loadings []loading
	for _, lambda := range lambdas {
		lambda = math.Min(lambda, largestLoading)
		if last := len(loadings) - 1; last >= 0 && loadings[last].lambda == lambda {
			loadings[last].count++
			continue
		}
		sigma := math.Sqrt((1 - lambda) * (1 + lambda))
		loadings = append(loadings, loading{lambda: lambda, sigma: sigma, count: 1})
	}
	return loadings
}

// adjustedPValue returns the p-value of a comparison within the family. It lies between the comparison's own p and p
// times the size of the family.
func (f family) adjustedPValue(c pair) float64 {
	if f.size < 2 {
		return c.p
	}
	// A t is converted to a z through its p-value.
	z := math.Abs(c.statistic)
	if c.test != TestScore {
		z = normalQuantile(c.p / 2)
	}
	p := f.exceedanceProbability(z)
	return math.Max(c.p, math.Min(p, math.Min(1, float64(f.size)*c.p)))
}

// exceedanceProbability returns the probability that the largest |z| of the family is above c if there is no effect:
//
//	P(max|Z| > c) = ∫ φ(u) (1 - Π (1 - tail_i(u))) du
//	tail_i(u) = Q((c + λ_i u) / σ_i) + Q((c - λ_i u) / σ_i),  σ_i = sqrt(1 - λ_i²)
//
// where φ and Q are the density and survival function of the standard normal. u is the part of every z that control
// contributes. The z of i and j have the correlation λ_i λ_j, with λ_i² = sc / (sc + s_i) for means and n_i / (n_i +
// n_c) for rates. The relative error is below 1e-10, also in the far tail.
//
// See Dunnett (1955).
func (f family) exceedanceProbability(c float64) float64 {
	single := 2 * normalSurvival(c)
	if single == 0 || c <= 0 {
		return single
	}
	integrand := func(u float64) float64 { // φ(u) times the probability that any |z| is above c, given u
		within := 0.0
		for _, l := range f.loadings {
			tail := normalSurvival((c - l.lambda*u) / l.sigma)
			if far := (c + l.lambda*u) / l.sigma; far < 2*c+8 {
				tail += normalSurvival(far)
			}
			within += l.count * math.Log1p(-math.Min(tail, 1))
		}
		return normalDensity(u) * -math.Expm1(within)
	}
	// The integrand is even. Exceeding c is likeliest at u = λc and certain at u = c/λ.
	end := math.Sqrt(c*c + 84)
	points := []float64{0, end}
	gap := 0.25
	for _, l := range f.loadings {
		steps := []float64{l.lambda * c, c / l.lambda}
		gap = math.Min(gap, l.sigma)
		if l.sigma < 0.3 {
			for _, k := range []float64{-8, -3, 3, 8} {
				steps = append(steps, (c+k*l.sigma)/l.lambda)
			}
		}
		for _, u := range steps {
			if u > 0 && u < end {
				points = append(points, u)
			}
		}
	}
	slices.Sort(points)
	kept := points[:1] // without those that are too near their neighbor for a panel
	for _, p := range points[1:] {
		if p-kept[len(kept)-1] > gap || p == end {
			kept = append(kept, p)
		}
	}
	sum := 0.0
	for i := 1; i < len(kept); i++ {
		sum += integrateAdaptively(integrand, kept[i-1], kept[i], 2e-10*single/float64(len(kept)), 40)
	}
	return 2 * sum
}

// criticalValue returns the c that the largest |z| of the family exceeds with probability alpha.
func (f family) criticalValue(alpha float64) float64 {
	excess := func(c float64) float64 { return math.Log(f.exceedanceProbability(c) / alpha) }
	return solveCritical(excess, alpha, f.size, 1e-13)
}

// solveCritical returns the critical value of n tests that err with probability alpha together: where excess is 0. It
// lies between the quantile of a single test and Bonferroni's.
func solveCritical(excess func(c float64) float64, alpha float64, n int, tolerance float64) float64 {
	lower, upper := normalQuantile(alpha/2), normalQuantile(alpha/2/float64(n))
	low, high := excess(lower), excess(upper)
	switch {
	case !(low > 0):
		return lower
	case !(high < 0):
		return upper
	}
	return findRoot(excess, bracket{lower, upper, low, high}, tolerance)
}

// FalseDiscovery returns the q-values of a family by Benjamini and Hochberg, in the order of p:
//
//	q(i) = min over j >= i of p(j) m / j,  at most 1,
//
// where p(1) <= p(2) <= … are the m sorted p-values. If the p-values are independent or positively dependent, the
// expected share of false results among those with q below alpha is at most alpha. A p-value that is not in [0, 1] is
// not part of the family, and its q-value is NaN.
//
// See Benjamini and Hochberg (1995).
func FalseDiscovery(p []float64) []float64 {
	q := slices.Repeat([]float64{math.NaN()}, len(p))
	order := []int(nil)
	for i, x := range p {
		if x >= 0 && x <= 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	least := 1.0
	for rank := len(order); rank > 0; rank-- {
		i := order[rank-1]
		least = math.Min(least, p[i]*float64(len(order))/float64(rank))
		q[i] = least
	}
	return q
}
