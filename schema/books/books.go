// Package books stores the rates of accounts, and reads files of them.
package books

import (
	"context"
	"embed"
	"fmt"
	"io"
	"sync"
	"time"

	"lifthouse/engine/books"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// statements are the files of sql/.
var statements = schema.ReadStatements(statementFiles)

// Rate is a rate of a file.
type Rate struct {
	Base, Currency string
	books.Quote
}

// quoteKey identifies a rate of an account.
type quoteKey struct {
	currency string
	day      int64
}

const dayLength = 24 * time.Hour

func dayOf(at time.Time) int64 { return at.Unix() / int64(dayLength/time.Second) }

func timeOf(day int64) time.Time { return time.Unix(day*int64(dayLength/time.Second), 0).UTC() }

func dateOf(day int64) string { return timeOf(day).Format(time.DateOnly) }

// Version identifies the rates of a store at a moment.
type Version struct {
	Count   int64 // rates that were ever declared
	Through int64 // when the last of them was, in milliseconds since 1970
}

// ReadVersion returns the version of the rates of a store.
func ReadVersion(ctx context.Context, conn driver.Conn) (v Version, err error) {
	err = conn.QueryRow(ctx, statements["version"]).Scan(&v.Count, &v.Through)
	return v, schema.WrapError(err, "read the version of the rates")
}

// ReadAccounts returns the rates of an account that count, or of all accounts if it is 0.
func ReadAccounts(ctx context.Context, conn driver.Conn, account int64) (map[int64]*books.Rates, error) {
	bases := map[int64]string{}
	quotes := map[int64]map[string][]books.Quote{}
	err := schema.EachRow(ctx, conn, statements["rates"], func(row driver.Rows) error {
		var of int64
		var base, currency string
		var days []int64
		var texts []string
		if err := row.Scan(&of, &base, &currency, &days, &texts); err != nil {
			return err
		}
		if quotes[of] == nil {
			quotes[of] = map[string][]books.Quote{}
		}
		bases[of] = base
		for i, text := range texts {
			rate, err := books.ParseRate(text)
			if err != nil {
				return fmt.Errorf("rate %q of %s: %w", text, currency, err)
			}
			quotes[of][currency] = append(quotes[of][currency], books.Quote{Day: days[i], Rate: rate})
		}
		return nil
	}, clickhouse.Named("account", account))
	if err != nil {
		return nil, fmt.Errorf("read the rates: %w", err)
	}
	rates := map[int64]*books.Rates{}
	for of, own := range quotes {
		rates[of] = books.NewRates(bases[of], own)
	}
	return rates, nil
}

// Change is a rate that is another one than before.
type Change struct {
	Account     int64
	Currency    string
	Day         int64  // days since 1970
	Before, Now string // as they were declared; empty: there was none
}

// Date returns the day of the rate.
func (c *Change) Date() string { return dateOf(c.Day) }

// ReadChanges returns the rates that were declared since a version, and are others than then. isAll is false if rates
// arrived late, so that it is not known which changed.
func ReadChanges(ctx context.Context, conn driver.Conn, since Version) (changed []Change, isAll bool, err error) {
	through := clickhouse.Named("through", since.Through)
	var count int64
	if err := conn.QueryRow(ctx, statements["count_through"], through).Scan(&count); err != nil {
		return nil, false, fmt.Errorf("count the rates: %w", err)
	}
	if count != since.Count {
		return nil, false, nil
	}
	changed, err = schema.QueryRows(ctx, conn, statements["changes"], func(row driver.Rows, c *Change) error {
		return row.Scan(&c.Account, &c.Currency, &c.Day, &c.Before, &c.Now)
	}, through)
	return changed, true, schema.WrapError(err, "read the changed rates")
}

// Declared is a rate that was declared at a time. Of a currency and day, the latest counts.
type Declared struct {
	Currency   string    `json:"currency"`
	Date       string    `json:"date"`
	Rate       string    `json:"rate"`
	Source     string    `json:"source"`
	DeclaredAt time.Time `json:"declaredAt"`
}

// Currency is what is known of the rates of a currency: its latest one.
type Currency struct {
	Declared        // of the last day
	Days     int64  `json:"days"` // with rates
	First    string `json:"firstDate"`
}

// List are the currencies with rates of an account.
type List struct {
	Base       string     `json:"base,omitempty"` // empty: the account has no rates
	Currencies []Currency `json:"currencies"`
	Rates      []Declared `json:"rates,omitempty"` // of the currency that was asked for, the latest day first
}

// Books are the rates of a store.
type Books struct {
	conn   driver.Conn
	adding sync.Mutex // so that the times of the rows ascend in this process
}

// New returns the rates of a store.
func New(conn driver.Conn) *Books { return &Books{conn: conn} }

// ListRates returns the currencies of an account. Of one currency, if it is not empty, it also returns the last rates
// that were declared, at most most of them.
func (b *Books) ListRates(ctx context.Context, account int64, currency string, most int) (List, error) {
	list := List{Currencies: []Currency{}}
	of := clickhouse.Named("account", account)
	err := schema.EachRow(ctx, b.conn, statements["currencies"], func(row driver.Rows) error {
		var c Currency
		var first, last int64
		err := row.Scan(&list.Base, &c.Currency, &c.Days, &first, &last, &c.Rate, &c.Source, &c.DeclaredAt)
		c.First = dateOf(first)
		c.Date = dateOf(last)
		c.DeclaredAt = c.DeclaredAt.UTC()
		list.Currencies = append(list.Currencies, c)
		return err
	}, of)
	if err != nil || currency == "" {
		return list, schema.WrapError(err, "list the rates")
	}
	list.Rates, err = schema.QueryRows(ctx, b.conn, statements["declared"], func(row driver.Rows, d *Declared) error {
		var base string
		var day int64
		err := row.Scan(&base, &d.Currency, &day, &d.Rate, &d.Source, &d.DeclaredAt)
		d.Date = dateOf(day)
		d.DeclaredAt = d.DeclaredAt.UTC()
		return err
	}, of, clickhouse.Named("currency", currency), clickhouse.Named("most", uint64(most))) //nolint:gosec // bounded
	return list, schema.WrapError(err, "list the rates")
}

// ReadRates returns the rates of an account; nil: it has none.
func (b *Books) ReadRates(ctx context.Context, account int64) (*books.Rates, error) {
	all, err := ReadAccounts(ctx, b.conn, account)
	return all[account], err
}

// ReadFile reads a file of rates of an account, see ReadRates.
func (b *Books) ReadFile(ctx context.Context, account int64, r io.Reader, today time.Time) ([]Rate, error) {
	known, err := b.ReadRates(ctx, account)
	if err != nil {
		return nil, err
	}
	base := ""
	if known != nil {
		base = known.Base
	}
	return ReadRates(r, base, today)
}

// Imported says what the rates of a file changed.
type Imported struct {
	New     int      `json:"new"`       // of days without a rate
	Same    int      `json:"unchanged"` // were stored before
	Changed []Change `json:"-"`         // the rates that are others than before
}

// DeclareRates stores rates of an account that differ from those that count, with one time, and returns what they
// changed. The rates must be those of a file that was read without faults.
func (b *Books) DeclareRates(ctx context.Context, account int64, rates []Rate, source string) (Imported, error) {
	b.adding.Lock()
	defer b.adding.Unlock()
	var found Imported
	known, err := ReadAccounts(ctx, b.conn, account)
	if err != nil {
		return found, err
	}
	last, err := ReadVersion(ctx, b.conn)
	if err != nil {
		return found, err
	}
	var added []Rate
	for _, r := range rates {
		before, has := known[account].QuoteOn(r.Currency, r.Day)
		switch {
		case !has:
			found.New++
		case before.Rate.IsSame(r.Rate):
			found.Same++
			continue
		default:
			change := Change{Account: account, Currency: r.Currency, Day: r.Day}
			change.Before = before.Rate.String()
			change.Now = r.Rate.String()
			found.Changed = append(found.Changed, change)
		}
		added = append(added, r)
	}
	if len(added) == 0 {
		return found, nil
	}
	at := time.UnixMilli(max(time.Now().UnixMilli(), last.Through+1)).UTC()
	return found, b.insertRates(ctx, account, added, func(*Rate) string { return source },
		func(*Rate) time.Time { return at })
}

// insertSettings store all rates of an insert, or none of them.
var insertSettings = clickhouse.Settings{
	"max_insert_block_size": 2 * maxRates, "min_insert_block_size_rows": 2 * maxRates,
	"min_insert_block_size_bytes": 1 << 40,
}

func (b *Books) insertRates(
	ctx context.Context, account int64, rates []Rate, source func(*Rate) string, at func(*Rate) time.Time,
) error {
	err := schema.InsertColumns(ctx, b.conn, insertSettings, statements["insert_rates"], []func() any{
		schema.ColumnValues(rates, func(*Rate) int64 { return account }),
		schema.ColumnValues(rates, func(r *Rate) string { return r.Base }),
		schema.ColumnValues(rates, func(r *Rate) string { return r.Currency }),
		schema.ColumnValues(rates, func(r *Rate) time.Time { return timeOf(r.Day) }),
		schema.ColumnValues(rates, func(r *Rate) string { return r.Rate.String() }),
		schema.ColumnValues(rates, source),
		schema.ColumnValues(rates, at),
	})
	return schema.WrapError(err, "store rates")
}

// stored is a rate as it was declared.
type stored struct {
	Rate
	account int64
	source  string
	at      time.Time
}

// CopyFrom adds the rates of accounts in another store that this store lacks, as they were declared. It returns their
// number.
func (b *Books) CopyFrom(ctx context.Context, from driver.Conn, accounts []int64) (copied int, err error) {
	b.adding.Lock()
	defer b.adding.Unlock()
	theirs, err := readStored(ctx, from, accounts)
	if err != nil {
		return 0, err
	}
	ours, err := readStored(ctx, b.conn, accounts)
	if err != nil {
		return 0, err
	}
	bases := map[int64]string{}
	known := map[stored]bool{}
	for _, r := range ours {
		bases[r.account] = r.Base
		known[r] = true
	}
	added := map[int64][]stored{}
	for _, r := range theirs {
		base, hasBase := bases[r.account]
		switch {
		case hasBase && base != r.Base:
			return 0, fmt.Errorf("copy rates: account %d has rates for 1 %s here, and for 1 %s there", r.account, base,
				r.Base)
		case !known[r]:
			added[r.account] = append(added[r.account], r)
		}
	}
	for account, rows := range added {
		rates := make([]Rate, len(rows))
		at := map[*Rate]*stored{}
		for i := range rows {
			rates[i] = rows[i].Rate
			at[&rates[i]] = &rows[i]
		}
		err := b.insertRates(ctx, account, rates, func(r *Rate) string { return at[r].source },
			func(r *Rate) time.Time { return at[r].at })
		if err != nil {
			return copied, err
		}
		copied += len(rows)
	}
	return copied, nil
}

func readStored(ctx context.Context, conn driver.Conn, accounts []int64) ([]stored, error) {
	rows, err := schema.QueryRows(ctx, conn, statements["copied"], func(row driver.Rows, r *stored) error {
		var text string
		err := row.Scan(&r.account, &r.Base, &r.Currency, &r.Day, &text, &r.source, &r.at)
		if err != nil {
			return err
		}
		r.at = r.at.UTC()
		r.Quote.Rate, err = books.ParseRate(text)
		return err
	}, clickhouse.Named("accounts", accounts))
	return rows, schema.WrapError(err, "read the rates")
}
