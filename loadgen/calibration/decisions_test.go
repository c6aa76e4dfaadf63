package calibration

import (
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"lifthouse/schema/schematest/tier"
	"lifthouse/stats"
)

func decisionText(d *Decisions) string {
	var to strings.Builder
	d.Write(&to)
	return to.String()
}

// mustDecide runs scenarios.
func mustDecide(t *testing.T, o DecisionOptions, scenarios ...scenario) *Decisions {
	t.Helper()
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	d, err := runScenarios(t.Context(), scenarios, &o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDecisionsDependOnTheSeedOnly checks that neither the number of workers nor the
// other scenarios change a row.
func TestDecisionsDependOnTheSeedOnly(t *testing.T) {
	all := []scenario{
		usual.with(50, 50).anyLookError(),
		usual.with(50, 50).alwaysValidPower(),
		revenue.with(70, 30).unevenSplit(10_000),
		frequent.with(50, 50).asBayesian().statedChance(),
		usual.with(50, 50).breakdownError(),
	}
	one := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 7, Workers: 1}, all...)
	if several := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 7, Workers: 5}, all...); !reflect.DeepEqual(one.Rows, several.Rows) {
		t.Errorf("five workers change the rows:\n%s%s", decisionText(one), decisionText(several))
	}
	alone := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 7}, all[2])
	if with := one.Rows[4:6]; !reflect.DeepEqual(alone.Rows, with) {
		t.Errorf("other scenarios change the rows: %+v, want %+v", alone.Rows, with)
	}
	if other := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 8}, all...); reflect.DeepEqual(one.Rows, other.Rows) {
		t.Error("another seed gives equal rows")
	}
}

// TestWrongDecisionsAreDetected replaces the decisions by wrong ones.
func TestWrongDecisionsAreDetected(t *testing.T) {
	c := usual.with(50, 50)
	peeking := c.anyLookError()
	days, o := equalDays(peeking.planned, 20), c.options()
	peeking.simulate = func(random *rand.Rand) []observation {
		wrong := slices.ContainsFunc(c.looks(random, days), func(look stats.Look) bool {
			return stats.Compare(look.Samples[0], look.Samples[1:], o)[0].Significant
		})
		return []observation{{counted: true, occurred: wrong}}
	}
	early := usual.with(50, 50).plannedAt(20_000).power() // a third of the required sample
	flat := usual.with(50, 50).asBayesian().statedChance()
	right := flat.simulate
	flat.simulate = func(random *rand.Rand) []observation {
		found := right(random)
		found[0].stated = 0.9999
		found[0].occurred = found[0].occurred && random.Float64() < 0.9
		return found
	}
	for _, wrong := range []scenario{peeking, early, flat} {
		d := mustDecide(t, DecisionOptions{Experiments: 100, Seed: 1}, wrong)
		if d.Outside != 1 || d.Err() == nil || !strings.Contains(decisionText(d), "OUTSIDE") {
			t.Errorf("inside its band, error %v:\n%s", d.Err(), decisionText(d))
		}
	}
	nothing := usual.with(50, 50).anyLookError()
	nothing.simulate = func(*rand.Rand) []observation { return []observation{{}} }
	if d := mustDecide(t, DecisionOptions{Experiments: 5, Seed: 1}, nothing); d.Outside != 1 {
		t.Errorf("a measure without experiments is inside its band:\n%s", decisionText(d))
	}
}

func TestBandOfDecisionRow(t *testing.T) {
	for _, test := range []struct {
		count, experiments int
		least, most        float64
		outside            bool
	}{
		{227, 4000, 0, 0.05, false}, // .0500 + 2 × .0034 = .0569
		{228, 4000, 0, 0.05, true},
		{0, 4000, 0, 0.05, false},
		{3068, 4000, 0.78, 1, false}, // .7800 - 2 × .0065 = .7669
		{3067, 4000, 0.78, 1, true},
		{4000, 4000, 0.78, 1, false},
		{98, 4000, 0.03, 0.06, true}, // .0300 - 2 × .0027 = .0246
		{99, 4000, 0.03, 0.06, false},
		{100, 100, 0.99, 1.01, false}, // a stated chance of 1
	} {
		r := DecisionRow{Count: test.count, Experiments: test.experiments, Least: test.least, Most: test.most}
		if r.test(); r.Outside != test.outside {
			t.Errorf("%d of %d: %+v", test.count, test.experiments, r)
		}
	}
}

