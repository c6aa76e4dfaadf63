package engine

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"lifthouse/engine/books"
	"lifthouse/engine/looks"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	storedbooks "lifthouse/schema/books"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// declareCurrency sets the currency of the website for both processes.
func (x *trial) declareCurrency(code string) {
	x.t.Helper()
	for _, r := range append(x.other.facts.Shards, x.refresher) {
		r.SetMoney(func() map[int64]books.Declaration {
			return map[int64]books.Declaration{1: {Account: 1, Currency: code}}
		})
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

// TestLooksAtValuesWaitForACurrency declares a campaign about values. While one order is in another currency, values
// are withheld and no look at them is recorded; rates of conversion go on, and so do looks at them. When the website
// declares that currency, the facts are folded again, and the look is recorded as if nothing had been.
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

// importRates imports a rate of each day around those of the trial.
func (x *trial) importRates(rate string, days int) ImportedRates {
	x.t.Helper()
	parsed := must.Get(books.ParseRate(rate))(x.t)
	var rates []storedbooks.Rate
	for day := -1; day < days; day++ {
		on := x.first.AddDate(0, 0, day).Unix() / 86_400
		rates = append(rates, storedbooks.Rate{
			Base: "EUR", Currency: "JPY", Quote: books.Quote{Day: on, Rate: parsed},
		})
	}
	found := must.Get(x.engine.ImportRates(x.t.Context(), storedbooks.New(x.conn), 1, rates, "test"))(x.t)
	x.other.facts.NoteRates()
	x.refresh()
	return found
}

// TestCorrectedRatesMoveNoRecordedLook records a look at values, of which those of one variation are in yen, and
// corrects the rates. Today's figures follow, and the look stays, with today's figures beside it.
func TestCorrectedRatesMoveNoRecordedLook(t *testing.T) {
	x := newTrialOf(t, firstDay, func(x *trial) { x.campaign.PrimaryMetric = string(query.ValuePerVisitor) })
	x.declareCurrency("EUR")
	for day := range 9 {
		x.storeAtEnd(day, x.dayOf(day, func(visitor int, goal *schema.Event) {
			goal.Value = int64(10+visitor%7) * schema.MoneyScale
			if goal.VariationID == 1 {
				goal.Value *= 160
				goal.Currency = "JPY"
			}
		}, 60, 90))
	}
	x.refresh()
	now := x.first.AddDate(0, 0, 12)
	check.Equal(t, x.recordAt(t, x.engine, now), 0, "looks without a rate")
	found := x.importRates("160", 9)
	check.Equal(t, found.Orders, 9*90, "orders that the rates convert")
	check.Equal(t, found.Looks, 0, "looks before the first one")
	check.Equal(t, x.recordAt(t, x.engine, now), 1, "looks with rates")
	value := func(r *query.Request) { r.Metric = query.ValuePerVisitor }
	before := x.report(value)
	must.Equal(t, len(before.Looks), 1, "looks %s", inJSON(t, before.Looks))
	must.That(t, before.Looks[0].Variations[0].Recomputed == nil, "looks %s", inJSON(t, before.Looks))

	found = x.importRates("128.00", 9)
	check.Equal(t, found.Orders, 9*90, "orders that the corrected rates convert")
	check.Equal(t, found.Looks, 1, "looks that stay")
	check.Equal(t, len(found.Changed), 10, "changed rates")
	check.Equal(t, found.Changed[1].Orders, 90, "orders of a rate")
	after := x.report(value)
	check.Equal(t, after.Variations[0].Value.Units.String(), before.Variations[0].Value.Units.String(),
		"the value in euros")
	units := new(big.Int).Mul(before.Variations[1].Value.Units, big.NewInt(160))
	check.Equal(t, after.Variations[1].Value.Units.String(), units.Div(units, big.NewInt(128)).String(),
		"the value in yen")
	must.That(t, after.Looks[0].Variations[0].Recomputed != nil, "looks %s", inJSON(t, after.Looks))
	after.Looks[0].Variations[0].Recomputed = nil
	check.Equal(t, inJSON(t, after.Looks), inJSON(t, before.Looks), "corrected rates changed the looks")
}
