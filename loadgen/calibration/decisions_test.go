package calibration

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/stats"
)

// decisionText returns the rows, one per line.
func decisionText(d *Decisions) string {
	var to strings.Builder
	for _, r := range d.Rows {
		fmt.Fprintf(&to, "%+v %s\n", r, r.Verdict())
	}
	return to.String()
}

// mustDecide runs scenarios.
func mustDecide(t *testing.T, o DecisionOptions, scenarios ...scenario) *Decisions {
	t.Helper()
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return must.Get(runScenarios(t.Context(), scenarios, &o))(t)
}

// TestDecisionsDependOnTheSeedOnly checks that neither the number of workers nor the other scenarios change a row.
func TestDecisionsDependOnTheSeedOnly(t *testing.T) {
	tier.OnlyLong(t)
	c := usual.withShares(50, 50).withDailyVisitors(1000)
	all := []scenario{
		c.errorScenario(partNoEffect, "", ordinaryVisitors),
		c.powerScenario("", decisionPower),
		c.withGuardrails(stats.Margin{Relative: 0.1}, 1).finishedScenario(partGuards, "", "safe", 0, 1,
			ordinaryVisitors, hasSafeGuardrail),
	}
	one := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 7, Workers: 1}, all...)
	if several := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 7, Workers: 5},
		all...); !reflect.DeepEqual(one.Rows, several.Rows) {
		t.Errorf("five workers change the rows:\n%s%s", decisionText(one), decisionText(several))
	}
	alone := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 7}, all[1])
	check.That(t, alone.Rows[0] == one.Rows[1], "other scenarios change the row: %+v, want %+v", alone.Rows,
		one.Rows[1])
	other := mustDecide(t, DecisionOptions{Experiments: 60, Seed: 8}, all...)
	check.That(t, !reflect.DeepEqual(one.Rows, other.Rows), "another seed gives equal rows")
}

// TestWrongDecisionsAreDetected replaces the decisions by wrong ones.
func TestWrongDecisionsAreDetected(t *testing.T) {
	c := usual.withShares(50, 50).withDailyVisitors(1000)
	peeking := c.errorScenario(partNoEffect, "", ordinaryVisitors)
	begin := c.newLifeFunc()
	peeking.occurs = func(random *rand.Rand) bool { // a fixed test at each look
		l, now := begin(random), make([]totals, 2)
		for week := range weeksOfLooks {
			l.addDays(ordinaryVisitors, 1+week)
			for _, a := range l.series[goalID][2*week:] {
				now[a.VariationID] = now[a.VariationID].addScaled(totals{visitors: a.Visitors, converted: a.Converted},
					1)
			}
			samples := c.samplesOf(now)
			if stats.Compare(samples[0], samples[1:],
				stats.Options{
					SignificanceLevel: decisionLevel,
					Methodology:       stats.MethodologyFrequentist,
				})[0].Significant {
				return true
			}
		}
		return false
	}
	third := usual.withShares(50, 50).withDailyVisitors(750).powerScenario("", decisionPower) // of the required sample
	alarm := mismatchScenario(5, usual.withShares(50, 50), []float64{0.48, 0.52}, 0, 0.001)
	for _, wrong := range []scenario{peeking, third, alarm} {
		d := mustDecide(t, DecisionOptions{Experiments: 100, Seed: 1}, wrong)
		check.Equal(t, d.Outside, 1, "inside its band, error %v:\n%s", d.Err(), decisionText(d))
		check.That(t, d.Err() != nil, "inside its band, error %v:\n%s", d.Err(), decisionText(d))
		check.Contains(t, decisionText(d), "OUTSIDE", "inside its band, error %v:\n%s", d.Err(), decisionText(d))
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
		if r.setRateAndBand(); r.Outside != test.outside {
			t.Errorf("%d of %d: %+v", test.count, test.experiments, r)
		}
	}
}

