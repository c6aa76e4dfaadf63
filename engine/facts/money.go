package facts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lifthouse/engine/books"
	"lifthouse/engine/fold"
	"lifthouse/schema"
	stored "lifthouse/schema/books"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// money knows what the amounts of the websites mean: the currencies that the catalogue declares, and the rates of the
// accounts, as this process last read them. All its methods may be called concurrently.
type money struct {
	declared func() map[int64]books.Declaration // of the websites; nil: none is

	mu      sync.Mutex // guards the following
	readAt  time.Time  // zero: not yet
	isStale bool       // the rates may be others since
	version stored.Version
	rates   map[int64]*books.Rates // by account
}

// shelf has the books of the websites at a moment.
type shelf struct {
	of         map[int64]*books.Book // of the websites that declare a currency
	currencies string                // of the websites, as in a position
	rates      stored.Version
	isStale    bool
}

// currentBooks returns the books of the websites as they are now.
func (m *money) currentBooks() *shelf {
	s := &shelf{of: map[int64]*books.Book{}}
	if m == nil {
		return s
	}
	declared := map[int64]books.Declaration{}
	if m.declared != nil {
		declared = m.declared()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var parts []string
	for _, website := range slices.Sorted(maps.Keys(declared)) {
		of := declared[website]
		if of.Currency != "" {
			s.of[website] = &books.Book{Declaration: of, Rates: m.rates[of.Account]}
			parts = append(parts, fmt.Sprintf("%d=%s", website, of.Currency))
		}
	}
	s.currencies = strings.Join(parts, ",")
	s.rates = m.version
	s.isStale = m.isStale
	return s
}

// ratesInterval is the time after which a process looks for rates that another one has stored.
const ratesInterval = 10 * time.Second

// knownVersion returns the version of the rates that were read last.
func (m *money) knownVersion() stored.Version {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}

// loadRates reads the rates of all accounts, if they are others than those that were read. alone means that no other
// process stores any.
func (m *money) loadRates(ctx context.Context, conn driver.Conn, alone bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	isKnown := !m.readAt.IsZero() && !m.isStale
	if isKnown && (alone || time.Since(m.readAt) < ratesInterval) {
		return nil
	}
	version, err := stored.ReadVersion(ctx, conn)
	if err != nil {
		return err
	}
	if version != m.version {
		m.rates, err = stored.ReadAccounts(ctx, conn, 0)
		if err != nil {
			return err
		}
	}
	m.version = version
	m.readAt = time.Now()
	m.isStale = false
	return nil
}

// noteRates notes that rates may have been stored.
func (m *money) noteRates() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isStale = true
}

// SetMoney sets a function that returns what the catalogue declares of the money of the websites. It must be called
// before the first refresh. Amounts of events in other currencies are converted by the rates of the account. If a
// currency or a rate changes, the next refresh folds the visitors with such events again.
func (r *Refresher) SetMoney(of func() map[int64]books.Declaration) { r.money.declared = of }

// NoteRates notes that this process has stored rates.
func (r *Refresher) NoteRates() { r.money.noteRates() }

// NoteRates notes that this process has stored rates. The next reports wait until the orders that these convert are
// folded again.
func (s Shards) NoteRates() {
	for _, shard := range s {
		shard.NoteRates()
	}
}

// Books returns the books of the websites that declare a currency.
func (s Shards) Books() map[int64]*books.Book {
	if len(s) == 0 {
		return nil
	}
	return s[0].money.currentBooks().of
}

// decodeCurrencies returns the currencies of a position.
func decodeCurrencies(text string) map[int64]string {
	of := map[int64]string{}
	for part := range strings.SplitSeq(text, ",") {
		id, code, _ := strings.Cut(part, "=")
		if website, err := strconv.ParseInt(id, 10, 64); err == nil {
			of[website] = code
		}
	}
	return of
}

// areOf reports whether the events up to a position are folded by these books.
func (s *shelf) areOf(at Position) bool {
	isSame := s.currencies == at.Currencies && s.rates == at.Rates && !s.isStale
	return at.Refresh == 0 || isSame
}

// isConverted reports whether the facts that readers see are folded by the declared currencies and rates.
func (r *Refresher) isConverted() bool { return r.money.currentBooks().areOf(r.ShownPosition()) }

// foldMoney folds again the visitors with goals in a currency, of the websites whose own currency is another than that
// by which they were folded, or with other rates.
func (r *Refresher) foldMoney(ctx context.Context) error {
	now := r.turn.on.currentBooks()
	if r.turn.position.Through == 0 || now.areOf(r.turn.position) {
		return nil
	}
	found := map[schema.Visitor]bool{}
	if err := r.findPriced(ctx, now.websitesWithOther(r.turn.position), found); err != nil {
		return err
	}
	if err := r.findRated(ctx, now, found); err != nil {
		return err
	}
	maps.DeleteFunc(found, func(v schema.Visitor, _ bool) bool { return r.turn.automated[v] })
	if len(found) > 0 {
		visitors := slices.SortedFunc(maps.Keys(found), schema.Visitor.Compare)
		if err := r.foldVisitors(ctx, visitors, r.turn.position.Through); err != nil {
			return err
		}
	}
	next := r.turn.position.nextRefresh()
	next.Currencies = now.currencies
	next.Rates = now.rates
	return r.replaceRows(ctx, nil, nil, next)
}

// websitesWithOther returns the websites with another currency than that of a position.
func (s *shelf) websitesWithOther(at Position) (changed []int64) {
	folded := decodeCurrencies(at.Currencies)
	for website, book := range s.of {
		if folded[website] != book.Currency {
			changed = append(changed, website)
		}
	}
	for website := range folded {
		if s.of[website] == nil {
			changed = append(changed, website)
		}
	}
	return changed
}

