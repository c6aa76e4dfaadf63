package reconcile_test

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine"
	"lifthouse/engine/books"
	"lifthouse/engine/enginetest"
	"lifthouse/engine/facts"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/reconcile"
	"lifthouse/schema"
	storedbooks "lifthouse/schema/books"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// most is the number of events above which a visitor of the shops is automated.
const most = 40

// shop is a synthetic shop, which knows the fate of each of its orders.
type shop struct {
	*rand.Rand
	zone     string
	multiple string // the rule for multi-exposed visitors
	cap      string
	skewed   bool   // all orders that are cancelled here are of control
	window   string // of the goal
	settle   string
	// in which orders are besides EUR; there is no rate of CHF
	currencies []string

	location *time.Location
	from, to time.Time // of the dates
	events   []schema.Event
	rows     [][]string
	want     []reconcile.Line // of each row
	sums     map[sumKey]*reconcile.OrderSums
	report   map[string]*reconcile.OrderSums // by currency
	worth    map[string]*reconcile.OrderSums // of these, by currency, in EUR
	totals   map[string]int64                // value of each visitor in the report, in EUR
	visitors int
	carried  int64 // orders without a visitor that count
}

// sumKey identifies a line of the books in a currency.
type sumKey struct {
	currency string
	line     reconcile.Line
}

// rateOn returns the rate of a currency on a day, as it is imported; empty: there is none.
func rateOn(currency string, day int64) string {
	switch currency {
	case "JPY":
		return fmt.Sprintf("16%d.%02d", day%10, day%100)
	case "USD":
		return fmt.Sprintf("1.%04d", 500+day%1000)
	}
	return ""
}

// inEuros returns an amount of an order in EUR; false: there is no rate.
func inEuros(units int64, currency string, at time.Time) (int64, bool) {
	if currency == "EUR" {
		return units, true
	}
	rate, isKnown := new(big.Rat).SetString(rateOn(currency, at.Unix()/86_400-1))
	if !isKnown {
		return 0, false
	}
	text := new(big.Rat).Quo(new(big.Rat).SetInt64(units), rate).FloatString(0) // rounds half away from zero
	converted, err := strconv.ParseInt(text, 10, 64)
	return converted, err == nil
}

//go:embed testdata/shop.yaml
var catalogueOfShop string

// amount returns an amount as an export writes it, and in 1/10,000: with cents, or with the error of a division by three.
func (s *shop) amount() (text string, units int64) {
	cents := s.Int64N(30_000)
	if s.IntN(5) == 0 {
		third := new(big.Rat).SetFrac64(cents, 300)
		units, _ := new(big.Rat).SetString(third.FloatString(4))
		return third.FloatString(14), units.Mul(units, big.NewRat(schema.MoneyScale, 1)).Num().Int64()
	}
	return fmt.Sprintf("%d.%02d", cents/100, cents%100), 100 * cents
}

// visitor returns a new visitor who has seen a variation at a time; -1: none.
func (s *shop) visitor(variation int64, at time.Time) string {
	s.visitors++
	id := fmt.Sprintf("visitor-%d", s.visitors)
	if variation >= 0 {
		s.view(id, variation, at)
	}
	return id
}

func (s *shop) view(visitor string, variation int64, at time.Time) {
	s.events = append(s.events, schema.Event{
		EventID: s.Uint64(), Time: at, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12,
		VariationID: variation,
		VisitorID:   schema.HashID(visitor), Kind: schema.KindView,
	})
}

// order is an order of the books.
type order struct {
	id, visitor   string
	at            time.Time
	text          string // its value
	value, profit int64
	currency      string
	revision      int64
	cancelled     bool
}

func (s *shop) newOrder(n int, at time.Time) order {
	o := order{id: fmt.Sprintf("#%d", 1000+n), at: at, revision: at.UnixMilli()}
	o.text, o.value = s.amount()
	o.profit = 100 * s.Int64N(2000)
	o.currency = "EUR"
	if len(s.currencies) > 0 && s.IntN(2) == 0 {
		o.currency = s.currencies[s.IntN(len(s.currencies))]
	}
	return o
}

