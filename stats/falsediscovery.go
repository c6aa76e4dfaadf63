package stats

import "math"

// FalseDiscovery returns the q-values of a family by Benjamini and Hochberg, in the order of p:
//
//	q(i) = min over j >= i of p(j) m / j,  at most 1,
//
// where p(1) <= p(2) <= … are the m sorted p-values. If the p-values are independent or
// positively dependent, the expected share of false results among those with q below alpha is
// at most alpha. A p-value that is not in [0, 1] is not part of the family, and its q-value is
// NaN.
//
// See Benjamini and Hochberg (1995).
func FalseDiscovery(p []float64) []float64 {
	q := make([]float64, len(p))
	for i := range q {
		q[i] = math.NaN()
	}
	order := ascendingOrder(p)
	least := 1.0
	for rank := len(order); rank > 0; rank-- {
		i := order[rank-1]
		least = math.Min(least, p[i]*float64(len(order))/float64(rank))
		q[i] = least
	}
	return q
}
