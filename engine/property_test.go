package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// world draws catalogues, events and requests from so few values that they
// meet: ties in time, crossovers, goals before views, events at the window's
// ends, empty and odd strings, huge and negative values.
type world struct{ *rand.Rand }

func (w world) oneOf(values ...string) string { return values[w.IntN(len(values))] }

func (w world) odd() string {
	return w.oneOf("", "a", "A", "ab", "a*b", `a\b`, "a'b", "a%b", "a_b", "ü", "a\tb", "a\nb", "(other)", "(none)", "{x:String}")
}

var start = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

func (w world) instant() time.Time { return start.Add(time.Duration(w.IntN(40)) * time.Hour / 2) }

func (w world) event(campaign int64) schema.Event {
	kind := schema.KindView
	if w.IntN(2) == 0 {
		kind = schema.KindGoal
	}
	if w.IntN(20) == 0 {
		kind = schema.KindClick
	}
	e := schema.Event{
		EventID: w.Uint64(), Time: w.instant(), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: campaign,
		VariationID: w.Int64N(3), VisitorID: uint64(w.IntN(25)), Kind: kind,
		Attributes: schema.Attributes{
			Device: w.oneOf("mobile", "desktop", ""), Country: w.oneOf("FR", "DE", ""), Channel: w.odd(), Referrer: w.odd(),
			Browser: w.odd(), City: w.odd(), UTMSource: w.odd(), VisitorType: w.oneOf("new", "returning", ""),
		},
	}
	if w.IntN(15) == 0 {
		e.VariationID = 90 + w.Int64N(2) // unknown
	}
	if kind == schema.KindGoal {
		e.GoalID = 1 + w.Int64N(2)
		const most = schema.MaxMoney * schema.MoneyScale
		e.Value = []int64{0, 10_000, 199_900, -50_000, most, -most, w.Int64N(1_000_000)}[w.IntN(7)]
		e.Profit, e.ExtraValue = w.Int64N(2001)-1000, w.Int64N(5)
	}
	return e
}

func (w world) campaign(id int64) catalogue.Campaign {
	c := catalogue.Campaign{
		ID: id, WebsiteID: 1, Name: "c", Type: "experiment", TargetMode: "live", Methodology: catalogue.Frequentist,
		ControlShare: []int{0, 5, 34, 50, 100}[w.IntN(5)], SignificanceLevel: []int{80, 90, 95, 100}[w.IntN(4)], Power: 80, MDE: 20,
		MultipleExposures: w.oneOf("", catalogue.ExcludeCrossovers, catalogue.FirstVariation),
	}
	if w.IntN(3) > 0 {
		c.PrimaryGoalID = 1
	}
	for v := int64(1); v <= 1+w.Int64N(2); v++ {
		c.Variations = append(c.Variations, catalogue.Variation{ID: v, Name: "v", Share: 33, Order: w.IntN(3)})
	}
	return c
}

func (w world) request(campaign int64) Request {
	r := Request{
		AccountID: 1, CampaignID: campaign, GoalID: []int64{0, 1, 2}[w.IntN(3)],
		Metric:    Metric(campaignMetrics[w.IntN(len(campaignMetrics))]),
		Dimension: Dimension(w.oneOf("", "device", "country", "channel", "referrer")),
	}
	if w.IntN(2) == 0 {
		r.Filters.From = w.instant()
	}
	if w.IntN(2) == 0 {
		r.Filters.To = w.instant()
		if !r.Filters.From.Before(r.Filters.To) {
			r.Filters.From = time.Time{}
		}
	}
	list := func(name string, values ...string) {
		if w.IntN(5) == 0 {
			r.Filters.Lists = append(r.Filters.Lists, ListFilter{name, values})
		}
	}
	list("device", w.oneOf("mobile", ""))
	list("country", "FR", w.oneOf("DE", ""))
	list("browser", w.odd(), w.odd(), w.odd())
	list("city", w.odd(), w.odd(), w.odd(), w.odd())
	text := func(name, pattern string) {
		if w.IntN(6) == 0 {
			r.Filters.Texts = append(r.Filters.Texts, TextFilter{name, pattern})
		}
	}
	text("referrer", w.oneOf(w.odd(), "*", "a*", "*b", "*a*", `*\*`, "*%*", "*_*"))
	text("utmSource", w.odd())
	text("visitorType", w.oneOf("new", "returning"))
	return r
}

