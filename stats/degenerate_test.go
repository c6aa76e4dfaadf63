package stats

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func mean(n int64, m, v float64) Mean {
	return Mean{Visitors: n, Mean: m, Variance: v, Nonzero: -1}
}

func TestDegenerateComparisons(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	tests := []struct {
		name               string
		control, treatment Sample
		verdict            Verdict
		reasons            []Reason
		p                  bool // whether there is one
	}{
		{"no samples", nil, nil, VerdictInsufficientData, []Reason{ReasonNoVisitors}, false},
		{"no visitors", Rate{}, Rate{}, VerdictInsufficientData, []Reason{ReasonNoVisitors}, false},
		{"one side empty", Rate{Visitors: 200, Converted: 9}, Rate{}, VerdictInsufficientData, []Reason{ReasonNoVisitors}, false},
		{"mixed kinds", Rate{Visitors: 9}, mean(9, 1, 1), VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"more converted than there are", Rate{Visitors: 9, Converted: 10}, Rate{Visitors: 9}, VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"negative visitors", Rate{Visitors: -9}, Rate{Visitors: 9}, VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"one visitor each", Rate{Visitors: 1, Converted: 1}, Rate{Visitors: 1}, VerdictInsufficientData, []Reason{ReasonTooFewVisitors, ReasonTooFewConversions}, true},
		{"nobody converted", Rate{Visitors: 900}, Rate{Visitors: 900}, VerdictInsufficientData, []Reason{ReasonTooFewConversions, ReasonBaselineZero}, true},
		{"all converted", Rate{Visitors: 900, Converted: 900}, Rate{Visitors: 900, Converted: 900}, VerdictInsufficientData, []Reason{ReasonTooFewConversions}, true},
		{"four conversions", Rate{Visitors: 900, Converted: 1}, Rate{Visitors: 900, Converted: 3}, VerdictInsufficientData, []Reason{ReasonTooFewConversions}, true},
		{"0 against 7 of 500", Rate{Visitors: 500}, Rate{Visitors: 500, Converted: 7}, VerdictBetter, []Reason{ReasonBaselineZero}, true},
		{"7 against 0 of 500", Rate{Visitors: 500, Converted: 7}, Rate{Visitors: 500}, VerdictWorse, []Reason{}, true},
		{"99 visitors", Rate{Visitors: 99, Converted: 1}, Rate{Visitors: 99, Converted: 90}, VerdictInsufficientData, []Reason{ReasonTooFewVisitors}, true},
		{"the largest counts", Rate{Visitors: 1e12, Converted: 5e11}, Rate{Visitors: 1e12, Converted: 3e11}, VerdictWorse, []Reason{}, true},
		{"too large a count", Rate{Visitors: math.MaxInt64, Converted: 7}, Rate{Visitors: 1e12, Converted: 9}, VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"all of the largest count", Rate{Visitors: 1e12, Converted: 1e12 - 9}, Rate{Visitors: 1e12, Converted: 1e12 - 90}, VerdictWorse, []Reason{}, true},
		{"from none to all", Rate{Visitors: 1e12, Converted: 0}, Rate{Visitors: 1e12, Converted: 1e12}, VerdictBetter, []Reason{ReasonBaselineZero}, true},
		{"a mean of one", mean(1, 5, 0), mean(500, 5, 1), VerdictInsufficientData, []Reason{ReasonTooFewVisitors}, false},
		{"a mean of none", mean(0, nan, nan), mean(500, 5, 1), VerdictInsufficientData, []Reason{ReasonNoVisitors}, false},
		{"constant means", mean(500, 5, 0), mean(500, 6, 0), VerdictInsufficientData, []Reason{ReasonZeroVariance}, false},
		{"one constant mean", mean(500, 5, 0), mean(500, 6, 1), VerdictBetter, []Reason{ReasonZeroVariance}, true},
		{"negative variance", mean(500, 5, -1), mean(500, 6, 1), VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"NaN mean", mean(500, nan, 1), mean(500, 6, 1), VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"infinite mean", mean(500, 1, 1), mean(500, inf, 1), VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"infinite variance", mean(500, 1, inf), mean(500, 6, 1), VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"NaN variance", mean(500, 1, nan), mean(500, 6, 1), VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"variances overflow together", mean(2, 1, math.MaxFloat64), mean(2, 6, math.MaxFloat64), VerdictInsufficientData, []Reason{ReasonTooFewVisitors, ReasonBaselineNotDistinguishable}, true},
		{"a difference that overflows", mean(500, -math.MaxFloat64, 1), mean(500, math.MaxFloat64, 1), VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"the smallest numbers", mean(500, 5e-324, 5e-324), mean(500, 1e-323, 5e-324), VerdictInsufficientData, []Reason{ReasonInvalidData}, false},
		{"baseline zero", mean(500, 0, 1), mean(500, 1, 1), VerdictBetter, []Reason{ReasonBaselineZero}, true},
		{"baseline below zero", mean(500, -10, 1), mean(500, -9, 1), VerdictBetter, []Reason{}, true},
		{"baseline near zero", mean(500, 0.01, 1), mean(500, 1, 1), VerdictBetter, []Reason{ReasonBaselineNotDistinguishable}, true},
		{"19 with a value", Mean{500, 1, 1, 19}, Mean{500, 2, 1, 400}, VerdictInsufficientData, []Reason{ReasonTooFewNonzero}, true},
		{"20 with a value", Mean{500, 1, 1, 20}, Mean{500, 2, 1, 20}, VerdictBetter, []Reason{}, true},
		{"equal means", mean(500, 1, 1), mean(500, 1, 1), VerdictInconclusive, []Reason{}, true},
	}
	for _, methodology := range []Methodology{MethodologyFrequentist, MethodologyBayesian} {
		for _, test := range tests {
			o := Options{SignificanceLevel: 95, Methodology: methodology, Prior: &Prior{StandardDeviation: 5 / 1.96}}
			c := mustSound(t, test.control, []Sample{test.treatment}, o)[0]
			has := c.Frequentist != nil && c.Frequentist.PValue != nil || c.Bayesian != nil && c.Bayesian.ChanceToBeatControl != nil
			if methodology == MethodologyBayesian {
				switch test.name {
				case "7 against 0 of 500": // the prior expects few lifts near -100 %
					test.verdict = VerdictInconclusive
				case "baseline zero": // a prior of the lift needs a lift
					test.verdict, test.p = VerdictInsufficientData, false
				}
			} else if !slices.Equal(c.Reasons, test.reasons) {
				t.Errorf("%s: %v, want %v", test.name, c.Reasons, test.reasons)
			}
			check.That(t, c.Verdict == test.verdict && has == test.p, "%s, %s: %s, result %v; want %s, %v", test.name, methodology, c.Verdict, has, test.verdict, test.p)
			o.SignificanceLevel = 100
			mustSound(t, test.control, []Sample{test.treatment, test.treatment}, o)
		}
	}
}

