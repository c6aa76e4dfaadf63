package engine

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/effects"
	"lifthouse/engine/looks"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/worth"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
	"lifthouse/stats"
)

// TestScorecardEqualsReports compares each row of random scorecards with the report about its goal and metric. The
// scorecards are equal from all sources.
func TestScorecardEqualsReports(t *testing.T) {
	x := newTrial(t, worlds.Start)
	x.campaign.Goals = &catalogue.Goals{
		Secondary: []catalogue.SecondaryGoal{
			{GoalID: 2, Metric: "goalConversionRate", Direction: catalogue.Up},
			{GoalID: 2, Metric: "valuePerVisitor", Direction: catalogue.Down},
		},
		Guardrails: []catalogue.Guardrail{
			{GoalID: 1, Metric: "averageValue", Margin: 5, Direction: catalogue.Up},
			{GoalID: 2, Metric: "goalsPerVisitor", Direction: catalogue.Down},
		},
	}
	x.campaign.Variations = append(x.campaign.Variations, catalogue.Variation{ID: 2, Name: "Blue", Share: 50, Order: 2})
	x.apply()
	w := worlds.New(22)
	w.Visitors = 700
	var events []schema.Event
	for range 3000 {
		e := w.Event(1)
		e.Time = worlds.Start.Add(time.Duration(w.IntN(10*24)) * time.Hour / 2)
		if e.Subject == schema.SubjectCampaign {
			events = append(events, e)
		}
	}
	must.OK(t, x.writer.WriteEvents(t.Context(), events))
	x.refresh()
	for i := range tier.Of(5, 60) {
		asked := drawRequest(w, 1)
		if i%3 == 0 { // cells can answer
			asked.Filters, asked.Cap = query.Filters{}, nil
		}
		asked.Operation, asked.ExperimentID = query.CampaignResults, 0
		asked.Metric = query.Metric(worlds.Pick(w, query.Comparable[query.CampaignResults]...))
		scorecard := x.report(func(r *query.Request) { *r = asked; r.Scorecard = true })
		x.checkScorecard(scorecard, asked)
		alone := x.report(func(r *query.Request) { *r = asked })
		scorecard.Scorecard, scorecard.Decision, scorecard.Worth, scorecard.Checks.FullWeeks = nil, nil, nil, nil
		alone.GeneratedAt = scorecard.GeneratedAt
		scorecard.Checks.Warnings = slices.DeleteFunc(scorecard.Checks.Warnings,
			func(w result.Warning) bool { return w.Code == "SILENT" })
		must.Equal(t, inJSON(t, scorecard), inJSON(t, alone), "the report with a scorecard")
	}
}

// checkScorecard compares the rows with reports.
func (x *trial) checkScorecard(of *result.Report, asked query.Request) {
	x.t.Helper()
	must.That(x.t, len(of.Scorecard) != 0, "there is no scorecard")
	for _, row := range of.Scorecard {
		about := asked
		about.Metric, about.GoalID = row.Metric, 0
		if row.Goal != nil {
			about.GoalID = row.Goal.ID
		}
		alone := must.Get(x.engine.ComputeReport(x.t.Context(), planOf(x.t, x.engine, about)))(x.t)
		for i, v := range unconcluded(alone.Variations) {
			got := row.Variations[i]
			if v.Comparison != nil {
				v.Comparison.Evidence = nil // a scorecard has no evidence of its rows
			}
			estimate := map[query.Metric]result.Estimate{
				query.GoalConversionRate: v.Metrics.GoalConversionRate,
				query.GoalsPerVisitor:    v.Metrics.GoalsPerVisitor,
				query.ValuePerVisitor:    v.Metrics.ValuePerVisitor, query.ProfitPerVisitor: v.Metrics.ProfitPerVisitor,
				query.AverageValue: v.Metrics.AverageValue,
			}[row.Metric]
			comparison := unconcluded([]result.VariationResults{{Comparison: got.Comparison}})[0].Comparison
			must.Equal(x.t, inJSON(x.t, []any{got.ID, got.Name, got.Estimate, comparison}),
				inJSON(x.t, []any{v.ID, v.Name, estimate, v.Comparison}), "goal %v, %s, variation %d", row.Goal,
				row.Metric, v.ID)
		}
	}
}

// guardTrial is a campaign with a guardrail: goal 2 must not rise.
func guardTrial(t *testing.T) *trial {
	t.Helper()
	x := newTrial(t, firstDay)
	x.campaign.Goals = &catalogue.Goals{Guardrails: []catalogue.Guardrail{{
		GoalID: 2, Metric: "goalConversionRate",
		Margin: 50, Direction: catalogue.Down,
	}}}
	minDays := 5
	x.campaign.MinDays = &minDays
	x.campaign.TrafficAllocation = new(50)
	x.apply()
	return x
}

