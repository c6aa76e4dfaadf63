package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"lifthouse/schema/schematest/check"
)

// segmented is a campaign whose visitors are in segments. daily has the visitors of each segment and day, of both
// variations together; treated is the share of the treatment.
type segmented struct {
	name    string
	daily   []int64
	shops   []shop // of control in each segment; the last one is that of the remaining segments
	treated float64
	lift    []float64 // of the number of buyers by segment; the last one is that of the remaining segments
	trials  int
}

func (s segmented) shopOf(i int) shop { return s.shops[min(i, len(s.shops)-1)] }

func (s segmented) liftOf(i int) float64 { return s.lift[min(i, len(s.lift)-1)] }

// run draws the days of a campaign and calls each with the effects at its end.
func (s segmented) run(r *rand.Rand, days int, each func(effects []PooledEffect)) {
	control, treatment := make([]running, len(s.daily)), make([]running, len(s.daily))
	effects := make([]PooledEffect, len(s.daily))
	for range days {
		for i, n := range s.daily {
			own := s.shopOf(i)
			nt := binomialDraw(r, n, s.treated)
			own.look(r, &control[i], n-nt)
			own.buyers *= 1 + s.liftOf(i)
			own.look(r, &treatment[i], nt)
			effects[i] = PooledEffect{Reason: ReasonTooFewVisitors}
			if control[i].n > 1 && treatment[i].n > 1 {
				effects[i] = NewPooledEffect([]Stratum{{
					Control:   own.sample(control[i]),
					Treatment: own.sample(treatment[i]),
				}})
			}
		}
		each(effects)
	}
}

func evenly(segments int, visitors int64) []int64 {
	all := make([]int64, segments)
	for i := range all {
		all[i] = visitors
	}
	return all
}

// TestHeterogeneityIsTheIntegral compares the Bayes factor with the integrals over the common mean, which it has in
// closed form.
func TestHeterogeneityIsTheIntegral(t *testing.T) {
	r := newRand(31)
	for range 200 {
		effects, spread := make([]PooledEffect, 2+r.IntN(6)), .01+.3*r.Float64()
		for i := range effects {
			effects[i] = PooledEffect{Value: .2 * r.NormFloat64(), StandardError: .01 + .2*r.Float64()}
		}
		density := func(spread float64) float64 { // of all values, for a flat prior of their mean
			const from, to, steps = -3.0, 3.0, 60_000
			sum := 0.0
			for k := range steps + 1 {
				at := 1.0
				for _, e := range effects {
					at *= distuv.Normal{
						Mu:    from + (to-from)*float64(k)/steps,
						Sigma: math.Hypot(e.StandardError, spread),
					}.Prob(e.Value)
				}
				sum += at
			}
			return sum
		}
		want := density(spread) / density(0)
		got := MeasureHeterogeneity([][]PooledEffect{effects}, spread)
		check.That(t, math.Abs(*got.BayesFactor-want) <= 1e-9*want, "%v: Bayes factor %v, p %v, want %v", effects,
			*got.BayesFactor, *got.PValue, want)
		check.Equal(t, *got.PValue, math.Min(1, 1 / *got.BayesFactor), "%v: Bayes factor %v, p %v, want %v", effects,
			*got.BayesFactor, *got.PValue, want)
		check.Equal(t, got.Segments, len(effects), "%v: Bayes factor %v, p %v, want %v", effects, *got.BayesFactor,
			*got.PValue, want)
		shifted := slices.Clone(effects)
		for i := range shifted {
			shifted[i].Value += .5
		}
		both := MeasureHeterogeneity([][]PooledEffect{shifted, {{}, {Reason: ReasonTooFewVisitors}}}, spread)
		if mean := (want + 1) / 2; !(math.Abs(*both.BayesFactor-mean) <= 1e-9*mean) {
			t.Errorf("%v with a treatment of one segment: %v, want %v", effects, *both.BayesFactor, mean)
		}
	}
}