// TestDrawsMatchTheAudience compares the drawn totals with their expectations.
func TestDrawsMatchTheAudience(t *testing.T) {
	const experiments, visitors = 400, 20_000
	for _, a := range []audience{
		{buyers: 0.02, revenue: true, shares: []float64{70, 20, 10}},
		{buyers: 0.001, revenue: true, shares: []float64{95, 5}},
		{buyers: 0.2, shares: []float64{50, 50}},
	} {
		random := rand.New(rand.NewPCG(3, 3))
		all := make([]totals, len(a.shares))
		for range experiments {
			a.arrive(random, all, visitors, 0, 0.5)
		}
		const n = experiments * visitors
		arrived := int64(0)
		for i, share := range a.shares {
			p, rate := share/100, a.buyers
			if i == 1 {
				rate *= 1.5
			}
			arrived += all[i].visitors
			near(t, a.String()+" visitors", float64(all[i].visitors), n*p, math.Sqrt(n*p*(1-p)))
			near(t, a.String()+" buyers", float64(all[i].converted), n*p*rate, math.Sqrt(n*p*rate*(1-rate*p)))
			if orders := float64(all[i].converted); a.revenue {
				mean := math.Exp(orderMu + orderSigma*orderSigma/2.0)
				near(t, a.String()+" revenue", all[i].sum, orders*mean, mean*math.Sqrt(orders*(math.Exp(orderSigma*orderSigma)-1)))
			} else if all[i].sum != 0 {
				t.Errorf("%s: a rate has revenue", &a)
			}
		}
		if arrived != n {
			t.Errorf("%s: %d visitors, want %d", &a, arrived, n)
		}
	}
	const draws = 200_000
	random := rand.New(rand.NewPCG(4, 4))
	for _, test := range []struct{ n, p float64 }{{10, 0.3}, {300, 0.001}, {5000, 0.004}, {40_000, 0.05}, {40_000, 0.95}} {
		sum, squares := 0.0, 0.0
		for range draws {
			d := float64(drawBinomial(random, int64(test.n), test.p)) - test.n*test.p
			sum += d
			squares += d * d
		}
		variance := test.n * test.p * (1 - test.p)
		near(t, "mean of a binomial", sum/draws, 0, math.Sqrt(variance/draws))
		near(t, "variance of a binomial", squares/draws, variance, math.Sqrt((2*variance*variance+variance)/draws))
	}
}

func TestExpectedSample(t *testing.T) {
	m := revenue.expected().(stats.Mean)
	if want := 0.02 * math.Exp(5); math.Abs(m.Mean-want) > 1e-9*want {
		t.Errorf("mean %g, want %g", m.Mean, want)
	}
	if want := 0.02*math.Exp(14) - m.Mean*m.Mean; math.Abs(m.Variance-want) > 1e-6*want {
		t.Errorf("variance %g, want %g", m.Variance, want)
	}
	if r := usual.expected().(stats.Rate); float64(r.Converted)/float64(r.Visitors) != 0.05 {
		t.Errorf("%+v", r)
	}
}

// TestLooksOfAnyLookErrors checks that looks exist before, at and after the plan.
func TestLooksOfAnyLookErrors(t *testing.T) {
	c := usual.with(75, 25)
	planned := c.visitors()
	days := slices.Concat(equalDays(planned, daysToPlan), growingDays(planned, daysAfterPlan, lastMultiple))
	if len(days) != 50 || days[9] != planned || days[49] != lastMultiple*planned || !slices.IsSorted(days) {
		t.Errorf("plan %d, looks at %v", planned, days)
	}
	d := stats.Decide(c.looks(rand.New(rand.NewPCG(5, 5)), days), c.plan(), c.options())
	if d.PlannedLook != daysToPlan-1 {
		t.Errorf("the planned look is look %d, want %d", d.PlannedLook, daysToPlan-1)
	}
}

func TestDecisionScenarios(t *testing.T) {
	ids := map[string]bool{}
	for _, s := range decisionScenarios() {
		if ids[s.id()] {
			t.Errorf("scenarios have the same id, and so the same random numbers: %s", s.id())
		}
		ids[s.id()] = true
	}
	o := DecisionDefaults
	o.Workers = 1
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	o.Only = regexp.MustCompile("A/A.*revenue.*bayesian")
	if err := o.Validate(); err != nil || len(o.selected(decisionScenarios())) != 3 {
		t.Errorf("%v, %d scenarios", err, len(o.selected(decisionScenarios())))
	}
	o = DecisionOptions{Only: regexp.MustCompile("no such scenario")}
	for _, name := range []string{"experiments 0", "workers 0", `only "no such scenario"`} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not contain %s", err, name)
		}
	}
}

// TestLongDecisionsAreCalibrated runs all scenarios with few experiments. The full
// table has 4,000 experiments of each.
func TestLongDecisionsAreCalibrated(t *testing.T) {
	tier.OnlyLong(t)
	d := mustDecide(t, DecisionOptions{Experiments: 300, Seed: 1}, decisionScenarios()...)
	if d.Err() != nil {
		t.Errorf("%v\n%s", d.Err(), decisionText(d))
	}
}