// refunds stores events of goal 2 for the visitors of the last stored day: first of control, then of the treatment.
func (x *trial) refunds(day int, converted ...int) {
	x.t.Helper()
	var events []schema.Event
	at := x.first.AddDate(0, 0, day).Add(20 * time.Hour)
	first := x.ids - dailyVisitors*uint64(len(converted))
	for variation, n := range converted {
		for visitor := range n {
			id := first + uint64(variation*dailyVisitors+visitor) + 1 //nolint:gosec // small
			events = append(events, schema.Event{
				EventID: 1<<40 + 2*id, Time: at, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1,
				VisitorID:   id,
				VariationID: int64(variation), Kind: schema.KindGoal, GoalID: 2,
				Attributes: schema.Attributes{Device: "desktop"},
			})
		}
	}
	must.OK(x.t, x.writer.WriteEvents(x.t.Context(), events))
}

func scorecard(r *query.Request) { r.Scorecard = true }

// TestDecisions follows a campaign week by week to each decision.
func TestDecisions(t *testing.T) {
	for _, test := range []struct {
		name    string
		day     func(x *trial, day int)
		change  func(c *catalogue.Campaign)
		want    []string // decision and first reason, after each week
		decided int      // day of the last decision; -1: none
	}{
		{
			"ship after the least number of days",
			func(x *trial, day int) { x.store(day, 50, 90); x.refunds(day, 60, 60) },
			func(c *catalogue.Campaign) { c.MinDays = ptr(14) },
			[]string{"keepRunning MIN_DAYS", "ship WINNER"},
			15,
		},
		{
			"a harmed guardrail trips the circuit breaker on a day",
			func(x *trial, day int) { x.store(day, 50, 90); x.refunds(day, 20, 120) },
			nil,
			[]string{"rollBack GUARDRAIL_HARMED"},
			2,
		},
		{
			"a loser",
			func(x *trial, day int) { x.store(day, 90, 54); x.refunds(day, 20, 20) },
			nil,
			[]string{"rollBack LOSER"},
			8,
		},
		{
			"no difference within the declared margin",
			func(x *trial, day int) { x.store(day, 300, 300) },
			func(c *catalogue.Campaign) { c.EquivalenceMargin = 10 },
			[]string{"noDifference WITHIN_MARGIN"},
			8,
		},
		{
			"no winner at the end of the plan",
			func(x *trial, day int) { x.store(day, 50, 50); x.refunds(day, 60, 60) },
			func(c *catalogue.Campaign) { c.PlannedDays = 10 }, // two weeks
			[]string{"keepRunning NOT_SIGNIFICANT", "noWinner PLAN_ENDED"},
			15,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := guardTrial(t)
			if test.change != nil {
				test.change(&x.campaign)
				x.apply()
			}
			test.day(x, 0)
			var r *result.Report
			for week, want := range test.want {
				for day := range 7 {
					test.day(x, 1+7*week+day)
				}
				x.refresh()
				r = x.report(scorecard)
				check.Equal(t, string(r.Decision.Status)+" "+string(r.Decision.Reasons[0].Code), want, "week %d: %s",
					week+1, inJSON(t, r.Decision))
			}
			end := x.first.AddDate(0, 0, test.decided)
			must.That(t, r.Decision.DecidedAt != nil, "decided at %v, want %v", r.Decision.DecidedAt, end)
			check.That(t, r.Decision.DecidedAt.Equal(end), "decided at %v, want %v", r.Decision.DecidedAt, end)
			t.Log(r.Decision.Text)
		})
	}
}

func ptr[T any](v T) *T { return &v }

// TestDecisionNeedsTheDeclaredQuestion checks reports that cannot decide.
func TestDecisionNeedsTheDeclaredQuestion(t *testing.T) {
	x := guardTrial(t)
	x.day(0, 50, 90)
	for name, change := range map[string]func(*query.Request){
		"another goal":   func(r *query.Request) { r.GoalID = 2 },
		"another metric": func(r *query.Request) { r.Metric = query.AverageValue },
		"a filter": func(r *query.Request) {
			r.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
		},
		"a start": func(r *query.Request) { r.Filters.From = firstDay.Add(time.Hour) },
	} {
		r := x.report(func(r *query.Request) { r.Scorecard = true; change(r) })
		check.That(t, r.Decision == nil, "%s: decision %v, %d rows", name, r.Decision, len(r.Scorecard))
		check.That(t, len(r.Scorecard) != 0, "%s: decision %v, %d rows", name, r.Decision, len(r.Scorecard))
	}
	x.campaign.Variations[0].Share, x.campaign.ControlShare = 50, 90
	x.apply()
	if r := x.report(scorecard); r.Decision.Status != result.DecisionInvalid && r.Checks.SampleRatio.Mismatch {
		t.Errorf("a sample ratio mismatch: %s", inJSON(t, r.Decision))
	}
}

