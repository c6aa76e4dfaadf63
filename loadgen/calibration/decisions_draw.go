package calibration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"lifthouse/stats"
)

// The logarithm of an order has a normal distribution with this mean and standard
// deviation. Its tail is heavy: the variance of an order is 54 times the square of
// its mean.
const (
	orderMu    = 3
	orderSigma = 2
)

// audience is the behaviour of the visitors of an experiment.
type audience struct {
	buyers  float64 // share of the visitors of control who convert
	revenue bool    // the metric is revenue; otherwise the conversion rate
	shares  []float64
}

// totals are the sums over the visitors of a variation.
type totals struct {
	visitors, converted int64
	sum, squares        float64 // of orders
}

func (a *audience) String() string {
	metric := "rate"
	if a.revenue {
		metric = "revenue,"
	}
	shares := make([]string, len(a.shares))
	for i, share := range a.shares {
		shares[i] = fmt.Sprint(share)
	}
	buyers := ""
	if a.revenue {
		buyers = " buyers"
	}
	return fmt.Sprintf("%s %g %%%s, %s", metric, 100*a.buyers, buyers, strings.Join(shares, "/"))
}

// visit adds visitors to a variation. The lift changes the share of buyers. The
// number of buyers is drawn first, so that the cost is that of the orders.
func (a *audience) visit(random *rand.Rand, into *totals, visitors int64, lift float64) {
	buyers := drawBinomial(random, visitors, min(max(a.buyers*(1+lift), 0), 1))
	into.visitors += visitors
	into.converted += buyers
	if !a.revenue {
		return
	}
	for range buyers {
		order := math.Exp(orderMu + orderSigma*random.NormFloat64())
		into.sum += order
		into.squares += order * order
	}
}

// arrive divides new visitors between the variations at random, in proportion to the
// shares. The lifts are those of the first variations; the others have none.
func (a *audience) arrive(random *rand.Rand, all []totals, visitors int64, lifts ...float64) {
	left := 0.0
	for _, share := range a.shares {
		left += share
	}
	for i, share := range a.shares {
		arriving := visitors
		if i+1 < len(a.shares) {
			arriving = drawBinomial(random, visitors, share/left)
		}
		visitors, left = visitors-arriving, left-share
		lift := 0.0
		if i < len(lifts) {
			lift = lifts[i]
		}
		a.visit(random, &all[i], arriving, lift)
	}
}

func drawBinomial(random *rand.Rand, n int64, p float64) int64 {
	if n == 0 || p <= 0 {
		return 0
	}
	return int64(distuv.Binomial{N: float64(n), P: p, Src: random}.Rand())
}

// sample returns the sufficient statistics of a variation.
func (a *audience) sample(t *totals) stats.Sample {
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

func (a *audience) samples(all []totals) []stats.Sample {
	samples := make([]stats.Sample, len(all))
	for i := range all {
		samples[i] = a.sample(&all[i])
	}
	return samples
}

// expected returns the sample of control with the true rate or mean and variance.
func (a *audience) expected() stats.Sample {
	const visitors = 1_000_000_000
	n := visitors * a.buyers
	return a.sample(&totals{
		visitors: visitors, converted: int64(math.Round(n)),
		sum: n * math.Exp(orderMu+orderSigma*orderSigma/2.0), squares: n * math.Exp(2*orderMu+2*orderSigma*orderSigma),
	})
}

// looks draws an experiment and returns its looks at cumulative numbers of visitors.
func (a *audience) looks(random *rand.Rand, visitors []int64, lifts ...float64) []stats.Look {
	all := make([]totals, len(a.shares))
	looks := make([]stats.Look, len(visitors))
	before := int64(0)
	for i, n := range visitors {
		a.arrive(random, all, n-before, lifts...)
		before = n
		looks[i] = stats.Look{Samples: a.samples(all), Visitors: n, NonNegative: a.revenue}
	}
	return looks
}

// equalDays returns the cumulative visitors at the ends of equal days.
func equalDays(visitors int64, days int) []int64 {
	ends := make([]int64, days)
	for i := range ends {
		ends[i] = int64(math.Ceil(float64(visitors) * float64(i+1) / float64(days)))
	}
	return ends
}

// growingDays returns the cumulative visitors at the ends of further days, which grow
// by a constant factor to a multiple of the visitors so far.
func growingDays(visitors int64, days int, multiple float64) []int64 {
	ends := make([]int64, days)
	for i := range ends {
		ends[i] = int64(math.Ceil(float64(visitors) * math.Pow(multiple, float64(i+1)/float64(days))))
	}
	return ends
}
