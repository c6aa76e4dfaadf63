package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/stats"
)

// These tests move what must not move the looks: shares, late events, wrong clocks, and views of other variations.

// TestChangedSharesKeepRecordedLooks changes the shares twice after a winner was recorded, with late conversions of
// control. The default rule for multi-exposed visitors follows the shares at the first view, and so does the ledger.
func TestChangedSharesKeepRecordedLooks(t *testing.T) {
	x := newTrial(t, time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -10))
	x.live = true
	x.weeks([]int{50, 75})
	must.Equal(t, x.recordAt(t, x.engine, time.Now()), 1, "rows recorded")
	before := x.report(nil)
	must.Equal(t, x.decided(before), "winner at look 1")
	for _, control := range []int{40, 50} {
		x.campaign.ControlShare, x.campaign.Variations[0].Share = control, 100-control
		x.apply()
		x.live = false
		x.store(3, 90, 0) // late conversions of control
		x.refresh()
		after := x.report(nil)
		check.That(t, after.Looks[0].RecordedAt != nil, "control %d %%: look %s, rule %s", control,
			inJSON(t, after.Looks), after.Checks.MultipleExposures.Rule)
		check.Equal(t, after.Checks.MultipleExposures.Rule, catalogue.ExcludeMultiExposed,
			"control %d %%: look %s, rule %s", control, inJSON(t, after.Looks), after.Checks.MultipleExposures.Rule)
		after.Looks[0].Variations[0].Recomputed = nil
		check.Equal(t, inJSON(t, after.Looks)+x.decided(after), inJSON(t, before.Looks)+x.decided(before),
			"control %d %%", control)
	}
	// A variation that is added later is in today's figures, but in no look.
	x.campaign.Variations = append(x.campaign.Variations, catalogue.Variation{ID: 2, Name: "Blue", Share: 50, Order: 2})
	x.apply()
	after := x.report(nil)
	if look := after.Looks[0].Variations; x.decided(after) != x.decided(before) || look[0].Z == nil ||
		*look[0].Z != *before.Looks[0].Variations[0].Z || look[1].Reason != stats.ReasonPlanChanged {
		t.Errorf("with an added variation: %s, looks %s", x.decided(after), inJSON(t, after.Looks))
	}
}

// storeViews stores n views of each variation, from a time on, as accepted at another time.
func (x *trial) storeViews(n int, from, accepted time.Time) {
	x.t.Helper()
	var events []schema.Event
	for i := range 2 * n {
		events = append(events, x.view(from.Add(time.Duration(i)*time.Second), i%2))
	}
	must.OK(x.t, schema.InsertEvents(x.t.Context(), x.conn, events, accepted))
}

// TestStrayViewsDoNotMoveTheLooks stores views with wrong clocks, and backlogs, before and after the first look.
func TestStrayViewsDoNotMoveTheLooks(t *testing.T) {
	const day = 24 * time.Hour
	type batch struct {
		n              int
		from, accepted int // days after the first one
	}
	live := []batch{{200, 0, 0}, {200, 3, 3}, {200, 8, 8}, {200, 10, 10}}
	for _, test := range []struct {
		name    string
		batches []batch
		want    string // ends of the looks, in days
		warned  bool   // of early views
	}{
		{"live", live, "8", false},
		{"a stray view first", append([]batch{{1, -40, 0}}, live...), "8", false},
		{"a stray view of last week first", append([]batch{{1, -3, 0}}, live...), "8", false},
		{"a stray view on the second day", slices.Insert(slices.Clone(live), 1, batch{1, -40, 1}), "8", false},
		{"a late file on the second day", slices.Insert(slices.Clone(live), 1, batch{300, -20, 1}), "8", false},
		{"a stray view after the look", append(slices.Clone(live), batch{1, -40, 10}), "8", false},
		{"a backlog first", append([]batch{{100, -9, 0}, {100, -5, 0}}, live...), "-1 6", false},
		{"imported", []batch{{200, 0, 60}, {200, 3, 60}, {200, 8, 60}, {200, 10, 60}}, "8 15", false},
		{"imported, with a stray view", []batch{{1, -40, 60}, {200, 0, 60}, {200, 3, 60}, {200, 8, 60}, {200, 10, 60}}, "8 15", true},
		{"imported until now", []batch{{200, 0, 10}, {200, 3, 10}, {200, 8, 10}, {200, 10, 10}}, "8", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newTrial(t, time.Now().UTC().Truncate(day).AddDate(0, 0, -100))
			for i, b := range test.batches {
				from := x.first.AddDate(0, 0, b.from).Add(time.Hour)
				x.storeViews(b.n, from, x.first.AddDate(0, 0, b.accepted).Add(time.Hour+time.Duration(i)*time.Minute))
			}
			x.refresh()
			r := x.report(nil)
			var ends []string
			for _, l := range r.Looks {
				ends = append(ends, fmt.Sprint(int(l.End.Sub(x.first)/day)))
			}
			check.Equal(t, strings.Join(ends, " "), test.want, "days of the looks")
			warned := slices.ContainsFunc(r.Checks.Warnings,
				func(w result.Warning) bool { return w.Code == "EARLY_VIEWS" })
			check.That(t, warned == test.warned, "warnings %v", r.Checks.Warnings)
		})
	}
}