// receive stores an order as the shop's pixel, its webhooks or both report it, perhaps with earlier revisions.
func (s *shop) receive(o *order, exposed bool) {
	bare := schema.Event{
		EventID: schema.HashID(o.id), Time: o.at, WebsiteID: 1, Subject: schema.SubjectNone,
		VisitorID: schema.HashID(o.visitor),
		Kind:      schema.KindGoal, GoalID: 3, Value: o.value, Profit: o.profit, Revision: uint64(o.revision), Cancelled: o.cancelled, //nolint:gosec // not negative
	}
	bare.Currency = o.currency
	earlier := bare
	earlier.Value, earlier.Revision, earlier.Cancelled = o.value+100*s.Int64N(1000), s.Uint64N(bare.Revision), false
	if exposed && s.IntN(2) == 0 {
		earlier.Subject, earlier.SubjectID = schema.SubjectCampaign, 12
		earlier.VariationID = s.Int64N(2)
	}
	s.events = append(s.events, [][]schema.Event{{bare}, {earlier, bare}, {bare, earlier}, {bare, bare}}[s.IntN(4)]...)
}

// export writes a row of the export, and notes the line in which it is.
func (s *shop) export(o *order, line reconcile.Line, cells ...string) {
	row := []string{
		o.id, o.at.In(s.location).Format(time.RFC3339), o.visitor, o.text, units(o.profit),
		strconv.FormatInt(o.revision, 10), strconv.FormatBool(o.cancelled), "3", "",
		o.currency,
	}
	for i := 0; i < len(cells); i += 2 {
		row[slices.Index(header, cells[i])] = cells[i+1]
	}
	s.rows, s.want = append(s.rows, row), append(s.want, line)
	value := o.value
	if line == reconcile.Unreadable && row[3] != o.text {
		value = 0
	}
	s.note(o.currency, line, 1, value, o.profit)
}

func (s *shop) note(currency string, line reconcile.Line, orders, value, profit int64) {
	key := sumKey{currency, line}
	if s.sums[key] == nil {
		s.sums[key] = &reconcile.OrderSums{}
	}
	addTo(s.sums[key], orders, value, profit)
}

func addTo(sums *reconcile.OrderSums, orders, value, profit int64) {
	sums.Orders += orders
	sums.Value.Units.Add(&sums.Value.Units, big.NewInt(value))
	sums.Profit.Units.Add(&sums.Profit.Units, big.NewInt(profit))
}

func (s *shop) counts(o *order) {
	if s.report[o.currency] == nil {
		s.report[o.currency] = &reconcile.OrderSums{}
		s.worth[o.currency] = &reconcile.OrderSums{}
	}
	addTo(s.report[o.currency], 1, o.value, o.profit)
	value, isKnown := inEuros(o.value, o.currency, o.at)
	profit, _ := inEuros(o.profit, o.currency, o.at)
	if isKnown {
		addTo(s.worth[o.currency], 1, value, profit)
		s.totals[o.visitor] += value
	}
}

// countsOnly notes an order that the report counts, and the export has not.
func (s *shop) countsOnly(o *order, viewed time.Time) {
	if s.lineOfAge(o, viewed) == reconcile.Counted {
		s.counts(o)
		s.note(o.currency, reconcile.NotInExport, -1, -o.value, -o.profit)
	}
}

// exportCounted writes a row of an order that the report counts if its age is within the conversion window.
func (s *shop) exportCounted(o *order, viewed time.Time) {
	line := s.lineOfAge(o, viewed)
	if line == reconcile.Counted {
		s.counts(o)
	}
	s.export(o, line)
}

func units(amount int64) string {
	return new(big.Rat).SetFrac64(amount, schema.MoneyScale).FloatString(4)
}

var header = []string{
	"eventId", "time", "visitor", "value", "profit", "revision", "cancelled", "goalId", "customer", "currency",
}

// declaredWindow returns the fields of the goal's conversion window.
func (s *shop) declaredWindow() string {
	if s.window == "" {
		return ""
	}
	return fmt.Sprintf(", conversionWindow: %s, settle: %s", s.window, s.settle)
}

// newest is the time of the newest event, up to which the events are complete, because all are imported.
func (s *shop) newest() time.Time { return s.to.Add(2 * time.Hour) }

// lineOfAge returns the line of an order that would count without a conversion window.
func (s *shop) lineOfAge(o *order, viewed time.Time) reconcile.Line {
	if s.window == "" {
		return reconcile.Counted
	}
	w, err := schema.ParseConversionWindow(s.window + "+" + s.settle)
	switch {
	case err != nil:
		panic(err)
	case w.SettlesOnly() && !o.at.Before(s.newest().Add(-w.Settle).Truncate(24*time.Hour)):
		return reconcile.NotMature
	case w.SettlesOnly():
		return reconcile.Counted
	case o.at.Sub(viewed) >= w.To:
		return reconcile.OutsideWindow
	case viewed.Add(w.To + w.Settle).After(s.newest()):
		return reconcile.NotMature
	}
	return reconcile.Counted
}

