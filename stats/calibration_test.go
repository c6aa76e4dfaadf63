package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/tier"
)

// The calibration tests measure error rates. They take minutes.
func long(t *testing.T) {
	t.Helper()
	tier.OnlyLong(t)
}

// atMost fails the test if a rate of events is more than three standard errors above limit.
func atMost(t *testing.T, what string, events, trials int, limit float64) {
	t.Helper()
	rate := float64(events) / float64(trials)
	se := math.Sqrt(limit * (1 - limit) / float64(trials))
	t.Logf("%s: %.4f (at most %.4f + 3 × %.4f, %d trials)", what, rate, limit, se, trials)
	check.That(t, rate <= limit+3*se, "%s: %.4f", what, rate)
}

// TestLongSizeOfScoreTest computes the size of the score test by enumeration of all tables.
func TestLongSizeOfScoreTest(t *testing.T) {
	long(t)
	binomial := func(n int64, p float64) []float64 {
		weights := make([]float64, n+1)
		all, _ := math.Lgamma(float64(n + 1))
		for k := range weights {
			a, _ := math.Lgamma(float64(k + 1))
			b, _ := math.Lgamma(float64(n - int64(k) + 1))
			weights[k] = math.Exp(all - a - b + float64(k)*math.Log(p) + float64(n-int64(k))*math.Log1p(-p))
		}
		return weights
	}
	for _, test := range []struct {
		n       int64
		p, want float64
	}{{1000, 0.01, 0.0508}, {500, 0.2, 0.0498}} {
		weights, size := binomial(test.n, test.p), 0.0
		for xc, wc := range weights {
			for xt, wt := range weights {
				if wc*wt < 1e-16 {
					continue
				}
				_, _, _, p := newTable(Rate{test.n, int64(xc)}, Rate{test.n, int64(xt)}).testResult()
				if p < 0.05 {
					size += wc * wt
				}
			}
		}
		t.Logf("size at %v with %d each: %.4f", test.p, test.n, size)
		check.That(t, math.Abs(size-test.want) <= 5e-5, "size = %.5f, want %v", size, test.want)
	}
}

// shop draws visitors. Some of them buy, for a log-normal value.
type shop struct {
	buyers, sigma, lift float64
}

// visit adds visitors to a running sum.
func (s shop) visit(r *rand.Rand, into *running, visitors int64) {
	buying := binomialDraw(r, visitors, s.buyers)
	for range buying {
		v := (1 + s.lift) * math.Exp(s.sigma*r.NormFloat64())
		into.sum += v
		into.squares += v * v
	}
	into.n += visitors
	into.nonzero += buying
}

type running struct {
	n, nonzero   int64
	sum, squares float64
}

func (s running) mean() Mean {
	n := float64(s.n)
	return Mean{
		Visitors: s.n, Mean: s.sum / n, Variance: math.Max(s.squares-s.sum*s.sum/n, 0) / (n - 1),
		Nonzero: s.nonzero,
	}
}

// binomialDraw counts successes by drawing the gaps between them.
func binomialDraw(r *rand.Rand, n int64, p float64) int64 {
	if p > 0.5 {
		return n - binomialDraw(r, n, 1-p)
	}
	var count int64
	scale := 1 / math.Log1p(-p)
	for at := int64(math.Log(1-r.Float64())*scale) + 1; at <= n; count++ {
		at += int64(math.Log(1-r.Float64())*scale) + 1
	}
	return count
}

func verdictIsWrong(c Comparison) bool {
	return c.Verdict == VerdictBetter || c.Verdict == VerdictWorse
}