// TestLooksReadNothingForEventsOfToday compares the report of a process that keeps the results of its looks with that
// of another one, which reads them. Only events that change no earlier day let it keep them.
func TestLooksReadNothingForEventsOfToday(t *testing.T) {
	kinds := []struct{ large, live bool }{
		{true, true},
		{false, false},
		{false, true},
		{true, false},
	} // large: cells by day
	for _, kind := range kinds[:tier.Of(1, 4)] {
		now := time.Now().UTC()
		x := newTrial(t, now.Truncate(24*time.Hour).AddDate(0, 0, -10))
		x.live = kind.live
		if !kind.large {
			x.refresher.LeastVisitorsByDay, x.other.facts.Shards[0].LeastVisitorsByDay = 1e9, 1e9
		}
		x.weeks([]int{50, 60})
		x.report(nil)
		queries := 0
		x.engine.ObserveQueries(func(time.Duration, error) { queries++ })
		at := func(day int) time.Time { return x.first.AddDate(0, 0, day).Add(2 * time.Hour) }
		old := func(n uint64, variation int) schema.Event { // a view of the third day
			view := x.view(at(2), variation)
			view.VisitorID, view.EventID = 4*dailyVisitors+1+n+uint64(variation)*dailyVisitors, 1<<40+view.EventID
			return view
		}
		crossing := func(n uint64, day int) schema.Event {
			view := old(n, 0)
			view.Time, view.VariationID = at(day), 1
			return view
		}
		for _, step := range []struct {
			name  string
			event schema.Event
			kept  bool
		}{
			{"a new visitor after two days without events", x.view(now, 1), false},
			{"a new visitor", x.view(now, 0), true},
			{"a goal of an old one", goalAfter(old(7, 0), now.Sub(at(2))), true},
			{"a view of an old one", func() schema.Event { e := old(8, 1); e.Time = now; return e }(), true},
			{"a late goal", goalAfter(old(9, 0), 48*time.Hour), false},
			{"a late visitor", x.view(at(5), 0), false},
			{"a visitor sees the other variation", crossing(10, 10), false},
			{"a view shows that he saw it before", crossing(10, 6), false},
		} {
			x.refresh()
			x.report(nil)
			queries = 0
			x.write(step.event)
			kept := len(x.report(nil).Looks) == 1 && (queries == 0) == step.kept
			check.That(t, kept, "%+v, %s: %d queries", kind, step.name, queries)
		}
	}
}