// place draws an order, what the store knows of it, and its line.
func (s *shop) place(n int) {
	day := 24 * time.Hour
	at := s.from.Add(time.Duration(s.Int64N(int64(s.to.Sub(s.from))))).Truncate(time.Millisecond)
	if s.IntN(10) == 0 { // the first and the last millisecond of the dates
		at = []time.Time{s.from, s.to.Add(-time.Millisecond)}[s.IntN(2)]
	}
	viewed := at.Add(-time.Duration(s.Int64N(int64(20 * day)))).Truncate(time.Millisecond)
	o := s.newOrder(n, at)
	o.visitor = s.visitor(-1, at)
	variation := s.Int64N(2)
	see := func() { s.view(o.visitor, variation, viewed) }
	switch s.IntN(28) {
	case 0: // a row that cannot be read
		see()
		s.receive(&o, true)
		s.countsOnly(&o, viewed)
		s.export(&o, reconcile.Unreadable, []string{"value", "time"}[s.IntN(2)], "x")
	case 1: // exported again after a return
		see()
		before := o
		before.revision--
		before.text, before.value = s.amount()
		s.receive(&o, true)
		s.export(&before, reconcile.Repeated)
		s.exportCounted(&o, viewed)
		if s.IntN(2) == 0 {
			s.export(&o, reconcile.Repeated)
		}
	case 2: // around midnight, and in the night in which the clock changes
		see()
		o.at = []time.Time{
			s.from.Add(-time.Millisecond), s.to, s.to.Add(30 * time.Minute),
			s.from.Add(-2 * time.Hour),
		}[s.IntN(4)]
		s.receive(&o, true)
		s.export(&o, reconcile.OtherPeriod)
	case 3:
		see()
		s.export(&o, reconcile.OtherGoal, "goalId", "4")
	case 4:
		see()
		o.cancelled = true
		s.receive(&o, true)
		s.export(&o, reconcile.Cancelled)
	case 5:
		s.export(&o, reconcile.NoVisitor, "visitor", "")
	case 6: // the shop knows another visitor than the page
		see()
		other := o
		other.visitor = s.visitor(-1, at)
		s.receive(&other, false)
		s.export(&o, reconcile.OtherVisitor)
	case 7: // a lost pixel
		see()
		s.export(&o, reconcile.NotReceived)
	case 8: // refunded in full, which the export does not say
		if s.skewed {
			variation = 0
		}
		see()
		here := o
		here.cancelled, here.revision = true, o.revision+1
		s.receive(&here, true)
		s.export(&o, reconcile.CancelledHere)
	case 9: // the pixel's clock was wrong
		viewed = s.from.Add(-21 * day)
		see()
		here := o
		here.at = s.from.Add(-time.Hour)
		s.receive(&here, true)
		s.export(&o, reconcile.OtherTime)
	case 10: // a bot
		see()
		for range most {
			s.view(o.visitor, variation, viewed.Add(time.Second))
		}
		s.receive(&o, true)
		s.export(&o, reconcile.AutomatedVisitor)
	case 11:
		s.receive(&o, false)
		s.export(&o, reconcile.NotInCampaign)
	case 12:
		viewed = at.Add(time.Millisecond)
		see()
		s.receive(&o, true)
		s.export(&o, reconcile.BeforeFirstView)
	case 13:
		see()
		s.view(o.visitor, 1-variation, at.Add(time.Hour))
		s.receive(&o, true)
		if s.multiple == catalogue.FirstVariation {
			s.exportCounted(&o, viewed)
		} else {
			s.export(&o, reconcile.SeveralVariations)
		}
	case 14:
		variation = 9
		see()
		s.receive(&o, true)
		s.export(&o, reconcile.UndeclaredVariation)
	case 15: // edited, and the webhook was lost; or the other currency
		see()
		s.receive(&o, true)
		line := s.lineOfAge(&o, viewed)
		if line == reconcile.Counted {
			s.counts(&o)
		}
		was := o.value
		o.text, o.value = s.amount()
		if o.value == was {
			o.text, o.value = "1.00", was+10_000
			o.text = units(o.value)
		}
		o.revision += s.Int64N(2)
		if line != reconcile.Counted {
			s.export(&o, line)
			break
		}
		s.export(&o, reconcile.Amount)
		s.note(o.currency, reconcile.Amount, 0, -was, -o.profit)
	case 16: // the export ends before the last orders
		see()
		s.receive(&o, true)
		s.countsOnly(&o, viewed)
	case 24, 25, 26, 27:
		s.placeRenewal(&o, variation, viewed)
	default: // counted, perhaps with another order of the visitor
		see()
		for range 1 + s.IntN(2) {
			s.receive(&o, true)
			s.exportCounted(&o, viewed)
			another := s.newOrder(n, o.at)
			another.id, another.visitor = o.id+"-b", o.visitor
			o = another
		}
	}
}

