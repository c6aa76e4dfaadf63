package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// trial is a campaign with two variations of 500 visitors each a day.
type trial struct {
	t         *testing.T
	first     time.Time
	campaign  catalogue.Campaign
	also      []catalogue.Campaign // other campaigns
	goal      catalogue.Goal       // what goal 1 declares
	metrics   []catalogue.Metric   // of the website
	catalogue *catalogue.Catalogue
	writer    *ingest.Writer
	conn      driver.Conn
	engine    *Engine
	other     *Engine // of another process
	refresher *facts.Refresher
	ids       uint64
	live      bool // the events of a day are accepted at its end
}

const dailyVisitors = 500

// newTrial opens a store.
func newTrial(t *testing.T, first time.Time) *trial {
	t.Helper()
	return newTrialOf(t, first, func(*trial) {})
}

// newTrialOf is like newTrial, with other declarations.
func newTrialOf(t *testing.T, first time.Time, change func(*trial)) *trial {
	t.Helper()
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	x := &trial{t: t, first: first, conn: conn, catalogue: c, writer: ingest.NewWriter(conn, nil)}
	x.goal = catalogue.Goal{ID: 1, WebsiteID: 1, Name: "Purchase"}
	x.campaign = catalogue.Campaign{
		ID: 1, WebsiteID: 1, Name: "Banner", Type: "experiment", TargetMode: "live", Methodology: catalogue.Frequentist,
		PrimaryGoalID: 1,
		ControlShare:  50, SignificanceLevel: 95, Power: 80, MDE: 20,
		Variations: []catalogue.Variation{{ID: 1, Name: "Green", Share: 50, Order: 1}},
	}
	change(x)
	x.apply()
	x.engine, x.refresher = openEngine(conn, c)
	x.refresher.LeastVisitorsByDay = 2*dailyVisitors + 1 // after the first day
	x.other = New(conn, c, source.DefaultLimits, facts.Shards{facts.NewRefresher(conn, false)})
	return x
}

func (x *trial) apply() {
	x.t.Helper()
	site := catalogue.Website{
		ID: 1, Domain: "a.example.com",
		Goals:     []catalogue.Goal{x.goal, {ID: 2, WebsiteID: 1, Name: "Signup"}},
		Metrics:   x.metrics,
		Campaigns: append([]catalogue.Campaign{x.campaign}, x.also...),
	}
	must.Get(x.catalogue.ApplyFile(x.t.Context(),
		catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}},
		false))(x.t)
}

// day stores a day, and folds it.
func (x *trial) day(day int, converted ...int) {
	x.t.Helper()
	x.store(day, converted...)
	x.refresh()
}

// refresh folds the stored events.
func (x *trial) refresh() {
	x.t.Helper()
	for _, r := range []*facts.Refresher{x.refresher, x.other.facts.Shards[0]} {
		must.Get(r.RefreshFacts(x.t.Context()))(x.t)
	}
}

// view returns a view of a new visitor.
func (x *trial) view(at time.Time, variation int) schema.Event {
	x.ids++
	return schema.Event{
		EventID: 4 * x.ids, Time: at, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: x.ids,
		VariationID: int64(variation),
		Kind:        schema.KindView, Attributes: schema.Attributes{Device: []string{"desktop", "mobile"}[x.ids%2]},
	}
}

// goalAfter returns an event of goal 1 after a view.
func goalAfter(view schema.Event, age time.Duration) schema.Event {
	view.EventID, view.Kind, view.GoalID, view.Time = view.EventID+1, schema.KindGoal, 1, view.Time.Add(age)
	return view
}

// write stores events, and folds them.
func (x *trial) write(events ...schema.Event) {
	x.t.Helper()
	must.OK(x.t, x.writer.WriteEvents(x.t.Context(), events))
	x.refresh()
}

