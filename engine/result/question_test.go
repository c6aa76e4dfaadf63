package result

import (
	"math/big"
	"testing"

	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// TestRatiosWarnOfTheirDenominator compares two variations with 10,000 visitors each. Some of them buy once.
func TestRatiosWarnOfTheirDenominator(t *testing.T) {
	names := &metric.Names{Goals: []metric.Goal{{ID: 1, Key: "purchase"}}}
	for _, test := range []struct {
		name, expression string
		buyers           [2]int64
		want             int
	}{
		{"as many orders", "sum(purchase.items.quantity) / count(purchase)", [2]int64{1000, 1010}, 0},
		{"more orders", "sum(purchase.items.quantity) / count(purchase)", [2]int64{1000, 1200}, 1},
		{"more orders, but no ratio", "sum(purchase.items.quantity)", [2]int64{1000, 1200}, 0},
	} {
		of := must.Get(metric.Parse(test.expression, names))(t)
		sums := &sliceSums{counted: map[int64]moments.Moments{}}
		for id, buyers := range test.buyers {
			once := stats.Sums{Sum: big.NewInt(buyers), Squares: big.NewInt(buyers)}
			sums.counted[int64(id)] = moments.Moments{Visitors: 10_000, Pair: moments.Pair{
				X: once, Y: once, Products: big.NewInt(buyers), Nonzero: buyers, OfY: buyers, Both: buyers,
			}}
		}
		p := &plan.Plan{}
		p.Expression = of
		p.Rules.Compare = true
		p.Rules.SignificanceLevel = 95
		p.Rules.Methodology = catalogue.Bayesian
		p.Variations = []plan.Variation{{ID: 0, Name: "Control"}, {ID: 1, Name: "B"}}
		p.ExpectedShares = []float64{.5, .5}
		checks := Checks{}
		sums.checkDenominator(p, &checks)
		check.Equal(t, len(checks.Warnings), test.want, "%s: %v", test.name, checks.Warnings)
	}
}