// placeRenewal draws what the store knows of an order that names no visitor.
func (s *shop) placeRenewal(o *order, variation int64, viewed time.Time) {
	customer := "customer of " + o.id
	first := s.newOrder(0, viewed)
	first.id = o.id + "-first"
	first.visitor = o.visitor
	export := func(line reconcile.Line) { s.export(o, line, "visitor", "", "customer", customer) }
	s.receiveOf(o, customer, "")
	switch s.IntN(4) {
	case 0: // the first order names nobody
		export(reconcile.NoHome)
	case 1:
		first.at = o.at.Add(-time.Hour)
		s.receiveOf(&first, customer, first.visitor)
		export(reconcile.AcquiredElsewhere)
	case 2:
		s.view(o.visitor, variation, viewed)
		first.at = viewed.Add(-time.Millisecond)
		s.receiveOf(&first, customer, first.visitor)
		export(reconcile.AcquiredBefore)
	default: // won in the test
		s.view(o.visitor, variation, viewed)
		s.receiveOf(&first, customer, first.visitor)
		if !first.at.Before(s.from) {
			s.exportCounted(&first, viewed)
		}
		line := s.lineOfAge(o, viewed)
		if line == reconcile.Counted {
			s.counts(o)
			s.carried++
		}
		export(line)
	}
}

// receiveOf stores an order of a customer, which names a visitor or none.
func (s *shop) receiveOf(o *order, customer, visitor string) {
	e := schema.Event{
		EventID: schema.HashID(o.id), Time: o.at, WebsiteID: 1, Subject: schema.SubjectNone, Kind: schema.KindGoal,
		GoalID: 3, Value: o.value, Profit: o.profit, Revision: uint64(o.revision), //nolint:gosec // not negative
	}
	e.Customer = schema.FormatCustomer(schema.HashCustomer(nil, customer))
	e.Currency = o.currency
	if visitor != "" {
		e.VisitorID = schema.HashID(visitor)
	}
	s.events = append(s.events, e)
}

// open returns the store of a shop with a number of orders, and the path of the export.
func (s *shop) open(t *testing.T, seed uint64, orders int) (driver.Conn, *engine.Engine, facts.Shards, string) {
	t.Helper()
	s.Rand, s.location = rand.New(rand.NewPCG(seed, 60)), must.Get(time.LoadLocation(s.zone))(t)
	s.sums, s.totals = map[sumKey]*reconcile.OrderSums{}, map[string]int64{}
	s.report, s.worth = map[string]*reconcile.OrderSums{}, map[string]*reconcile.OrderSums{}
	s.from, s.to = time.Date(2026, 10, 1, 0, 0, 0, 0, s.location), time.Date(2026, 11, 1, 0, 0, 0, 0, s.location)
	for n := range orders {
		s.place(n)
	}
	s.view("the last visitor", 0, s.newest())
	conn := schematest.OpenMigrated(t)
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	file := must.Get(catalogue.ReadYAML(strings.NewReader(fmt.Sprintf(catalogueOfShop, s.zone, s.cap,
		s.declaredWindow(), s.multiple))))(t)
	must.Get(c.ApplyFile(t.Context(), file, false))(t)
	e, w, shards := enginetest.OpenWithFacts(t, conn, c)
	shards[0].MaxVisitorEvents = most
	shards[0].SetMoney(func() map[int64]books.Declaration { return c.Snapshot().Money() })
	s.declareRates(t, conn)
	shards.NoteRates()
	s.Shuffle(len(s.events), func(i, j int) { s.events[i], s.events[j] = s.events[j], s.events[i] })
	for len(s.events) > 0 {
		some := min(len(s.events), 20_000+s.IntN(20_000))
		must.OK(t, w.WriteEvents(t.Context(), s.events[:some]))
		s.events = s.events[some:]
	}
	must.Get(shards.AwaitNoted(t.Context()))(t)
	path := filepath.Join(t.TempDir(), "orders.csv")
	out := must.Get(os.Create(path))(t)
	export := csv.NewWriter(out)
	must.OK(t, export.Write(append(header, "websiteId", "event")))
	for _, row := range s.rows {
		must.OK(t, export.Write(append(row, "1", "goal")))
	}
	export.Flush()
	must.OK(t, out.Close())
	return conn, e, shards, path
}