// dayOf returns the events of a day with the given converted visitors of control and treatment. price sets the amounts
// of their goals; nil: none.
func (x *trial) dayOf(day int, price func(visitor int, goal *schema.Event), converted ...int) (events []schema.Event) {
	at := x.first.AddDate(0, 0, day).Add(time.Hour)
	for variation, n := range converted {
		for visitor := range dailyVisitors {
			view := x.view(at.Add(time.Duration(visitor)*time.Second), variation)
			events = append(events, view)
			if visitor < n {
				goal := goalAfter(view, time.Minute)
				if price != nil {
					price(visitor, &goal)
				}
				events = append(events, goal)
			}
		}
	}
	return events
}

// store stores a day with the given converted visitors of control and treatment.
func (x *trial) store(day int, converted ...int) {
	x.t.Helper()
	events := x.dayOf(day, nil, converted...)
	if x.live {
		x.storeAtEnd(day, events)
		return
	}
	must.OK(x.t, x.writer.WriteEvents(x.t.Context(), events))
}

// storeAtEnd stores the events of a day, which are accepted at its end.
func (x *trial) storeAtEnd(day int, events []schema.Event) {
	x.t.Helper()
	end := x.first.AddDate(0, 0, day).Add(23 * time.Hour)
	must.OK(x.t, schema.InsertEvents(x.t.Context(), x.conn, events, end))
}

// report returns a report that is equal in another process.
func (x *trial) report(change func(*query.Request)) *result.Report {
	x.t.Helper()
	r := query.Request{AccountID: 1, SubjectID: 1, Metric: query.GoalConversionRate}
	if change != nil {
		change(&r)
	}
	return x.reportOf(planOf(x.t, x.engine, r))
}

