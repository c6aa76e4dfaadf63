// Package reconcile compares a shop's own books with a report: it puts each order of an export in one named line, so
// that the lines add up exactly, in 1/10,000 of the currency.
package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/stats"
)

// Line says where an order of the export is in the comparison: in the first line that applies.
type Line uint8

// The lines.
const (
	Unreadable Line = iota
	Repeated
	OtherPeriod
	OtherGoal
	Cancelled
	NoVisitor
	OtherVisitor
	NotReceived
	CancelledHere
	OtherTime
	AutomatedVisitor
	NotInCampaign
	BeforeFirstView
	SeveralVariations
	UndeclaredVariation
	OutsideWindow
	NotMature
	OtherCurrency // counted in another currency: it leaves the one, and enters the other with a minus
	Amount        // counted, with another amount: the difference
	NotInExport   // counted, and not in the export: negative
	Counted       // as the export has it
	open          // not known yet
)

// texts are the name of each line, and what it says of its orders.
var texts = [open][2]string{
	Unreadable: {"unreadable", "cannot be read"}, Repeated: {"repeated", "repeated in the export"},
	OtherPeriod: {"otherPeriod", "outside the dates"}, OtherGoal: {"otherGoal", "of another goal or website"},
	Cancelled: {"cancelled", "cancelled"}, NoVisitor: {"noVisitor", "without a visitor"},
	OtherVisitor: {"otherVisitor", "stored under another visitor"}, NotReceived: {"notReceived", "not received"},
	CancelledHere: {"cancelledHere", "cancelled here"}, OtherTime: {"otherTime", "with another time here"},
	AutomatedVisitor:    {"automatedVisitor", "of automated visitors"},
	NotInCampaign:       {"notInCampaign", "of visitors without a view"},
	BeforeFirstView:     {"beforeFirstView", "before the first view"},
	SeveralVariations:   {"severalVariations", "of excluded visitors, who saw several variations"},
	UndeclaredVariation: {"undeclaredVariation", "of variations that the report does not have"},
	OutsideWindow:       {"outsideWindow", "outside the conversion window"},
	NotMature:           {"notMature", "of visitors whose conversion window, or the time to settle, has not ended"},
	OtherCurrency:       {"otherCurrency", "in another currency here"},
	Amount:              {"amount", "with another amount here, by the difference"},
	NotInExport:         {"notInExport", "in the report only"}, Counted: {"counted", "in the report"},
}

// String returns the name of the line.
func (l Line) String() string { return texts[l][0] }

// MarshalText returns the name of the line.
func (l Line) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// InWords says what the orders of the line are.
func (l Line) InWords() string { return texts[l][1] }

// Decimal is an amount in 1/schema.MoneyScale.
type Decimal struct{ Units big.Int }

// String writes the amount with all four decimals.
func (d *Decimal) String() string {
	return new(big.Rat).SetFrac(&d.Units, big.NewInt(schema.MoneyScale)).FloatString(4)
}

// MarshalText returns the amount as a decimal string, so that no reader rounds it.
func (d *Decimal) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Sums are a number of orders, and the sums of their amounts.
type Sums struct {
	Orders int64   `json:"orders"`
	Value  Decimal `json:"value"`
	Profit Decimal `json:"profit"`
}

func (s *Sums) addOrders(orders, value, profit int64) {
	s.Orders += orders
	s.Value.Units.Add(&s.Value.Units, big.NewInt(value))
	s.Profit.Units.Add(&s.Profit.Units, big.NewInt(profit))
}

func (s *Sums) addSums(o *Sums) {
	s.Orders += o.Orders
	s.Value.Units.Add(&s.Value.Units, &o.Value.Units)
	s.Profit.Units.Add(&s.Profit.Units, &o.Profit.Units)
}

func (s *Sums) subtractSums(o *Sums) {
	s.Orders -= o.Orders
	s.Value.Units.Sub(&s.Value.Units, &o.Value.Units)
	s.Profit.Units.Sub(&s.Profit.Units, &o.Profit.Units)
}

// Row is an order of the export. An export may have millions of rows, so a row has no text of its own.
type Row struct {
	Event, Visitor uint64 // hashes
	Revision       uint64
	Value, Profit  int64    // in 1/schema.MoneyScale
	Currency       string   // of the amounts
	Variation      string   // of the visitor's first view; empty: none
	Ours           [2]int64 // value and profit in the report, of the lines Amount and Counted
	Line           Line

	given Line // by the export alone
}

// state is an order as it is stored.
type state struct {
	fold.Explained
	rank       int  // 2: as it counts for the subject, 1: without exposures, 0: of another subject
	isExported bool // a row of the export counts
}