// TestLives compares what the looks count with what the natures say.
func TestLives(t *testing.T) {
	even := usual.withShares(50, 50).withDailyVisitors(2000).withFewerLooks()
	const n, p = 12 * 7000, 0.05 // visitors of a variation
	for _, test := range []struct {
		name                string
		of                  nature
		visitors, converted float64
	}{
		{"usual", ordinaryVisitors, n, n * p},
		{"weekdays", weekendEffect(0.2), n, n * p},
		// The look has what arrived by a day after it: 21 of the 49 pairs of a day of the last week
		// and a delay end later.
		{"late", lateConversions(1), n, n*p - 7000*p*21/49},
		// Each Sunday 70 visitors see the other variation at once and 1, 2 and 3 weeks later. The
		// last three groups are still counted: those of 3, of 2 and 3, and of 1 to 3 weeks later.
		{"switch", switchingVisitors(0.04), n - 12*4*70 + 6*70, (n - 12*4*70 + 6*70) * p},
	} {
		l := even.newLifeFunc()(rand.New(rand.NewPCG(1, 2)))
		for l.days <= daysOfWeek*even.weeks+1 {
			l.addDays(test.of, l.days)
			l.recordLooks(startOfDay(l.days))
		}
		found := l.inTheEnd()
		last := found.Primary.LastLook(0)
		must.Equal(t, len(found.Primary.Rows), even.weeks, "%s: %d looks, the last %+v", test.name,
			len(found.Primary.Rows), last)
		must.That(t, !last.RecordedAt.IsZero(), "%s: %d looks, the last %+v", test.name, len(found.Primary.Rows), last)
		must.Equal(t, last.Tau, 3, "%s: %d looks, the last %+v", test.name, len(found.Primary.Rows), last)
		near(t, test.name+" visitors", float64(last.Strata[0].Control.Visitors), test.visitors, 1e-9)
		var moved float64 // converted visitors of both variations
		for _, s := range l.storedSteps(plan.Measure{GoalID: goalID}, plan.OnEvent, startOfDay(1), last.RecordedAt) {
			if !s.MultiExposed {
				moved += float64(s.Converted)
			}
		}
		near(t, test.name+" converted", moved, 2*test.converted, math.Sqrt(2*n*p))
	}
}

// TestPausesBreakWeeks checks that the days of a broken week are in no look.
func TestPausesBreakWeeks(t *testing.T) {
	c := usual.withShares(50, 50).withDailyVisitors(2000).withFewerLooks()
	l := c.newLifeFunc()(rand.New(rand.NewPCG(3, 4)))
	l.addDays(ordinaryVisitors, 10) // a week and three days
	end, again := startOfDay(11).Add(-time.Minute), l.plan.Runs[0]
	l.plan.Runs[0].To, again.From = &end, startOfDay(13).Add(day/2)
	l.plan.Runs, l.days = append(l.plan.Runs, again), 13
	l.addDays(ordinaryVisitors, daysOfWeek*c.weeks)
	found := l.inTheEnd()
	// Whole weeks begin on days 1 and 14.
	n := len(found.Looks)
	check.Equal(t, n, 11, "%d looks: %+v, %+v", n, found.Looks, found.Primary.LastLook(0).Strata)
	check.That(t, found.Looks[1].End.Equal(startOfDay(21)), "%d looks: %+v, %+v", n, found.Looks,
		found.Primary.LastLook(0).Strata)
	check.Equal(t, found.Primary.LastLook(0).Strata[0].Control.Visitors, 11*7000, "%d looks: %+v, %+v", n, found.Looks,
		found.Primary.LastLook(0).Strata)
}

