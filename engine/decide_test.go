package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// trial is a campaign with two variations of 500 visitors each a day.
type trial struct {
	t         *testing.T
	first     time.Time
	campaign  catalogue.Campaign
	catalogue *catalogue.Catalogue
	writer    *ingest.Writer
	conn      driver.Conn
	engine    *Engine
	rolled    *Engine // reads rollups
	from      string  // the source of its last report
	refresher *rollup.Refresher
	ids       uint64
}

const dailyVisitors = 500

// newTrial opens a store. Its campaign plans 4,000 visitors.
func newTrial(t *testing.T, first time.Time) *trial {
	t.Helper()
	conn := schematest.Open(t)
	c, err := catalogue.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	x := &trial{t: t, first: first, conn: conn, catalogue: c, writer: ingest.NewWriter(conn)}
	x.campaign = catalogue.Campaign{
		ID: 1, WebsiteID: 1, Name: "Banner", Type: "experiment", TargetMode: "live", Methodology: catalogue.Frequentist, PrimaryGoalID: 1,
		ControlShare: 50, SignificanceLevel: 95, Power: 80, MDE: 20, PlannedVisitors: 4000,
		Variations: []catalogue.Variation{{ID: 1, Name: "Green", Share: 50, Order: 1}},
	}
	x.apply()
	x.engine = New(conn, c, source.DefaultLimits)
	x.engine.Totals.SetOwn()
	x.rolled = New(conn, c, source.Limits{InProcessEvents: 1})
	x.rolled.Totals.SetOwn()
	x.rolled.Observe(func(time.Duration, error) {}, func(name string) { x.from = name })
	x.refresher = rollup.New(conn, x.writer, x.rolled.Rollups.Indexes()[0])
	return x
}

func (x *trial) apply() {
	x.t.Helper()
	site := catalogue.Website{
		ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "Purchase"}, {ID: 2, WebsiteID: 1, Name: "Signup"}},
		Campaigns: []catalogue.Campaign{x.campaign},
	}
	if _, err := x.catalogue.Apply(x.t.Context(), catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}, false); err != nil {
		x.t.Fatal(err)
	}
}

// day stores a day, and refreshes the rollup.
func (x *trial) day(day int, converted ...int) {
	x.t.Helper()
	x.store(day, converted...)
	x.refresh()
}

// refresh makes stored events visible to both engines.
func (x *trial) refresh() {
	x.t.Helper()
	subject := plan.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1}
	x.engine.Written([]plan.Subject{subject})
	x.rolled.Written([]plan.Subject{subject})
	if err := x.refresher.RefreshAll(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
}

// store stores a day with the given converted visitors of control and treatment.
func (x *trial) store(day int, converted ...int) {
	x.t.Helper()
	var events []schema.Event
	at := x.first.AddDate(0, 0, day).Add(time.Hour)
	for variation, n := range converted {
		for visitor := range dailyVisitors {
			x.ids++
			e := schema.Event{
				EventID: 2 * x.ids, Time: at.Add(time.Duration(visitor) * time.Second), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1,
				VisitorID: x.ids, VariationID: int64(variation), Kind: schema.KindView, Attributes: schema.Attributes{Device: []string{"desktop", "mobile"}[visitor%2]},
			}
			events = append(events, e)
			if visitor < n {
				e.EventID, e.Kind, e.GoalID, e.Time = e.EventID+1, schema.KindGoal, 1, e.Time.Add(time.Minute)
				events = append(events, e)
			}
		}
	}
	if _, err := x.writer.Write(x.t.Context(), events); err != nil {
		x.t.Fatal(err)
	}
}

// report returns a report that is equal from the events, by the reference and from
// rollups.
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
	got, err := x.engine.Report(x.t.Context(), p)
	if err != nil {
		fatal(x.t, err)
	}
	want, err := x.engine.Reference(x.t.Context(), p)
	if err != nil {
		fatal(x.t, err)
	}
	fromRollup, err := x.rolled.Report(x.t.Context(), p)
	if err != nil {
		fatal(x.t, err)
	}
	for _, other := range []*result.Report{want, fromRollup} {
		other.GeneratedAt = got.GeneratedAt
		if g, w := inJSON(x.t, got), inJSON(x.t, other); g != w {
			x.t.Fatalf("the report and its reference differ:\n%s\n%s", g, w)
		}
	}
	return got
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decided returns the conclusion as text: status, basis and number of the day.
func (x *trial) decided(r *result.Report) string { return x.concluded(r.Conclusion) }