// TestLevel100 checks that at level 100 nothing is significant, however large the effect is.
func TestLevel100(t *testing.T) {
	pairs := [][2]Sample{
		{Rate{Visitors: 1e6, Converted: 1e5}, Rate{Visitors: 1e6, Converted: 9e5}},
		{mean(1e6, 1, 1), mean(1e6, 100, 1)},
	}
	for _, level := range []int{100, 0, -5, 101} {
		for _, methodology := range []Methodology{MethodologyFrequentist, MethodologyBayesian} {
			for _, p := range pairs {
				o := Options{
					SignificanceLevel: level, Methodology: methodology,
					Prior: &Prior{StandardDeviation: 0.2 / 1.96},
				}
				for _, c := range mustSound(t, p[0], []Sample{p[1], p[1]}, o) {
					check.That(t, !c.Significant && c.Verdict == VerdictInconclusive && slices.Contains(c.Reasons, ReasonLevel100), "level %d: %s %v", level, c.Verdict, c.Reasons)
				}
			}
		}
	}
	for _, e := range []Estimate{
		EstimateRate(Rate{Visitors: 9, Converted: 3}, Options{SignificanceLevel: 100}),
		EstimateMean(mean(9, 3, 1), Options{SignificanceLevel: 100}),
	} {
		check.That(t, e.Interval == nil && e.Reason == ReasonLevel100 && e.Value != nil, "estimate at level 100: %+v", e)
	}
}

// TestEmptyTreatmentLeavesTheFamily checks that a treatment without a p-value does not change the results of the other
// treatments.
func TestEmptyTreatmentLeavesTheFamily(t *testing.T) {
	control, treatment := Rate{Visitors: 1000, Converted: 100}, Rate{Visitors: 1000, Converted: 130}
	o := Options{SignificanceLevel: 95}
	alone := Compare(control, []Sample{treatment}, o)[0]
	beside := Compare(control, []Sample{Rate{}, treatment, nil}, o)[1]
	check.That(t, *alone.Frequentist.AdjustedPValue == *beside.Frequentist.AdjustedPValue && beside.Frequentist.Correction == CorrectionNone && *alone.Difference.Interval[0] == *beside.Difference.Interval[0],
		"alone %+v, beside %+v", alone.Frequentist, beside.Frequentist)
	check.Equal(t, len(Compare(control, nil, o)), 0, "no treatments")
}