func TestDraws(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, a := range []audience{
		{buyers: 0.02, revenue: true},
		{buyers: 0.02, revenue: true, limit: 2000},
		{buyers: 0.2},
	} {
		const visitors, lift = 4_000_000, 0.5
		got, n := a.drawTotals(random, visitors, lift), visitors*a.buyers*(1+lift)
		near(t, a.String()+" buyers", float64(got.converted), n, math.Sqrt(n))
		if m, ok := a.expectedSample().(stats.Mean); ok {
			near(t, a.String()+" revenue", got.sum/visitors, m.Mean*(1+lift),
				math.Sqrt((m.Variance+m.Mean*m.Mean)*(1+lift)/visitors))
		}
	}
	r := usual.expectedSample().(stats.Rate)
	check.That(t, float64(r.Converted)/float64(r.Visitors) == 0.05, "%+v", r)
	const draws = 200_000
	for _, test := range []struct{ n, p float64 }{
		{10, 0.3},
		{300, 0.001},
		{5000, 0.004},
		{40_000, 0.05},
		{40_000, 0.95},
	} {
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

// TestCrowds compares the sums of concurrent campaigns with what their visitors are to do.
func TestCrowds(t *testing.T) {
	often := campaign{audience: audience{buyers: 0.1}, mde: 0.2}
	const days, visitors = 20, 64 * 500.
	c := &crossing{
		campaign: often.withShares(50, 50), campaigns: 3, visitors: visitors, areLast: true,
		lifts: [2]float64{0.5, -0.5}, follows: 0.2,
	}
	w := c.newCrowdFunc(alarmOfAssignment)(rand.New(rand.NewPCG(5, 6)))
	for range days {
		w.addDay()
	}
	for _, of := range []struct {
		a, b    int // variations of the second and the third campaign
		n, rate float64
	}{{0, 0, 0.3, 0.1}, {0, 1, 0.2, 0.1}, {1, 0, 0.2, 0.15}, {1, 1, 0.3, 0.05}} {
		cell, n := w.cells[1][2][of.a][of.b], days*visitors*of.n
		near(t, fmt.Sprint("visitors of ", of), float64(cell.Visitors), n, math.Sqrt(n))
		near(t, fmt.Sprint("conversions of ", of), float64(cell.Nonzero), n*of.rate, math.Sqrt(n*of.rate))
		swapped := w.sumsOf(w.campaigns[2], w.campaigns[1])[of.b][of.a]
		check.Equal(t, swapped, cell, "sums in the other direction")
	}
	near(t, "visitors of others", float64(w.cells[0][1][1][1].Visitors), days*visitors/4, math.Sqrt(days*visitors))
}

// TestLearnedPriors checks that a prior is learned from the ideas before it, and that none starts ahead.
func TestLearnedPriors(t *testing.T) {
	even := usual.withShares(50, 50)
	none, bad, good := even.withLearnedPrior(pastIdeas{}), even.withLearnedPrior(pastIdeas{
		15, -0.3,
		0.25,
	}), even.withLearnedPrior(pastIdeas{15, 0.5, 0.25})
	check.Equal(t, none.learned.Mean, 0, "of nothing: %+v", none.learned)
	check.That(t, none.prior().StandardDeviation < usual.mde/2, "of nothing: %+v", none.learned)
	check.That(t, bad.learned.Mean < -1, "of harmful ideas: %+v", bad.learned)
	check.Equal(t, bad.prior().Mean, bad.learned.Mean/100, "of harmful ideas: %+v", bad.learned)
	check.Equal(t, good.learned.Mean, 0, "mean of good ideas")
	planned := bad.reportPlan().Rules.Prior
	check.Equal(t, planned.Mean, bad.prior().Mean, "mean of the prior of the plan")
	check.Equal(t, planned.StandardDeviation, bad.prior().StandardDeviation, "deviation of the prior of the plan")
}

// TestHarmIsCounted counts what does harm or nothing where nothing has an effect, and where everything has a large one.
func TestHarmIsCounted(t *testing.T) {
	zero := trueEffects{"zero", false, orZero(1, nil)}
	random := rand.New(rand.NewPCG(7, 8))
	nothing := simulateHarm(random, &zero, 60, 20, criticalValues())
	check.That(t, nothing.Shipped > 0, "nothing: %+v", nothing)
	check.Equal(t, nothing.True, nothing.Shipped, "nothing: %+v", nothing)
	check.That(t, nothing.Stated > nothing.True/3, "nothing: %+v", nothing)
	check.That(t, nothing.Stated < nothing.True, "nothing: %+v", nothing)
	large := trueEffects{"large", false, normalEffects(0, 2)}
	all := simulateHarm(random, &large, 8, 20, criticalValues())
	check.That(t, all.Shipped > 7, "large: %+v", all)
	check.Equal(t, all.True, 0, "large: %+v", all)
	check.That(t, all.Stated < .05, "large: %+v", all)
	check.Equal(t, all.None, 1, "large: %+v", all)
	all.checkBars(0, 1)
	check.Equal(t, len(all.Misses), 1, "misses without any that does nothing")
	check.That(t, WriteHarm(io.Discard, []HarmRow{all}) != nil, "a missed bar is no error")
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
	o := DecisionOptions{Experiments: 1, Workers: 1, Only: regexp.MustCompile("Power.*bayesian")}
	check.Equal(t, len(must.Get(RunDecisions(t.Context(), &o))(t).Rows), 12, "rows")
	o.Only = regexp.MustCompile("no such scenario")
	_, err := RunDecisions(t.Context(), &o)
	must.That(t, err != nil, "no scenario: error %v", err)
	check.Contains(t, err.Error(), `no scenario matches "no such scenario"`, "no scenario: error %v", err)
}

// TestLongDecisionsAreCalibrated runs all scenarios with few campaigns. The full table has 4,000 experiments of each.
// About two of a hundred rates are outside their bands of two standard errors by chance; none should be beyond four.
func TestLongDecisionsAreCalibrated(t *testing.T) {
	tier.OnlyLong(t)
	d := mustDecide(t, DecisionOptions{Experiments: 200, Seed: 1}, decisionScenarios()...)
	for _, r := range d.Rows {
		check.That(t, r.Rate >= 2*r.Lower-r.Least, "%s %s: the rate of %s is %v, limits %v and %v", r.Part, r.Scenario,
			r.Measure, r.Rate, r.Least, r.Most)
		check.That(t, r.Rate <= 2*r.Upper-r.Most, "%s %s: the rate of %s is %v, limits %v and %v", r.Part, r.Scenario,
			r.Measure, r.Rate, r.Least, r.Most)
	}
}
