package stats

import "slices"

// ascendingOrder returns the indexes of the valid p-values in ascending order of p.
func ascendingOrder(p []float64) []int {
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
// p-value. A p-value that is not in [0, 1] is not part of the family.
//
// See Holm (1979).
func holmFactors(p []float64, alpha float64) []float64 {
	factors := make([]float64, len(p))
	order := ascendingOrder(p)
	for rank, i := range order {
		factor := float64(len(order) - rank)
		if p[i]*factor >= alpha {
			break
		}
		factors[i] = factor
	}
	return factors
}