// TestHeterogeneityOfWeakData has fewer than two segments, and effects beyond all sense.
func TestHeterogeneityOfWeakData(t *testing.T) {
	one, weak := PooledEffect{Value: .1, StandardError: .1}, PooledEffect{Reason: ReasonTooFewVisitors}
	for _, effects := range [][][]PooledEffect{nil, {}, {nil}, {{one}}, {{weak, weak}}, {{one, weak}, {weak, one}}} {
		got := MeasureHeterogeneity(effects, .1)
		check.Equal(t, got.Reason, ReasonTooFewSegments, "%v: %+v", effects, got)
		check.That(t, got.BayesFactor == nil, "%v: %+v", effects, got)
		check.That(t, got.PValue == nil, "%v: %+v", effects, got)
	}
	far := MeasureHeterogeneity([][]PooledEffect{{
		{Value: -1e6, StandardError: 1e-9},
		{Value: 1e6, StandardError: 1e-9},
	}}, .1)
	check.That(t, isFinite(*far.BayesFactor), "far apart: %v, p %v", *far.BayesFactor, *far.PValue)
	check.That(t, *far.PValue > 0, "far apart: %v, p %v", *far.BayesFactor, *far.PValue)
	check.That(t, *far.PValue < 1e-300, "far apart: %v, p %v", *far.BayesFactor, *far.PValue)
}

// TestDifferenceOfLiftsIsNewcombes compares the interval from two Wilson intervals with that of Newcombe (1998),
// Statistics in Medicine 17, table II, method 10: 56/70 - 48/80, and 9/10 - 3/10.
func TestDifferenceOfLiftsIsNewcombes(t *testing.T) {
	estimate := func(x, n int64) Effect {
		e := EstimateRate(Rate{Visitors: n, Converted: x}, Options{SignificanceLevel: 95})
		return Effect{Value: e.Value, Interval: e.Interval}
	}
	for _, test := range []struct {
		a, b                 Effect
		value, lower, higher float64
	}{
		{estimate(56, 70), estimate(48, 80), .2, .0524, .3339},
		{estimate(9, 10), estimate(3, 10), .6, .1705, .8090},
	} {
		got := DifferenceOfLifts(test.a, test.b)
		for _, x := range [][2]float64{
			{*got.Value, test.value},
			{*got.Interval[0], test.lower},
			{*got.Interval[1], test.higher},
		} {
			if math.Abs(x[0]-x[1]) > 5e-5 {
				t.Errorf("%v - %v: %v, want %v", *test.a.Value, *test.b.Value, x[0], x[1])
			}
		}
	}
	open, known := estimate(1, 10), estimate(3, 10)
	open.Interval, open.Reason = &Interval{open.Interval[0], nil}, ReasonBaselineNotDistinguishable
	d := DifferenceOfLifts(open, known)
	check.That(t, d.Interval[0] != nil, "an open end: %+v", d)
	check.That(t, d.Interval[1] == nil, "an open end: %+v", d)
	check.Equal(t, d.Reason, open.Reason, "an open end: %+v", d)
	d = DifferenceOfLifts(known, open)
	check.That(t, d.Interval[0] == nil, "an open end of the other: %+v", d)
	check.That(t, d.Interval[1] != nil, "an open end of the other: %+v", d)
	check.Equal(t, d.Reason, open.Reason, "an open end of the other: %+v", d)
	d = DifferenceOfLifts(known, Effect{Reason: ReasonBaselineZero})
	check.That(t, d.Value == nil, "no lift: %+v", d)
	check.That(t, d.Interval == nil, "no lift: %+v", d)
	check.Equal(t, d.Reason, ReasonBaselineZero, "no lift: %+v", d)
}

// spreadOfPlan is the spread of reports: half of the minimum effect of 20 %.
const spreadOfPlan = .1

