package stats

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"lifthouse/schema/schematest/check"
)

// TestComparePeriods compares the statistic of two periods with the weighted sum of the statistics of each, from other
// formulas. The trend between the periods, which the pooled samples show as an effect, has no part in it.
func TestComparePeriods(t *testing.T) {
	o := Options{SignificanceLevel: 95}
	rate := func(n, x int64) Sample { return Rate{Visitors: n, Converted: x} }
	mean := func(n int64, m, v float64) Sample { return Mean{Visitors: n, Mean: m, Variance: v, Nonzero: n / 2} }
	for _, test := range []struct {
		name    string
		periods []Period
		z       func(control, treatment Sample) float64
	}{
		{
			"rates",
			[]Period{
				{[]Sample{rate(9500, 950), rate(500, 60)}, []float64{95, 5}},
				{[]Sample{rate(5000, 1000), rate(5000, 1040)}, []float64{50, 50}},
			},
			func(c, s Sample) float64 {
				nc, nt := float64(c.visitorCount()), float64(s.visitorCount())
				p := (c.observedValue()*nc + s.observedValue()*nt) / (nc + nt)
				return (s.observedValue() - c.observedValue()) / math.Sqrt(p*(1-p)*(1/nc+1/nt)*(nc+nt)/(nc+nt-1))
			},
		},
		{
			"means",
			[]Period{
				{[]Sample{mean(400, 5, 90), mean(300, 6, 100)}, []float64{50, 50}},
				{[]Sample{mean(300, 9, 120), mean(700, 9.5, 150)}, []float64{40, 60}},
			},
			func(c, s Sample) float64 {
				a, b := c.variance()/float64(c.visitorCount()), s.variance()/float64(s.visitorCount())
				nu := (a + b) * (a + b) / (a*a/float64(c.visitorCount()-1) + b*b/float64(s.visitorCount()-1))
				statistic := (s.observedValue() - c.observedValue()) / math.Sqrt(a+b)
				return distuv.UnitNormal.Quantile(distuv.StudentsT{Sigma: 1, Nu: nu}.CDF(statistic))
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			sum, information := 0.0, 0.0
			for _, p := range test.periods {
				nc, nt := float64(p.Samples[0].visitorCount()), float64(p.Samples[1].visitorCount())
				of := nc * nt / (nc + nt)
				sum, information = sum+math.Sqrt(of)*test.z(p.Samples[0], p.Samples[1]), information+of
			}
			want := sum / math.Sqrt(information)
			got := ComparePeriods(test.periods[1].Samples, test.periods, o)[0]
			if p := 2 * distuv.UnitNormal.Survival(math.Abs(want)); math.Abs(*got.Frequentist.Statistic-want) > 1e-9 ||
				math.Abs(*got.Frequentist.PValue-p) > 1e-9 {
				t.Errorf("z %v, p %v; want %v, %v", *got.Frequentist.Statistic, *got.Frequentist.PValue, want, p)
			}
			if in := got.Lift.Interval; (*in[0] > 0) != got.Significant || *in[0] >= *got.Lift.Value ||
				*in[1] <= *got.Lift.Value {
				t.Errorf("lift %v in %v to %v, significant %v", *got.Lift.Value, *in[0], *in[1], got.Significant)
			}
			// With data in one period, the comparison is that of the period.
			empty := Period{[]Sample{rate(0, 0), rate(0, 0)}, []float64{50, 50}}
			if test.name == "means" {
				empty.Samples = []Sample{Mean{}, Mean{}}
			}
			last := test.periods[1]
			for _, o := range []Options{o, {
				SignificanceLevel: 95, Methodology: MethodologyBayesian,
				Prior: &Prior{StandardDeviation: .2 / 1.96},
			}} {
				one := ComparePeriods(last.Samples, []Period{empty, last}, o)[0]
				o.Shares = last.Shares
				alone := Compare(last.Samples[0], last.Samples[1:], o)[0]
				check.That(t, equalNumbers(one.Lift.Value,
					alone.Lift.Value), "one period: %+v, want %+v", one, alone)
				check.That(t, equalNumbers(one.Lift.Interval[0], alone.Lift.Interval[0]), "one period: %+v, want %+v",
					one, alone)
			}
			bayes := ComparePeriods(last.Samples, test.periods, Options{
				SignificanceLevel: 95,
				Methodology:       MethodologyBayesian, Prior: &Prior{StandardDeviation: 5 / 1.96},
			})[0]
			chance := *bayes.Bayesian.ChanceToBeatControl
			wide := distuv.UnitNormal.CDF(want) // under a wide prior
			check.That(t, math.Abs(chance-wide) <= .02, "chance to beat control %v, want about %v", chance, wide)
		})
	}
	few := []Period{{[]Sample{rate(99, 10), rate(500, 60)}, nil}, {[]Sample{rate(5000, 1000), rate(99, 20)}, nil}}
	if got := ComparePeriods([]Sample{rate(5099, 1010), rate(599, 80)}, few, o)[0]; got.Difference.Value != nil ||
		got.Verdict != VerdictInsufficientData || got.Reasons[0] != ReasonTooFewVisitors {
		t.Errorf("without a period of 100 visitors in both: %+v", got)
	}
}

func equalNumbers(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }
