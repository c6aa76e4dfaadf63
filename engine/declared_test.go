package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/stats"
)

// every is a condition that all events of a trial meet. With it, a metric that has a name is a declared one.
const every = " where value > -100000"

// declaredAs has the expressions that measure the same as metrics with a name.
var declaredAs = map[query.Metric]string{
	query.GoalConversionRate: "converted(purchase" + every + ")",
	query.GoalsPerVisitor:    "count(purchase" + every + ")",
	query.ValuePerVisitor:    "sum(purchase.value" + every + ")",
	query.AverageValue:       "sum(purchase.value" + every + ") / count(purchase" + every + ")",
}

// newDeclaredTrial returns a trial whose roles have metrics of the goal; asDeclared: as metrics of the website.
func newDeclaredTrial(t *testing.T, asDeclared bool, primary query.Metric, goal *catalogue.Goal) *trial {
	t.Helper()
	return newTrialOf(t, firstDay, func(x *trial) {
		x.live = true
		x.goal.ConversionWindow = goal.ConversionWindow
		x.goal.Settle = goal.Settle
		roles := &catalogue.Goals{
			Guardrails: []catalogue.Guardrail{
				{GoalID: 1, Metric: string(query.GoalsPerVisitor), Margin: 5, Direction: catalogue.Up},
			},
			Secondary: []catalogue.SecondaryGoal{
				{GoalID: 1, Metric: string(query.AverageValue), Direction: catalogue.Down},
				{GoalID: 1, Metric: string(query.ValuePerVisitor), Direction: catalogue.Up},
			},
		}
		roles.Guardrails = slices.DeleteFunc(roles.Guardrails,
			func(g catalogue.Guardrail) bool { return g.Metric == string(primary) })
		roles.Secondary = slices.DeleteFunc(roles.Secondary,
			func(s catalogue.SecondaryGoal) bool { return s.Metric == string(primary) })
		x.campaign.Goals = roles
		x.campaign.PrimaryMetric = string(primary)
		if !asDeclared {
			x.goal.ValueCap = goal.ValueCap
			return
		}
		for of, text := range declaredAs {
			m := catalogue.Metric{Key: "own-" + string(of), Name: "Own " + string(of), Expression: text}
			if of == query.ValuePerVisitor {
				m.Cap = goal.ValueCap
			}
			x.metrics = append(x.metrics, m)
		}
		x.campaign.PrimaryGoalID = 0
		x.campaign.PrimaryMetric = "own-" + string(primary)
		for i := range roles.Guardrails {
			roles.Guardrails[i].GoalID = 0
			roles.Guardrails[i].Metric = "own-" + roles.Guardrails[i].Metric
		}
		for i := range roles.Secondary {
			roles.Secondary[i].GoalID = 0
			roles.Secondary[i].Metric = "own-" + roles.Secondary[i].Metric
		}
	})
}

// storePriced stores a day with orders of many values, some of them late and some of visitors with several orders.
func (x *trial) storePriced(day int, converted ...int) {
	x.t.Helper()
	events := x.dayOf(day, func(visitor int, goal *schema.Event) {
		goal.Value = int64(1+(visitor*37+day*11)%90) * schema.MoneyScale
		goal.Time = goal.Time.Add(time.Duration(visitor%5) * 20 * time.Hour)
	}, converted...)
	for i := range events {
		if of := events[i]; of.Kind == schema.KindGoal && of.VisitorID%7 == 0 {
			of.EventID += 2
			of.Time = of.Time.Add(30 * time.Hour)
			events = append(events, of)
		}
	}
	x.storeAtEnd(day, events)
}

// TestDeclaredMetricsDecideAsNamedOnes compares the looks, the roles and the decision of a campaign whose metrics have
// a name with those of one that declares the same metrics as expressions, week by week, before and after the looks are
// recorded.
func TestDeclaredMetricsDecideAsNamedOnes(t *testing.T) {
	window := must.Get(schema.ParseConversionWindow("3d"))(t)
	settle := schema.Settle(2 * day)
	for name, goal := range map[string]*catalogue.Goal{
		"no window": {},
		"window":    {ConversionWindow: &window},
		"settle":    {ConversionWindow: &window, Settle: &settle},
		"cap":       {ValueCap: &schema.Cap{Units: 500_000}},
	} {
		for primary := range declaredAs {
			isOfValue := name == "no window" || primary == query.ValuePerVisitor
			isShort := tier.IsLong() || !isRepeated(name, primary)
			if !isOfValue || !isShort {
				continue
			}
			t.Run(fmt.Sprint(name, " ", primary), func(t *testing.T) {
				named := newDeclaredTrial(t, false, primary, goal)
				declared := newDeclaredTrial(t, true, primary, goal)
				for _, x := range []*trial{named, declared} {
					x.storePriced(0, 50, 60)
				}
				for week, n := range []int{62, 64, 44}[:tier.Of(2, 3)] {
					for day := range 7 {
						for _, x := range []*trial{named, declared} {
							x.storePriced(1+7*week+day, 50, n)
						}
					}
					for _, x := range []*trial{named, declared} {
						x.refresh()
					}
					compareDecided(t, named, declared, fmt.Sprint("after week ", week+1))
					at := firstDay.AddDate(0, 0, 9+7*week)
					check.Equal(t, declared.recordAt(t, declared.engine, at), named.recordAt(t, named.engine, at),
						"records of week %d", week+1)
					for _, x := range []*trial{named, declared} {
						must.OK(t, x.other.Ledger.ReadNewRecords(t.Context()))
					}
					compareDecided(t, named, declared, fmt.Sprint("recorded after week ", week+1))
				}
			})
		}
	}
}