// TestLongVerdictErrorOfMeans measures the error rate of verdicts on means without a difference, with heavy tails and
// uneven splits.
func TestLongVerdictErrorOfMeans(t *testing.T) {
	long(t)
	tests := []struct {
		name               string
		control, treatment int64
		shop               shop
		trials             int
		nonzero            bool // whether the number of buyers is known
	}{
		{"even, 3 % buy, sigma 1", 10_000, 10_000, shop{0.03, 1, 0}, 8000, true},
		{"even, 3 % buy, sigma 1.5", 20_000, 20_000, shop{0.03, 1.5, 0}, 6000, true},
		{"500/9,500, 1 % buy, sigma 1", 500, 9500, shop{0.01, 1, 0}, 20_000, true},
		{"500/9,500, 1 % buy, sigma 1, blind to buyers", 500, 9500, shop{0.01, 1, 0}, 20_000, false},
		{"9,500/500, 1 % buy, sigma 1, blind to buyers", 9500, 500, shop{0.01, 1, 0}, 20_000, false},
		{"5,000/95,000, 3 % buy, sigma 1.5", 5000, 95_000, shop{0.03, 1.5, 0}, 4000, true},
		{"95,000/5,000, 3 % buy, sigma 1.5", 95_000, 5000, shop{0.03, 1.5, 0}, 4000, true},
		{"25/75, 3 % buy, sigma 1.5", 5000, 15_000, shop{0.03, 1.5, 0}, 8000, true},
		{"30/70, 3 % buy, sigma 1.5", 6000, 14_000, shop{0.03, 1.5, 0}, 8000, true},
	}
	for i, test := range tests {
		r := newRand(uint64(100 + i))
		wrong, welchAlone := 0, 0
		for range test.trials {
			var c, x running
			test.shop.visit(r, &c, test.control)
			test.shop.visit(r, &x, test.treatment)
			control, treatment := c.mean(), x.mean()
			if !test.nonzero {
				control.Nonzero, treatment.Nonzero = -1, -1
			}
			o := Options{SignificanceLevel: 95, NonNegative: true}
			if verdictIsWrong(Compare(control, []Sample{treatment}, o)[0]) {
				wrong++
			}
			o.Shares = []float64{1, 1}
			if Compare(control, []Sample{treatment}, o)[0].Significant {
				welchAlone++
			}
		}
		t.Logf("%s: Welch alone %.4f", test.name, float64(welchAlone)/float64(test.trials))
		atMost(t, test.name, wrong, test.trials, 0.05)
	}
}

// TestLongUnevenRevenue measures significance without a difference, and coverage of a real one, for very skewed
// revenue: 2 % of the visitors buy, sigma 2.
func TestLongUnevenRevenue(t *testing.T) {
	long(t)
	const trials = 8000
	o := Options{SignificanceLevel: 95, NonNegative: true}
	same, halved := shop{buyers: 0.02, sigma: 2}, shop{buyers: 0.01, sigma: 2}
	difference := (halved.buyers - same.buyers) * math.Exp(2)
	for _, visitors := range []int64{10_000, 100_000} {
		for _, control := range []int64{5, 25, 30, 70, 75, 95} {
			r := newRand(uint64(visitors + control))
			nc := visitors * control / 100
			nt := visitors - nc
			o.Shares = []float64{float64(control), float64(100 - control)}
			var errors, welch, covered int
			for range trials {
				var c, x, real running
				same.visit(r, &c, nc)
				same.visit(r, &x, nt)
				halved.visit(r, &real, nt)
				if compared := Compare(c.mean(), []Sample{x.mean()}, o)[0]; compared.Significant {
					errors++
				}
				w, _ := newContrast(Stratum{c.mean(), x.mean(), 0.5}, false)
				if _, _, _, p := w.testResult(); p < 0.05 {
					welch++
				}
				if in := Compare(c.mean(), []Sample{real.mean()}, o)[0].Difference.Interval; in != nil &&
					!in.Excludes(difference) {
					covered++
				}
			}
			name := fmt.Sprintf("%d/%d of %d", control, 100-control, visitors)
			t.Logf("%s: Welch alone %.4f, coverage of half the buyers %.4f", name, float64(welch)/trials,
				float64(covered)/trials)
			atMost(t, name, errors, trials, 0.021)
			check.That(t, covered >= 0.84*trials, "%s: coverage %.4f", name, float64(covered)/trials)
		}
	}
}

