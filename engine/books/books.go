package books

import (
	"cmp"
	"math/big"
	"slices"
	"sort"
	"strings"
	"time"

	"lifthouse/schema"
)

// MaxAge is the maximum number of days between a rate and the order that it converts.
const MaxAge = 10

// Quote is the rate of a currency on a day.
type Quote struct {
	Day  int64 // days since 1970
	Rate Rate
}

// Rates are the rates of an account: units of each currency for one unit of the base. They never change.
type Rates struct {
	Base   string
	quotes map[string][]Quote // of each currency, by day
}

// NewRates returns rates. of has at most one rate of a currency and day, in any order.
func NewRates(base string, of map[string][]Quote) *Rates {
	r := &Rates{Base: base, quotes: map[string][]Quote{}}
	for currency, quotes := range of {
		byDay := func(a, b Quote) int { return cmp.Compare(a.Day, b.Day) }
		r.quotes[currency] = slices.SortedFunc(slices.Values(quotes), byDay)
	}
	return r
}

// quoteBefore returns the last rate of a currency before a day, unless it is too old.
func (r *Rates) quoteBefore(currency string, day int64) (Quote, bool) {
	if currency == r.Base {
		return Quote{day - 1, one}, true
	}
	quotes := r.quotes[currency]
	after := sort.Search(len(quotes), func(i int) bool { return quotes[i].Day >= day })
	if after == 0 || quotes[after-1].Day < day-MaxAge {
		return Quote{}, false
	}
	return quotes[after-1], true
}

// QuoteOn returns the rate of a currency on a day; false: there is none.
func (r *Rates) QuoteOn(currency string, day int64) (Quote, bool) {
	if r == nil {
		return Quote{}, false
	}
	quotes := r.quotes[currency]
	at := sort.Search(len(quotes), func(i int) bool { return quotes[i].Day >= day })
	if at == len(quotes) || quotes[at].Day != day {
		return Quote{}, false
	}
	return quotes[at], true
}

// DaysOf returns the days with rates of a currency, in order.
func (r *Rates) DaysOf(currency string) (days []int64) {
	if r == nil {
		return nil
	}
	for _, q := range r.quotes[currency] {
		days = append(days, q.Day)
	}
	return days
}

// latest returns the last day with a rate of a currency; false: there is none.
func (r *Rates) latest(currency string) (day int64, known bool) {
	days := r.DaysOf(currency)
	if len(days) == 0 {
		return 0, false
	}
	return days[len(days)-1], true
}

// Declaration is what the catalogue says of the money of a website.
type Declaration struct {
	Account  int64
	Currency string // empty: none
}

// Book is what the amounts of a website mean. It never changes. Nil is the book of a website that declares no currency.
type Book struct {
	Declaration
	Rates *Rates // of the account; nil: none
}

// CurrencyOf returns the currency of the website; empty: none.
func (b *Book) CurrencyOf() string {
	if b == nil {
		return ""
	}
	return b.Currency
}

// HasRates reports whether the account of the website has rates.
func (b *Book) HasRates() bool { return b != nil && b.Rates != nil }

// LatestRate returns the last day with a rate of a currency; false: there is none.
func (b *Book) LatestRate(currency string) (day int64, known bool) {
	if !b.HasRates() {
		return 0, false
	}
	return b.Rates.latest(currency)
}

// TimeOf returns the beginning of a day (UTC), given as the number of days since 1970.
func TimeOf(day int64) time.Time { return time.UnixMilli(day * dayLength).UTC() }

// Exchange converts the amounts of an order.
type Exchange struct {
	from, to         Quote
	numerator, under *big.Int // an amount times the numerator by under is the amount in the currency of the website
}

// FindExchange returns the exchange of an order in a currency at a time, in milliseconds since 1970: by the rate of the
// last day before its day (UTC), which is known when the order arrives. Without a rate of at most MaxAge days before,
// there is none.
func (b *Book) FindExchange(currency string, at int64) (x Exchange, known bool) {
	if b == nil || b.Rates == nil || b.Currency == "" {
		return x, false
	}
	day := dayOf(at)
	isKnown := false
	x.from, isKnown = b.Rates.quoteBefore(currency, day)
	if !isKnown {
		return x, false
	}
	x.to, isKnown = b.Rates.quoteBefore(b.Currency, day)
	if !isKnown {
		return x, false
	}
	x.numerator = new(big.Int).SetUint64(x.to.Rate.units)
	x.numerator.Mul(x.numerator, powerOfTen(x.from.Rate.decimals))
	x.under = new(big.Int).SetUint64(x.from.Rate.units)
	x.under.Mul(x.under, powerOfTen(x.to.Rate.decimals))
	return x, true
}

// dayOf returns the day (UTC) of a time in milliseconds since 1970, as the number of days since then.
func dayOf(ms int64) int64 {
	day := ms / dayLength
	if ms%dayLength < 0 {
		day--
	}
	return day
}

const dayLength = int64(24 * time.Hour / time.Millisecond)

// maxUnits is the maximum absolute amount of an event.
const maxUnits = schema.MaxMoney * schema.MoneyScale

// Convert returns an amount in the currency of the website, rounded half away from zero: 160.5 becomes 161, and -160.5
// becomes -161. It returns false if no event may have such an amount: then it is not known.
func (x *Exchange) Convert(units int64) (converted int64, known bool) {
	// |amount| is at most 2^44, the numerator 2^80, and so the product fits into 128 bits.
	twice := new(big.Int).Mul(big.NewInt(units), x.numerator)
	isNegative := twice.Sign() < 0
	twice.Abs(twice).Lsh(twice, 1).Add(twice, x.under) // rounds: (2 a + b) / 2 b
	rounded := twice.Quo(twice, new(big.Int).Lsh(x.under, 1))
	if rounded.Cmp(big.NewInt(maxUnits)) > 0 {
		return 0, false
	}
	if isNegative {
		return -rounded.Int64(), true
	}
	return rounded.Int64(), true
}

// Price returns how many units of the order's currency are one unit of the website's.
func (x *Exchange) Price() *big.Rat { return new(big.Rat).SetFrac(x.under, x.numerator) }

// PriceInWords returns the price as a decimal text: the rate as it was imported if the website's currency is the base,
// and otherwise about as exact.
func (x *Exchange) PriceInWords() string {
	if x.to.Rate == one {
		return x.from.Rate.String()
	}
	return formatPrice(x.Price())
}

// formatPrice returns a price with six significant digits, or with MaxDigits decimals if it is below 1.
func formatPrice(price *big.Rat) string {
	if price.Cmp(big.NewRat(1, 1)) < 0 {
		return strings.TrimRight(price.FloatString(MaxDigits), "0")
	}
	return price.FloatString(max(6-len(price.FloatString(0)), 0))
}
