package calibration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"lifthouse/stats"
)

const cappedMeans = "One look at capped means, 100,000 visitors"

// cappedFigure is the power to find half the buyers at a percentile of the cap.
type cappedFigure struct {
	percentile float64 // 0: no cap
	power      float64
}

// The figures of a split of 95/5 with 2 % buyers and log-normal orders (3, 2).
var cappedFigures = []cappedFigure{{0, 0.05}, {99, 0.46}, {95, 0.77}}

const cappedTolerance = 0.06 // of a figure; they come from one other simulation

// capped tests means once with a cap: with equal revenue, and with half the buyers.
func (c *campaign) capped(visitors int64, figure cappedFigure) scenario {
	const half = -0.5
	name := "no cap"
	if figure.percentile > 0 {
		name = fmt.Sprintf("p%g", figure.percentile)
	}
	s := scenario{part: cappedMeans, name: c.String() + ", " + name, methodology: c.methodology()}
	s.measures = []decisionMeasure{{name: "significant without a difference", most: decisionAlpha}}
	if figure.power > 0 {
		s.measures = append(s.measures, decisionMeasure{
			name: "half the buyers found", least: max(figure.power-cappedTolerance, 0), most: figure.power + cappedTolerance,
		})
	}
	control := int64(math.Round(float64(visitors) * c.shares[0] / (c.shares[0] + c.shares[1])))
	o := c.options()
	o.PlannedVisitors = 0
	found := func(random *rand.Rand, lift float64) observation {
		a, b := c.orders(random, control, 0), c.orders(random, visitors-control, lift)
		limit := nearestRank(slices.Concat(a, b), figure.percentile)
		first, second := cappedMean(a, control, limit), cappedMean(b, visitors-control, limit)
		return observation{counted: true, occurred: stats.Compare(first, []stats.Sample{second}, o)[0].Significant}
	}
	s.simulate = func(random *rand.Rand) []observation {
		observed := []observation{found(random, 0)}
		if figure.power > 0 {
			observed = append(observed, found(random, half))
		}
		return observed
	}
	return s
}

// orders draws the orders of the buyers among the visitors.
func (a *audience) orders(random *rand.Rand, visitors int64, lift float64) []float64 {
	orders := make([]float64, drawBinomial(random, visitors, a.buyers*(1+lift)))
	for i := range orders {
		orders[i] = math.Exp(orderMu + orderSigma*random.NormFloat64())
	}
	return orders
}

// nearestRank returns a percentile of the values; infinity if it is 0.
func nearestRank(values []float64, percentile float64) float64 {
	if percentile == 0 || len(values) == 0 {
		return math.Inf(1)
	}
	slices.Sort(values)
	return values[int(math.Ceil(percentile/100*float64(len(values))))-1]
}

func cappedMean(orders []float64, visitors int64, limit float64) stats.Mean {
	var t totals
	t.visitors, t.converted = visitors, int64(len(orders))
	for _, order := range orders {
		order = min(order, limit)
		t.sum += order
		t.squares += order * order
	}
	of := audience{revenue: true}
	return of.sample(&t).(stats.Mean) //nolint:forcetypeassert // of revenue
}