// isRepeated reports whether a case of TestDeclaredMetricsDecideAsNamedOnes is only for the long tier.
func isRepeated(name string, primary query.Metric) bool {
	return name == "window" || name == "no window" && primary != query.AverageValue
}

// compareDecided compares what the reports of two trials decide.
func compareDecided(t *testing.T, named, declared *trial, about string) {
	t.Helper()
	ask := func(r *query.Request) {
		r.Metric = ""
		r.Scorecard = true
	}
	want := named.report(ask)
	got := declared.report(ask)
	must.That(t, len(want.Looks) > 0 || !strings.Contains(about, "2"), "%s: there are looks", about)
	check.Equal(t, inJSON(t, got.Looks), inJSON(t, want.Looks), "%s: looks", about)
	check.Equal(t, declared.decided(got), named.decided(want), "%s: conclusion", about)
	check.Equal(t, inJSON(t, got.Power), inJSON(t, want.Power), "%s: power", about)
	check.Equal(t, string(got.Decision.Status), string(want.Decision.Status), "%s: decision", about)
	for i := range want.Variations {
		check.Equal(t, inJSON(t, got.Variations[i].Comparison), inJSON(t, want.Variations[i].Comparison),
			"%s: comparison of variation %d", about, i)
		check.Equal(t, inJSON(t, got.Variations[i].Counts), inJSON(t, want.Variations[i].Counts),
			"%s: counts of variation %d", about, i)
	}
	for _, role := range []result.Role{result.RolePrimary, result.RoleGuardrail, result.RoleSecondary} {
		wanted := rowsWithRole(t, want, role)
		found := rowsWithRole(t, got, role)
		must.Equal(t, len(found), len(wanted), "%s: rows of %s", about, role)
		for i := range wanted {
			check.Equal(t, found[i], wanted[i], "%s: row %d of %s", about, i, role)
		}
	}
}

// rowsWithRole returns the results of the rows of a scorecard with a role, sorted.
func rowsWithRole(t *testing.T, r *result.Report, role result.Role) (rows []string) {
	t.Helper()
	for _, row := range r.Scorecard {
		if row.Role != role {
			continue
		}
		text := row.Direction
		for _, v := range row.Variations {
			results := []any{v.ID, v.Estimate.Value, v.Comparison, v.QValue, v.Discovered, v.Guardrail}
			text += " " + inJSON(t, results)
		}
		rows = append(rows, text)
	}
	slices.Sort(rows)
	return rows
}

// TestDeclaredMetricsAreFrozenByTheFirstView changes what the primary metric measures after the first view: to another
// expression, and to a metric with a name. Nothing changes but a warning that names the field. Another name of the metric
// changes nothing but the name.
func TestDeclaredMetricsAreFrozenByTheFirstView(t *testing.T) {
	x := newDeclaredTrial(t, true, query.GoalsPerVisitor, &catalogue.Goal{})
	x.live = false
	x.weeks([]int{50, 90})
	ask := func(r *query.Request) { r.Metric = "" }
	before := x.report(ask)
	must.Equal(t, before.Conclusion.Status, stats.StatusWinner, "status")
	sameResults := func(about string, warns bool) {
		t.Helper()
		after := x.report(ask)
		check.Equal(t, inJSON(t, after.Looks), inJSON(t, before.Looks), "looks after %s", about)
		check.Equal(t, inJSON(t, after.Variations), inJSON(t, before.Variations), "variations after %s", about)
		check.Equal(t, after.Conclusion.Status, before.Conclusion.Status, "status after %s", about)
		isWarned := strings.Contains(inJSON(t, after.Checks.Warnings), "PLAN_CHANGED")
		check.Equal(t, isWarned, warns, "warning after %s", about)
	}
	for i := range x.metrics {
		x.metrics[i].Name += ", renamed"
	}
	x.apply()
	sameResults("another name", false)
	check.Equal(t, x.report(ask).Question.Name, "Own goalsPerVisitor, renamed", "name")

	for i := range x.metrics {
		x.metrics[i].Expression = strings.ReplaceAll(x.metrics[i].Expression, "value > -100000", "value > 20")
	}
	x.apply()
	sameResults("another expression", true)

	x.campaign.PrimaryMetric = string(query.GoalConversionRate)
	x.campaign.PrimaryGoalID = 1
	x.apply()
	sameResults("a metric with a name", true)
}

// TestADeclaredMetricComesTooLate declares a metric as the primary one after the first view: the one with a name
// remains.
func TestADeclaredMetricComesTooLate(t *testing.T) {
	x := newTrial(t, firstDay)
	x.weeks([]int{50, 90})
	ask := func(r *query.Request) { r.Metric = "" }
	before := x.report(ask)
	x.metrics = []catalogue.Metric{{Key: "own", Name: "Own", Expression: declaredAs[query.GoalsPerVisitor]}}
	x.campaign.PrimaryMetric = "own"
	x.campaign.PrimaryGoalID = 0
	x.apply()
	after := x.report(ask)
	check.Equal(t, inJSON(t, after.Looks), inJSON(t, before.Looks), "looks")
	check.Equal(t, inJSON(t, after.Variations), inJSON(t, before.Variations), "variations")
	check.That(t, after.Question == nil, "the report is about a metric with a name")
}
