package engine

import (
	"fmt"
	"testing"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// declareCurrency sets the currency of the website for both processes.
func (x *trial) declareCurrency(code string) {
	x.t.Helper()
	for _, r := range append(x.other.facts.Shards, x.refresher) {
		r.SetCurrencies(func() map[int64]string { return map[int64]string{1: code} })
	}
	x.refresh()
}

// storeValues stores a day whose orders have a value, in the currency of the website.
func (x *trial) storeValues(day int, converted ...int) {
	x.t.Helper()
	x.storeAtEnd(day, x.dayOf(day, func(visitor int, goal *schema.Event) {
		goal.Value, goal.Profit = int64(10+visitor%7)*schema.MoneyScale, schema.MoneyScale
	}, converted...))
}

// TestLooksAtValuesWaitForACurrency declares a campaign about values. While one order is in another currency, values are
// withheld and no look at them is recorded; rates of conversion go on, and so do looks at them. When the website declares
// that currency, the facts are folded again, and the look is recorded as if nothing had been.
func TestLooksAtValuesWaitForACurrency(t *testing.T) {
	x := newTrialOf(t, firstDay, func(x *trial) {
		c := &x.campaign
		guard := catalogue.Guardrail{
			GoalID: 1, Metric: string(query.GoalConversionRate), Margin: 50,
			Direction: catalogue.Up,
		}
		c.PrimaryMetric = string(query.ValuePerVisitor)
		c.Goals = &catalogue.Goals{Guardrails: []catalogue.Guardrail{guard}}
	})
	x.declareCurrency("EUR")
	for day := range 9 {
		x.storeValues(day, 60, 90)
	}
	order := x.view(x.first.AddDate(0, 0, 3).Add(2*time.Hour), 1)
	goal := goalAfter(order, time.Minute)
	goal.Value, goal.Currency = 14_500*schema.MoneyScale, "JPY"
	must.OK(t, schema.InsertEvents(t.Context(), x.conn, []schema.Event{order, goal}, x.first.AddDate(0, 0, 4)))
	x.refresh()

	now := x.first.AddDate(0, 0, 12)
	recorded := func(metric query.Metric) (n int) {
		for _, r := range must.Get(x.engine.Ledger.SubjectRecords(t.Context(),
			schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1}))(t) {
			if r.Kind == looks.OfLook && r.Metric == metric {
				n++
			}
		}
		return n
	}
	scored := func() *result.Report {
		return x.report(func(r *query.Request) { r.Metric, r.Scorecard = query.ValuePerVisitor, true })
	}
	x.recordAt(t, x.engine, now)
	check.Equal(t, recorded(query.ValuePerVisitor), 0, "recorded looks at values")
	check.Equal(t, recorded(query.GoalConversionRate), 1, "recorded looks at conversions")
	r := scored()
	must.That(t, r.Checks.Currencies != nil, "the report names no currency: %s", inJSON(t, r.Checks))
	check.Equal(t, fmt.Sprint(*r.Checks.Currencies), "{1 [JPY]}", "currencies")
	check.That(t, r.Totals.Value.Withheld, "totals %s", inJSON(t, r.Totals))
	check.Equal(t, r.Totals.GoalsReached, 9*150+1, "totals %s", inJSON(t, r.Totals))
	check.Equal(t, r.Variations[1].Metrics.ValuePerVisitor.Reason, stats.ReasonRateUnknown, "reason of the value")
	check.That(t, r.Variations[1].Metrics.GoalConversionRate.Value != nil, "no conversion rate")
	check.Equal(t, x.decided(x.report(func(r *query.Request) { r.Metric = query.ValuePerVisitor })),
		"insufficientData RATE_UNKNOWN", "conclusion")
	days := x.report(func(r *query.Request) { r.Interval = query.Daily })
	check.That(t, !days.Series[1].Variations[0].Value.Withheld, "the series withholds %s",
		inJSON(t, days.Series[8].Variations[0].Counts))
	check.That(t, days.Series[8].Variations[0].Value.Withheld, "the series withholds %s",
		inJSON(t, days.Series[8].Variations[0].Counts))

	// Once all amounts are of the website's currency, the look counts.
	x.declareCurrency("JPY")
	x.recordAt(t, x.engine, now)
	check.Equal(t, recorded(query.ValuePerVisitor), 1, "recorded looks at values")
	r = must.Get(x.engine.ComputeReport(t.Context(),
		planOf(t, x.engine, query.Request{AccountID: 1, SubjectID: 1, Metric: query.ValuePerVisitor})))(t)
	check.That(t, r.Checks.Currencies == nil, "checks %s", inJSON(t, r.Checks))
	check.That(t, !r.Totals.Value.Withheld, "checks %s", inJSON(t, r.Checks))
	check.That(t, r.Variations[1].Metrics.ValuePerVisitor.Value != nil, "no value")
}