// TestUnevenMeans checks that both tests must agree if the expected, or else the observed, split is uneven.
func TestUnevenMeans(t *testing.T) {
	// Welch's p is below .001 because of control's small variance. The pooled p is .19.
	control, treatment := mean(500, 1, 4), mean(9500, 1.4, 100)
	for _, shares := range [][]float64{nil, {5, 95}, {35, 66}, {0, 50}} {
		c := mustSound(t, control, []Sample{treatment}, Options{SignificanceLevel: 95, Shares: shares})[0]
		check.That(t, !c.Significant && c.Verdict == VerdictInconclusive && c.Frequentist.Test == TestWelchPooled && *c.Frequentist.DegreesOfFreedom == 9998,
			"%v: %v %s %+v", shares, c.Significant, c.Verdict, c.Frequentist)
	}
	c := mustSound(t, control, []Sample{treatment}, Options{SignificanceLevel: 95, Shares: []float64{35, 65}})[0]
	check.That(t, c.Verdict == VerdictBetter && c.Frequentist.Test == TestWelch, "expected 35/65: %s %s", c.Verdict, c.Frequentist.Test)
}

// TestOneVariationWithoutVariance checks that equal values of one variation do not yield an interval of width zero.
func TestOneVariationWithoutVariance(t *testing.T) {
	c := mustSound(t, mean(5000, 0.5, 9), []Sample{mean(5000, 0, 0)}, Options{SignificanceLevel: 95, NonNegative: true})[0]
	check.That(t, slices.Contains(c.Reasons, ReasonZeroVariance) && c.Significant && *c.Lift.Interval[0] < *c.Lift.Interval[1]-0.1,
		"%v %v [%v, %v]", c.Reasons, c.Significant, *c.Lift.Interval[0], *c.Lift.Interval[1])
}

func TestEstimates(t *testing.T) {
	o := Options{SignificanceLevel: 95}
	// Wilson (1927) by mpmath: the roots in p of (.15 - p)² = z² p (1-p)/100.
	e := EstimateRate(Rate{Visitors: 100, Converted: 15}, o)
	check.That(t, near(*e.Interval[0], 0.0930598528, 1e-6) && near(*e.Interval[1], 0.2328355959, 1e-6) && near(*e.StandardError, 0.0357071, 1e-5),
		"15 of 100: %v [%v, %v]", *e.StandardError, *e.Interval[0], *e.Interval[1])
	// t quantile of 9 degrees of freedom: 2.262157.
	e = EstimateMean(mean(10, 5, 40), o)
	if !near(*e.Interval[0], 5-2*2.2621571628, 1e-9) || *e.StandardError != 2 {
		t.Errorf("mean: %v [%v, %v]", *e.StandardError, *e.Interval[0], *e.Interval[1])
	}
	tests := []struct {
		name   string
		e      Estimate
		reason Reason
		value  bool
	}{
		{"no visitors", EstimateRate(Rate{}, o), ReasonNoVisitors, false},
		{"impossible", EstimateRate(Rate{Visitors: 1, Converted: 2}, o), ReasonInvalidData, false},
		{"nobody converted", EstimateRate(Rate{Visitors: 10}, o), "", true},
		{"no mean", EstimateMean(mean(0, 0, 0), o), ReasonNoVisitors, false},
		{"one visitor", EstimateMean(mean(1, 4, 0), o), ReasonTooFewVisitors, true},
		{"constant", EstimateMean(mean(7, 4, 0), o), ReasonZeroVariance, true},
		{"NaN", EstimateMean(mean(7, math.NaN(), 0), o), ReasonInvalidData, false},
		{"half width overflows", EstimateMean(mean(2, 1, math.MaxFloat64), o), "", true},
		{"nobody", EstimateRatio(Ratio{Scale: 1}, o), ReasonNoVisitors, false},
		{"no goals", EstimateRatio(Ratio{Visitors: 5, Scale: 1}, o), ReasonBaselineZero, false},
		{"no scale", EstimateRatio(Ratio{Visitors: 5}, o), ReasonInvalidData, false},
	}
	for _, test := range tests {
		check.That(t, test.e.Reason == test.reason && (test.e.Value != nil) == test.value, "%s: %+v, want reason %q", test.name, test.e, test.reason)
	}
}