// reportOf returns the report of a plan, see report.
func (x *trial) reportOf(p *plan.Plan) *result.Report {
	x.t.Helper()
	got := must.Get(x.engine.ComputeReport(x.t.Context(), p))(x.t)
	other := must.Get(x.other.ComputeReport(x.t.Context(), p))(x.t)
	other.GeneratedAt = got.GeneratedAt
	if g, w := inJSON(x.t, got), inJSON(x.t, other); g != w {
		at := 0
		for at < min(len(g), len(w)) && g[at] == w[at] {
			at++
		}
		x.t.Fatalf("the reports of two processes differ:\n%.300s\n%.300s\n%+v", g[max(at-150, 0):],
			w[max(at-150, 0):], p)
	}
	return got
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

// decided returns the conclusion as text: status, number of the look, reasons.
func (x *trial) decided(r *result.Report) string { return x.concluded(r.Conclusion) }

func (x *trial) concluded(c *result.Conclusion) string {
	parts := []string{string(c.Status)}
	if c.Look != nil {
		parts = append(parts, fmt.Sprint("at look ", *c.Look))
	}
	for _, reason := range c.Reasons {
		parts = append(parts, string(reason))
	}
	return strings.Join(parts, " ")
}

var firstDay = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// weeks stores the partial first day, and weeks with the given converted visitors a day.
func (x *trial) weeks(converted ...[]int) {
	x.t.Helper()
	x.store(0, converted[0]...)
	for week, n := range converted {
		for day := range 7 {
			x.store(1+7*week+day, n...)
		}
	}
	x.refresh()
}

// TestLooksConclude follows a campaign week by week. Today's test is significant at once, and a look concludes when its
// p-value has a part of alpha. Later weeks do not withdraw it.
func TestLooksConclude(t *testing.T) {
	x := newTrial(t, firstDay)
	x.store(0, 50, 60)
	x.refresh()
	check.Equal(t, x.decided(x.report(nil)), "inconclusive TOO_EARLY", "on the first day")
	design := stats.NewLookDesign(0.05, []float64{0.5, 0.5})
	var points []stats.LookPoint
	var visitors, control, treatment int64
	for week, n := range []int{57, 58, 44, 40} {
		for day := range 7 {
			x.store(1+7*week+day, 50, n)
			visitors, control, treatment = visitors+dailyVisitors, control+50, treatment+int64(n)
		}
		x.refresh()
		r := x.report(nil)
		must.That(t, len(r.Looks) == week+1, "%d looks after %d weeks", len(r.Looks), week+1)
		want, p := analyzeNext(design, &points, float64(week+1)/4, stats.Stratum{
			Control:   stats.Rate{Visitors: visitors, Converted: control},
			Treatment: stats.Rate{Visitors: visitors, Converted: treatment}, SmallerShare: 0.5,
		})
		got := r.Looks[week]
		end := firstDay.AddDate(0, 0, 8+7*week)
		check.That(t, got.End.Equal(end), "look %d: %s", week+1, inJSON(t, got))
		check.Equal(t, got.Number, week+1, "look %d: %s", week+1, inJSON(t, got))
		check.Equal(t, got.Visitors, 2*visitors, "look %d: %s", week+1, inJSON(t, got))
		v := got.Variations[0]
		check.Equal(t, *v.Z, *want.Z, "look %d: %s, want %+v", week+1, inJSON(t, v), want)
		check.Equal(t, *v.CriticalValue, *want.Critical, "look %d: %s, want %+v", week+1, inJSON(t, v), want)
		check.Equal(t, *v.PValue, *p, "look %d: %s, want %+v", week+1, inJSON(t, v), want)
		check.Equal(t, *v.Improvement.Interval[0], *want.Lift.Interval[0], "look %d: %s, want %+v", week+1,
			inJSON(t, v), want)
		check.Equal(t, v.Significant, want.Significant, "look %d: %s, want %+v", week+1, inJSON(t, v), want)
		wantStatus := []string{
			"inconclusive NOT_SIGNIFICANT", "winner at look 2", "winner at look 2",
			"winner at look 2",
		}[week]
		check.Equal(t, x.decided(r), wantStatus, "after week %d: %s", week+1, r.Conclusion.Text)
	}
	r := x.report(nil)
	if want := "Green is better than Control: the goal conversion rate has a lift of +15.0 % (95 % interval "; !strings.HasPrefix(r.Conclusion.Text, want) || !strings.HasSuffix(r.Conclusion.Text, " at look 2 on 2026-03-16 with 14,000 visitors.") {
		t.Errorf("text %q", r.Conclusion.Text)
	}
	if s := r.Variations[1].Comparison.Sequential; *s.Look != 4 || !s.End.Equal(r.Looks[3].End) ||
		*s.PValue != *r.Looks[3].Variations[0].PValue {
		t.Errorf("sequential %s", inJSON(t, s))
	}
}

// TestReportsThatDescribe asks other questions of a decided campaign.
func TestReportsThatDescribe(t *testing.T) {
	x := newTrial(t, firstDay)
	x.weeks([]int{50, 80}, []int{50, 40})
	for _, test := range []struct {
		name   string
		change func(*query.Request)
		want   string
	}{
		{"now", nil, "winner at look 1"},
		{"up to the first look", func(r *query.Request) { r.Filters.To = firstDay.AddDate(0, 0, 9) }, "winner at look 1"},
		{"before it is mature", func(r *query.Request) { r.Filters.To = firstDay.AddDate(0, 0, 8) }, "inconclusive TOO_EARLY"},
		{"mobile", func(r *query.Request) {
			r.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
		}, "inconclusive NOT_DECLARED"},
		{"since the second day", func(r *query.Request) { r.Filters.From = firstDay.AddDate(0, 0, 1) }, "inconclusive NOT_DECLARED"},
		{"another metric", func(r *query.Request) { r.Metric = query.GoalsPerVisitor }, "inconclusive NOT_DECLARED"},
		{"another goal", func(r *query.Request) { r.GoalID = 2 }, "insufficientData TOO_FEW_CONVERSIONS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := x.report(test.change)
			got := x.decided(r)
			check.That(t, strings.HasPrefix(got, test.want), "%q, want %q", got, test.want)
			if s := r.Variations[1].Comparison.Sequential; strings.Contains(test.want, "NOT_DECLARED") &&
				(s.PValue != nil || s.Reason != stats.ReasonNotDeclared || r.Looks != nil) {
				t.Errorf("sequential %s", inJSON(t, s))
			}
		})
	}
	for _, p := range x.report(func(r *query.Request) { r.Interval = query.Daily }).Series {
		check.That(t, p.Variations[1].Comparison.Sequential == nil, "the point at %s has a look", p.Time)
	}
}