// TestLongHeterogeneity reads the test at the end of each of 60 days. Without a difference between the segments, it must
// not find one on any day in more than .05 of the campaigns. With one, it logs how often the test finds it, beside the
// power of Cochran's Q at the last day alone.
func TestLongHeterogeneity(t *testing.T) {
	long(t)
	const days = 60
	measure := func(s segmented, seed uint64) (found, byQ int) {
		r := newRand(seed)
		for range s.trials {
			day, any := 0, false
			s.run(r, days, func(effects []PooledEffect) {
				h := MeasureHeterogeneity([][]PooledEffect{effects}, spreadOfPlan)
				any = any || h.PValue != nil && *h.PValue <= .05
				if day++; day == days && cochranP(effects) <= .05 {
					byQ++
				}
			})
			if any {
				found++
			}
		}
		return found, byQ
	}
	share := func(n, of int) float64 { return float64(n) / float64(of) }
	for k, s := range sameLift {
		found, byQ := measure(s, uint64(900+k))
		t.Logf("%s: Cochran's Q at day %d %.4f", s.name, days, share(byQ, s.trials))
		atMost(t, s.name, found, s.trials, .05)
	}
	for k, s := range differentLifts {
		found, byQ := measure(s, uint64(950+k))
		t.Logf("%s: found by day %d %.3f, Cochran's Q at that day %.3f (%d trials)", s.name, days, share(found, s.trials), share(byQ, s.trials), s.trials)
	}
}

// TestLongCoverageOfDifferenceOfLifts measures how often the interval misses the difference of a lift of 10 % and none.
func TestLongCoverageOfDifferenceOfLifts(t *testing.T) {
	long(t)
	o := Options{SignificanceLevel: 95, NonNegative: true}
	for k, s := range []struct {
		name   string
		n      [2]int64 // visitors of each variation in the segment and elsewhere
		shop   shop
		trials int
	}{
		{"rate 5 %, even", [2]int64{5000, 5000}, shop{buyers: .05}, 20_000},
		{"rate 5 %, segment of 10 %", [2]int64{2000, 18_000}, shop{buyers: .05}, 20_000},
		{"rate 1 %, small", [2]int64{1000, 9000}, shop{buyers: .01}, 20_000},
		{"revenue, 3 % buy, sigma 1", [2]int64{10_000, 10_000}, shop{buyers: .03, sigma: 1}, 6000},
		{"revenue, 3 % buy, sigma 1, segment of 10 %", [2]int64{5000, 45_000}, shop{buyers: .03, sigma: 1}, 3000},
	} {
		r := newRand(uint64(980 + k))
		missed := 0
		for range s.trials {
			var lifts [2]Effect
			for i, n := range s.n {
				var c, x running
				s.shop.look(r, &c, n)
				lifted := s.shop
				lifted.buyers *= 1 + .1*float64(1-i)
				lifted.look(r, &x, n)
				lifts[i] = Compare(s.shop.sample(c), []Sample{s.shop.sample(x)}, o)[0].Lift
			}
			if in := DifferenceOfLifts(lifts[0], lifts[1]).Interval; in.Excludes(.1) {
				missed++
			}
		}
		atMost(t, s.name+": missed", missed, s.trials, .05)
	}
}

// cochranP is the p-value of Cochran's Q, which is valid at a single look.
func cochranP(effects []PooledEffect) float64 {
	var q, sum, weight float64
	df := -1.0
	for _, e := range effects {
		if e.Reason == "" {
			w := 1 / (e.StandardError * e.StandardError)
			q, sum, weight, df = q+w*e.Value*e.Value, sum+w*e.Value, weight+w, df+1
		}
	}
	if df < 1 {
		return 1
	}
	return distuv.ChiSquared{K: df}.Survival(q - sum*sum/weight)
}

