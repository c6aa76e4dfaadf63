// Package reconcile compares a shop's own books with a report: it puts each order of an export in one named line, so
// that the lines add up exactly, in 1/10,000 of the currency.
package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

// Comparison is an export beside a report.
type Comparison struct {
	schema.SubjectIDs
	GoalID int64                `json:"goal"`  // 0: all goals
	Dates  map[string]time.Time `json:"dates"` // from, until to
	Books                       // in the currency of the website
	Cap    Decimal              `json:"cap"`    // value above it
	Metric *Decimal             `json:"metric"` // null: not known, because the report has orders in other currencies
	Others []*Books             `json:"otherCurrencies,omitempty"`
	Rows   []*ExportedOrder     `json:"-"`
	Faults []string             `json:"-"` // of the first rows that cannot be read, with their lines

	// HashCustomer returns the customer with an id or e-mail as it was sent, see schema.HashCustomer; nil: no customer
	// is stored.
	HashCustomer func(text string) uint64 `json:"-"`

	plan     *plan.Plan
	from, to int64
	mature   int64                     // the last time of a first view whose visitor is mature
	settled  int64                     // orders from this time on have not settled
	limit    int64                     // of a visitor's value; 0: none
	refused  map[uint64]*ExportedOrder // by the event of each order that is not received; nil: already counted
	unequal  map[string]*OrderSums     // by variation: the orders in the facts less those that the events say count
}

// ExportedOrder is an order of the export. An export may have millions of rows, so a row has no text of its own.
type ExportedOrder struct {
	Event, Visitor uint64 // hashes
	Revision       uint64
	Value, Profit  int64    // in 1/schema.MoneyScale
	Currency       string   // of the amounts
	Variation      string   // of the visitor's first view; empty: none
	Ours           [2]int64 // value and profit in the report, of the lines Amount and Counted
	Line           Line

	given     Line   // by the export alone
	customer  uint64 // of an order without a visitor; 0: not known
	isCarried bool   // the order names no visitor, and Visitor is the one whose order won its customer
}

// New returns a comparison with the report of a plan, of the orders whose own time is in its window. limit is that of
// the total value of a visitor; 0: there is none.
func New(p *plan.Plan, limit int64) *Comparison {
	from := p.WindowStart()
	to := p.WindowEnd()
	return &Comparison{
		SubjectIDs: p.Subject.IDs(), GoalID: p.GoalID, Dates: map[string]time.Time{"from": from, "to": to},
		plan: p, from: from.UnixMilli(), to: to.UnixMilli(), limit: limit,
	}
}

// AddOrder adds an order of the export.
func (c *Comparison) AddOrder(o *ingest.Order) {
	row := &ExportedOrder{
		Event: o.Event, Visitor: o.Visitor, Revision: o.Revision, Value: o.Value, Profit: o.Profit,
		Currency: cmp.Or(o.Currency, c.plan.Currency), given: open,
	}
	c.Rows = append(c.Rows, row)
	switch {
	case o.Fault != "":
		row.given = Unreadable
		if len(c.Faults) < 20 {
			c.Faults = append(c.Faults, fmt.Sprintf("line %d: %s", o.FileLine, o.Fault))
		}
	case !c.isWithin(o.At):
		row.given = OtherPeriod
	case o.WebsiteID != c.plan.Subject.WebsiteID || !c.isGoal(o.GoalID):
		row.given = OtherGoal
	case o.Cancelled:
		row.given = Cancelled
	case o.NoVisitor:
		row.given = NoVisitor
		if o.Customer != "" && c.HashCustomer != nil {
			row.given = open
			row.customer = c.HashCustomer(o.Customer)
		}
	}
}

func (c *Comparison) isWithin(at int64) bool { return at >= c.from && at < c.to }

func (c *Comparison) isGoal(id int64) bool { return c.GoalID == 0 || id == c.GoalID }

// AddsUp reports whether the lines add up, and the events say of each variation what the facts do.
func (c *Comparison) AddsUp() bool {
	sums := slices.Collect(maps.Values(c.unequal))
	for _, b := range c.AllBooks() {
		sums = append(sums, &b.left)
	}
	for _, s := range sums {
		if s.Orders != 0 || s.Value.Units.Sign() != 0 || s.Profit.Units.Sign() != 0 {
			return false
		}
	}
	return true
}