// declareRates stores rates of each day.
func (s *shop) declareRates(t *testing.T, conn driver.Conn) {
	t.Helper()
	var rates []storedbooks.Rate
	for _, currency := range s.currencies {
		for day := s.from.Unix()/86_400 - 40; day <= s.to.Unix()/86_400; day++ {
			if text := rateOn(currency, day); text != "" {
				rate := must.Get(books.ParseRate(text))(t)
				rates = append(rates, storedbooks.Rate{
					Base: "EUR", Currency: currency, Quote: books.Quote{Day: day, Rate: rate},
				})
			}
		}
	}
	must.Get(storedbooks.New(conn).DeclareRates(t.Context(), 1, rates, "test"))(t)
}

// compare compares the export of the shop with its report.
func (s *shop) compare(t *testing.T, e *engine.Engine, shards facts.Shards,
	path string,
) (compared *reconcile.Comparison, limit int64) {
	t.Helper()
	request := plan.ResultsRequest(1, schema.Subject{Kind: schema.SubjectCampaign, ID: 12})
	report := must.Get(e.ComputeReport(t.Context(), must.Get(e.PlanReport(request))(t)))(t)
	dated := must.Get(query.ParseVisitors(query.CampaignResults,
		"filters[dateFrom]=2026-10-01&filters[dateTo]=2026-10-31"))(t)
	request.Filters = dated.Filters
	p := e.AsOfFirstView(must.Get(e.PlanReport(request))(t))
	if c := report.Checks.Cap; c != nil && c.Amount != nil {
		limit = c.Amount.Units.Int64()
	}
	compared = reconcile.New(p, limit)
	compared.HashCustomer = func(text string) uint64 { return schema.HashCustomer(nil, text) }
	must.OK(t, ingest.ReadOrders(t.Context(), path, ingest.Options{}, compared.AddOrder))
	must.OK(t, compared.CompareEvents(t.Context(), shards, most))
	return compared, limit
}