var sameLift = []segmented{
	{"rate 5 %, three even segments", evenly(3, 200), []shop{{buyers: .05}}, .5, []float64{0}, 2000},
	{"rate 5 %, two segments, 10,000 visitors a day each", evenly(2, 10_000), []shop{{buyers: .05}}, .5, []float64{0}, 1000},
	{"rate 5 %, segments 90/10", []int64{540, 60}, []shop{{buyers: .05}}, .5, []float64{0}, 2000},
	{"rate 2 %, 20 small segments", evenly(20, 30), []shop{{buyers: .02}}, .5, []float64{0}, 2000},
	{"rate 2 %, 50 tiny segments", evenly(50, 8), []shop{{buyers: .02}}, .5, []float64{0}, 2000},
	{"rate 5 %, split 90/10", evenly(3, 300), []shop{{buyers: .05}}, .1, []float64{0}, 2000},
	{"rate 2 %, split 95/5, 20 segments", evenly(20, 60), []shop{{buyers: .02}}, .05, []float64{0}, 2000},
	{"rates of 8, 2 and 1 %, all lifted by 30 %", []int64{200, 300, 100}, []shop{{buyers: .08}, {buyers: .02}, {buyers: .01}}, .5, []float64{.3}, 2000},
	{"revenue, 3 % buy, sigma 1, three even segments", evenly(3, 300), []shop{{buyers: .03, sigma: 1}}, .5, []float64{0}, 2000},
	{"revenue, 3 % buy, sigma 1.5, segments 90/10", []int64{900, 100}, []shop{{buyers: .03, sigma: 1.5}}, .5, []float64{0}, 2000},
	{"revenue, 2 % buy, sigma 2, 10 segments", evenly(10, 100), []shop{{buyers: .02, sigma: 2}}, .5, []float64{0}, 2000},
	{"revenue, 3 % buy, sigma 1, split 90/10", evenly(3, 300), []shop{{buyers: .03, sigma: 1}}, .1, []float64{0}, 2000},
	{"revenue, 2 % buy, sigma 1.5, split 5/95, segments 90/10", []int64{900, 100}, []shop{{buyers: .02, sigma: 1.5}}, .95, []float64{0}, 2000},
	{"revenue, 3 % buy, sigma 1, all lifted by 30 %", []int64{600, 200}, []shop{{buyers: .03, sigma: 1}, {buyers: .06, sigma: 1}}, .5, []float64{.3}, 2000},
}

var differentLifts = []segmented{
	{"rate 5 %, +20 % in one of two", evenly(2, 500), []shop{{buyers: .05}}, .5, []float64{.2, 0}, 1000},
	{"rate 5 %, +20 % and -20 %", evenly(2, 500), []shop{{buyers: .05}}, .5, []float64{.2, -.2}, 1000},
	{"rate 5 %, +40 % in one of three", evenly(3, 300), []shop{{buyers: .05}}, .5, []float64{.4, 0}, 1000},
	{"rate 5 %, +10 % in one of two, many visitors", evenly(2, 5000), []shop{{buyers: .05}}, .5, []float64{.1, 0}, 200},
	{"rate 5 %, +40 % in one of ten", evenly(10, 200), []shop{{buyers: .05}}, .5, []float64{.4, 0}, 1000},
}

func TestReasonsOfPooledEffects(t *testing.T) {
	mean := func(mean, variance float64) Sample {
		return Mean{Visitors: 10_000, Mean: mean, Variance: variance, Nonzero: -1}
	}
	for name, test := range map[string]struct {
		control, treatment Sample
		want               Reason
	}{
		"few visitors":            {Rate{Visitors: 99, Converted: 50}, Rate{Visitors: 5000, Converted: 50}, ReasonTooFewVisitors},
		"no conversions":          {Rate{Visitors: 10_000}, Rate{Visitors: 10_000}, ReasonMeanUncertain},
		"few conversions":         {Rate{Visitors: 10_000, Converted: 10}, Rate{Visitors: 10_000, Converted: 9}, ReasonMeanUncertain},
		"everybody converts":      {Rate{Visitors: 1000, Converted: 1000}, Rate{Visitors: 1000, Converted: 1000}, ReasonZeroVariance},
		"a negative mean":         {mean(-2, 1), mean(-3, 1), ReasonMeanNotPositive},
		"a mean of 0":             {mean(0, 1), mean(0, 1), ReasonMeanNotPositive},
		"a mean that is not sure": {mean(.01, 1), mean(.01, 1), ReasonMeanUncertain},
		"no variance":             {mean(2, 0), mean(2, 0), ReasonZeroVariance},
		"enough":                  {mean(2, 1), mean(3, 1), ""},
	} {
		found := NewPooledEffect([]Stratum{{Control: test.control, Treatment: test.treatment}})
		check.Equal(t, found.Reason, test.want, "%s", name)
	}
}
