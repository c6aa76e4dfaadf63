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
					check.That(t, !c.Significant, "level %d: %s %v", level, c.Verdict, c.Reasons)
					check.Equal(t, c.Verdict, VerdictInconclusive, "level %d: %s %v", level, c.Verdict, c.Reasons)
					check.That(t, slices.Contains(c.Reasons, ReasonLevel100), "level %d: %s %v", level, c.Verdict,
						c.Reasons)
				}
			}
		}
	}
	for _, e := range []Estimate{
		EstimateRate(Rate{Visitors: 9, Converted: 3}, Options{SignificanceLevel: 100}),
		EstimateMean(mean(9, 3, 1), Options{SignificanceLevel: 100}),
	} {
		check.That(t, e.Interval == nil, "estimate at level 100: %+v", e)
		check.Equal(t, e.Reason, ReasonLevel100, "estimate at level 100: %+v", e)
		check.That(t, e.Value != nil, "estimate at level 100: %+v", e)
	}
}

// TestEmptyTreatmentLeavesTheFamily checks that a treatment without a p-value does not change the results of the other
// treatments.
func TestEmptyTreatmentLeavesTheFamily(t *testing.T) {
	control, treatment := Rate{Visitors: 1000, Converted: 100}, Rate{Visitors: 1000, Converted: 130}
	o := Options{SignificanceLevel: 95}
	alone := Compare(control, []Sample{treatment}, o)[0]
	beside := Compare(control, []Sample{Rate{}, treatment, nil}, o)[1]
	check.Equal(t, *alone.Frequentist.AdjustedPValue, *beside.Frequentist.AdjustedPValue, "alone %+v, beside %+v",
		alone.Frequentist, beside.Frequentist)
	check.Equal(t, beside.Frequentist.Correction, CorrectionNone, "alone %+v, beside %+v", alone.Frequentist,
		beside.Frequentist)
	check.Equal(t, *alone.Difference.Interval[0], *beside.Difference.Interval[0], "alone %+v, beside %+v",
		alone.Frequentist, beside.Frequentist)
	check.Equal(t, len(Compare(control, nil, o)), 0, "no treatments")
}

// TestUnevenMeans checks that both tests must agree if the expected, or else the observed, split is uneven.
func TestUnevenMeans(t *testing.T) {
	// Welch's p is below .001 because of control's small variance. The pooled p is .19.
	control, treatment := mean(500, 1, 4), mean(9500, 1.4, 100)
	for _, shares := range [][]float64{nil, {5, 95}, {35, 66}, {0, 50}} {
		c := mustSound(t, control, []Sample{treatment}, Options{SignificanceLevel: 95, Shares: shares})[0]
		check.That(t, !c.Significant, "%v: %v %s %+v", shares, c.Significant, c.Verdict, c.Frequentist)
		check.Equal(t, c.Verdict, VerdictInconclusive, "%v: %v %s %+v", shares, c.Significant, c.Verdict, c.Frequentist)
		check.Equal(t, c.Frequentist.Test, TestWelchPooled, "%v: %v %s %+v", shares, c.Significant, c.Verdict,
			c.Frequentist)
		check.Equal(t, *c.Frequentist.DegreesOfFreedom, 9998, "%v: %v %s %+v", shares, c.Significant, c.Verdict,
			c.Frequentist)
	}
	c := mustSound(t, control, []Sample{treatment}, Options{SignificanceLevel: 95, Shares: []float64{35, 65}})[0]
	check.Equal(t, c.Verdict, VerdictBetter, "expected 35/65: %s %s", c.Verdict, c.Frequentist.Test)
	check.Equal(t, c.Frequentist.Test, TestWelch, "expected 35/65: %s %s", c.Verdict, c.Frequentist.Test)
}

// TestOneVariationWithoutVariance checks that equal values of one variation do not yield an interval of width zero.
func TestOneVariationWithoutVariance(t *testing.T) {
	c := mustSound(t, mean(5000, 0.5, 9), []Sample{mean(5000, 0, 0)},
		Options{SignificanceLevel: 95, NonNegative: true})[0]
	check.That(t, slices.Contains(c.Reasons, ReasonZeroVariance), "%v %v [%v, %v]", c.Reasons, c.Significant,
		*c.Lift.Interval[0], *c.Lift.Interval[1])
	check.That(t, c.Significant, "%v %v [%v, %v]", c.Reasons, c.Significant, *c.Lift.Interval[0], *c.Lift.Interval[1])
	check.That(t, *c.Lift.Interval[0] < *c.Lift.Interval[1]-0.1, "%v %v [%v, %v]", c.Reasons, c.Significant,
		*c.Lift.Interval[0], *c.Lift.Interval[1])
}