// TestEstimateRatio compares with a computation by hand. Visitors with value and goals (10, 1), (30, 2), (0, 0), (20,
// 1): R = 15, residuals value - R goals = -5, 0, 0, 5, SE² = 50 n/((n-1) G²).
func TestEstimateRatio(t *testing.T) {
	sums := func(sum, squares int64) Sums { return Sums{Sum: big.NewInt(sum), Squares: big.NewInt(squares)} }
	r := Ratio{Visitors: 4, Value: sums(600, 140000), Goals: sums(4, 6), Products: big.NewInt(900), Scale: 10}
	e := EstimateRatio(r, Options{SignificanceLevel: 90})
	want := math.Sqrt(50 * 4 / 3. / 16)
	check.That(t, *e.Value == 15 && near(*e.StandardError, want, 1e-15), "EstimateRatio = %v ± %v, want 15 ± %v", *e.Value, *e.StandardError, want)
	// With one goal per visitor the ratio is the mean.
	ones := Ratio{Visitors: 4, Value: sums(600, 140000), Goals: sums(4, 4), Products: big.NewInt(600), Scale: 10}
	e = EstimateRatio(ones, Options{SignificanceLevel: 90})
	m := EstimateMean(sums(600, 140000).Mean(4, 10), Options{SignificanceLevel: 90})
	check.That(t, *e.Value == *m.Value && near(*e.StandardError, *m.StandardError, 1e-15) && *e.Interval[0] == *m.Interval[0],
		"a ratio over ones %v ± %v, the mean %v ± %v", *e.Value, *e.StandardError, *m.Value, *m.StandardError)
}

func TestSumsMean(t *testing.T) {
	tests := []struct {
		name            string
		n, scale        int64
		values          []int64
		mean, variance  float64
		repeat, squared int64
	}{
		{name: "none", n: 0, scale: 1},
		{name: "one", n: 1, scale: 10, values: []int64{7}, mean: 0.7},
		{name: "two", n: 2, scale: 10, values: []int64{10, 30}, mean: 2, variance: 2},
		{name: "10⁹ ± 2", n: 4, scale: 1, values: []int64{1e9 - 2, 1e9 + 2, 1e9 - 2, 1e9 + 2}, mean: 1e9, variance: 16. / 3},
		{name: "10⁹ ± 2, scaled", n: 4, scale: 10000, values: []int64{1e13 - 2e4, 1e13 + 2e4, 1e13 - 2e4, 1e13 + 2e4}, mean: 1e9, variance: 16. / 3},
		{name: "negative", n: 2, scale: 1, values: []int64{-3, 3}, mean: 0, variance: 18},
		{name: "no scale", n: 2, scale: 0, values: []int64{1, 2}},
	}
	for _, test := range tests {
		var s Sums
		for _, v := range test.values {
			x := big.NewInt(v)
			s = s.Merge(Sums{Sum: x, Squares: new(big.Int).Mul(x, x)})
		}
		got := s.Mean(test.n, test.scale)
		check.That(t, got.Mean == test.mean && got.Variance == test.variance && got.Nonzero == -1 && got.Visitors == test.n,
			"%s: %+v, want %v and %v", test.name, got, test.mean, test.variance)
	}
	huge := new(big.Int).Exp(big.NewInt(10), big.NewInt(400), nil)
	got := Sums{Sum: huge, Squares: huge}.Mean(2, 1)
	check.Equal(t, got.checkData(), ReasonInvalidData, "sums beyond floats: %+v", got)
}

func TestMergeIsAssociative(t *testing.T) {
	r := newRand(41)
	draw := func() Sums {
		x, y := big.NewInt(r.Int64()-r.Int64()), big.NewInt(r.Int64())
		return Sums{Sum: x.Mul(x, big.NewInt(r.Int64())), Squares: y.Mul(y, y)}
	}
	equal := func(a, b Sums) bool { return a.Sum.Cmp(b.Sum) == 0 && a.Squares.Cmp(b.Squares) == 0 }
	for range 1000 {
		a, b, c := draw(), draw(), draw()
		must.That(t, equal(a.Merge(b).Merge(c), a.Merge(b.Merge(c))) && equal(a.Merge(b), b.Merge(a)) && equal(a.Merge(Sums{}), a), "Merge depends on the order")
	}
}