// TestWorth compares the worth of a campaign alone with its definition: the effect of the look relative to all visitors,
// corrected by the pool.
func TestWorth(t *testing.T) {
	x := guardTrial(t)
	x.store(0, 50, 90)
	x.refresh()
	if item := x.report(scorecard).Worth.Items[0]; item.Expected != nil || item.Observed != nil ||
		item.Reason != stats.ReasonTooEarly || item.Text != "" {
		t.Errorf("after the first day: %+v", item)
	}
	for day := range 7 {
		x.store(1+day, 50, 90)
	}
	x.refresh()
	r := x.report(scorecard)
	item := r.Worth.Items[0]
	const visitors, mean = 7 * dailyVisitors, .14 // of a variation in the look; the rates are .10 and .18
	effect := stats.PooledEffect{Value: .08 / mean, StandardError: math.Sqrt(mean*(1-mean)*2/visitors) / mean}
	want := effects.NewFit(.2, [][]stats.PooledEffect{{effect}}).TrueEffect(0)
	by := mean * float64(2*dailyVisitors) * 30 / .5 // visitors a month; half of the traffic took part
	must.That(t, item.Observed != nil, "%s", inJSON(t, item))
	must.That(t, item.Expected.PerMonth != nil, "%s", inJSON(t, item))
	must.Equal(t, item.State, looks.OfLook, "%s", inJSON(t, item))
	for what, pair := range map[string][2]float64{
		"observed lift": {*item.Observed.Lift, .8}, "observed": {*item.Observed.PerMonth, effect.Value * by},
		"expected lift": {item.Expected.Lift.Value, want.Mean / (1 - want.Mean/2)}, "expected": {item.Expected.PerMonth.Value, want.Mean * by},
		"lower": {item.Expected.PerMonth.Interval[0], want.Lower * by}, "upper": {item.Expected.PerMonth.Interval[1], want.Upper * by},
		"chance": {*item.Chance, want.Chance}, "typical effect": {r.Worth.Pool.TypicalEffect.Value, effects.NewFit(.2, [][]stats.PooledEffect{{effect}}).TypicalEffect().Mean},
	} {
		check.That(t, math.Abs(pair[0]-pair[1]) <= 1e-9*math.Abs(pair[1]), "%s is %v, want %v", what, pair[0], pair[1])
	}
	check.That(t, item.Expected.PerMonth.Value < *item.Observed.PerMonth, "%s", inJSON(t, item))
	check.That(t, item.Expected.ValuePerMonth == nil, "%s", inJSON(t, item))
	check.Equal(t, item.ValueReason, worth.ReasonNoValue, "%s", inJSON(t, item))
	text := item.InWords()
	check.That(t, strings.HasPrefix(text, "Expected +"), "%s %s", text, r.Worth.PoolText)
	check.That(t, strings.HasSuffix(text, " converted visitors a month for all visitors (the test had 50 % of them). Observed: +4,800."), "%s %s", text, r.Worth.PoolText)
	check.Contains(t, r.Worth.PoolText, "(from 1 campaign; ±3.0 % is assumed without any).", "%s %s", text,
		r.Worth.PoolText)
	mobile := x.report(func(r *query.Request) {
		r.Scorecard, r.Filters.Lists = true, []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
	}).Worth.Items[0]
	check.That(t, mobile.Expected == nil, "of some visitors: %s", inJSON(t, mobile))
	check.Equal(t, mobile.Reason, worth.ReasonFiltered, "of some visitors: %s", inJSON(t, mobile))
}