func TestEstimates(t *testing.T) {
	o := Options{SignificanceLevel: 95}
	// Wilson (1927) by mpmath: the roots in p of (.15 - p)² = z² p (1-p)/100.
	e := EstimateRate(Rate{Visitors: 100, Converted: 15}, o)
	check.That(t, near(*e.Interval[0], 0.0930598528, 1e-6), "15 of 100: %v [%v, %v]", *e.StandardError, *e.Interval[0],
		*e.Interval[1])
	check.That(t, near(*e.Interval[1], 0.2328355959, 1e-6), "15 of 100: %v [%v, %v]", *e.StandardError, *e.Interval[0],
		*e.Interval[1])
	check.That(t, near(*e.StandardError, 0.0357071, 1e-5), "15 of 100: %v [%v, %v]", *e.StandardError, *e.Interval[0],
		*e.Interval[1])
	// t quantile of 9 degrees of freedom: 2.262157.
	e = EstimateMean(mean(10, 5, 40), o)
	if !near(*e.Interval[0], 5-2*2.2621571628, 1e-9) || *e.StandardError != 2 {
		t.Errorf("mean: %v [%v, %v]", *e.StandardError, *e.Interval[0], *e.Interval[1])
	}
	tests := []struct {
		name   string
		e      Estimate
		reason Reason
	}{
		{"nobody", EstimateRatio(Ratio{Scale: 1}, o), ReasonNoVisitors},
		{"no goals", EstimateRatio(Ratio{Visitors: 5, Scale: 1}, o), ReasonBaselineZero},
		{"no scale", EstimateRatio(Ratio{Visitors: 5}, o), ReasonInvalidData},
	}
	for _, test := range tests {
		check.Equal(t, test.e.Reason, test.reason, "%s: %+v, want reason %q", test.name, test.e, test.reason)
		check.That(t, test.e.Value == nil, "%s: %+v, want reason %q", test.name, test.e, test.reason)
	}
}

// TestEstimateRatio compares with a computation by hand. Visitors with value and goals (10, 1), (30, 2), (0, 0), (20,
// 1): R = 15, residuals value - R goals = -5, 0, 0, 5, SE² = 50 n/((n-1) G²).
func TestEstimateRatio(t *testing.T) {
	sums := func(sum, squares int64) Sums { return Sums{Sum: big.NewInt(sum), Squares: big.NewInt(squares)} }
	r := Ratio{Visitors: 4, Value: sums(600, 140000), Goals: sums(4, 6), Products: big.NewInt(900), Scale: 10}
	e := EstimateRatio(r, Options{SignificanceLevel: 90})
	want := math.Sqrt(50 * 4 / 3. / 16)
	check.Equal(t, *e.Value, 15, "EstimateRatio = %v ± %v, want 15 ± %v", *e.Value, *e.StandardError, want)
	check.That(t, near(*e.StandardError, want, 1e-15), "EstimateRatio = %v ± %v, want 15 ± %v", *e.Value,
		*e.StandardError, want)
	// With one goal per visitor the ratio is the mean.
	ones := Ratio{Visitors: 4, Value: sums(600, 140000), Goals: sums(4, 4), Products: big.NewInt(600), Scale: 10}
	e = EstimateRatio(ones, Options{SignificanceLevel: 90})
	m := EstimateMean(sums(600, 140000).Mean(4, 10), Options{SignificanceLevel: 90})
	check.Equal(t, *e.Value, *m.Value, "a ratio over ones %v ± %v, the mean %v ± %v", *e.Value, *e.StandardError,
		*m.Value, *m.StandardError)
	check.That(t, near(*e.StandardError, *m.StandardError, 1e-15), "a ratio over ones %v ± %v, the mean %v ± %v",
		*e.Value, *e.StandardError, *m.Value, *m.StandardError)
	check.Equal(t, *e.Interval[0], *m.Interval[0], "a ratio over ones %v ± %v, the mean %v ± %v", *e.Value,
		*e.StandardError, *m.Value, *m.StandardError)
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
		check.Equal(t, got.Mean, test.mean, "%s: %+v, want %v and %v", test.name, got, test.mean, test.variance)
		check.Equal(t, got.Variance, test.variance, "%s: %+v, want %v and %v", test.name, got, test.mean, test.variance)
		check.Equal(t, got.Nonzero, -1, "%s: %+v, want %v and %v", test.name, got, test.mean, test.variance)
		check.Equal(t, got.Visitors, test.n, "%s: %+v, want %v and %v", test.name, got, test.mean, test.variance)
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
		must.That(t, equal(a.Merge(b).Merge(c), a.Merge(b.Merge(c))), "Merge depends on the order")
		must.That(t, equal(a.Merge(b), b.Merge(a)), "Merge depends on the order")
		must.That(t, equal(a.Merge(Sums{}), a), "Merge depends on the order")
	}
}
