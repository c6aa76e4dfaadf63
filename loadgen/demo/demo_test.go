package demo_test

import (
	"reflect"
	"testing"
	"time"

	"lifthouse/engine/enginetest"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/loadgen/demo"
	"lifthouse/schema"
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
		{
			14, result.DecisionKeepRunning, nil, 3_000,
			14,
		}, // its planted effects are larger than the programme makes likely
		{15, result.DecisionNoDifference, []float64{0}, 12_000, 20},
		{16, result.DecisionRollBack, []float64{-0.025}, 8_000, 16},
		{17, result.DecisionInvalid, []float64{0.010}, 6_000, 12},
		{18, result.DecisionShip, nil, 14_000, 28},
	} {
		p := must.Get(e.PlanReport(query.Request{
			AccountID: demo.Account, SubjectID: test.campaign,
			Metric: query.GoalConversionRate, Scorecard: true,
		}))(t)
		r := must.Get(e.ComputeReport(t.Context(), p))(t)
		check.Equal(t, r.Decision.Status, test.decision, "campaign %d: %s", test.campaign, r.Decision.Text)
		for i, difference := range test.planted {
			item, want := r.Worth.Items[i], difference*float64(test.visitors)*30/test.days
			if test.campaign == 17 { // its split is wrong
				check.Equal(t, item.Reason, stats.ReasonSampleRatioMismatch, "campaign 17")
				continue
			}
			month := item.Expected.PerMonth
			must.That(t, month != nil, "campaign %d, treatment %d: worth %+v, planted %v", test.campaign, i+1, month,
				want)
			check.That(t, month.Interval[0] <= want, "campaign %d, treatment %d: worth %+v, planted %v", test.campaign,
				i+1, month, want)
			check.That(t, month.Interval[1] >= want, "campaign %d, treatment %d: worth %+v, planted %v", test.campaign,
				i+1, month, want)
		}
	}
}

// TestTraffic checks that visitors of every running experiment arrive, that each visit begins with a view, and that
// each call returns the events since the last one.
func TestTraffic(t *testing.T) {
	start := time.Date(2026, 11, 1, 3, 0, 0, 0, time.UTC)
	traffic, again := demo.NewTraffic(start), demo.NewTraffic(start)
	visitors := map[uint64]bool{}
	subjects := map[schema.SubjectKind]map[int64]int{schema.SubjectCampaign: {}, schema.SubjectWidget: {}}
	goals, last := 0, start
	const seconds = 1800
	for n := range seconds {
		now := start.Add(time.Duration(n+1) * time.Second)
		events := traffic.NextEvents(now)
		same := again.NextEvents(now)
		must.That(t, reflect.DeepEqual(events, same), "%v and %v from equal starts", events, same)
		for _, e := range events {
			must.That(t, !e.Time.Before(last), "an event of %s after one of %s, at %s", e.Time, last, now)
			must.That(t, !e.Time.After(now), "an event of %s after one of %s, at %s", e.Time, last, now)
			last = e.Time
			check.That(t, visitors[e.VisitorID] || e.Kind == schema.KindView, "a visit begins with %s", e.Kind)
			visitors[e.VisitorID] = true
			subjects[e.Subject][e.SubjectID]++
			if e.Kind == schema.KindGoal {
				goals++
			}
		}
	}
	n := len(visitors)
	check.That(t, n >= 1.9*seconds, "%d visitors in %d seconds", n, seconds)
	check.That(t, n <= 2.1*seconds, "%d visitors in %d seconds", n, seconds)
	check.Equal(t, len(subjects[schema.SubjectCampaign]), 7, "events by subject %v, %d goals", subjects, goals)
	check.Equal(t, len(subjects[schema.SubjectWidget]), 1, "events by subject %v, %d goals", subjects, goals)
	check.That(t, goals >= 100, "events by subject %v, %d goals", subjects, goals)
}
