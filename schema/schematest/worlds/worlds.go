// Package worlds draws events and definitions for tests. They have few values, so that edge cases occur: ties in time,
// multi-exposed visitors, goals before views, empty and odd texts, huge and negative amounts.
package worlds

import (
	"math/rand/v2"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Start is the time of the earliest events.
var Start = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// World draws events.
type World struct {
	Rand
	Websites, Visitors int64    // number of those that have events
	Days               int      // of events since Start
	Customers          int64    // number of those that goals name; 0: goals name none
	Currencies         []string // of the amounts of goals; nil: goals name none
}

// New returns a world of one website, whose numbers depend on a seed.
func New(seed uint64) World { return Of(rand.New(rand.NewPCG(seed, 2026))) }

// Of returns a world of one website.
func Of(r Rand) World { return World{Rand: r, Websites: 1, Visitors: 25, Days: 1} }

// Pick returns one of some values.
func Pick[T any](r Rand, values ...T) T { return values[r.IntN(len(values))] }

// OddText returns a text, which is often hostile to patterns, statements or tables.
func OddText(r Rand) string {
	return Pick(r, "", "a", "A", "ab", "a*b", `a\b`, "a'b", "a%b", "a_b", "ü", "a\tb", "a\nb", "(other)", "(none)",
		"{x:String}")
}

// Instant returns a time of an event.
func (w World) Instant() time.Time {
	return Start.Add(time.Duration(w.IntN(48*w.Days)) * time.Hour / 2)
}

// Event returns an event of a campaign, of the widget with the same id, or of its experiment.
func (w World) Event(subject int64) schema.Event {
	kind := Pick(w, schema.KindView, schema.KindGoal)
	if w.IntN(8) == 0 {
		kind = Pick(w, schema.KindClick, schema.KindSubmit, schema.KindCompletion, schema.KindConversion,
			schema.KindContact)
	}
	e := schema.Event{
		EventID: w.Uint64(), Time: w.Instant(), WebsiteID: 1 + w.Int64N(w.Websites),
		Subject: Pick(w, schema.SubjectCampaign, schema.SubjectWidget), SubjectID: subject,
		VariationID: w.Int64N(3), VisitorID: uint64(w.Int64N(w.Visitors)), Kind: kind, //nolint:gosec // not negative
		Attributes: schema.Attributes{
			Device: Pick(w, "mobile", "desktop", ""), Country: Pick(w, "FR", "DE", ""), Channel: OddText(w),
			Referrer: OddText(w),
			Browser:  OddText(w), City: OddText(w), UTMSource: OddText(w), VisitorType: Pick(w, "new", "returning", ""),
		},
	}
	if e.Subject == schema.SubjectWidget {
		e.ExperimentID = 4 * w.Int64N(2)
	}
	if w.IntN(15) == 0 {
		e.VariationID = 90 + w.Int64N(2) // unknown
	}
	if kind == schema.KindGoal {
		e.GoalID = 1 + w.Int64N(2)
		const most = schema.MaxMoney * schema.MoneyScale
		e.Value = Pick(w, 0, 10_000, 199_900, -50_000, most, -most, w.Int64N(1_000_000))
		e.Profit, e.ExtraValue = w.Int64N(2001)-1000, w.Int64N(5)
	}
	e.Details = w.Details(kind)
	return e
}

// Details returns own attributes, and for a goal perhaps also properties and lines.
func (w World) Details(kind schema.Kind) (d schema.Details) {
	if w.IntN(2) == 0 {
		d.Attributes = schema.Labels{"plan": Pick(w, "free", "pro", "a=b", "ü")}
		if w.IntN(2) == 0 {
			d.Attributes["loggedIn"] = Pick(w, "true", "false")
		}
	}
	if kind != schema.KindGoal {
		return d
	}
	if len(w.Currencies) > 0 {
		d.Currency = Pick(w, w.Currencies...)
	}
	if w.IntN(2) == 0 {
		d.Properties = schema.Labels{"payment": Pick(w, "paypal", "card", "a'b", "a*b", "{x:String}")}
	}
	switch w.IntN(4) {
	case 0:
		d.Numbers = map[string]int64{"weight": Pick[int64](w, 0, -5, 12_500, 40_000)}
	case 1:
		d.Properties = schema.Labels{"weight": "heavy"}
	}
	for range w.IntN(4) {
		product := Pick(w, "SKU-1", "SKU-2", "sku'3", "(other)")
		d.Items = append(d.Items, schema.Item{
			Product: product, Variant: Pick(w, "", "L", "S"), Category: Pick(w, "Shoes", "Hats", ""),
			Brand: "b-" + product, Name: "The " + product, Quantity: Pick[int64](w, 10_000, 20_000, 5_000),
			Revenue: Pick[int64](w, 0, 399_500, -100, 1_000_000), Profit: w.Int64N(2001) - 1000,
		})
	}
	return d
}

// NextEvent returns an event of a subject, or a goal without an exposure, or one of the sent events again, perhaps with
// other content, or another revision of a sent goal.
func (w World) NextEvent(subject int64, sent []schema.Event) schema.Event {
	e := w.Event(subject)
	switch {
	case len(sent) > 0 && w.IntN(6) == 0:
		switch e = Pick(w, sent...); {
		case e.Kind == schema.KindGoal && w.IntN(2) == 0:
			e.Revision, e.Cancelled = Pick[uint64](w, 0, 1, 2, 1<<62), w.IntN(4) == 0
			e.Time, e.Value = e.Time.Add(time.Duration(w.IntN(3)-1)*time.Hour/2), w.Int64N(300_000)
			e.Details = w.Details(e.Kind)
			if w.IntN(2) == 0 {
				e.Subject, e.SubjectID, e.ExperimentID, e.VariationID = schema.SubjectNone, 0, 0, 0
			}
		case w.IntN(3) == 0:
			e.Time, e.Value, e.Device = e.Time.Add(time.Minute), e.Value/2, "tablet"
		}
	case e.Kind == schema.KindGoal && w.IntN(3) == 0:
		e.Subject, e.SubjectID, e.ExperimentID, e.VariationID = schema.SubjectNone, 0, 0, 0
	}
	if w.Customers > 0 {
		w.nameCustomer(&e)
	}
	return e
}

// nameCustomer gives most goals a customer. Some of these orders name no visitor, and a few say that the customer had
// bought before.
func (w World) nameCustomer(e *schema.Event) {
	if e.Kind != schema.KindGoal || w.IntN(4) == 0 {
		return
	}
	e.Customer = schema.FormatCustomer(1 + w.Uint64N(uint64(w.Customers))) //nolint:gosec // positive
	if w.IntN(2) == 0 {
		e.VisitorID = 0
		e.Subject, e.SubjectID, e.ExperimentID, e.VariationID = schema.SubjectNone, 0, 0, 0
		e.Attributes = schema.Attributes{}
		e.Details.Attributes = nil
	}
	if e.VisitorID == 0 && w.IntN(20) == 0 {
		*e = schema.Event{
			WebsiteID: e.WebsiteID, Kind: schema.KindCustomer, Subject: schema.SubjectNone, Time: e.Time,
			Revision: uint64(e.Time.UnixMilli()), Details: schema.Details{Customer: e.Customer}, //nolint:gosec // positive
		}
	}
}

// Events returns a number of events of a subject.
func (w World) Events(subject int64, n int) []schema.Event {
	var events []schema.Event
	for range n {
		events = append(events, w.Event(subject))
	}
	return events
}

// Campaign returns a definition of a campaign.
func (w World) Campaign(id int64) catalogue.Campaign {
	c := catalogue.Campaign{
		ID: id, WebsiteID: 1, Name: "c", Type: "experiment", TargetMode: "live", Methodology: catalogue.Frequentist,
		ControlShare: Pick(w, 0, 5, 34, 50, 100), SignificanceLevel: Pick(w, 80, 90, 95, 100), Power: 80, MDE: 20,
		MultipleExposures: Pick(w, "", catalogue.ExcludeMultiExposed, catalogue.FirstVariation),
	}
	if w.IntN(3) > 0 {
		c.PrimaryGoalID = 1
	}
	for v := int64(1); v <= 1+w.Int64N(2); v++ {
		c.Variations = append(c.Variations, catalogue.Variation{ID: v, Name: "v", Share: 33, Order: w.IntN(3)})
	}
	return c
}

// Widget returns a definition of a widget with an experiment.
func (w World) Widget(id int64) catalogue.Widget {
	widget := catalogue.Widget{
		ID: id, WebsiteID: 1, Name: "w", Type: "popup",
		Variations: []catalogue.WidgetVariation{{ID: 1, Name: "v", Share: 100}},
	}
	if w.IntN(2) == 0 {
		widget.PrimaryGoalID = 2
	}
	e := catalogue.Experiment{
		ID: 4, Name: "e", PrimaryMetric: Pick(w, append(catalogue.ExperimentMetrics, "")...),
		ControlShare: Pick(w, 0, 20, 50),
	}
	for v := int64(1); v <= 1+w.Int64N(3); v++ {
		e.Variations = append(e.Variations, catalogue.WidgetVariation{ID: v, Name: "v", Share: 100})
	}
	widget.Experiments = []catalogue.Experiment{e}
	return widget
}

// File returns an account whose website has two goals, campaigns and widgets.
func (w World) File(ids ...int64) catalogue.File {
	site := catalogue.Website{
		ID: 1, Domain: "a.example.com",
		Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "one"}, {ID: 2, WebsiteID: 1, Name: "two"}},
	}
	for _, id := range ids {
		site.Campaigns, site.Widgets = append(site.Campaigns, w.Campaign(id)), append(site.Widgets, w.Widget(id))
	}
	return catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}
}
