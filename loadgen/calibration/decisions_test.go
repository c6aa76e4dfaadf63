package calibration

import (
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
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
	c := usual.with(50, 50).daily(1000)
	all := []scenario{
		c.errors(partNoEffect, "", c.usually()),
		c.power("", decisionPower),
		c.safeAtMargin(stats.Margin{Relative: 0.1}),
	}
	one := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 7, Workers: 1}, all...)
	if several := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 7, Workers: 5}, all...); !reflect.DeepEqual(one.Rows, several.Rows) {
		t.Errorf("five workers change the rows:\n%s%s", decisionText(one), decisionText(several))
	}
	if alone := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 7}, all[1]); alone.Rows[0] != one.Rows[1] {
		t.Errorf("other scenarios change the row: %+v, want %+v", alone.Rows, one.Rows[1])
	}
	if other := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 8}, all...); reflect.DeepEqual(one.Rows, other.Rows) {
		t.Error("another seed gives equal rows")
	}
}

// TestWrongDecisionsAreDetected replaces the decisions by wrong ones.
func TestWrongDecisionsAreDetected(t *testing.T) {
	c := usual.with(50, 50).daily(1000)
	peeking := c.errors(partNoEffect, "", c.usually())
	peeking.occurs = func(random *rand.Rand) bool { // a fixed test at each look
		of := c.usually()(random)
		for week := range weeksOfLooks {
			samples := c.samples(of(week)[0])
			if stats.Compare(samples[0], samples[1:], c.options())[0].Significant {
				return true
			}
		}
		return false
	}
	third := usual.with(50, 50).daily(750).power("", decisionPower) // of the required sample
	alarm := ratio(30, stats.Split{Control: 50, Variations: []float64{1}}, []float64{0.48, 0.52}, 0, 0.001)
	for _, wrong := range []scenario{peeking, third, alarm} {
		d := mustDecide(t, DecisionOptions{Experiments: 100, Seed: 1}, wrong)
		if d.Outside != 1 || d.Err() == nil || !strings.Contains(decisionText(d), "OUTSIDE") {
			t.Errorf("inside its band, error %v:\n%s", d.Err(), decisionText(d))
		}
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
		{3150, 4000, 0.8, 1, false}, // .8000 - 2 × .0063 = .7874
		{3149, 4000, 0.8, 1, true},
		{4000, 4000, 0.8, 1, false},
	} {
		r := DecisionRow{Count: test.count, Experiments: test.experiments, Least: test.least, Most: test.most}
		if r.test(); r.Outside != test.outside {
			t.Errorf("%d of %d: %+v", test.count, test.experiments, r)
		}
	}
}

// TestTimetable compares the looks of a timetable with those of a sequence.
func TestTimetable(t *testing.T) {
	for _, c := range []*campaign{
		usual.with(50, 50).daily(100),
		usual.with(70, 10, 10, 10),
		capped.with(95, 5).daily(1000),
		usual.with(50, 50).daily(2000).change(func(c *campaign) { c.ramp = [][]float64{{95, 5}, {95, 5}, {50, 50}} }),
	} {
		c.lifts = []float64{0, 0.1}
		for name, of := range map[string]stream{"usual": c.usually(), "rising": c.rising(), "switching": c.switching(0.03), "late": c.late(0.5)} {
			if c.ramp != nil && (name == "switching" || name == "late") {
				continue // they have no changes of shares
			}
			table, sequence := c.timetable(c.design(), of), c.sequences(c.design())
			at := of(rand.New(rand.NewPCG(5, 6)))
			for week := range 12 {
				strata := at(week)
				for treatment := range len(c.shares) - 1 {
					got, want := table(week, treatment, strata), sequence(week, treatment, strata)
					if (got.Critical == nil) != (want.Critical == nil) || got.Significant != want.Significant {
						t.Fatalf("%s, %s, week %d: %+v, want %+v", c, name, week, got, want)
					}
					if want.Critical != nil && (math.Abs(*got.Critical-*want.Critical) > 1e-9 || *got.Z != *want.Z) {
						t.Errorf("%s, %s, week %d: critical %v, z %v; want %v, %v", c, name, week, *got.Critical, *got.Z, *want.Critical, *want.Z)
					}
				}
			}
		}
	}
}

// TestStreams compares the totals of a year with their expectations.
func TestStreams(t *testing.T) {
	c := usual.with(50, 50).daily(2000)
	const n, p = 52 * 7000, 0.05
	for name, test := range map[string]struct {
		of                  stream
		visitors, converted float64
	}{
		"usual":    {c.usually(), n, n * p},
		"weekdays": {c.weekdays(0.2), n, n * p},
		"late":     {c.late(1), n, n*p - 7000*p*21/49},                       // of the last week
		"switch":   {c.switching(0.04), n*0.96 + 420, 0.05 * (n*0.96 + 420)}, // of the last three weeks, 70 in each group
	} {
		at := test.of(rand.New(rand.NewPCG(1, 2)))
		var last [][]totals
		for week := range weeksOfLooks {
			last = at(week)
		}
		for _, arm := range last[0] {
			near(t, name+" visitors", float64(arm.visitors), test.visitors, 1e-9)
			near(t, name+" converted", float64(arm.converted), test.converted, math.Sqrt(n*p))
		}
	}
}

func TestDraws(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, a := range []audience{{buyers: 0.02, revenue: true}, {buyers: 0.02, revenue: true, limit: 2000}, {buyers: 0.2}} {
		const visitors, lift = 4_000_000, 0.5
		got, n := a.draw(random, visitors, lift), visitors*a.buyers*(1+lift)
		near(t, a.String()+" buyers", float64(got.converted), n, math.Sqrt(n))
		if m, ok := a.expected().(stats.Mean); ok {
			near(t, a.String()+" revenue", got.sum/visitors, m.Mean*(1+lift), math.Sqrt((m.Variance+m.Mean*m.Mean)*(1+lift)/visitors))
		}
	}
	if r := usual.expected().(stats.Rate); float64(r.Converted)/float64(r.Visitors) != 0.05 {
		t.Errorf("%+v", r)
	}
	const draws = 200_000
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

func TestDecisionScenarios(t *testing.T) {
	all := decisionScenarios()
	ids := map[string]bool{}
	for _, s := range all {
		if ids[s.id()] {
			t.Errorf("scenarios have the same id, and so the same random numbers: %s", s.id())
		}
		ids[s.id()] = true
	}
	o := DecisionOptions{Experiments: 4000, Workers: 1, Only: regexp.MustCompile("A/A.*bayesian")}
	if found := len(o.selected(all)); o.Validate() != nil || found != 4 {
		t.Errorf("%d scenarios", found)
	}
	o = DecisionOptions{Only: regexp.MustCompile("no such scenario")}
	for _, name := range []string{"experiments 0", "workers 0", `only "no such scenario"`} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not contain %s", err, name)
		}
	}
}

// TestLongDecisionsAreCalibrated runs all scenarios with few experiments. The full
// table has 4,000 experiments of each. About two of a hundred rates are outside their bands of
// two standard errors by chance; none should be beyond four.
func TestLongDecisionsAreCalibrated(t *testing.T) {
	tier.OnlyLong(t)
	d := mustDecide(t, DecisionOptions{Experiments: 300, Seed: 1}, decisionScenarios()...)
	for _, r := range d.Rows {
		if r.Rate < 2*r.Lower-r.Least || r.Rate > 2*r.Upper-r.Most {
			t.Errorf("%s %s: the rate of %s is %v, limits %v and %v", r.Part, r.Scenario, r.Measure, r.Rate, r.Least, r.Most)
		}
	}
}
