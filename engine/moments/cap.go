package moments

import (
	"math"
	"slices"

	"lifthouse/schema"
)

// Cap is the limit of the total value of each visitor of a report.
type Cap struct {
	schema.Cap
	Limit     int64 // in 1/schema.MoneyScale; 0: nothing is capped, because the percentile is not reached
	Converted int64 // of a percentile: converted visitors
}

// NewCap returns the cap of a report. totals has the total values of the converted visitors;
// NewCap sorts it. A percentile is the value at the nearest rank. It is not reached if fewer
// than one visitor is above it, or if it is not above 0.
func NewCap(rule schema.Cap, totals []int64) *Cap {
	c := &Cap{Cap: rule, Limit: rule.Units}
	if rule.Percentile == 0 {
		return c
	}
	c.Converted = int64(len(totals))
	rank, reached := rankOf(rule.Percentile, c.Converted)
	if !reached {
		return c
	}
	slices.Sort(totals)
	c.Limit = max(totals[rank-1], 0)
	return c
}

// rankOf returns the nearest rank, from 1, of a percentile among n totals. It returns false if
// fewer than one total is above the percentile.
func rankOf(percentile float64, n int64) (rank int64, reached bool) {
	const thousand = 1000 // percentiles have one decimal
	above := n * (thousand - int64(math.Round(10*percentile))) / thousand
	return n - above, above > 0
}