// CompareEvents puts each order in its line, by the stored events and facts. A visitor with more than most events of
// the website is automated. Events and facts are read up to three times: a refresh between them may make a difference.
func (c *Comparison) CompareEvents(ctx context.Context, shards facts.Shards, most int) error {
	for range 3 {
		if err := c.compareOnce(ctx, shards, most); err != nil {
			return err
		}
		if c.AddsUp() {
			break
		}
	}
	return nil
}

func (c *Comparison) compareOnce(ctx context.Context, shards facts.Shards, most int) error {
	c.reset()
	stored, err := shards.StoredEvents(ctx, c.plan.Subject)
	if err != nil {
		return err
	}
	asked := c.boundReport(stored)
	if err := c.findBuyers(ctx, shards); err != nil {
		return err
	}
	pending := c.pendingOrders()
	visitors, err := c.addReport(ctx, shards, &asked, pending)
	if err != nil {
		return err
	}
	for _, row := range pending {
		if row.Visitor != 0 {
			visitors = append(visitors, row.Visitor)
		}
	}
	slices.Sort(visitors)
	website := c.plan.Subject.WebsiteID
	if err := shards.EachVisitorsEvents(ctx, website, slices.Compact(visitors), func(events []fold.Event) {
		c.compareVisitor(events, most, pending.of(events[0].Visitor))
	}); err != nil {
		return err
	}
	if err := c.findMissing(ctx, shards, pending); err != nil {
		return err
	}
	c.addUp(shards.SubjectCounters(c.plan.Subject).FirstExposed)
	return nil
}

// boundReport sets the times up to which visitors are mature and orders have settled, and returns the question of the
// report up to there.
func (c *Comparison) boundReport(stored facts.Stored) plan.Question {
	window := c.plan.ConversionWindow
	c.mature = math.MaxInt64
	if window.IsSet() {
		c.mature = stored.Complete.Add(-window.Maturity()).UnixMilli()
	}
	c.settled = math.MaxInt64
	asked := c.plan.Question
	if window.SettlesOnly() {
		until := stored.SettledAfter(window.Settle)
		c.settled = until.UnixMilli()
		if until.Before(asked.WindowEnd()) {
			asked.Filters.To = until
		}
	}
	return asked
}

// orders are orders of the export, sorted by visitor.
type orders []*ExportedOrder

// pendingOrders returns the orders that are not in a line yet.
func (c *Comparison) pendingOrders() orders {
	var pending orders
	for _, row := range c.Rows {
		if row.Line == open {
			pending = append(pending, row)
		}
	}
	slices.SortFunc(pending, func(a, b *ExportedOrder) int { return cmp.Compare(a.Visitor, b.Visitor) })
	return pending
}

// of returns the orders of a visitor.
func (o orders) of(visitor uint64) orders {
	from, _ := slices.BinarySearchFunc(o, visitor, func(r *ExportedOrder, visitor uint64) int {
		return cmp.Compare(r.Visitor, visitor)
	})
	to := from
	for to < len(o) && o[to].Visitor == visitor {
		to++
	}
	return o[from:to]
}

// addReport adds the orders of the report, by the facts, and returns their visitors without pending orders.
func (c *Comparison) addReport(
	ctx context.Context, shards facts.Shards, asked *plan.Question, pending orders,
) (visitors []uint64, err error) {
	err = shards.EachOrder(ctx, asked, c.mature, func(o *facts.Order) {
		if len(pending.of(o.Visitor)) == 0 {
			visitors = append(visitors, o.Visitor)
		}
		if c.isInReport(o.Variation) {
			if o.Foreign == "" {
				c.Report.addOrders(o.Number, o.Value, o.Profit)
			} else {
				c.booksIn(o.Foreign).Report.addOrders(o.Number, 0, 0) // the facts have what they are worth
			}
		}
		c.addUnequal(o.Variation, o.Number, o.Value, o.Profit)
	})
	return visitors, err
}