// TestRecordedLooksStay records looks, stores late events, and checks that the looks stay as they were, with today's
// figures beside them. Two engines write a look once.
func TestRecordedLooksStay(t *testing.T) {
	x := newTrial(t, firstDay)
	x.weeks([]int{50, 62})
	check.Equal(t, x.recordAt(t, x.engine, firstDay.AddDate(0, 0, 9)), 0, "rows of a look that ended before its first view was accepted")
	y := newTrial(t, time.Now().UTC().Truncate(24*time.Hour))
	y.weeks([]int{50, 62})
	end := y.first.AddDate(0, 0, 8)
	for _, test := range []struct {
		now  time.Time
		want int
	}{{end.Add(23 * time.Hour), 0}, {end.Add(24 * time.Hour), 1}, {end.Add(25 * time.Hour), 0}} {
		check.Equal(t, y.recordAt(t, y.engine, test.now), test.want, "rows at %s", test.now)
	}
	check.Equal(t, y.recordAt(t, y.other, end.Add(26*time.Hour)), 0, "rows that another engine wrote again")
	before := y.report(nil)
	must.Equal(t, len(before.Looks), 1, "looks %s", inJSON(t, before.Looks))
	must.That(t, before.Looks[0].RecordedAt != nil, "looks %s", inJSON(t, before.Looks))
	must.That(t, before.Looks[0].Variations[0].Recomputed == nil, "looks %s", inJSON(t, before.Looks))
	y.store(3, 50, 10) // late events
	y.refresh()
	after := y.report(nil)
	recomputed := after.Looks[0].Variations[0].Recomputed
	must.That(t, recomputed != nil, "recomputed %s", inJSON(t, recomputed))
	check.That(t, *recomputed.Improvement.Value < *before.Looks[0].Variations[0].Improvement.Value, "recomputed %s",
		inJSON(t, recomputed))
	after.Looks[0].Variations[0].Recomputed = nil
	check.Equal(t, inJSON(t, after.Looks), inJSON(t, before.Looks), "late events changed the looks")
}

// TestRecordedHarmStays records that the primary metric is harmed at the end of a day between looks, and stores late
// events without which it would not be.
func TestRecordedHarmStays(t *testing.T) {
	x := newTrial(t, time.Now().UTC().Truncate(24*time.Hour))
	for day := range 5 {
		x.store(day, 100, 20)
	}
	x.refresh()
	must.Equal(t, x.recordAt(t, x.engine, x.first.AddDate(0, 0, 5).Add(time.Minute)), 1, "rows of the harm")
	scorecard := func(r *query.Request) { r.Scorecard = true }
	before := x.report(scorecard).Decision
	must.Equal(t, before.Status, result.DecisionRollBack, "decision %s", inJSON(t, before))
	must.Equal(t, before.Reasons[0].Code, "PRIMARY_HARMED", "decision %s", inJSON(t, before))
	for day := range 5 {
		x.store(day, 0, 400) // late events
	}
	x.refresh()
	check.Equal(t, x.recordAt(t, x.other, x.first.AddDate(0, 0, 6)), 0, "rows are written again")
	after := x.report(scorecard).Decision
	check.That(t, inJSON(t, after) == inJSON(t, before), "late events changed the decision:\n%s\n%s", inJSON(t, after),
		inJSON(t, before))
}

// recordAt records the looks that are mature at a time, and returns the number of rows.
func (x *trial) recordAt(t *testing.T, e *Engine, now time.Time) int {
	t.Helper()
	j := must.Get(e.OpenJudgement(t.Context(), planOf(t, e, query.Request{AccountID: 1, SubjectID: 1}), now))(t)
	must.OK(t, x.engine.AnalyzeLooks(t.Context(), j))
	return must.Get(x.engine.RecordLooks(t.Context(), j, now))(t)
}

