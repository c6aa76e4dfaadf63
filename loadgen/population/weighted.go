package population

import (
	"math"
	"math/rand/v2"
	"sort"
)

// weightedTable draws rows at random in proportion to their weights.
type weightedTable[R any] struct {
	rows       []R
	shares     []float64 // weights divided by their sum
	cumulative []float64 // running sums of shares
}

func newWeightedTable[R any](rows []R, weight func(R) float64) weightedTable[R] {
	t := weightedTable[R]{rows: rows}
	total := 0.0
	for _, row := range rows {
		total += weight(row)
	}
	sum := 0.0
	for _, row := range rows {
		sum += weight(row)
		t.shares = append(t.shares, weight(row)/total)
		t.cumulative = append(t.cumulative, sum/total)
	}
	return t
}

func (t *weightedTable[R]) drawIndex(random *rand.Rand) int {
	return min(sort.SearchFloat64s(t.cumulative, random.Float64()), len(t.rows)-1)
}

func (t *weightedTable[R]) drawRow(random *rand.Rand) *R { return &t.rows[t.drawIndex(random)] }

// weightedValue is a text and its integer weight.
type weightedValue struct {
	value  string
	weight int
}

// drawValue draws one of the values in proportion to the weights.
func drawValue(random *rand.Rand, values []weightedValue) string {
	return DrawByWeight(random, values, func(v *weightedValue) int { return v.weight }).value
}

// DrawByWeight draws one of the rows in proportion to their integer weights.
func DrawByWeight[R any](random *rand.Rand, rows []R, weight func(*R) int) *R {
	total := 0
	for i := range rows {
		total += weight(&rows[i])
	}
	n := random.IntN(total)
	for i := range rows {
		n -= weight(&rows[i])
		if n < 0 {
			return &rows[i]
		}
	}
	panic("unreachable: n is less than the sum of the weights")
}

// harmonicShare returns the share of item i of n when the shares are
// proportional to 1, 1/2, 1/3 and so on.
func harmonicShare(i, n int) float64 {
	total := 0.0
	for k := range n {
		total += 1 / float64(k+1)
	}
	return 1 / float64(i+1) / total
}

// drawZipf draws an integer from 0 to n-1. The probability of k is about
// proportional to 1/(k+1), as for referring sites and search terms.
func drawZipf(random *rand.Rand, n int) int64 {
	return int64(math.Pow(float64(n+1), random.Float64())) - 1
}
