package stats

import (
	"math"
	"slices"
)

// Holm returns the adjusted p-values of a family, in the same order:
//
//	adjusted(i) = max over j <= i of p(j) (m - j),  at most 1,
//
// with p(0) <= p(1) <= … the m sorted p-values. The adjustment bounds the
// probability of any false positive, whatever the dependence of the p-values. A
// p-value that is not in [0, 1] is not part of the family, and its adjusted
// value is 1.
//
// See Holm (1979).
func Holm(p []float64) []float64 {
	adjusted := make([]float64, len(p))
	for i := range adjusted {
		adjusted[i] = 1
	}
	running := 0.0
	order := ascending(p)
	for rank, i := range order {
		running = math.Max(running, p[i]*float64(len(order)-rank))
		adjusted[i] = math.Min(running, 1)
	}
	return adjusted
}

// ascending returns the indexes of the valid p-values in ascending order of p.
func ascending(p []float64) []int {
	var order []int
	for i, x := range p {
		if x >= 0 && x <= 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case p[i] < p[j]:
			return -1
		case p[i] > p[j]:
			return 1
		}
		return 0
	})
	return order
}

// holmFactors returns the factor of each p-value at its step of Holm's
// procedure. The factor is 0 if the procedure stops at alpha before or at this
// p-value.
func holmFactors(p []float64, alpha float64) []float64 {
	factors := make([]float64, len(p))
	order := ascending(p)
	for rank, i := range order {
		factor := float64(len(order) - rank)
		if p[i]*factor >= alpha {
			break
		}
		factors[i] = factor
	}
	return factors
}
