package stats

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// TestBetaPosteriorAgainstIncompleteBeta compares chances and credible ends
// with an independent computation of the same integral. It uses adaptive
// quadrature of the regularized incomplete beta function, which is accurate
// enough for small counts.
func TestBetaPosteriorAgainstIncompleteBeta(t *testing.T) {
	r := newRand(51)
	rule := newRule()
	for range rounds(200) {
		control, treatment := smallRate(r.Int64N), smallRate(r.Int64N)
		p := rule.betaPosterior(control, treatment, 0.1)
		below := func(cut func(y float64) float64) float64 {
			c, x := incomplete(control), incomplete(treatment)
			points := []float64{0, 1}
			for k := -10.0; k <= 10; k++ {
				points = append(points, math.Min(math.Max(c.Mean()+k*c.StdDev(), 0), 1))
			}
			slices.Sort(points)
			return integrate(func(y float64) float64 {
				return c.Prob(y) * x.CDF(math.Min(math.Max(cut(y), 0), 1))
			}, points, 1e-11)
		}
		checks := []struct {
			what      string
			got, want float64
		}{
			{"chance to lose", below(func(y float64) float64 { return y }), p.below},
			{"lower difference", below(func(y float64) float64 { return y + p.differences.lower }), 0.05},
			{"upper difference", below(func(y float64) float64 { return y + p.differences.upper }), 0.95},
			{"lower lift", below(func(y float64) float64 { return y * (1 + p.lifts.lower) }), 0.05},
			{"upper lift", below(func(y float64) float64 { return y * (1 + p.lifts.upper) }), 0.95},
		}
		for _, check := range checks {
			if math.Abs(check.got-check.want) > 1e-8 {
				t.Errorf("%v and %v: %s at %v, want %v", control, treatment, check.what, check.got, check.want)
			}
		}
		// Both losses differ by the difference of the posterior means, exactly.
		difference := newBeta(treatment).mean() - newBeta(control).mean()
		if math.Abs(p.lossControl-p.loss-difference) > 1e-9 {
			t.Errorf("%v and %v: losses %v and %v, means differ by %v", control, treatment, p.loss, p.lossControl, difference)
		}
	}
}

func smallRate(draw func(int64) int64) Rate {
	n := 1 + draw(800)
	return Rate{Visitors: n, Converted: draw(1 + min(n, 1+draw(800)))}
}

func incomplete(r Rate) distuv.Beta {
	return distuv.Beta{Alpha: float64(r.Converted) + 1, Beta: float64(r.Visitors-r.Converted) + 1}
}

// TestChancesToBeBest checks that the chances to be best sum to one, and that
// for two variations they are the chance to beat control.
func TestChancesToBeBest(t *testing.T) {
	r := newRand(52)
	rule := newRule()
	for i := range rounds(400) {
		samples := make([]Sample, 2+r.IntN(19))
		if i%2 == 0 {
			samples = samples[:2]
		}
		first := randomRate(r)
		for j := range samples {
			samples[j] = randomRival(r, first)
		}
		sum := 0.0
		chances := rule.chancesToBeBest(samples)
		for _, chance := range chances {
			sum += *chance
		}
		if math.Abs(sum-1) > 1e-8 {
			t.Errorf("%v: chances sum to %v", samples, sum)
		}
		if len(samples) == 2 {
			p := rule.betaPosterior(samples[0].(Rate), samples[1].(Rate), 0)
			if math.Abs(*chances[1]-p.above) > 1e-9 {
				t.Errorf("%v: best %v, chance to beat control %v", samples, *chances[1], p.above)
			}
		}
	}
	// A constant mean is a point. Without data there is no chance.
	chances := rule.chancesToBeBest([]Sample{mean(100, 1, 0), mean(100, 1.1, 1), mean(1, 5, 0), nil, mean(100, 0.5, 0)})
	if want := normalSurvival(1); math.Abs(*chances[0]-want) > 1e-6 || math.Abs(*chances[1]-(1-want)) > 1e-6 {
		t.Errorf("against a point: %v and %v", *chances[0], *chances[1])
	}
	if chances[2] != nil || chances[3] != nil || *chances[4] > 1e-9 {
		t.Errorf("chances %v", chances)
	}
	for _, chance := range rule.chancesToBeBest([]Sample{mean(100, 1, 0), mean(100, 2, 0)}) {
		if chance != nil {
			t.Errorf("a chance of %v between points", *chance)
		}
	}
}

// TestPriorAgainstData checks a prior that outweighs a few conversions. The
// posterior is better, the data are worse, and the verdict is neither.
func TestPriorAgainstData(t *testing.T) {
	o := Options{SignificanceLevel: 80, Methodology: MethodologyBayesian}
	c := mustSound(t, Rate{Visitors: 100_000, Converted: 100}, []Sample{Rate{Visitors: 100}}, o)[0]
	if !c.Significant || *c.Difference.Value >= 0 || c.Verdict != VerdictInconclusive {
		t.Errorf("%v %v %s %v", c.Significant, *c.Difference.Value, c.Verdict, c.Reasons)
	}
}