func (x *trial) concluded(c *result.Conclusion) string {
	parts := []string{string(c.Status), string(c.Basis)}
	if c.DecidedAt != nil {
		parts = append(parts, c.DecidedAt.Sub(x.first.Add(24*time.Hour)).String())
	}
	for _, reason := range c.Reasons {
		parts = append(parts, string(reason))
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

var firstDay = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

// TestPlannedLookDecides follows a campaign day by day. Only the planned look has
// enough of alpha for a p-value of .03; it decides, and nothing takes it back.
func TestPlannedLookDecides(t *testing.T) {
	x := newTrial(t, firstDay)
	days := [][]int{{50, 52}, {50, 70}, {50, 64}, {50, 60}, {50, 40}, {50, 40}}
	want := []string{
		"inconclusive  NOT_SIGNIFICANT", "inconclusive  NOT_SIGNIFICANT", "inconclusive  TOO_EARLY",
		"winner plannedLook 72h0m0s", "winner plannedLook 72h0m0s", "winner plannedLook 72h0m0s",
	}
	for day, converted := range days {
		x.day(day, converted...)
		r := x.report(nil)
		if got := x.decided(r); got != want[day] {
			t.Errorf("after day %d: %q, want %q: %s", day, got, want[day], r.Conclusion.Text)
		}
		if day == 3 {
			x.checkPlannedLook(r)
		}
	}
	r := x.report(nil)
	if x.from != source.NameRollup {
		t.Errorf("the last report was read from %s", x.from)
	}
	if c := r.Variations[1].Comparison; c.Verdict != stats.VerdictInconclusive || *c.Conclusive {
		t.Errorf("today's verdict %s, conclusive %v", c.Verdict, *c.Conclusive)
	}
	if want := "Green is better than Control: the goal conversion rate has a lift of +23.0 % (95 % interval +2.8 % to +47.2 %) at the planned look on 2026-03-05 with 4,000 visitors."; r.Conclusion.Text != want {
		t.Errorf("text %q, want %q", r.Conclusion.Text, want)
	}
}

// checkPlannedLook compares the report at the planned look with its statistics.
func (x *trial) checkPlannedLook(r *result.Report) {
	x.t.Helper()
	end := firstDay.AddDate(0, 0, 4)
	if l := r.PlannedLook; l.Time == nil || !l.Time.Equal(end) || *l.Visitors != 4000 || *l.RequiredVisitors != 4000 || l.Segment != 1 {
		x.t.Errorf("planned look %s", inJSON(x.t, l))
	}
	o := stats.Options{SignificanceLevel: 95, Shares: []float64{.5, .5}, PlannedVisitors: 4000, PlannedLook: true}
	want := result.NewComparison(stats.Compare(stats.Rate{Visitors: 2000, Converted: 200}, []stats.Sample{stats.Rate{Visitors: 2000, Converted: 246}}, o)[0])
	conclusive := true
	if got := r.Conclusion.Decided; inJSON(x.t, got) != inJSON(x.t, want) {
		x.t.Errorf("decided by %s\nwant %s", inJSON(x.t, got), inJSON(x.t, want))
	}
	want.Conclusive = &conclusive
	if got := r.Variations[1].Comparison; inJSON(x.t, got) != inJSON(x.t, want) {
		x.t.Errorf("today %s\nwant %s", inJSON(x.t, got), inJSON(x.t, want))
	}
	if p := *r.Variations[1].Comparison.Frequentist.PValue; *want.Sequential.PValue != p/0.9 {
		x.t.Errorf("p %v of the sequence, %v of the test", *want.Sequential.PValue, p)
	}
}

// TestDecisionOfPartsAndOtherQuestions asks other questions of a decided campaign.
func TestDecisionOfPartsAndOtherQuestions(t *testing.T) {
	x := newTrial(t, firstDay)
	for day, converted := range [][]int{{50, 52}, {50, 70}, {50, 64}, {50, 60}, {50, 40}} {
		x.day(day, converted...)
	}
	look := firstDay.AddDate(0, 0, 4)
	for _, test := range []struct {
		name   string
		change func(*query.Request)
		want   string
	}{
		{"up to the planned look", func(r *query.Request) { r.Filters.To = look }, "winner plannedLook 72h0m0s"},
		{"up to a day before", func(r *query.Request) { r.Filters.To = look.AddDate(0, 0, -1) }, "inconclusive  TOO_EARLY"},
		{"up to part of the day", func(r *query.Request) { r.Filters.To = look.Add(-time.Hour) }, "inconclusive  TOO_EARLY"},
		{"mobile at the planned look", func(r *query.Request) {
			r.Filters.To, r.Filters.Lists = look, []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
		}, "inconclusive  NOT_SIGNIFICANT"},
		{"since the first day, at the planned look", func(r *query.Request) { r.Filters.From, r.Filters.To = firstDay, look }, "winner plannedLook"},
		{"another metric", func(r *query.Request) { r.Metric = query.ValuePerVisitor }, "insufficientData  ZERO_VARIANCE"},
		{"another goal", func(r *query.Request) { r.GoalID = 2 }, "insufficientData  TOO_FEW_CONVERSIONS"},
	} {
		if got := x.decided(x.report(test.change)); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	series := x.report(func(r *query.Request) { r.Interval = query.Daily }).Series
	for _, p := range series {
		c := p.Variations[1].Comparison
		if is := p.Time.Equal(look); p.PlannedLook != is || c.Sequential.PlannedLook != is || c.Sequential.Significant != is {
			t.Errorf("point at %s: planned look %v, sequence %s", p.Time, p.PlannedLook, inJSON(t, c.Sequential))
		}
	}
}

// TestAlwaysValidDecision checks that a strong effect is decided before the planned
// look, and a winner on another metric stays without a conclusion.
func TestAlwaysValidDecision(t *testing.T) {
	x := newTrial(t, firstDay)
	x.day(0, 50, 140)
	x.day(1, 50, 40)
	if got, want := x.decided(x.report(nil)), "winner alwaysValid 0s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x.campaign.PrimaryGoalID = 2
	y := newTrial(t, firstDay)
	y.campaign.PrimaryGoalID = 2
	y.apply()
	y.day(0, 50, 140)
	r := y.report(func(r *query.Request) { r.GoalID = 1 })
	if want := "Green is better than Control in the goal conversion rate at every look (p = 0.000000038), but only the declared goal, metric and cap have a conclusion."; r.Conclusion.Text != want {
		t.Errorf("text %q, want %q", r.Conclusion.Text, want)
	}
	if got, want := y.decided(r), "inconclusive  NOT_DECLARED"; got != want || !*r.Variations[1].Comparison.Conclusive {
		t.Errorf("%q, want %q; conclusive %v", got, want, *r.Variations[1].Comparison.Conclusive)
	}
}

// TestLaterPlanDoesNotMoveTheLook changes the plan before and after the first view.
func TestLaterPlanDoesNotMoveTheLook(t *testing.T) {
	x := newTrial(t, firstDay)
	x.campaign.PlannedVisitors = 3000
	x.apply()
	for day, converted := range [][]int{{50, 52}, {50, 70}, {50, 66}, {50, 52}} {
		x.day(day, converted...)
	}
	before := x.report(nil)
	if got, want := x.decided(before), "winner plannedLook 48h0m0s"; got != want || *before.PlannedLook.RequiredVisitors != 3000 {
		t.Errorf("%q, want %q", got, want)
	}
	x.campaign.PlannedVisitors, x.campaign.MDE, x.campaign.PrimaryGoalID = 4000, 5, 2
	x.apply()
	after := x.report(func(r *query.Request) { r.GoalID = 1 })
	if x.decided(after) != x.decided(before) || *after.PlannedLook.RequiredVisitors != 3000 {
		t.Errorf("a later plan moved the look: %q", x.decided(after))
	}
	warned := func(r *result.Report) bool {
		return slices.ContainsFunc(r.Checks.Warnings, func(w result.Warning) bool { return w.Code == "PLAN_CHANGED" })
	}
	if warned(before) || !warned(after) {
		t.Errorf("warnings %v, then %v", before.Checks.Warnings, after.Checks.Warnings)
	}
}

// TestPlanIsFrozenByTheFirstView changes the level, the methodology and the cap of the
// primary goal after the first view, the latter also in a file without the campaign.
// Nothing changes but a warning that names the fields.
func TestPlanIsFrozenByTheFirstView(t *testing.T) {
	x := newTrial(t, firstDay)
	x.day(0, 50, 140)
	value := func(r *query.Request) { r.Metric = query.ValuePerVisitor }
	before, beforeValue := x.report(nil), x.report(value)
	x.campaign.SignificanceLevel, x.campaign.Methodology = 80, catalogue.Bayesian
	x.apply()
	site := catalogue.Website{ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "Purchase", ValueCap: &schema.Cap{Units: 10}}}}
	file := catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}
	if _, err := x.catalogue.Apply(t.Context(), file, false); err != nil {
		t.Fatal(err)
	}
	after, afterValue := x.report(nil), x.report(value)
	if after.SignificanceLevel != 95 || after.Methodology != catalogue.Frequentist || x.decided(after) != x.decided(before) {
		t.Errorf("level %d, %s, %s; want 95, frequentist, %s", after.SignificanceLevel, after.Methodology, x.decided(after), x.decided(before))
	}
	if beforeValue.Checks.Cap != nil || afterValue.Checks.Cap != nil {
		t.Errorf("cap %v, then %v", beforeValue.Checks.Cap, afterValue.Checks.Cap)
	}
	want := "the catalogue declares another methodology, significanceLevel, valueCap since the first view; results use what was declared before it"
	if !slices.ContainsFunc(after.Checks.Warnings, func(w result.Warning) bool { return w.Code == "PLAN_CHANGED" && w.Message == want }) {
		t.Errorf("warnings %v, want %q", after.Checks.Warnings, want)
	}
}

