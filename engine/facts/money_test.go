package facts_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/books"
	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/schema"
	stored "lifthouse/schema/books"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
)

// moneyOf returns the declarations of websites of account 1 with currencies.
func moneyOf(currencies map[int64]string) map[int64]books.Declaration {
	of := map[int64]books.Declaration{}
	for website, code := range currencies {
		of[website] = books.Declaration{Account: 1, Currency: code}
	}
	return of
}

// TestAnotherCurrencyOfAWebsiteFoldsAgain declares other currencies of a website, also after a restart and without any
// new event: the facts are always those that a rebuild would make, and they are folded once.
func TestAnotherCurrencyOfAWebsiteFoldsAgain(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var events []schema.Event
	for i := range uint64(30) {
		e := schema.Event{
			EventID: 2 * i, Time: at, WebsiteID: 1 + int64(i%2), Subject: schema.SubjectCampaign,
			SubjectID: 1, VisitorID: i, Kind: schema.KindView,
		}
		events = append(events, e)
		e.EventID, e.Kind, e.GoalID, e.Value, e.Subject, e.SubjectID = e.EventID+
			1, schema.KindGoal, 3, schema.MoneyScale, schema.SubjectNone, 0
		e.Currency = []string{"", "EUR", "JPY"}[i%3]
		events = append(events, e)
	}
	must.OK(t, schema.InsertEvents(t.Context(), conn, events, at.Add(time.Hour)))
	for _, declared := range []map[int64]string{
		{1: "EUR"},
		{1: "JPY", 2: "JPY"},
		{},
		{2: "EUR"},
		{1: "EUR", 2: "EUR"},
	} {
		for _, alone := range []bool{true, false} {
			r := facts.NewRefresher(conn, alone)
			r.SetMoney(func() map[int64]books.Declaration { return moneyOf(declared) })
			position := must.Get(r.RefreshFacts(t.Context()))(t)
			check.Equal(t, must.Get(r.RefreshFacts(t.Context()))(t), position,
				"the second refresh changes the position")
			rows, cells := must.Get(facts.ReadAll(t.Context(), conn))(t), must.Get(facts.ReadAllCells(t.Context(),
				conn))(t)
			must.Get(r.RebuildFacts(t.Context()))(t)
			check.That(t, reflect.DeepEqual(rows, must.Get(facts.ReadAll(t.Context(), conn))(t)),
				"%v: other rows than after a rebuild", declared)
			check.That(t, reflect.DeepEqual(cells, must.Get(facts.ReadAllCells(t.Context(), conn))(t)),
				"%v: other cells than after a rebuild", declared)
			unknown := map[string]int{}
			for i := range rows {
				if row := &rows[i]; row.Grain == fold.OfGoal && row.Marks&fold.UnknownValueMark != 0 {
					unknown[fmt.Sprint(row.Subject.WebsiteID, row.Foreign)]++
				}
			}
			for website := range int64(2) {
				for _, code := range []string{"EUR", "JPY"} {
					want := 10 // 5 goals, for the campaign and alone
					if declared[website+1] == code {
						want = 0
					}
					check.Equal(t, unknown[fmt.Sprint(website+1, code)], want, fmt.Sprint(declared, website+1, code))
				}
			}
		}
	}
}

// ratedWorld is a world whose goals are in several currencies, and whose rates are declared and corrected.
type ratedWorld struct {
	*world
	declared map[int64]books.Declaration
	quotes   map[int64]map[string]map[int64]string // by account, currency and day
	stored   *stored.Books
}

func newRatedWorld(t *testing.T, seed uint64) *ratedWorld {
	t.Helper()
	w := &ratedWorld{world: newWorld(t, seed), quotes: map[int64]map[string]map[int64]string{1: {}, 2: {}}}
	w.Currencies = []string{"", "EUR", "JPY", "USD"}
	w.declared = map[int64]books.Declaration{1: {Account: 1, Currency: "EUR"}, 2: {Account: 2, Currency: "JPY"}}
	w.stored = stored.New(w.conn)
	w.keepBooks(t)
	return w
}

// keepBooks sets the books by the rates that were declared last.
func (w *ratedWorld) keepBooks(t *testing.T) {
	t.Helper()
	w.books = map[int64]*books.Book{}
	for website, of := range w.declared {
		quotes := map[string][]books.Quote{}
		for currency, days := range w.quotes[of.Account] {
			for day, text := range days {
				rate := must.Get(books.ParseRate(text))(t)
				quotes[currency] = append(quotes[currency], books.Quote{Day: day, Rate: rate})
			}
		}
		w.books[website] = &books.Book{Declaration: of, Rates: books.NewRates("EUR", quotes)}
	}
}

