package stats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func guardLooks(looks ...[4]int64) []Look {
	var all []Look
	for _, l := range looks {
		all = append(all, Look{Samples: []Sample{Rate{l[0], l[1]}, Rate{l[2], l[3]}}, Visitors: l[0] + l[2], NonNegative: true})
	}
	return all
}

func TestGuard(t *testing.T) {
	o := Options{SignificanceLevel: 95, Shares: []float64{1, 1}, PlannedVisitors: 20_000}
	plan := DecisionPlan{Shares: o.Shares, MinimumEffect: .1, Power: .8}
	for _, test := range []struct {
		name    string
		looks   []Look
		planned int
		g       Guardrail
		status  GuardrailStatus
		look    int
		reason  Reason
	}{
		{"too few visitors", guardLooks([4]int64{50, 5, 50, 5}), -1, Guardrail{Margin: .1, Competing: 1}, GuardrailNotYetKnown, -1, ReasonTooFewVisitors},
		{"open", guardLooks([4]int64{1000, 100, 1000, 100}), -1, Guardrail{Margin: .1, Competing: 1}, GuardrailNotYetKnown, -1, ""},
		{"safe only at the planned look", guardLooks([4]int64{10_000, 2000, 10_000, 2000}, [4]int64{11_000, 2200, 11_000, 2200}), 1, Guardrail{Margin: .05, Competing: 1}, GuardrailSafe, 1, ""},
		{"not safe at another look", guardLooks([4]int64{10_000, 2000, 10_000, 2000}, [4]int64{11_000, 2200, 11_000, 2200}), -1, Guardrail{Margin: .05, Competing: 1}, GuardrailNotYetKnown, -1, ""},
		{"harmed", guardLooks([4]int64{10_000, 2000, 10_000, 1000}), -1, Guardrail{Margin: .1, Competing: 2}, GuardrailHarmed, 0, ""},
		{"harmed: more is worse", guardLooks([4]int64{10_000, 1000, 10_000, 2000}), -1, Guardrail{Margin: .1, Down: true, Competing: 2}, GuardrailHarmed, 0, ""},
		{"safe: less is better", guardLooks([4]int64{10_000, 2000, 10_000, 1000}), -1, Guardrail{Margin: .1, Down: true, Competing: 2}, GuardrailSafe, 0, ""},
		{"absolute margin", guardLooks([4]int64{10_000, 2000, 10_000, 2000}), -1, Guardrail{AbsoluteMargin: .05, Competing: 1}, GuardrailSafe, 0, ""},
		{"harm follows safety", guardLooks([4]int64{10_000, 2000, 10_000, 2400}, [4]int64{40_000, 8000, 40_000, 4000}), -1, Guardrail{Margin: .1, Competing: 1}, GuardrailHarmed, 1, ""},
	} {
		r := Guard(test.looks, test.planned, test.g, plan, o)[0]
		if r.Status != test.status || r.Look != test.look || r.Reason != test.reason {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// TestGuardBoundsAreScoreTests checks that the lower bound of a rate is the ratio at
// which the restricted likelihood gives the critical value: the restricted estimate
// maximizes the likelihood over a grid.
func TestGuardBoundsAreScoreTests(t *testing.T) {
	const xc, nc, xt, nt = 400.0, 5000.0, 390.0, 5000.0
	o := Options{SignificanceLevel: 95, Shares: []float64{1, 1}}
	look := guardLooks([4]int64{nc, xc, nt, xt})[0]
	at := Guardrail{Margin: .1}.at(look, 0, true, o)
	ratio := 1 + at.lower
	logLikelihood := func(pc float64) float64 {
		pt := pc * ratio
		return xc*math.Log(pc) + (nc-xc)*math.Log1p(-pc) + xt*math.Log(pt) + (nt-xt)*math.Log1p(-pt)
	}
	low, high := 1e-9, math.Min(1, 1/ratio)-1e-9
	for range 200 { // golden section would do as well: the likelihood is concave
		a, b := low+(high-low)/3, high-(high-low)/3
		if logLikelihood(a) < logLikelihood(b) {
			low = a
		} else {
			high = b
		}
	}
	pc := (low + high) / 2
	pt := pc * ratio
	n := nc + nt
	z := (xt/nt - ratio*xc/nc) / math.Sqrt((pt*(1-pt)/nt+ratio*ratio*pc*(1-pc)/nc)*n/(n-1))
	if want := normalQuantile(PlannedLookShare * .05); math.Abs(z-want) > 1e-6 {
		t.Errorf("z %v at the bound, want %v", z, want)
	}
}

// TestGuardRequired checks that the required sample has the planned power at the
// planned look.
func TestGuardRequired(t *testing.T) {
	o := Options{SignificanceLevel: 95, Shares: []float64{1, 1}}
	plan := DecisionPlan{Shares: o.Shares, MinimumEffect: .1, Power: .8}
	random := rand.New(rand.NewPCG(1, 21))
	for _, g := range []Guardrail{{Margin: .1, Competing: 1}, {Margin: .1, Down: true, Competing: 1}, {AbsoluteMargin: .01, Competing: 1}} {
		required := Guard(guardLooks([4]int64{10_000, 1000, 10_000, 1000}), 0, g, plan, o)[0].Required
		n := *required / 2
		safe := 0
		const experiments = 2000
		for range experiments {
			x := [2]int64{}
			for i := range x {
				x[i] = int64(math.Round(.1*float64(n) + math.Sqrt(.09*float64(n))*random.NormFloat64()))
			}
			if Guard(guardLooks([4]int64{n, x[0], n, x[1]}), 0, g, plan, o)[0].Status == GuardrailSafe {
				safe++
			}
		}
		if power := float64(safe) / experiments; math.Abs(power-.8) > .03 {
			t.Errorf("%+v: power %v at %d visitors", g, power, *required)
		}
	}
}

func TestEquivalence(t *testing.T) {
	o := Options{SignificanceLevel: 95, Shares: []float64{1, 1}, PlannedVisitors: 20_000}
	looks := guardLooks([4]int64{1000, 200, 1000, 200}, [4]int64{20_000, 4000, 20_000, 4010}, [4]int64{400_000, 80_000, 400_000, 80_100})
	for _, test := range []struct {
		margin  float64
		planned int
		want    int
	}{{.2, -1, 1}, {.06, -1, 2}, {.06, 1, 1}, {.001, 1, -1}} {
		if got := Equivalence(looks, test.planned, test.margin, o); got != test.want {
			t.Errorf("margin %v, planned look %d: %d, want %d", test.margin, test.planned, got, test.want)
		}
	}
	if got := Equivalence(nil, -1, .1, o); got != -1 {
		t.Error(got)
	}
}

// TestRatioMean compares the comparison of two ratios with gbstats' RatioStatistic: the
// variance of the difference is the sum of those of the delta method.
func TestRatioMean(t *testing.T) {
	ratio := func(n, value, values, goals, squares, products int64) Ratio {
		return Ratio{
			Visitors: n, Scale: 1, Value: Sums{big.NewInt(value), big.NewInt(values)}, Goals: Sums{big.NewInt(goals), big.NewInt(squares)},
			Products: big.NewInt(products),
		}
	}
	c, d := ratio(1000, 5000, 60_000, 300, 500, 5100), ratio(1100, 6500, 88_000, 320, 560, 6600)
	delta := func(r Ratio) (value, variance float64) {
		f := func(x *big.Int) float64 { y, _ := new(big.Float).SetInt(x).Float64(); return y }
		n := float64(r.Visitors)
		m, g := f(r.Value.Sum)/n, f(r.Goals.Sum)/n
		vm := (f(r.Value.Squares) - n*m*m) / (n - 1)
		vg := (f(r.Goals.Squares) - n*g*g) / (n - 1)
		cov := (f(r.Products) - n*m*g) / (n - 1)
		return m / g, (vm/(g*g) - 2*m*cov/(g*g*g) + m*m*vg/(g*g*g*g)) / n
	}
	got := Compare(c.Mean(200), []Sample{d.Mean(210)}, Options{SignificanceLevel: 95, Shares: []float64{1, 1}})[0]
	mc, sc := delta(c)
	md, sd := delta(d)
	if want := md - mc; math.Abs(*got.Difference.Value-want) > 1e-12 {
		t.Errorf("difference %v, want %v", *got.Difference.Value, want)
	}
	if want := (md - mc) / math.Sqrt(sc+sd); math.Abs(*got.Frequentist.Statistic-want) > 1e-9*math.Abs(want) {
		t.Errorf("t %v, want %v", *got.Frequentist.Statistic, want)
	}
	if without := Compare(ratio(100, 0, 0, 0, 0, 0).Mean(0), []Sample{d.Mean(210)}, Options{SignificanceLevel: 95})[0]; without.Difference.Value != nil || without.Frequentist.Reason == "" {
		t.Errorf("without goals: %+v", without)
	}
}