// TestLooksExcludeByViewsBeforeTheirEnd compares looks with plain counts of visitors, of which some see the other
// variation later. A view after the end of a look changes nothing in it.
func TestLooksExcludeByViewsBeforeTheirEnd(t *testing.T) {
	for _, large := range []bool{false, true} { // with cells by day
		x := newTrial(t, firstDay)
		if !large {
			x.refresher.LeastVisitorsByDay, x.other.facts.Shards[0].LeastVisitorsByDay = 1e9, 1e9
		}
		random := rand.New(rand.NewPCG(54, 4))
		type visitor struct {
			variation      int
			first, crossed time.Time
			goal           time.Time
		}
		var visitors []visitor
		end := func(look int) time.Time { return firstDay.AddDate(0, 0, 1+7*look) }
		var all, late []schema.Event
		for range 3000 {
			v := visitor{
				variation: random.IntN(2),
				first:     firstDay.Add(time.Duration(random.Int64N(int64(22 * 24 * time.Hour)))),
			}
			e := x.view(v.first, v.variation)
			all = append(all, e)
			if random.IntN(4) == 0 {
				goal := goalAfter(e, time.Duration(random.Int64N(int64(5*24*time.Hour))))
				v.goal, all = goal.Time, append(all, goal)
			}
			if random.IntN(25) == 0 {
				v.crossed = v.first.Add(time.Duration(random.Int64N(int64(15 * 24 * time.Hour))))
				e.EventID, e.Time, e.VariationID = e.EventID+2, v.crossed, 1-e.VariationID
				if v.crossed.Before(end(3)) {
					all = append(all, e)
				} else {
					late = append(late, e)
				}
			}
			visitors = append(visitors, v)
		}
		x.write(all...)
		before := x.report(nil)
		looks := before.Looks[:3] // goals go on in the fourth week
		design, points := stats.NewLookDesign(0.05, []float64{0.5, 0.5}), []stats.LookPoint(nil)
		for i, look := range looks {
			var rates [2]stats.Rate
			for _, v := range visitors {
				if v.first.Before(end(0)) || !v.first.Before(end(i+1)) || !v.crossed.IsZero() &&
					v.crossed.Before(end(i+1)) {
					continue
				}
				rates[v.variation].Visitors++
				if !v.goal.IsZero() && v.goal.Before(end(i+1)) {
					rates[v.variation].Converted++
				}
			}
			want, _ := analyzeNext(design, &points, float64(i+1)/4,
				stats.Stratum{Control: rates[0], Treatment: rates[1], SmallerShare: 0.5})
			got := look.Variations[0]
			check.Equal(t, look.Visitors, rates[0].Visitors+rates[1].Visitors,
				"large %v, look %d: %d visitors, z %v; want %d, %v", large, i+1, look.Visitors, *got.Z,
				rates[0].Visitors+rates[1].Visitors, *want.Z)
			check.Equal(t, *got.Z, *want.Z, "large %v, look %d: %d visitors, z %v; want %d, %v", large, i+1,
				look.Visitors, *got.Z, rates[0].Visitors+rates[1].Visitors, *want.Z)
		}
		x.write(late...)
		after := x.report(nil)
		check.Equal(t, inJSON(t, after.Looks[:3]), inJSON(t, looks), "large %v: %d later views of the other variation changed the looks", large, len(late))
		check.That(t, after.Checks.MultipleExposures.Visitors > before.Checks.MultipleExposures.Visitors,
			"no later view of the other variation is in today's figures")
	}
}

