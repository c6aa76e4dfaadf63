package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestChancesToBeBest checks that the chances to be best sum to one, and that with one treatment they are the chances
// to beat control and not to: for rates and means, at even and uneven splits.
func TestChancesToBeBest(t *testing.T) {
	r := newRand(52)
	for i := range rounds(400) {
		control, treatments := Sample(randomRate(r)), make([]Sample, 1)
		if i%2 == 0 {
			treatments = make([]Sample, 1+r.IntN(4))
		}
		for j := range treatments {
			treatments[j] = randomRival(r, control.(Rate))
		}
		if i%4 >= 2 {
			control = meanOfAnySplit(r)
			for j := range treatments {
				treatments[j] = meanOfAnySplit(r)
			}
		}
		o := Options{SignificanceLevel: 95, Methodology: MethodologyBayesian, Prior: &Prior{StandardDeviation: 0.1}}
		compared := slices.DeleteFunc(Compare(control, treatments, o), func(c Comparison) bool {
			return c.Bayesian.ChanceToBeatControl == nil
		})
		if len(compared) == 0 {
			continue
		}
		sum := 0.0
		for _, c := range compared {
			must.That(t, c.Bayesian.ChanceToBeBest != nil, "%v, %v: no chance to be best", control, treatments)
			sum += *c.Bayesian.ChanceToBeBest
		}
		inControl := *compared[0].Bayesian.ControlChanceToBeBest
		check.That(t, math.Abs(sum+inControl-1) <= 1e-8, "%v, %v: chances sum to %v", control, treatments,
			sum+inControl)
		if len(compared) > 1 {
			continue
		}
		above := *compared[0].Bayesian.ChanceToBeatControl
		check.That(t, math.Abs(sum-above) <= 1e-9, "%v, %v: best %v and control %v, chance to beat control %v", control,
			treatments, sum, inControl, above)
		check.That(t, math.Abs(inControl-(1-above)) <= 1e-9,
			"%v, %v: best %v and control %v, chance to beat control %v", control, treatments, sum, inControl, above)
	}
}

// meanOfAnySplit returns a mean of 30 to 30,000 visitors, in one of four cases without variance.
func meanOfAnySplit(r *rand.Rand) Mean {
	m := Mean{
		Visitors: int64(30 * math.Pow(10, 3*r.Float64())), Mean: r.Float64(), Variance: 4 * r.Float64(),
		Nonzero: -1,
	}
	if r.IntN(4) == 0 {
		m.Mean, m.Variance = 0, 0
	}
	return m
}

// TestChancesToBeBestWithoutATest checks that treatments without a test have no chance to be best.
func TestChancesToBeBestWithoutATest(t *testing.T) {
	o := Options{SignificanceLevel: 95, Methodology: MethodologyBayesian, Prior: &Prior{StandardDeviation: 0.2 / 1.96}}
	compared := Compare(mean(100, 1, 0), []Sample{mean(100, 1.1, 1), mean(1, 5, 0), nil, mean(100, 0.5, 0)}, o)
	b := compared[0].Bayesian
	check.That(t, math.Abs(*b.ChanceToBeBest-*b.ChanceToBeatControl) <= 1e-9,
		"the only treatment with a test: %v and %v", *b.ChanceToBeBest, *b.ChanceToBeatControl)
	for _, c := range append(compared[1:], Compare(mean(100, 1, 0), []Sample{mean(100, 2, 0)}, o)...) {
		check.That(t, c.Bayesian.ChanceToBeBest == nil, "without a test: %+v", c.Bayesian)
		check.That(t, c.Bayesian.Reason != "", "without a test: %+v", c.Bayesian)
	}
}

// TestNoConversionInControl checks that a winner is concluded although the lift of the observed rates is infinite, and
// that the missing losses have a reason.
func TestNoConversionInControl(t *testing.T) {
	o := Options{SignificanceLevel: 95, Methodology: MethodologyBayesian, Prior: &Prior{StandardDeviation: 0.2 / 1.96}}
	compared := Compare(Rate{Visitors: 6000}, []Sample{Rate{Visitors: 6000, Converted: 200}}, o)
	look := newLooked(0.05, 1, 1).Analyze(1,
		[]Stratum{{Control: Rate{Visitors: 6000}, Treatment: Rate{Visitors: 6000, Converted: 200}}}, true)
	check.That(t, look.BayesianDirection(*compared[0].Bayesian.ChanceToBeatControl, 0.05) == 1,
		"look %+v, comparison %+v", look, compared[0].Bayesian)
	b := compared[0].Bayesian
	check.That(t, b.ExpectedLoss == nil, "loss %v without a reason: %+v", b.ExpectedLoss, b)
	check.Equal(t, b.Reason, ReasonBaselineZero, "loss %v without a reason: %+v", b.ExpectedLoss, b)
}

// TestPriorAgainstData checks a prior that outweighs a few conversions. The posterior is better, the data are worse,
// and the verdict is neither.
func TestPriorAgainstData(t *testing.T) {
	o := Options{
		SignificanceLevel: 80, Methodology: MethodologyBayesian,
		Prior: &Prior{Mean: 0.5, StandardDeviation: 0.1},
	}
	c := mustSound(t, Rate{Visitors: 100_000, Converted: 100}, []Sample{Rate{Visitors: 100}}, o)[0]
	check.That(t, c.Significant, "%v %v %s %v", c.Significant, *c.Difference.Observed, c.Verdict, c.Reasons)
	check.That(t, *c.Difference.Value > 0, "%v %v %s %v", c.Significant, *c.Difference.Observed, c.Verdict, c.Reasons)
	check.That(t, *c.Difference.Observed < 0, "%v %v %s %v", c.Significant, *c.Difference.Observed, c.Verdict,
		c.Reasons)
	check.Equal(t, c.Verdict, VerdictInconclusive, "%v %v %s %v", c.Significant, *c.Difference.Observed, c.Verdict,
		c.Reasons)
}
