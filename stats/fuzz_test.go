package stats

import (
	"math"
	"math/big"
	"testing"
)

// The fuzz targets check that there is no NaN, infinity, panic or contradiction.

func fuzzOptions(level int, flags uint8) Options {
	o := Options{SignificanceLevel: level, NonNegative: flags&1 > 0, Prior: &Prior{StandardDeviation: 0.1}}
	if flags&4 > 0 {
		o.Methodology = MethodologyBayesian
	}
	if flags&8 > 0 {
		o.Prior = &Prior{Mean: 0.3, StandardDeviation: 0.01}
	}
	return o
}

// possible maps any numbers to a valid rate.
func possible(r Rate) Rate {
	n := r.Visitors % (largestCount + 1)
	if n < 0 {
		n = -n
	}
	x := r.Converted % (n + 1)
	if x < 0 {
		x = n + x
	}
	return Rate{Visitors: n, Converted: x}
}

// analyzed returns the result of two looks with the same data.
func analyzed(strata []Stratum, o Options) [2]LookResult {
	looks := newLooked(o.Alpha(), 1, 1)
	return [2]LookResult{looks.Analyze(0.5, strata[:1], o.NonNegative), looks.Analyze(1, strata, o.NonNegative)}
}

func progress(plan SamplePlan, o Options, lift float64, visitors int64, perDay float64) SampleProgress {
	size, reason := NewSampleSize(plan, NewLookDesign(o.Alpha(), plan.Shares))
	if reason != "" {
		return SampleProgress{Reason: reason}
	}
	return size.ProgressTowards(lift, visitors, perDay)
}

func FuzzCompareRates(f *testing.F) {
	f.Add(int64(500), int64(0), int64(500), int64(7), int64(0), int64(0), 95, uint8(0), int64(0))
	f.Add(int64(11111), int64(1), int64(1), int64(0), int64(3), int64(3), 95, uint8(4+8), int64(1))
	f.Add(int64(1e12), int64(1), int64(1e12), int64(1e12), int64(5), int64(0), 80, uint8(4), int64(math.MaxInt64))
	f.Add(int64(math.MaxInt64), int64(1), int64(math.MaxInt64), int64(math.MaxInt64), int64(-1), int64(0), 80, uint8(4),
		int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, n0, x0, n1, x1, n2, x2 int64, level int, flags uint8, planned int64) {
		control := Rate{Visitors: n0, Converted: x0}
		one, two := Rate{Visitors: n1, Converted: x1}, Rate{Visitors: n2, Converted: x2}
		o := fuzzOptions(level, flags)
		mustSound(t, control, []Sample{one, two}, o)
		control, one, two = possible(control), possible(one), possible(two)
		mustSound(t, control, []Sample{one}, o)
		mustSound(t, control, []Sample{one, two}, o)
		mustFinite(t, EstimateRate(control, o))
		mustFinite(t, CompareShares([]int64{x0, x1, x2}, []int64{n0, n1, n2}))
		split := Split{Control: float64(x0 % 100), Variations: []float64{float64(x1), float64(x2)}}
		mustFinite(t, SampleRatioMismatch([]SharePeriod{{split, []int64{n0, n1, n2}}}))
		mustFinite(t, analyzed([]Stratum{{control, one, 0}, {control, two, 0.3}}, o))
		plan := SamplePlan{
			Control: control, Shares: []float64{float64(x1), float64(x2)}, Looks: 1 + int(flags)%4,
			Power: 0.8, Prior: o.Prior,
		}
		mustFinite(t, progress(plan, o, float64(n2)/100, planned, float64(x0)))
	})
}

func FuzzCompareMeans(f *testing.F) {
	f.Add(int64(500), 1.0, 2.0, int64(500), 1.5, 2.5, int64(20), 0.0, 0.0, 95, uint8(0), int64(0))
	f.Add(int64(2), -1e300, 1e300, int64(3), 5e-324, 5e-324, int64(1), math.NaN(), math.Inf(1), 90, uint8(1), int64(-1))
	f.Add(int64(2), 1.0, math.MaxFloat64, int64(2), 6.0, math.MaxFloat64, int64(1<<62), 0.0, 1e-320, 80, uint8(5),
		int64(1))
	f.Fuzz(func(t *testing.T, n0 int64, m0, v0 float64, n1 int64, m1, v1 float64, n2 int64, m2, v2 float64, level int,
		flags uint8, planned int64,
	) {
		control, one, two := mean(n0, m0, v0), mean(n1, m1, v1), mean(n2, m2, v2)
		o := fuzzOptions(level, flags)
		mustSound(t, control, []Sample{one}, o)
		mustSound(t, control, []Sample{one, two}, o)
		mustFinite(t, EstimateMean(control, o))
		mustFinite(t, analyzed([]Stratum{{control, one, 0}, {control, two, 0.3}}, o))
		plan := SamplePlan{Control: control, Shares: []float64{m1, v1, m2}, Looks: 1, Power: m2, Prior: o.Prior}
		mustFinite(t, progress(plan, o, v2, planned, v1))
	})
}

func FuzzSums(f *testing.F) {
	f.Add(int64(3), int64(5), int64(9), int64(2), int64(4), int64(10000))
	f.Add(int64(2), int64(-5), int64(math.MaxInt64), int64(0), int64(-1), int64(0))
	f.Fuzz(func(t *testing.T, n, sum, squares, goals, products, scale int64) {
		s := Sums{Sum: big.NewInt(sum), Squares: big.NewInt(squares)}
		o := Options{SignificanceLevel: 95}
		mustFinite(t, EstimateMean(s.Mean(n, scale), o))
		g := Sums{Sum: big.NewInt(goals), Squares: big.NewInt(goals)}
		mustFinite(t,
			EstimateRatio(Ratio{Visitors: n, Value: s, Goals: g, Products: big.NewInt(products), Scale: scale}, o))
	})
}