// campaignsOfWorld have a campaign each, in one store.
const campaignsOfWorld = 12

func TestReportEqualsTheFold(t *testing.T) {
	requests := 1_200
	switch {
	case testing.Short():
		requests = 120
	case os.Getenv("LIFTHOUSE_LONG") != "":
		requests = 10_000
	}
	w := world{rand.New(rand.NewPCG(20261120, 1))}
	conn := schematest.Open(t)
	c, err := catalogue.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	site := catalogue.Website{ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "one"}, {ID: 2, WebsiteID: 1, Name: "two"}}}
	var events []schema.Event
	for id := int64(1); id <= campaignsOfWorld; id++ {
		site.Campaigns = append(site.Campaigns, w.campaign(id))
		for range w.IntN(400) {
			events = append(events, w.event(id))
		}
	}
	w.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	insert(t, conn, events)
	if _, err := c.Apply(t.Context(), catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}, false); err != nil {
		t.Fatal(err)
	}
	for i := range requests {
		compareWithFold(t, conn, c, events, w.request(1+w.Int64N(campaignsOfWorld)))
		if t.Failed() {
			t.Fatalf("case %d", i)
		}
	}
}

// insert stores the events in several parts, so that rows of a visitor lie
// apart.
func insert(t *testing.T, conn driver.Conn, events []schema.Event) {
	t.Helper()
	for part := range slices.Chunk(events, 1+len(events)/5) {
		if err := schema.InsertEvents(t.Context(), conn, part, start); err != nil {
			t.Fatal(err)
		}
	}
}

func compareWithFold(t *testing.T, conn driver.Conn, c *catalogue.Catalogue, events []schema.Event, r Request) {
	t.Helper()
	plan, err := NewPlan(r, c.Snapshot().Account(1))
	if err != nil {
		t.Fatal(err)
	}
	plan.DataThrough = start.AddDate(0, 0, 1).Add(time.Hour) // the days before hold some of the events
	query, err := plan.momentsQuery()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := scanRows(t.Context(), conn, query)
	if err != nil {
		t.Fatal(err)
	}
	byValue := map[string][]row{all: rows}
	for _, r := range rows {
		byValue[r.dimension] = append(byValue[r.dimension], r)
	}
	want := fold(plan, events)
	for value, folded := range want {
		got := gather(byValue[value], plan.Crossovers)
		if got.visitors() != folded.visitors || got.crossover != folded.crossover || got.earlier != folded.earlier {
			t.Errorf("%q: %d visitors, %d crossovers, %d earlier; want %d, %d, %d\n%s", value,
				got.visitors(), got.crossover, got.earlier, folded.visitors, folded.crossover, folded.earlier, plan)
		}
		if g, w := fmt.Sprintf("%+v", readable(got.counted)), fmt.Sprintf("%+v", readable(folded.moments)); g != w {
			t.Errorf("%q:\n got %s\nwant %s\n%s", value, g, w, plan)
		}
	}
	if len(byValue) > len(want) {
		t.Errorf("%d values, want %d", len(byValue), len(want))
	}
	if _, err := json.Marshal(newResults(plan, time.Time{}, rows)); err != nil {
		t.Errorf("results are no JSON: %v\n%s", err, plan)
	}
}

// readable drops variations without visitors and writes big integers out.
func readable(moments map[int64]Moments) map[int64]string {
	texts := map[int64]string{}
	for id, m := range moments {
		if m.Visitors > 0 {
			text, err := json.Marshal(m)
			if err != nil {
				panic(err)
			}
			texts[id] = string(text)
		}
	}
	return texts
}
