package demo_test

import (
	"testing"
	"time"

	"lifthouse/engine/enginetest"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/loadgen/demo"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/stats"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// TestDemoShowsEachDecision checks the decision of each campaign, and that the interval of its worth contains the
// planted one: the difference of the conversion rates, times the visitors of a month.
func TestDemoShowsEachDecision(t *testing.T) {
	tier.OnlyLong(t)
	start := time.Date(2026, 10, 30, 0, 0, 0, 0, time.UTC)
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	must.Get(c.ApplyFile(t.Context(), demo.ShopCatalogue(start), false))(t)
	e, w := enginetest.Open(t, conn, c)
	must.OK(t, w.WriteEvents(t.Context(), demo.ShopEvents(start)))
	for _, test := range []struct {
		campaign int64
		decision result.DecisionStatus
		planted  []float64 // difference of the conversion rates, by treatment
		visitors int64
		days     float64
	}{
		{12, result.DecisionShip, []float64{0.015}, 24_000, 28},
		{13, result.DecisionKeepRunning, []float64{0, 0}, 9_000, 18},
		{14, result.DecisionKeepRunning, nil, 3_000, 14}, // its planted effects are larger than the programme makes likely
		{15, result.DecisionNoDifference, []float64{0}, 12_000, 20},
		{16, result.DecisionRollBack, []float64{-0.025}, 8_000, 16},
		{17, result.DecisionInvalid, []float64{0.010}, 6_000, 12},
		{18, result.DecisionShip, nil, 14_000, 28},
	} {
		p := must.Get(e.PlanReport(query.Request{AccountID: demo.Account, SubjectID: test.campaign, Metric: query.GoalConversionRate, Scorecard: true}))(t)
		r := must.Get(e.ComputeReport(t.Context(), p))(t)
		check.Equal(t, r.Decision.Status, test.decision, "campaign %d: %s", test.campaign, r.Decision.Text)
		for i, difference := range test.planted {
			item, want := r.Worth.Items[i], difference*float64(test.visitors)*30/test.days
			if test.campaign == 17 { // its split is wrong
				check.Equal(t, item.Reason, stats.ReasonSampleRatioMismatch, "campaign 17")
				continue
			}
			month := item.Expected.PerMonth
			check.That(t, month != nil && month.Interval[0] <= want && month.Interval[1] >= want,
				"campaign %d, treatment %d: worth %+v, planted %v", test.campaign, i+1, month, want)
		}
	}
}