// TestRequiredVisitorsOfAGuardrail compares the required sample with that of its numbers. A report of some visitors has
// none.
func TestRequiredVisitorsOfAGuardrail(t *testing.T) {
	x := guardTrial(t)
	for day := range 8 {
		x.store(day, 50, 50)
		x.refunds(day, 20, 20)
	}
	x.refresh()
	guardrailOf := func(r *result.Report) *result.Guardrail {
		at := slices.IndexFunc(r.Scorecard,
			func(row *result.ScorecardRow) bool { return row.Role == result.RoleGuardrail })
		return r.Scorecard[at].Variations[1].Guardrail
	}
	shares := []float64{50, 50}
	size, _ := stats.NewSampleSize(stats.SamplePlan{
		Control: stats.Rate{Visitors: 8 * dailyVisitors, Converted: 8 * 20}, Shares: shares, Looks: 4, Power: .8,
	}, stats.NewLookDesign(.05, shares))
	want, _ := size.RequiredForMargin(stats.Margin{Relative: .5, Down: true})
	if got := guardrailOf(x.report(scorecard)).RequiredVisitors; got == nil || *got != *want {
		t.Errorf("required visitors = %s, want %d", inJSON(t, got), *want)
	}
	filtered := x.report(func(r *query.Request) {
		r.Scorecard, r.Filters.Lists = true, []query.ListFilter{{Attribute: "device", Values: []string{"desktop"}}}
	})
	if got := guardrailOf(filtered).RequiredVisitors; got != nil {
		t.Errorf("of some visitors: %d", *got)
	}
}

// TestLooksTakeTheCapOfTheGoal checks that the looks of a capped goal are the same with and without a scorecard, and
// the same as recorded: with the cap.
func TestLooksTakeTheCapOfTheGoal(t *testing.T) {
	x := newTrial(t, firstDay)
	x.campaign.PrimaryMetric = string(query.ValuePerVisitor)
	x.campaign.Goals = &catalogue.Goals{Secondary: []catalogue.SecondaryGoal{{
		GoalID: 2, Metric: "valuePerVisitor",
		Direction: catalogue.Up,
	}}}
	site := catalogue.Website{
		ID: 1, Domain: "a.example.com",
		Goals: []catalogue.Goal{
			{ID: 1, WebsiteID: 1, Name: "Purchase", ValueCap: &schema.Cap{Units: 20_000}},
			{ID: 2, WebsiteID: 1, Name: "Subscription"},
		},
		Campaigns: []catalogue.Campaign{x.campaign},
	}
	file := catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}
	must.Get(x.catalogue.ApplyFile(t.Context(), file, false))(t)
	x.weeks([]int{50, 80}, []int{50, 80})
	var events []schema.Event
	for visitor := range int64(40) {
		for _, of := range []struct{ goal, after, value int64 }{
			{1, 2 * dailyVisitors, 90_000_000}, // a large order of control
			{2, 2 * dailyVisitors, 10_000 + visitor},
			{2, 3 * dailyVisitors, 9_000 * (1 + visitor)},
		} {
			goal := goalAfter(x.view(firstDay.AddDate(0, 0, 6), 0), 0)
			goal.VisitorID, goal.GoalID, goal.Value = uint64(of.after+1+visitor), of.goal, of.value //nolint:gosec // small
			events = append(events, goal)
		}
	}
	x.write(events...)
	looksOf := func(change func(*query.Request)) string {
		x.engine, _ = openEngine(x.conn, x.catalogue) // has no kept results
		x.refresh()
		r := x.report(func(r *query.Request) { r.Metric = query.ValuePerVisitor; change(r) })
		must.That(t, len(r.Looks) != 0, "no looks: %s", inJSON(t, r.Looks))
		must.That(t, r.Looks[0].Variations[0].Difference.Value != nil, "no looks: %s", inJSON(t, r.Looks))
		return inJSON(t, r.Looks)
	}
	plain, all := looksOf(func(*query.Request) {}), looksOf(scorecard)
	check.That(t, plain == all, "looks %s\nwith a scorecard %s", plain, all)

	// A new cap of a secondary goal counts at once.
	secondary := func() string {
		r := x.report(func(r *query.Request) { r.Metric = query.ValuePerVisitor; scorecard(r) })
		for _, row := range r.Scorecard {
			if row.Goal.ID == 2 && row.Role == "secondary" {
				return inJSON(t, row.Variations[1].QValue)
			}
		}
		t.Fatalf("no secondary goal in %s", inJSON(t, r.Scorecard))
		return ""
	}
	without := secondary()
	file.Accounts[0].Websites[0].Goals[1].ValueCap = &schema.Cap{Units: 20_000}
	must.Get(x.catalogue.ApplyFile(t.Context(), file, false))(t)
	kept := secondary()
	looksOf(scorecard) // with a new engine
	fresh := secondary()
	check.Equal(t, kept, fresh, "q-value %s; without a cap %s, without kept results %s", kept, without, fresh)
	check.That(t, kept != without, "q-value %s; without a cap %s, without kept results %s", kept, without, fresh)
}
