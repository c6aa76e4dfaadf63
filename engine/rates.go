package engine

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"lifthouse/engine/books"
	"lifthouse/engine/facts"
	"lifthouse/engine/looks"
	"lifthouse/engine/query"
	storedbooks "lifthouse/schema/books"
	"lifthouse/schema/catalogue"
)

// ChangedRate is a rate that was corrected, and what follows.
type ChangedRate struct {
	Currency string `json:"currency"`
	Date     string `json:"date"`
	Before   string `json:"before"`
	Now      string `json:"now"`
	Orders   int64  `json:"orders"`   // that are folded again
	Visitors int64  `json:"visitors"` // of these
	Looks    int    `json:"looks"`    // recorded ones at amounts of campaigns with these orders: they stay
}

// ImportedRates says what a file of rates changed.
type ImportedRates struct {
	storedbooks.Imported
	Orders   int64         `json:"orders"` // that new and changed rates convert, and are folded again
	Visitors int64         `json:"visitors"`
	Looks    int           `json:"looks"`
	Changed  []ChangedRate `json:"changed"` // the first ones by currency and day
	Others   int           `json:"othersChanged,omitempty"`
}

// mostChanged is the maximum number of changed rates that are described one by one.
const mostChanged = 20

// ImportRates stores the rates of a file of an account, and says which orders they convert. The next refresh folds
// these again; recorded looks stay. source names the file.
func (e *Engine) ImportRates(
	ctx context.Context, to *storedbooks.Books, account int64, rates []storedbooks.Rate, source string,
) (all ImportedRates, err error) {
	if err := e.facts.FoldAccepted(ctx); err != nil { // so that the facts have all orders, which are counted in them
		return all, err
	}
	before, err := to.ReadRates(ctx, account)
	if err != nil {
		return all, err
	}
	all.Imported, err = to.DeclareRates(ctx, account, rates, source)
	if err != nil {
		return all, err
	}
	e.facts.NoteRates()
	if err := e.describeRates(ctx, account, rates, before, &all); err != nil {
		return all, err
	}
	if err := e.catalogue.RecordRates(ctx, account, source, all.New, len(all.Imported.Changed)); err != nil {
		return all, err
	}
	if all.Orders > 0 {
		var websites []int64
		for id := range e.catalogue.Snapshot().AccountResources(account).Websites {
			websites = append(websites, id)
		}
		slices.Sort(websites)
		if err := e.catalogue.RecordFactsChange(ctx, catalogue.AmountsConverted, websites...); err != nil {
			return all, err
		}
	}
	if e.facts.IsFollowing() { // it folds them
		return all, nil
	}
	return all, e.facts.FoldAccepted(ctx)
}

// describeRates counts the orders that new and changed rates convert. before are the rates before them.
func (e *Engine) describeRates(
	ctx context.Context, account int64, rates []storedbooks.Rate, before *books.Rates, all *ImportedRates,
) error {
	all.Changed = []ChangedRate{}
	days := map[string][]int64{} // with rates, before and now
	var altered []storedbooks.Rate
	for _, r := range rates {
		days[r.Currency] = append(days[r.Currency], r.Day)
		was, has := before.QuoteOn(r.Currency, r.Day)
		if !has || !was.Rate.IsSame(r.Rate) {
			altered = append(altered, r)
		}
	}
	if len(altered) == 0 {
		return nil
	}
	for currency := range days {
		days[currency] = append(days[currency], before.DaysOf(currency)...)
		slices.Sort(days[currency])
	}
	var spans []facts.Span
	for _, r := range altered {
		spans = append(spans, spanOf(r.Currency, r.Day, days[r.Currency]))
	}
	found, looksThatStay, err := e.countConverted(ctx, account, joinSpans(spans))
	if err != nil {
		return err
	}
	all.Orders = found.Orders
	all.Visitors = found.Visitors
	all.Looks = looksThatStay
	corrected := all.Imported.Changed
	all.Others = max(len(corrected)-mostChanged, 0)
	for _, c := range corrected[:len(corrected)-all.Others] {
		changed := ChangedRate{Currency: c.Currency, Date: c.Date(), Before: c.Before, Now: c.Now}
		found, stay, err := e.countConverted(ctx, account, []facts.Span{spanOf(c.Currency, c.Day, days[c.Currency])})
		if err != nil {
			return err
		}
		changed.Orders = found.Orders
		changed.Visitors = found.Visitors
		changed.Looks = stay
		all.Changed = append(all.Changed, changed)
	}
	return nil
}

// spanOf returns the days whose orders the rate of a day converts: up to that of the next rate.
func spanOf(currency string, day int64, all []int64) facts.Span {
	last := day + books.MaxAge
	if next := sort.Search(len(all), func(i int) bool { return all[i] > day }); next < len(all) {
		last = min(last, all[next])
	}
	return facts.Span{Currency: currency, First: day + 1, Last: last}
}

// joinSpans returns fewer spans of the same days.
func joinSpans(spans []facts.Span) (joined []facts.Span) {
	slices.SortFunc(spans, func(a, b facts.Span) int {
		if a.Currency != b.Currency {
			return slices.Compare([]byte(a.Currency), []byte(b.Currency))
		}
		return int(a.First - b.First)
	})
	for _, s := range spans {
		if n := len(joined); n > 0 && joined[n-1].Currency == s.Currency && s.First <= joined[n-1].Last+1 {
			joined[n-1].Last = max(joined[n-1].Last, s.Last)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// countConverted returns the orders that rates of some days convert, and the number of recorded looks at amounts that
// have any of them.
func (e *Engine) countConverted(
	ctx context.Context, account int64, spans []facts.Span,
) (found facts.ForeignOrders, stay int, err error) {
	found, err = e.facts.CountForeign(ctx, account, spans)
	if err != nil || found.Orders == 0 {
		return found, 0, err
	}
	first := spans[0].First
	for _, s := range spans {
		first = min(first, s.First)
	}
	from := time.Unix(first*86_400, 0)
	type look struct {
		looks.Declaration
		metric  query.Metric
		goal    int64
		number  int
		measure string
	}
	recorded := map[look]bool{}
	for _, subject := range found.Subjects {
		records, err := e.Ledger.SubjectRecords(ctx, subject)
		if err != nil {
			return found, 0, err
		}
		for i := range records {
			r := &records[i]
			if r.Kind == looks.OfLook && r.Metric.ReadsAmounts() && r.End.After(from) {
				recorded[look{r.Declaration, r.Metric, r.GoalID, r.Number, fmt.Sprint(r.Measure)}] = true
			}
		}
	}
	return found, len(recorded), nil
}