// findMissing puts the orders that are not stored under their visitor in their lines.
func (c *Comparison) findMissing(ctx context.Context, shards facts.Shards, pending orders) error {
	var missing orders
	var ids []uint64
	for _, row := range pending {
		if row.Line == open {
			missing = append(missing, row)
			ids = append(ids, row.Event)
		}
	}
	elsewhere, err := shards.FindGoalIDs(ctx, c.plan.Subject.WebsiteID, ids)
	if err != nil {
		return err
	}
	for _, row := range missing {
		row.Line = NotReceived
		switch {
		case row.isCarried: // the visitor has no view
			row.Line = AcquiredElsewhere
		case elsewhere[row.Event]:
			row.Line = OtherVisitor
		}
	}
	return nil
}

// addUp adds up the books. exposed has the visitors of each variation, which lines are compared with. The metric is
// known if all orders of the report in other currencies are converted.
func (c *Comparison) addUp(exposed map[int64]int64) {
	for _, row := range c.Rows {
		c.booksIn(row.Currency).addRow(row)
	}
	for _, b := range c.AllBooks() {
		b.addUp(c.plan.Variations, exposed)
	}
	if slices.ContainsFunc(c.Others, func(b *Books) bool { return b.RateUnknown != nil }) {
		return
	}
	c.Metric = &Decimal{}
	c.Metric.Units.Sub(&c.Report.Value.Units, &c.Cap.Units)
	for _, b := range c.Others {
		if b.Converted != nil {
			c.Metric.Units.Add(&c.Metric.Units, &b.Converted.To.Value.Units)
		}
	}
}

// AllBooks returns the books in each currency, that of the website first.
func (c *Comparison) AllBooks() []*Books { return append([]*Books{&c.Books}, c.Others...) }

// booksIn returns the books in a currency; empty: that of the website.
func (c *Comparison) booksIn(currency string) *Books {
	if currency == "" || currency == c.Currency {
		return &c.Books
	}
	at, has := slices.BinarySearchFunc(c.Others, currency, func(b *Books, currency string) int {
		return cmp.Compare(b.Currency, currency)
	})
	if !has {
		c.Others = slices.Insert(c.Others, at, newBooks(currency))
	}
	return c.Others[at]
}

// addUnequal adds orders in the facts, or subtracts orders that the events say count.
func (c *Comparison) addUnequal(variation string, orders, value, profit int64) {
	if fold.IsCounted(variation) {
		if c.unequal[variation] == nil {
			c.unequal[variation] = &OrderSums{}
		}
		c.unequal[variation].addOrders(orders, value, profit)
	}
}

// NoteRejected notes the orders of the line NotReceived that are in the text of a rejected line.
func (c *Comparison) NoteRejected(text string) {
	if c.refused == nil {
		c.refused = map[uint64]*ExportedOrder{}
		for _, row := range c.Rows {
			if row.Line == NotReceived {
				c.refused[row.Event] = row
			}
		}
	}
	isEnd := func(r rune) bool { return strings.ContainsRune(`"'=,;:{}[]`, r) || r <= ' ' }
	for _, word := range strings.FieldsFunc(text, isEnd) {
		if row := c.refused[schema.HashID(word)]; row != nil {
			c.refused[row.Event] = nil
			c.booksIn(row.Currency).Lines[NotReceived].Refused++
		}
	}
}

// reset forgets all but what the export says.
func (c *Comparison) reset() {
	c.Books = *newBooks(c.plan.Currency)
	c.Others = nil
	c.unequal = map[string]*OrderSums{}
	c.Cap = Decimal{}
	c.Metric = nil
	byID := slices.Clone(c.Rows)
	slices.SortStableFunc(byID, func(a, b *ExportedOrder) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(b.Revision, a.Revision))
	})
	var last *ExportedOrder
	for _, row := range byID {
		row.Line = row.given
		row.Variation = ""
		row.isCarried = false
		if row.customer != 0 {
			row.Visitor = 0
		}
		if row.Line == Unreadable {
			continue
		}
		if last != nil && last.Event == row.Event {
			row.Line = Repeated
		}
		last = row
	}
}