// declareRates declares some rates, most of which are new or corrected.
func (w *ratedWorld) declareRates(t *testing.T) {
	t.Helper()
	account := 1 + w.Int64N(2)
	var file strings.Builder
	file.WriteString("date,currency,rate,base\n")
	for range 1 + w.IntN(4) {
		currency := worlds.Pick(w.World, "JPY", "USD")
		day := worlds.Start.AddDate(0, 0, w.IntN(18)-12)
		text := fmt.Sprintf("%d.%02d", 1+w.IntN(200), w.IntN(100))
		if w.quotes[account][currency] == nil {
			w.quotes[account][currency] = map[int64]string{}
		}
		on := day.Unix() / 86400
		if strings.Contains(file.String(), day.Format(time.DateOnly)+","+currency) {
			continue // a file has one rate of a day
		}
		w.quotes[account][currency][on] = text
		fmt.Fprintf(&file, "%s,%s,%s,EUR\n", day.Format(time.DateOnly), currency, text)
	}
	rates := must.Get(stored.ReadRates(strings.NewReader(file.String()), "EUR", worlds.Start.AddDate(1, 0, 0)))(t)
	must.Get(w.stored.DeclareRates(t.Context(), account, rates, "test"))(t)
	w.keepBooks(t)
}

func (w *ratedWorld) refresher(conn driver.Conn, alone bool) *facts.Refresher {
	r := facts.NewRefresher(conn, alone)
	r.SetMoney(func() map[int64]books.Declaration { return w.declared })
	return r
}

// TestRatesOfARandomWalk sends events, declares and corrects rates, and declares currencies, in any order. The facts
// are always those of all events by the rates that count, also if refreshes are killed after any of their operations.
func TestRatesOfARandomWalk(t *testing.T) {
	for seed := range uint64(tier.Of(1, 40)) {
		w := newRatedWorld(t, 100+seed)
		r := w.refresher(w.conn, false)
		for step := range 25 {
			through := w.at.UnixMilli()
			if step == 0 || w.IntN(2) == 0 {
				w.at = w.at.Add(20 * time.Minute) // so that refreshes do not look at the earlier events again
				_, through = w.send(t, 1+w.IntN(60))
			}
			for range w.IntN(3) {
				w.declareRates(t)
			}
			if w.IntN(6) == 0 {
				of := w.declared[2]
				of.Currency = worlds.Pick(w.World, "JPY", "USD", "EUR")
				w.declared[2] = of
				w.keepBooks(t)
			}
			left := w.IntN(40)
			dying := w.refresher(schematest.KilledConn{Conn: w.conn, Left: &left}, w.IntN(2) == 0)
			_, _ = dying.RefreshFacts(t.Context())
			if w.IntN(3) == 0 {
				r = w.refresher(w.conn, false)
			}
			r.NoteRates()
			refresh(t, r, through)
			w.check(t)
			if step%8 == 7 {
				merge(t, w.conn)
				found := scrub(t, r)
				check.Equal(t, found.Wrong, 0, "%+v of correct facts", found)
				verified := must.Get(r.VerifyFacts(t.Context(), func(float64) {}))(t)
				check.Equal(t, verified.Wrong, 0, "%+v of correct facts", verified)
			}
		}
		must.Get(r.RebuildFacts(t.Context()))(t)
		w.check(t)
		unknown := 0
		converted := 0
		for _, row := range w.wanted() {
			switch {
			case row.Grain != fold.OfGoal || row.Foreign == "":
			case row.Marks&fold.UnknownValueMark != 0:
				unknown++
			default:
				converted++
			}
		}
		check.That(t, unknown > 0, "world %d: no goal is without a rate", seed)
		check.That(t, converted > 0, "world %d: no goal is converted", seed)
	}
}

// TestOnlyOrdersOfChangedRatesAreRead counts what a refresh reads when rates change: the events of the visitors with
// orders that they convert, and of nobody if there are none.
func TestOnlyOrdersOfChangedRatesAreRead(t *testing.T) {
	w := newRatedWorld(t, 7)
	w.Currencies = []string{"JPY"}
	w.declared[2] = books.Declaration{Account: 1, Currency: "EUR"}
	w.keepBooks(t)
	reading := &countedReads{Conn: w.conn}
	r := w.refresher(reading, true)
	_, through := w.send(t, 200)
	refresh(t, r, through)
	for _, c := range []struct {
		file    string
		isRead  bool
		changes int
	}{
		{"2026-04-27,JPY,160", true, 0},
		{"2026-04-27,JPY,160.00", false, 0},
		{"2026-04-27,USD,1.1", false, 0},
		{"2026-05-20,JPY,170", false, 0},
		{"2026-04-27,JPY,161.2", true, 1},
	} {
		rates := must.Get(stored.ReadRates(strings.NewReader("date,currency,rate,base\n"+c.file+",EUR\n"), "",
			worlds.Start.AddDate(1, 0, 0)))(t)
		found := must.Get(w.stored.DeclareRates(t.Context(), 1, rates, "test"))(t)
		check.Equal(t, len(found.Changed), c.changes, "%s: changed rates", c.file)
		r.NoteRates()
		before := reading.events
		refresh(t, r, through)
		check.Equal(t, reading.events > before, c.isRead, "%s: whether events are read", c.file)
	}
}
