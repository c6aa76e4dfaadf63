package stats

import "math"

// SimultaneousCritical returns the critical value c at which a curve of cumulative metrics of one cohort stays within
// its band at all points together with probability 1 - alpha, if there is no effect:
//
//	P(|Z_a| <= c for all a) = 1 - alpha,  corr(Z_a, Z_b) = sqrt(I_a / I_b) for a < b.
//
// information has I of the points, which must not decrease: p/(1 - p) for a rate p, because each converted visitor
// stays converted, and the variance of the totals for a mean, which is an approximation if visitors buy again. Only
// ratios matter. A point whose information grew by less than .1 % adds nothing. Without a point with information, or at
// an alpha outside (0, 1), it returns the critical value of a single comparison. It takes about 1 ms a point.
//
// This is the constant boundary of Pocock (1977), by the recursion of Armitage, McPherson and Rowe (1969).
func SimultaneousCritical(information []float64, alpha float64) float64 {
	if !(alpha > 0 && alpha < 1) {
		return math.Inf(1)
	}
	excess := func(c float64) float64 {
		var p paths
		crossed := 0.0
		for _, i := range information {
			if !(i >= leastGain*p.information && i > 0) || math.IsInf(i, 1) {
				continue
			}
			crossed += 2 * p.probabilityAbove(i, c*math.Sqrt(i), 0)
			p = p.pathsWithin(i, -c, c)
		}
		return math.Log(crossed / alpha)
	}
	single, bonferroni := normalQuantile(alpha/2), normalQuantile(alpha/2/math.Max(1, float64(len(information))))
	low, high := excess(single), excess(bonferroni)
	if !(low > 0 && high < 0) { // at most one point has information
		return single
	}
	return findRoot(excess, bracket{single, bonferroni, low, high}, 1e-6)
}