// LineSums are the orders of a line.
type LineSums struct {
	Line Line `json:"line"`
	Sums
	Newer      int64            `json:"newer,omitempty"`   // of Amount: those with a higher revision in the export
	Refused    int64            `json:"refused,omitempty"` // of NotReceived: those in lines rejected in the last week
	Differs    bool             `json:"differs"`           // the share of visitors differs between variations
	Variations map[string]*Sums `json:"variations"`        // by that of the first view

	visitors map[string]int64 // by variation
}

func (l *LineSums) addOrders(orders, value, profit int64, variation string) {
	l.Sums.addOrders(orders, value, profit)
	if variation != "" {
		if l.Variations[variation] == nil {
			l.Variations[variation] = &Sums{}
		}
		l.Variations[variation].addOrders(orders, value, profit)
	}
}

// Books are an export beside a report in one currency.
type Books struct {
	Currency   string      `json:"currency,omitempty"`
	Lines      []*LineSums `json:"lines"`
	Export     Sums        `json:"export"`
	Report     Sums        `json:"report"`     // by the facts; amounts that these do not have, by the events
	Difference Decimal     `json:"difference"` // value that the lines do not explain

	left Sums // what the lines do not explain; 0, unless facts and events differ
}

// Comparison is an export beside a report.
type Comparison struct {
	schema.SubjectIDs
	GoalID int64                `json:"goal"`  // 0: all goals
	Dates  map[string]time.Time `json:"dates"` // from, until to
	Books                       // in the currency of the website
	Cap    Decimal              `json:"cap"`    // value above it
	Metric *Decimal             `json:"metric"` // null: not known, because the report has orders in other currencies
	Others []*Books             `json:"otherCurrencies,omitempty"`
	Rows   []*Row               `json:"-"`
	Faults []string             `json:"-"` // of the first rows that cannot be read, with their lines

	plan     *plan.Plan
	from, to int64
	mature   int64            // the last time of a first view whose visitor is mature
	settled  int64            // orders from this time on have not settled
	limit    int64            // of a visitor's value; 0: none
	refused  map[uint64]*Row  // by the event of each order that is not received; nil: already counted
	unequal  map[string]*Sums // by variation: the orders in the facts less those that the events say count
}

// New returns a comparison with the report of a plan, of the orders whose own time is in its window. limit is that of
// the total value of a visitor; 0: there is none.
func New(p *plan.Plan, limit int64) *Comparison {
	from, to := p.WindowStart(), p.WindowEnd()
	return &Comparison{
		SubjectIDs: p.Subject.IDs(), GoalID: p.GoalID, Dates: map[string]time.Time{"from": from, "to": to},
		plan: p, from: from.UnixMilli(), to: to.UnixMilli(), limit: limit,
	}
}