// TestLongCoverageOfLift measures how often the lift's interval contains a true lift of 10 %. An unbounded end contains
// the lift.
func TestLongCoverageOfLift(t *testing.T) {
	long(t)
	o := Options{SignificanceLevel: 95, NonNegative: true}
	misses := func(lift *Interval) int {
		if lift == nil || !lift.Excludes(0.1) {
			return 0
		}
		return 1
	}
	r := newRand(200)
	for _, test := range []struct {
		nc, nt int64
		p      float64
	}{{1000, 1000, 0.01}, {5000, 5000, 0.05}, {500, 9500, 0.02}, {9500, 500, 0.02}, {300, 300, 0.3}} {
		const trials = 20_000
		missed := 0
		for range trials {
			control := Rate{test.nc, binomialDraw(r, test.nc, test.p)}
			treatment := Rate{test.nt, binomialDraw(r, test.nt, 1.1*test.p)}
			in := newTable(control, treatment)
			_, _, _, p := in.testResult()
			lifts, _ := in.effectInterval(quantileOf(in, 0.025), p < 0.05, onLift)
			missed += misses(lifts.toInterval())
		}
		atMost(t, "rates missed", missed, trials, 0.05)
	}
	for _, test := range []struct {
		nc, nt int64
		shop   shop
	}{{20_000, 20_000, shop{0.05, 1, 0}}, {5000, 5000, shop{0.3, 0.5, 0}}, {2000, 18_000, shop{0.3, 0.5, 0}}} {
		const trials = 6000
		lifted := test.shop
		lifted.lift = 0.1
		missed := 0
		for range trials {
			var c, x running
			test.shop.visit(r, &c, test.nc)
			lifted.visit(r, &x, test.nt)
			missed += misses(Compare(c.mean(), []Sample{x.mean()}, o)[0].Lift.Interval)
		}
		atMost(t, "means missed", missed, trials, 0.05)
	}
}

// peeking is an experiment that is looked at repeatedly.
type peeking struct {
	name               string
	control, treatment int64 // visitors per look
	treatments         int
	shop               shop // sigma 0: the metric is a rate
	trials             int
}

// look adds visitors. If the metric is a rate, they have no values.
func (s shop) look(r *rand.Rand, into *running, visitors int64) {
	if s.sigma > 0 {
		s.visit(r, into, visitors)
		return
	}
	into.n += visitors
	into.nonzero += binomialDraw(r, visitors, s.buyers)
}

func (s shop) sample(x running) Sample {
	if s.sigma > 0 {
		return x.mean()
	}
	return Rate{Visitors: x.n, Converted: x.nonzero}
}

// TestLongFamilyWiseError measures the probability of any wrong verdict among three treatments, read once.
func TestLongFamilyWiseError(t *testing.T) {
	long(t)
	o := Options{SignificanceLevel: 95, NonNegative: true}
	for i, test := range []peeking{
		{"rates even", 2000, 2000, 3, shop{buyers: 0.05}, 6000},
		{"rates, 5 % control", 500, 3000, 3, shop{buyers: 0.05}, 6000},
		{"rates, large control", 9000, 1000, 3, shop{buyers: 0.1}, 6000},
		{"means even", 10_000, 10_000, 3, shop{buyers: 0.03, sigma: 1}, 4000},
	} {
		r := newRand(uint64(400 + i))
		wrong := 0
		for range test.trials {
			all := make([]running, test.treatments+1)
			test.shop.look(r, &all[0], test.control)
			treatments := make([]Sample, test.treatments)
			for j := range treatments {
				test.shop.look(r, &all[j+1], test.treatment)
				treatments[j] = test.shop.sample(all[j+1])
			}
			for _, c := range Compare(test.shop.sample(all[0]), treatments, o) {
				if verdictIsWrong(c) {
					wrong++
					break
				}
			}
		}
		atMost(t, test.name, wrong, test.trials, 0.05)
	}
}