// findPriced adds the visitors of some websites with goals that name a currency.
func (r *Refresher) findPriced(ctx context.Context, websites []int64, found map[schema.Visitor]bool) error {
	if len(websites) == 0 {
		return nil
	}
	return r.findWith(ctx, found, "priced.sql", clickhouse.Named("websites", websites))
}

// findWith adds the visitors of a statement.
func (r *Refresher) findWith(ctx context.Context, found map[schema.Visitor]bool, file string, params ...any) error {
	visitors, err := schema.QueryRows(ctx, r.turn.on, r.turn.on.render(file, ""), scanVisitor,
		append(params, clickhouse.Named("through", r.turn.position.Through))...)
	for _, v := range visitors {
		found[v] = true
	}
	return schema.WrapError(err, "read the visitors with goals in a currency")
}

// findRated adds the visitors with goals that other rates convert than those by which they were folded.
func (r *Refresher) findRated(ctx context.Context, now *shelf, found map[schema.Visitor]bool) error {
	if now.rates == r.turn.position.Rates {
		return nil
	}
	changed, isAll, err := stored.ReadChanges(ctx, r.turn.on, r.turn.position.Rates)
	if err != nil {
		return err
	}
	if !isAll { // rates arrived late, or were copied: any of them may be another one
		return r.findPriced(ctx, slices.Collect(maps.Keys(now.of)), found)
	}
	for account, of := range affectedOf(changed) {
		asked := of.paramsOf(account, now)
		if asked == nil {
			continue
		}
		if err := r.findWith(ctx, found, "affected.sql", asked...); err != nil {
			return err
		}
	}
	return nil
}

// Span is a range of days (since 1970) whose orders in a currency a rate converts, or whose orders on a website with
// this currency.
type Span struct {
	Currency    string
	First, Last int64
}

// ForeignOrders are the orders that some rates convert.
type ForeignOrders struct {
	Orders, Visitors int64
	Subjects         []schema.Subject // that count them
}

// CountForeign returns the orders of an account that some rates convert.
func (s Shards) CountForeign(ctx context.Context, account int64, spans []Span) (all ForeignOrders, err error) {
	websites := []int64{}
	own := []string{}
	for website, book := range s.Books() {
		if book.Account == account {
			websites = append(websites, website)
			own = append(own, book.Currency)
		}
	}
	if len(websites) == 0 {
		return all, nil
	}
	codes := make([]string, len(spans))
	first := make([]int64, len(spans))
	last := make([]int64, len(spans))
	for i, of := range spans {
		codes[i] = of.Currency
		first[i] = of.First
		last[i] = of.Last
	}
	subjects := map[schema.Subject]bool{}
	for _, shard := range s {
		on, err := shard.shownServer(ctx)
		if err != nil {
			return all, err
		}
		var found ForeignOrders
		var of struct {
			websites, ids, experiments []int64
			kinds                      []string
		}
		params := append(on.sectionsOfGrain(fold.OfGoal), clickhouse.Named("websites", websites),
			clickhouse.Named("own", own), clickhouse.Named("currencies", codes), clickhouse.Named("first_days", first),
			clickhouse.Named("last_days", last))
		row := on.QueryRow(ctx, on.render("foreign_orders.sql", ""), params...)
		err = row.Scan(&found.Orders, &found.Visitors, &of.websites, &of.kinds, &of.ids, &of.experiments)
		if err != nil {
			return all, fmt.Errorf("count the orders in other currencies: %w", err)
		}
		all.Orders += found.Orders
		all.Visitors += found.Visitors
		for i, website := range of.websites {
			subjects[schema.Subject{
				WebsiteID: website, Kind: schema.SubjectKind(of.kinds[i]), ID: of.ids[i],
				ExperimentID: of.experiments[i],
			}] = true
		}
	}
	all.Subjects = slices.SortedFunc(maps.Keys(subjects), schema.Subject.Compare)
	return all, nil
}

// affected are the currencies and the days of the orders that changed rates of an account may convert.
type affected struct {
	currencies map[string]bool
	days       map[int64]bool
}

// affectedOf returns what changed rates affect, by account.
func affectedOf(changed []stored.Change) map[int64]affected {
	all := map[int64]affected{}
	for _, c := range changed {
		of, has := all[c.Account]
		if !has {
			of = affected{map[string]bool{}, map[int64]bool{}}
			all[c.Account] = of
		}
		of.currencies[c.Currency] = true
		for day := c.Day + 1; day <= c.Day+books.MaxAge; day++ {
			of.days[day] = true
		}
	}
	return all
}

// paramsOf returns the parameters of affected.sql; nil: the account has no website whose amounts are converted.
func (a affected) paramsOf(account int64, now *shelf) []any {
	websites := []int64{}
	own := []int64{} // whose own currency has other rates: any other currency is converted by them
	for website, book := range now.of {
		if book.Account == account {
			websites = append(websites, website)
			if a.currencies[book.Currency] {
				own = append(own, website)
			}
		}
	}
	if len(websites) == 0 {
		return nil
	}
	first := []int64{}
	last := []int64{}
	for _, day := range slices.Sorted(maps.Keys(a.days)) {
		if n := len(last); n > 0 && last[n-1] == day-1 {
			last[n-1] = day
			continue
		}
		first = append(first, day)
		last = append(last, day)
	}
	return []any{
		clickhouse.Named("websites", websites), clickhouse.Named("own", own),
		clickhouse.Named("currencies", slices.Collect(maps.Keys(a.currencies))),
		clickhouse.Named("first_days", first), clickhouse.Named("last_days", last),
	}
}