// TestPlanIsFrozenByTheFirstView changes the level, the methodology and the cap of the primary goal after the first
// view, the latter also in a file without the campaign. Nothing changes but a warning that names the fields.
func TestPlanIsFrozenByTheFirstView(t *testing.T) {
	x := newTrial(t, firstDay)
	x.weeks([]int{50, 90})
	value := func(r *query.Request) { r.Metric = query.ValuePerVisitor }
	before, beforeValue := x.report(nil), x.report(value)
	x.campaign.SignificanceLevel, x.campaign.Methodology = 80, catalogue.Bayesian
	x.apply()
	site := catalogue.Website{
		ID: 1, Domain: "a.example.com",
		Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "Purchase", ValueCap: &schema.Cap{Units: 10}}},
	}
	file := catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}
	must.Get(x.catalogue.ApplyFile(t.Context(), file, false))(t)
	after, afterValue := x.report(nil), x.report(value)
	check.Equal(t, after.SignificanceLevel, 95, "level %d, %s, %s; want 95, frequentist, %s", after.SignificanceLevel,
		after.Methodology, x.decided(after), x.decided(before))
	check.Equal(t, after.Methodology, catalogue.Frequentist, "level %d, %s, %s; want 95, frequentist, %s",
		after.SignificanceLevel, after.Methodology, x.decided(after), x.decided(before))
	check.Equal(t, x.decided(after), x.decided(before), "level %d, %s, %s; want 95, frequentist, %s",
		after.SignificanceLevel, after.Methodology, x.decided(after), x.decided(before))
	check.That(t, beforeValue.Checks.Cap == nil, "cap %v, then %v", beforeValue.Checks.Cap, afterValue.Checks.Cap)
	check.That(t, afterValue.Checks.Cap == nil, "cap %v, then %v", beforeValue.Checks.Cap, afterValue.Checks.Cap)
	want := "the catalogue declares another methodology, significanceLevel, valueCap since the first view; results use what was declared before it"
	check.That(t,
		slices.ContainsFunc(after.Checks.Warnings,
			func(w result.Warning) bool { return w.Code == "PLAN_CHANGED" && w.Message == want }),
		"warnings %v, want %q", after.Checks.Warnings, want)
	status := result.NewStatus(after)
	check.That(t, slices.Contains(status.Health, "PLAN_CHANGED"), "status %s", inJSON(t, status))
}