// TestEachOrderIsInItsTrueLine compares the exports of three shops with their reports: in time zones in which the clock
// changes within the dates and in one in which it does not, with each rule for multi-exposed visitors, with a cap, and in
// several currencies.
func TestEachOrderIsInItsTrueLine(t *testing.T) {
	for i, s := range []*shop{
		{zone: "Europe/Berlin", multiple: catalogue.ExcludeMultiExposed, cap: "p99"},
		{zone: "America/New_York", multiple: catalogue.FirstVariation, cap: "250"},
		{zone: "Asia/Kolkata", multiple: catalogue.ExcludeMultiExposed, cap: "100", skewed: true},
		{zone: "Europe/Paris", multiple: catalogue.ExcludeMultiExposed, cap: "p95", window: "10d", settle: "5d"},
		{zone: "Europe/Paris", multiple: catalogue.FirstVariation, cap: "p95", window: "none", settle: "5d"},
		{zone: "Europe/Berlin", multiple: catalogue.ExcludeMultiExposed, cap: "100", currencies: []string{"JPY", "USD"}},
		{zone: "Asia/Kolkata", multiple: catalogue.FirstVariation, cap: "100", currencies: []string{"USD", "CHF"}},
	} {
		conn, e, shards, path := s.open(t, uint64(i), tier.Of(800, 100_000)) //nolint:gosec // small
		compared, limit := s.compare(t, e, shards, path)
		must.That(t, compared.AddsUp(), "shop %d: the difference is %s", i, &compared.Difference)
		must.Equal(t, compared.Difference.String(), "0.0000", "shop %d: the difference is %s", i, &compared.Difference)
		wrong := 0
		for at, row := range compared.Rows {
			if row.Line != s.want[at] {
				if wrong++; wrong < 10 {
					t.Errorf("shop %d: order %+v is in the line %s, want %s", i, s.rows[at], row.Line, s.want[at])
				}
			}
		}
		check.Equal(t, wrong, 0, "orders in other lines")
		for _, b := range compared.AllBooks() {
			s.checkBooks(t, fmt.Sprint("shop ", i), b)
		}
		hasUnknown := slices.Contains(s.currencies, "CHF")
		check.Equal(t, compared.Metric == nil, hasUnknown, "shop %d: whether the metric is not known", i)
		if hasUnknown {
			continue
		}
		removed := int64(0)
		for _, total := range s.totals {
			removed += max(0, total-limit)
		}
		check.Equal(t, compared.Cap.Units.Int64(), removed, "value above the cap")
		for _, line := range compared.Lines[:reconcile.Counted] {
			isSkewed := s.skewed && line.Line == reconcile.CancelledHere
			check.That(t, line.Differs == isSkewed || (!isSkewed && s.skewed),
				"shop %d: whether the line %s differs between variations", i, line.Line)
		}
		carried := int64(0)
		for _, b := range compared.AllBooks() {
			carried += b.Lines[reconcile.Counted].Carried
		}
		check.Equal(t, carried, s.carried, "orders without a visitor that count")
		check.That(t, s.carried > 0, "no order without a visitor counts")
		check.That(t, compared.Lines[reconcile.Amount].Newer != 0, "no order has a higher revision in the export")

		// a row of facts is corrupted
		must.OK(t, conn.Exec(t.Context(), `
			INSERT INTO facts (section, website_id, subject, subject_id, experiment_id, grain, goal_id, sign, variation,
				visitor_id, first_time, since_ms, number, value)
			SELECT section, website_id, subject, subject_id, experiment_id, grain, goal_id, 1, variation,
				visitor_id, first_time, since_ms, number + 1, 1
			FROM facts
			WHERE grain = 'goal' AND variation = '0' AND subject = 'campaign'
				AND first_time + toIntervalMillisecond(since_ms) BETWEEN '2026-10-10' AND '2026-10-20'
				AND since_ms < 864000000 AND first_time < '2026-10-15'
			LIMIT 1`))
		corrupted, _ := s.compare(t, e, shards, path)
		check.That(t, !corrupted.AddsUp(),
			"shop %d: after a change of the facts, the difference is %s, want -0.0001", i, &corrupted.Difference)
		check.Equal(t, corrupted.Difference.String(), "-0.0001",
			"shop %d: after a change of the facts, the difference is %s, want -0.0001", i, &corrupted.Difference)
	}
}

// checkBooks compares the books in a currency with those of the shop.
func (s *shop) checkBooks(t *testing.T, what string, b *reconcile.Books) {
	t.Helper()
	what += " " + b.Currency
	check.Equal(t, b.Difference.String(), "0.0000", what)
	for _, line := range b.Lines {
		checkSums(t, fmt.Sprint(what, ", ", line.Line), &line.OrderSums, s.sums[sumKey{b.Currency, line.Line}])
	}
	checkSums(t, what+", report", &b.Report, s.report[b.Currency])
	if b.Currency == "EUR" {
		return
	}
	if rateOn(b.Currency, 0) == "" {
		must.That(t, b.RateUnknown != nil, "%s: no order is without a rate", what)
		checkSums(t, what+", without a rate", b.RateUnknown, s.report[b.Currency])
		return
	}
	must.That(t, b.Converted != nil, "%s: no order is converted", what)
	checkSums(t, what+", sent", &b.Converted.From, s.report[b.Currency])
	checkSums(t, what+", converted", &b.Converted.To, s.worth[b.Currency])
}

func checkSums(t *testing.T, what string, got, want *reconcile.OrderSums) {
	t.Helper()
	if want == nil {
		want = &reconcile.OrderSums{}
	}
	check.Equal(t, got.Orders, want.Orders, "%s: %d orders, %v and %v; want %d, %v and %v", what, got.Orders,
		&got.Value, &got.Profit, want.Orders, &want.Value, &want.Profit)
	check.Equal(t, got.Value.String(), want.Value.String(), "%s: %d orders, %v and %v; want %d, %v and %v", what,
		got.Orders, &got.Value, &got.Profit, want.Orders, &want.Value, &want.Profit)
	check.Equal(t, got.Profit.String(), want.Profit.String(), "%s: %d orders, %v and %v; want %d, %v and %v", what,
		got.Orders, &got.Value, &got.Profit, want.Orders, &want.Value, &want.Profit)
}