// TestChangedSharesBeginASegment checks that the look of the second period counts its
// visitors alone.
func TestChangedSharesBeginASegment(t *testing.T) {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	x := newTrial(t, today.AddDate(0, 0, -3))
	x.day(0, 50, 140)
	if got, want := x.decided(x.report(nil)), "winner alwaysValid 0s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x.campaign.ControlShare = 60
	x.apply()
	r := x.report(nil)
	if got, want := x.decided(r), "inconclusive  SHARES_CHANGED"; got != want || r.PlannedLook.Segment != 2 {
		t.Errorf("%q, want %q; segment %d", got, want, r.PlannedLook.Segment)
	}
}

// TestDayMustBeFull checks that a day counts once data were accepted after its end, or
// once the campaign has ended.
func TestDayMustBeFull(t *testing.T) {
	x := newTrial(t, time.Now().UTC().Truncate(24*time.Hour))
	x.day(0, 50, 140)
	if got, want := x.decided(x.report(nil)), "inconclusive  DAY_NOT_OVER"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, active := range []bool{true, false} {
		if _, _, err := x.catalogue.SwitchCampaign(context.WithoutCancel(t.Context()), 1, 0, 1, active); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := x.decided(x.report(nil)), "winner alwaysValid 0s"; got != want {
		t.Errorf("after the end: %q, want %q", got, want)
	}
}

// TestLargeSubjectsWithoutRollupReuseTheirDays counts the statements of reports of a
// subject that the store must count, before and after new events.
func TestLargeSubjectsWithoutRollupReuseTheirDays(t *testing.T) {
	x := newTrial(t, firstDay)
	x.store(0, 50, 140)
	statements := 0
	e := New(x.conn, x.catalogue, source.Limits{InProcessEvents: 1})
	e.Totals.SetOwn()
	e.Observe(func(time.Duration, error) { statements++ }, func(string) {})
	ask := func() (asked int, status stats.Status) {
		e.Written(nil)
		if err := e.Totals.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := statements
		r, err := e.Report(t.Context(), planOf(t, e, query.Request{AccountID: 1, SubjectID: 1, Metric: query.GoalConversionRate}))
		if err != nil {
			fatal(t, err)
		}
		return statements - before, r.Conclusion.Status
	}
	first, _ := ask()
	x.store(1, 50, 60)
	second, status := ask()
	if second >= first || status != stats.StatusWinner {
		t.Errorf("%d statements, then %d with status %s", first, second, status)
	}
}

// TestPercentilesAreKept counts the statements of capped reports of an unchanged and of
// a changed subject.
func TestPercentilesAreKept(t *testing.T) {
	x := newTrial(t, firstDay)
	x.day(0, 50, 60)
	statements := 0
	x.rolled.Observe(func(time.Duration, error) { statements++ }, func(name string) { x.from = name })
	ask := func() int {
		before := statements
		p := planOf(t, x.rolled, query.Request{AccountID: 1, SubjectID: 1, Metric: query.ValuePerVisitor, Cap: &schema.Cap{Percentile: 90}})
		if _, err := x.rolled.Report(t.Context(), p); err != nil {
			fatal(t, err)
		}
		return statements - before
	}
	ask()
	kept := ask()
	x.day(1, 50, 60)
	x.report(nil) // reads the days of the declared question
	if changed := ask(); x.from != source.NameVisitors || changed <= kept {
		t.Errorf("%d statements of an unchanged subject, %d of a changed one, from %s", kept, changed, x.from)
	}
	if again := ask(); again != kept {
		t.Errorf("%d statements, then %d", kept, again)
	}
}

// TestPointsHaveTheCapOfTheReport checks that each point of a series with a z-score is
// capped at the amount that the report has: it equals the report that ends there and
// is capped at this amount.
func TestPointsHaveTheCapOfTheReport(t *testing.T) {
	x := newTrial(t, firstDay)
	var events []schema.Event
	for i := range uint64(400) {
		view := schema.Event{
			EventID: 3 * i, Time: x.first.AddDate(0, 0, int(i/100)), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1,
			VisitorID: i + 1, VariationID: int64(i % 2), Kind: schema.KindView,
		}
		goal := view
		goal.EventID, goal.Kind, goal.GoalID, goal.Value = 3*i+1, schema.KindGoal, 1, int64((i*7919%400)*(i/100+1))*schema.MoneyScale/10
		other := goal
		other.EventID = 3*i + 2
		events = append(events, view, goal, other)
	}
	if _, err := x.writer.Write(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	x.refresh()
	series := func(r *query.Request) {
		r.Metric, r.Interval, r.Cap, r.Filters.ZScore = query.ValuePerVisitor, query.Daily, &schema.Cap{Percentile: 90}, 1
	}
	for name, of := range map[string]*Engine{"events": x.engine, "rollup": x.rolled} {
		t.Run(name, func(t *testing.T) {
			reportOf := func(changes ...func(*query.Request)) *result.Report {
				r := query.Request{AccountID: 1, SubjectID: 1}
				for _, change := range changes {
					change(&r)
				}
				got, err := of.Report(t.Context(), planOf(t, of, r))
				if err != nil {
					fatal(t, err)
				}
				return got
			}
			whole := reportOf(series)
			if len(whole.Series) != 4 {
				t.Fatalf("%d points", len(whole.Series))
			}
			for _, point := range whole.Series {
				want := reportOf(series, func(r *query.Request) {
					r.Interval, r.Cap, r.Filters.To = "", &schema.Cap{Units: whole.Checks.Cap.Amount.Units.Int64()}, point.Time
				})
				for i, v := range point.Variations {
					if got, want := *v.Metrics.ValuePerVisitor.Value, *want.Variations[i].Metrics.ValuePerVisitor.Value; got != want {
						t.Errorf("until %s, variation %d: %v per visitor, want %v", point.Time, v.ID, got, want)
					}
				}
			}
		})
	}
}
