package calibration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"lifthouse/stats"
)

// The logarithm of an order value is normally distributed with this mean and
// standard deviation. The tail is heavy: the variance of an order is 54 times the
// square of its mean.
const (
	orderMu    = 3
	orderSigma = 2
)

// orderShape returns the mean and the standard deviation of the logarithm of an order value.
func (a *audience) orderShape() (mu, sigma float64) {
	if a.similar {
		return 4, 0.8
	}
	return orderMu, orderSigma
}

// audience describes how the visitors of an experiment behave.
type audience struct {
	buyers  float64 // share of the visitors of control who convert
	revenue bool    // the metric is revenue; otherwise the conversion rate
	limit   float64 // cap of the revenue of a visitor; 0: none
	cost    float64 // of an order; then the metric is profit, which may be negative
	larger  bool    // a lift makes orders larger; otherwise it makes more visitors buy
	similar bool    // orders differ less, see orderShape
	shares  []float64
}

// totals are the sums over the visitors of a variation.
type totals struct {
	visitors, converted int64
	negative            int64   // visitors below zero
	sum, squares        float64 // of orders
}

// addScaled returns the totals plus factor times the other totals. factor is 1 or -1.
func (t totals) addScaled(other totals, factor int64) totals {
	t.visitors += factor * other.visitors
	t.converted += factor * other.converted
	t.negative += factor * other.negative
	t.sum += float64(factor) * other.sum
	t.squares += float64(factor) * other.squares
	return t
}

func (a *audience) String() string {
	text := fmt.Sprintf("rate %g %%", 100*a.buyers)
	if a.revenue {
		text = fmt.Sprintf("revenue, %g %% buyers", 100*a.buyers)
	}
	if a.cost > 0 {
		text = fmt.Sprintf("profit, %g %% buyers, cost %g", 100*a.buyers, a.cost)
	}
	if a.larger {
		text += ", larger orders"
	}
	if a.similar {
		text += ", similar orders"
	}
	if a.limit > 0 {
		text += fmt.Sprintf(", cap %g", a.limit)
	}
	shares := make([]string, len(a.shares))
	for i, share := range a.shares {
		shares[i] = fmt.Sprint(share)
	}
	return text + ", " + strings.Join(shares, "/")
}

// drawTotals returns the totals of visitors. The lift changes the share of buyers, or the amounts of their orders.
func (a *audience) drawTotals(random *rand.Rand, visitors int64, lift float64) totals {
	scale := 1.0
	if a.larger {
		scale = 1 + lift
		lift = 0
	}
	t := totals{visitors: visitors, converted: drawBinomial(random, visitors, min(max(a.buyers*(1+lift), 0), 1))}
	if !a.revenue {
		return t
	}
	return t.addScaled(a.drawOrders(random, t.converted, scale), 1)
}

// drawOrders returns the sums of a number of orders, whose amounts have a scale.
func (a *audience) drawOrders(random *rand.Rand, orders int64, scale float64) (t totals) {
	mu, sigma := a.orderShape()
	for range orders {
		order := math.Exp(mu + sigma*random.NormFloat64())
		if a.limit > 0 {
			order = min(order, a.limit)
		}
		order = scale * (order - a.cost)
		if order < 0 {
			t.negative++
		}
		t.sum += order
		t.squares += order * order
	}
	return t
}

func drawBinomial(random *rand.Rand, n int64, p float64) int64 {
	switch {
	case n <= 0 || p <= 0:
		return 0
	case p >= 1:
		return n
	}
	return int64(distuv.Binomial{N: float64(n), P: p, Src: random}.Rand())
}

// sampleOf returns the sufficient statistics of a variation.
func (a *audience) sampleOf(t totals) stats.Sample {
	if !a.revenue {
		return stats.Rate{Visitors: t.visitors, Converted: t.converted}
	}
	n := float64(t.visitors)
	m := stats.Mean{Visitors: t.visitors, Nonzero: t.converted}
	if t.visitors > 0 {
		m.Mean = t.sum / n
	}
	if t.visitors > 1 {
		m.Variance = max(t.squares-t.sum*t.sum/n, 0) / (n - 1)
	}
	return m
}

func (a *audience) samplesOf(all []totals) []stats.Sample {
	samples := make([]stats.Sample, len(all))
	for i := range all {
		samples[i] = a.sampleOf(all[i])
	}
	return samples
}

// expectedSample returns a sample of control whose rate, or whose mean and variance, are
// the true ones.
func (a *audience) expectedSample() stats.Sample {
	const visitors = 1_000_000_000
	n := visitors * a.buyers
	// The mean of min(order, limit)^power.
	mu, sigma := a.orderShape()
	moment := func(power float64) float64 {
		whole := math.Exp(power*mu + power*power*sigma*sigma/2)
		if a.limit == 0 {
			return whole
		}
		at := (math.Log(a.limit) - mu) / sigma
		return whole*distuv.UnitNormal.CDF(at-power*sigma) + math.Pow(a.limit, power)*distuv.UnitNormal.Survival(at)
	}
	sum := n * (moment(1) - a.cost)
	squares := n * (moment(2) - 2*a.cost*moment(1) + a.cost*a.cost)
	return a.sampleOf(totals{visitors: visitors, converted: int64(math.Round(n)), sum: sum, squares: squares})
}