// AddOrder adds an order of the export.
func (c *Comparison) AddOrder(o *ingest.Order) {
	row := &Row{
		Event: o.Event, Visitor: o.Visitor, Revision: o.Revision, Value: o.Value, Profit: o.Profit,
		Currency: cmp.Or(o.Currency, c.plan.Currency), given: open,
	}
	c.Rows = append(c.Rows, row)
	switch {
	case o.Fault != "":
		if row.given = Unreadable; len(c.Faults) < 20 {
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
func (c *Comparison) CompareEvents(ctx context.Context, shards facts.Shards, most int) (err error) {
	for try := 0; try < 3 && err == nil && (try == 0 || !c.AddsUp()); try++ {
		err = c.compareOnce(ctx, shards, most)
	}
	return err
}

func (c *Comparison) compareOnce(ctx context.Context, shards facts.Shards, most int) error {
	c.reset()
	stored, err := shards.StoredEvents(ctx, c.plan.Subject)
	if err != nil {
		return err
	}
	c.mature = stored.Complete.Add(-c.plan.ConversionWindow.Maturity()).UnixMilli()
	if !c.plan.ConversionWindow.IsSet() {
		c.mature = math.MaxInt64
	}
	of, settled := c.plan.Question, int64(math.MaxInt64)
	if w := c.plan.ConversionWindow; w.SettlesOnly() {
		until := stored.SettledAfter(w.Settle)
		settled = until.UnixMilli()
		if until.Before(of.WindowEnd()) {
			of.Filters.To = until
		}
	}
	c.settled = settled

	// the orders of the export that are not in a line yet, by visitor, and the orders of the report
	var pending []*Row
	var visitors []uint64
	for _, row := range c.Rows {
		if row.Line == open {
			pending, visitors = append(pending, row), append(visitors, row.Visitor)
		}
	}
	byVisitor := func(r *Row, visitor uint64) int { return cmp.Compare(r.Visitor, visitor) }
	slices.SortFunc(pending, func(a, b *Row) int { return byVisitor(a, b.Visitor) })
	if err := shards.EachOrder(ctx, &of, c.mature, func(o *facts.Order) {
		if _, isKnown := slices.BinarySearchFunc(pending, o.Visitor, byVisitor); !isKnown {
			visitors = append(visitors, o.Visitor)
		}
		if c.isInReport(o.Variation) {
			c.booksIn(o.Foreign).Report.addOrders(o.Number, o.Value, o.Profit)
		}
		c.addUnequal(o.Variation, o.Number, o.Value, o.Profit)
	}); err != nil {
		return err
	}
	slices.Sort(visitors)

	// their lines
	website := c.plan.Subject.WebsiteID
	if err := shards.EachVisitorsEvents(ctx, website, slices.Compact(visitors), func(events []fold.Event) {
		from, _ := slices.BinarySearchFunc(pending, events[0].Visitor, byVisitor)
		to := from
		for to < len(pending) && pending[to].Visitor == events[0].Visitor {
			to++
		}
		c.compareVisitor(events, most, pending[from:to])
	}); err != nil {
		return err
	}
	var ids []uint64 // of orders that are not stored under their visitor
	for _, row := range pending {
		if row.Line == open {
			ids = append(ids, row.Event)
		}
	}
	elsewhere, err := shards.FindGoalIDs(ctx, website, ids)
	for _, row := range pending {
		if row.Line == open {
			if row.Line = NotReceived; elsewhere[row.Event] {
				row.Line = OtherVisitor
			}
		}
	}
	if err != nil {
		return err
	}

	// They add up, and are compared between variations.
	for _, row := range c.Rows {
		c.booksIn(row.Currency).addRow(row)
	}
	exposed := shards.SubjectCounters(c.plan.Subject).FirstExposed
	hasUnknown := false
	for _, b := range c.AllBooks() {
		b.addUp(c.plan.Variations, exposed)
		hasUnknown = hasUnknown || b != &c.Books && b.Report.Orders != 0
	}
	if !hasUnknown {
		c.Metric = &Decimal{}
		c.Metric.Units.Sub(&c.Report.Value.Units, &c.Cap.Units)
	}
	return nil
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

func newBooks(currency string) *Books {
	b := &Books{Currency: currency}
	for line := range open {
		b.Lines = append(b.Lines, &LineSums{Line: line, Variations: map[string]*Sums{}, visitors: map[string]int64{}})
	}
	return b
}

// addRow adds an order of the export, whose line is known.
func (b *Books) addRow(row *Row) {
	b.Export.addOrders(1, row.Value, row.Profit)
	value, profit := row.Value, row.Profit
	if row.Line == Amount {
		value, profit = value-row.Ours[0], profit-row.Ours[1]
	}
	b.Lines[row.Line].addOrders(1, value, profit, row.Variation)
}

// addUp adds up the lines, and compares them between variations. exposed has the visitors of each.
func (b *Books) addUp(variations []plan.Variation, exposed map[int64]int64) {
	b.left = Sums{Orders: b.Lines[Amount].Orders} // the report has them
	b.left.addSums(&b.Export)
	b.left.subtractSums(&b.Report)
	for _, line := range b.Lines[:Counted] {
		b.left.subtractSums(&line.Sums)
		var some, all []int64
		for _, v := range variations {
			some = append(some, line.visitors[strconv.FormatInt(v.ID, 10)])
			all = append(all, exposed[v.ID])
		}
		line.Differs = stats.CompareShares(some, all).Differ
	}
	b.Difference = b.left.Value
}

// NoteRejected notes the orders of the line NotReceived that are in the text of a rejected line.
func (c *Comparison) NoteRejected(text string) {
	if c.refused == nil {
		c.refused = map[uint64]*Row{}
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
	c.Books, c.Others, c.unequal = *newBooks(c.plan.Currency), nil, map[string]*Sums{}
	c.Cap, c.Metric = Decimal{}, nil
	byID := slices.Clone(c.Rows)
	slices.SortStableFunc(byID, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(b.Revision, a.Revision))
	})
	var last *Row
	for _, row := range byID {
		row.Line, row.Variation = row.given, ""
		if row.Line == Unreadable {
			continue
		}
		if last != nil && last.Event == row.Event {
			row.Line = Repeated
		}
		last = row
	}
}

// addUnequal adds orders in the facts, or subtracts orders that the events say count.
func (c *Comparison) addUnequal(variation string, orders, value, profit int64) {
	if fold.IsCounted(variation) {
		if c.unequal[variation] == nil {
			c.unequal[variation] = &Sums{}
		}
		c.unequal[variation].addOrders(orders, value, profit)
	}
}

// compareVisitor puts the orders of a visitor in their lines.
func (c *Comparison) compareVisitor(events []fold.Event, most int, rows []*Row) {
	// what the events say
	states, first, variation := map[uint64]*state{}, (*fold.Explained)(nil), ""
	fold.ExplainVisitor(events, most, nil, func(x fold.Explained) {
		rank := 0
		if x.Subject == c.plan.Subject {
			rank = 2
		} else if x.Subject.Kind == schema.SubjectNone {
			rank = 1
		}
		if rank == 2 && x.Reason == fold.FirstView {
			first, variation = &x, unique.Make(strings.TrimSuffix(x.Variation, fold.MultiExposed)).Value()
		}
		known := states[x.Event.ID]
		if x.Event.Kind == moments.Goal && x.Reason > fold.Superseded && (known == nil || known.rank < rank) {
			states[x.Event.ID] = &state{Explained: x, rank: rank}
		}
	})

	// the orders of the export
	seen := map[*LineSums]bool{}
	for _, row := range rows {
		s := states[row.Event]
		if s == nil {
			continue
		}
		row.Variation, row.Line = variation, c.lineOf(s, first)
		if row.Line == Counted {
			row.Ours, s.isExported = [2]int64(s.Event.Amounts[:2]), true
			stored := cmp.Or(s.Event.Foreign, c.plan.Currency)
			switch {
			case stored != row.Currency:
				row.Line, row.Ours = OtherCurrency, [2]int64{}
				entered := c.booksIn(stored).Lines[OtherCurrency]
				entered.addOrders(-1, -s.Event.Amounts[0], -s.Event.Amounts[1], variation)
				seen[entered] = true
			case row.Ours != [2]int64{row.Value, row.Profit}:
				row.Line = Amount
				if row.Revision > s.Event.Revision {
					c.booksIn(row.Currency).Lines[Amount].Newer++
				}
			}
		}
		seen[c.booksIn(row.Currency).Lines[row.Line]] = true
	}

	// the orders that count
	total := int64(0)
	for _, s := range states {
		if s.rank < 2 || s.Reason != fold.SinceFirstView || !c.isGoal(s.Event.Goal) || !c.isWithin(s.At) {
			continue
		}
		if c.ageLine(s, first) != Counted {
			continue
		}
		value, profit := s.Event.Amounts[0], s.Event.Amounts[1]
		books := c.booksIn(s.Event.Foreign)
		if s.Event.Foreign == "" {
			c.addUnequal(s.Variation, -1, -value, -profit)
		} else {
			c.addUnequal(s.Variation, -1, 0, 0) // the facts do not have the amounts
		}
		if !c.isInReport(s.Variation) {
			continue
		}
		if s.Event.Foreign == "" {
			total += value
		} else {
			books.Report.addOrders(0, value, profit)
		}
		if !s.isExported {
			books.Lines[NotInExport].addOrders(-1, -value, -profit, variation)
			seen[books.Lines[NotInExport]] = true
		}
	}
	if c.limit > 0 && total > c.limit {
		c.Cap.Units.Add(&c.Cap.Units, big.NewInt(total-c.limit))
	}
	for line := range seen {
		line.visitors[variation]++
	}
}

// lineOf returns the line of a stored order. first is the first view of the subject; nil: none.
func (c *Comparison) lineOf(s *state, first *fold.Explained) Line {
	switch {
	case s.Reason == fold.Cancelled:
		return CancelledHere
	case !c.isGoal(s.Event.Goal):
		return OtherGoal
	case !c.isWithin(s.At):
		return OtherTime
	case s.Reason == fold.AutomatedVisitor:
		return AutomatedVisitor
	case first != nil && s.At < first.At:
		return BeforeFirstView
	case first == nil || s.rank < 2:
		return NotInCampaign
	case c.isExcluded(s.Variation):
		return SeveralVariations
	case !c.isInReport(s.Variation):
		return UndeclaredVariation
	}
	return c.ageLine(s, first)
}

// ageLine returns the line of an order that only the conversion window may exclude.
func (c *Comparison) ageLine(s *state, first *fold.Explained) Line {
	w, age := c.plan.ConversionWindow, s.At-first.At
	switch {
	case w.IsSet() && (age < w.From.Milliseconds() || age >= w.To.Milliseconds()):
		return OutsideWindow
	case first.At > c.mature || s.At >= c.settled:
		return NotMature
	}
	return Counted
}

// isExcluded reports whether the report excludes visitors with this variation because they saw several.
func (c *Comparison) isExcluded(variation string) bool {
	return fold.IsMultiExposed(variation) && c.plan.MultipleExposures == catalogue.ExcludeMultiExposed
}

// isInReport reports whether the report has the visitors with a variation of rows.
func (c *Comparison) isInReport(variation string) bool {
	id, err := strconv.ParseInt(strings.TrimSuffix(variation, fold.MultiExposed), 10, 64)
	isSame := func(v plan.Variation) bool { return v.ID == id }
	return err == nil && !c.isExcluded(variation) && slices.ContainsFunc(c.plan.Variations, isSame)
}