// TestPlanOfAnExperimentIsFrozen changes the plan of an experiment of a widget after its first view.
func TestPlanOfAnExperimentIsFrozen(t *testing.T) {
	x := newTrial(t, firstDay)
	experiment := catalogue.Experiment{ID: 4, ControlShare: 50, PrimaryMetric: "goalsReached", LookPlan: catalogue.LookPlan{PlannedDays: 14}, Variations: []catalogue.WidgetVariation{{ID: 1, Name: "Short", Share: 50}}}
	apply := func() {
		t.Helper()
		widget := catalogue.Widget{
			ID: 7, WebsiteID: 1, Name: "Popup", Type: "popup", PrimaryGoalID: 1,
			Experiments: []catalogue.Experiment{experiment},
		}
		site := catalogue.Website{
			ID: 1, Domain: "a.example.com",
			Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "Purchase"}}, Widgets: []catalogue.Widget{widget},
		}
		must.Get(x.catalogue.ApplyFile(t.Context(),
			catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}},
			false))(t)
	}
	apply()
	report := func() *result.Report {
		t.Helper()
		x.refresh()
		return must.Get(x.engine.ComputeReport(t.Context(),
			planOf(t, x.engine,
				query.Request{Operation: query.ExperimentResults, AccountID: 1, SubjectID: 7, ExperimentID: 4})))(t)
	}
	experiment.PlannedDays = 28
	apply() // before the first view, a change counts
	var events []schema.Event
	for day := range 9 {
		for visitor := range uint64(400) {
			id := 1000*uint64(day) + visitor //nolint:gosec // few days
			events = append(events, schema.Event{
				EventID: 1 + id, Time: firstDay.AddDate(0, 0, day).Add(time.Hour), WebsiteID: 1,
				Subject: schema.SubjectWidget, SubjectID: 7, ExperimentID: 4,
				VisitorID: 1 + id, VariationID: int64(visitor % 2), Kind: schema.KindView, //nolint:gosec // 0 or 1
			})
		}
	}
	must.OK(t, x.writer.WriteEvents(t.Context(), events))
	before := report()
	experiment.PlannedDays, experiment.PrimaryMetric = 7, "value"
	apply()
	after := report()
	for _, r := range []*result.Report{before, after} {
		must.Equal(t, len(r.Looks), 2, "%s, looks %s; want a quarter of 28 days", *r.CompareMetric, inJSON(t, r.Looks))
		check.Equal(t, r.Looks[0].Tau, 0.25, "%s, looks %s; want a quarter of 28 days", *r.CompareMetric,
			inJSON(t, r.Looks))
		check.Equal(t, *r.CompareMetric, query.GoalConversionRate, "%s, looks %s; want a quarter of 28 days",
			*r.CompareMetric, inJSON(t, r.Looks))
	}
	want := "the catalogue declares another plannedDays, primaryMetric since the first view; results use what was declared before it"
	check.That(t,
		slices.ContainsFunc(after.Checks.Warnings,
			func(w result.Warning) bool { return w.Code == "PLAN_CHANGED" && w.Message == want }),
		"warnings %v, want %q", after.Checks.Warnings, want)
}

// TestPointsHaveTheCapOfTheReport checks that each point of a series with a z-score is capped at the amount that the
// report has: it equals the report that ends there and is capped at this amount.
func TestPointsHaveTheCapOfTheReport(t *testing.T) {
	x := newTrial(t, firstDay)
	var events []schema.Event
	for i := range 400 {
		view := x.view(x.first.AddDate(0, 0, i/100), i%2)
		goal := goalAfter(view, 0)
		goal.Value = int64((i*7919%400)*(i/100+1)) * schema.MoneyScale / 10
		other := goal
		other.EventID++
		events = append(events, view, goal, other)
	}
	x.write(events...)
	series := func(r *query.Request) {
		r.Metric, r.Interval = query.ValuePerVisitor, query.Daily
		r.Cap, r.Filters.ZScore = &schema.Cap{Percentile: 90}, 1
	}
	for name, of := range map[string]*Engine{"one": x.engine, "other": x.other} {
		t.Run(name, func(t *testing.T) {
			reportOf := func(changes ...func(*query.Request)) *result.Report {
				r := query.Request{AccountID: 1, SubjectID: 1}
				for _, change := range changes {
					change(&r)
				}
				return must.Get(of.ComputeReport(t.Context(), planOf(t, of, r)))(t)
			}
			whole := reportOf(series)
			must.Equal(t, len(whole.Series), 4, "points")
			for _, point := range whole.Series {
				want := reportOf(series, func(r *query.Request) {
					r.Interval, r.Filters.To = "", point.Time
					r.Cap = &schema.Cap{Units: whole.Checks.Cap.Amount.Units.Int64()}
				})
				for i, v := range point.Variations {
					check.Equal(t, *v.Metrics.ValuePerVisitor.Value, *want.Variations[i].Metrics.ValuePerVisitor.Value,
						"per visitor until %s, variation %d", point.Time, v.ID)
				}
			}
		})
	}
}

// analyzeNext returns the result of the next look, and its p-value.
func analyzeNext(d stats.LookDesign, points *[]stats.LookPoint, tau float64,
	strata ...stats.Stratum,
) (stats.LookResult, *float64) {
	*points = append(*points, stats.LookPoint{Tau: tau, Information: stats.LookInformation(strata, true)})
	sequence, last := d.NewSequence(*points, nil), len(*points)-1
	found := sequence.AnalyzeLook(last, strata, true)
	return found, sequence.PValue(last, found)
}