// TestTodaysFiguresTakeStrata has no effect, a rate that grows from 10 to 20 %, and shares that change from 5 to 50 %.
// Pooled, the variation that most late visitors see would look better.
func TestTodaysFiguresTakeStrata(t *testing.T) {
	x := newTrial(t, firstDay)
	periods := []struct {
		visitors  [2]int64
		converted [2]int64
	}{{[2]int64{9500, 500}, [2]int64{950, 50}}, {[2]int64{5000, 5000}, [2]int64{1000, 1000}}}
	var events []schema.Event
	for i, period := range periods {
		for variation := range 2 {
			for visitor := range period.visitors[variation] {
				view := x.view(firstDay.AddDate(0, 0, 5*i).Add(time.Hour), variation)
				view.Device = "mobile"
				events = append(events, view)
				if visitor < period.converted[variation] {
					goal := goalAfter(view, 0)
					goal.Value = 10000
					events = append(events, goal)
				}
			}
		}
	}
	x.write(events...)
	for _, bayesian := range []bool{false, true} {
		for _, metric := range []query.Metric{query.GoalConversionRate, query.ValuePerVisitor} {
			p := planOf(t, x.engine,
				query.Request{
					AccountID: 1, SubjectID: 1, Metric: metric, Dimension: "device", Interval: query.Daily,
					Scorecard: true,
				})
			p.SharePeriods = []plan.SharePeriod{
				{Since: plan.OpenFrom, Shares: []float64{.95, .05}},
				{Since: firstDay.AddDate(0, 0, 3), Shares: []float64{.5, .5}},
			}
			if bayesian {
				p.Rules.Methodology, p.Rules.Prior = catalogue.Bayesian, &stats.Prior{StandardDeviation: 0.2 / 1.96}
			}
			r := computeOf(t, x.engine, p)
			last := r.Series[len(r.Series)-1]
			for name, c := range map[string]*result.Comparison{
				"report": r.Variations[1].Comparison, "last point": last.Variations[1].Comparison,
				"slice":     r.Breakdown[0].Variations[1].Comparison,
				"scorecard": r.Scorecard[0].Variations[1].Comparison,
			} {
				check.That(t, !c.Significant, "%s of %s, Bayesian %v: %s", name, metric, bayesian, inJSON(t, c))
				must.That(t, c.Improvement.Value != nil, "%s of %s, Bayesian %v: %s", name, metric, bayesian,
					inJSON(t, c))
				check.That(t, *c.Improvement.Value <= .002, "%s of %s, Bayesian %v: %s", name, metric, bayesian,
					inJSON(t, c))
				check.That(t, *c.Improvement.Value >= -.002, "%s of %s, Bayesian %v: %s", name, metric, bayesian,
					inJSON(t, c))
			}
			ratio := r.Checks.SampleRatio
			check.That(t, !ratio.Mismatch, "sample ratio %s", inJSON(t, ratio))
			check.Equal(t, ratio.Observed[0], 14500, "sample ratio %s", inJSON(t, ratio))
		}
	}
}

// computeOf returns the report of a plan as it is, without the state at the first view.
func computeOf(t *testing.T, e *Engine, p *plan.Plan) *result.Report {
	t.Helper()
	return must.Get(e.ComputeReportAt(t.Context(), p, Version{}))(t)
}

// TestAWeekWithoutVisitorsKeepsTheLastLook has a winner at the first look, and then late goals only.
func TestAWeekWithoutVisitorsKeepsTheLastLook(t *testing.T) {
	x := newTrial(t, firstDay)
	x.weeks([]int{50, 75})
	goal := goalAfter(x.view(firstDay.AddDate(0, 0, 18), 0), 0)
	goal.VisitorID = 1
	x.write(goal)
	r := x.report(func(r *query.Request) { r.Scorecard = true })
	n := len(r.Looks)
	must.Equal(t, n, 3, "looks %s", inJSON(t, r.Looks))
	must.Equal(t, r.Looks[1].Variations[0].Reason, stats.ReasonNoNewVisitors, "looks %s", inJSON(t, r.Looks))
	if s := r.Variations[1].Comparison.Sequential; *s.Look != 1 || s.PValue == nil || s.Improvement == nil ||
		!s.Significant {
		t.Errorf("sequential %s, want that of look 1", inJSON(t, s))
	}
}

// TestDaysWithoutVisitorsAreReported has a day without visitors, and one without visitors of a variation.
func TestDaysWithoutVisitorsAreReported(t *testing.T) {
	x := newTrial(t, firstDay)
	for day := range 9 {
		switch day {
		case 3:
		case 5:
			x.store(day, 50)
		default:
			x.store(day, 50, 50)
		}
	}
	x.refresh()
	want := map[result.WarningCode]string{
		"DAYS_WITHOUT_VISITORS":      "no visitors on 2026-03-05, between days with many; check that tracking worked",
		"VARIATION_WITHOUT_VISITORS": "Green had no visitors on 2026-03-07, although the other variations had many; check that it was shown",
	}
	for _, w := range x.report(nil).Checks.Warnings {
		if text, is := want[w.Code]; is && text == w.Message {
			delete(want, w.Code)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing warnings %v in %v", want, x.report(nil).Checks.Warnings)
	}
}
