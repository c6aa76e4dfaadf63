// Package reconcile compares a shop's own books with a report: it puts each order of an export in one named line, so that
// the lines add up exactly, in 1/10,000 of the currency.
package reconcile

import (
	"cmp"
	"context"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/stats"
)

// Line says where an order of the export is in the comparison.
type Line string

// The lines. An order is in the first one that applies, or counted as the export has it.
const (
	Unreadable          Line = "unreadable"          // the mapping rejects the row
	Repeated            Line = "repeated"            // a higher revision, or an earlier row of the same one, is in the export
	OtherPeriod         Line = "otherPeriod"         // its time is outside the dates
	OtherGoal           Line = "otherGoal"           // another goal or website
	Cancelled           Line = "cancelled"           // in the export
	NoVisitor           Line = "noVisitor"           // the row names no visitor
	OtherVisitor        Line = "otherVisitor"        // the id is stored, under another visitor
	NotReceived         Line = "notReceived"         // the id is not stored
	CancelledHere       Line = "cancelledHere"       // our state is cancelled
	OtherTime           Line = "otherTime"           // our time of the order is outside the dates
	AutomatedVisitor    Line = "automatedVisitor"    // the visitor is automated
	NotInCampaign       Line = "notInCampaign"       // the visitor has no view
	BeforeFirstView     Line = "beforeFirstView"     //
	SeveralVariations   Line = "severalVariations"   // the visitor is excluded
	UndeclaredVariation Line = "undeclaredVariation" // the report does not have the variation
	Amount              Line = "amount"              // counted, with another amount: the export's minus ours
	NotInExport         Line = "notInExport"         // counted, and not in the export: negative
	Counted             Line = "counted"
)

// Lines are the lines that are subtracted from the export, in their order.
var Lines = []Line{
	Unreadable, Repeated, OtherPeriod, OtherGoal, Cancelled, NoVisitor, OtherVisitor, NotReceived, CancelledHere, OtherTime,
	AutomatedVisitor, NotInCampaign, BeforeFirstView, SeveralVariations, UndeclaredVariation, Amount, NotInExport,
}

// Row is an order of the export.
type Row struct {
	FileLine      int64
	ID            string // as sent
	Line          Line
	Why           string // of an unreadable row
	Value, Profit int64  // in the export, in 1/schema.MoneyScale, as all amounts
	Variation     string // of the visitor's first view; empty: none
	Counted       *State // nil: the report does not count the order

	given                    Line // by the export alone
	visitor, event, revision uint64
	at                       int64
}

// State is an order as it is stored.
type State struct {
	Value, Profit int64

	goal, at   int64
	revision   uint64
	reason     fold.Reason
	rank       int // 2: as it counts for the subject, 1: without exposures, 0: of another subject
	variation  string
	isExported bool // a row of the export counts
}

// Tally has the orders of a line.
type Tally struct {
	facts.OrderSums
	Variations map[string]*facts.OrderSums // by the variation of the first view
	visitors   map[string]int64            // with an order in the line, by variation
}

func (t *Tally) addOrder(orders, value, profit int64, variation string) {
	v, p := big.NewInt(value), big.NewInt(profit)
	t.Add(orders, v, p)
	if variation == "" {
		return
	}
	if t.Variations[variation] == nil {
		t.Variations[variation] = &facts.OrderSums{}
	}
	t.Variations[variation].Add(orders, v, p)
}

// Comparison is an export beside a report.
type Comparison struct {
	Orders facts.Orders
	Rows   []*Row
	Lines  map[Line]*Tally
	Export facts.OrderSums
	// Report has the orders in the facts, of the variations of the report; Events has all orders that the events say
	// count, and Facts those in the facts, by the variation of the rows.
	Report        facts.OrderSums
	Events, Facts map[string]*facts.OrderSums
	Cap           facts.OrderSums // value above the cap: without orders and profit
	Newer         int64           // orders of the line Amount with a higher revision in the export
	Refused       int64           // orders of the line NotReceived among the lines rejected in the last week

	plan    *plan.Plan
	website int64
}

// New returns a comparison with the report of a plan. Orders are those from a time until another one.
func New(p *plan.Plan, from, to time.Time) *Comparison {
	return &Comparison{
		Orders: facts.Orders{Subject: p.Subject, GoalID: p.GoalID, From: from, To: to},
		plan:   p, website: p.Subject.WebsiteID,
	}
}

// reset forgets all but the rows.
func (c *Comparison) reset() {
	*c = Comparison{Orders: c.Orders, Rows: c.Rows, plan: c.plan, website: c.website}
	c.Lines, c.Events = map[Line]*Tally{}, map[string]*facts.OrderSums{}
	for _, line := range append(Lines, Counted) {
		c.Lines[line] = &Tally{Variations: map[string]*facts.OrderSums{}, visitors: map[string]int64{}}
	}
	for _, row := range c.Rows {
		row.Line, row.Variation, row.Counted = row.given, "", nil
	}
	c.markRepeated()
}

// AddOrder adds an order of the export.
func (c *Comparison) AddOrder(o *ingest.Order) {
	row := &Row{
		FileLine: o.Line, ID: o.EventID, Why: o.Fault, Value: o.Value, Profit: o.Profit,
		visitor: o.VisitorID, event: o.Event.EventID, revision: o.Revision, at: o.Time.UnixMilli(),
	}
	c.Rows = append(c.Rows, row)
	switch {
	case o.Fault != "":
		row.given = Unreadable
	case !c.isWithin(row.at):
		row.given = OtherPeriod
	case o.WebsiteID != c.website || !c.isGoal(o.GoalID):
		row.given = OtherGoal
	case o.Cancelled:
		row.given = Cancelled
	case o.NoVisitor:
		row.given = NoVisitor
	}
}

func (c *Comparison) isWithin(at int64) bool {
	return at >= c.Orders.From.UnixMilli() && at < c.Orders.To.UnixMilli()
}

func (c *Comparison) isGoal(id int64) bool { return c.Orders.GoalID == 0 || id == c.Orders.GoalID }

// markRepeated puts the rows in the line Repeated of which the export has a higher revision, or the same one earlier.
func (c *Comparison) markRepeated() {
	last := make(map[uint64]*Row, len(c.Rows)) // by event id
	for _, row := range c.Rows {
		if row.Line == Unreadable {
			continue
		}
		other := last[row.event]
		switch {
		case other == nil:
			last[row.event] = row
		case other.revision < row.revision:
			other.Line, last[row.event] = Repeated, row
		default:
			row.Line = Repeated
		}
	}
}

// mostTries is the number of times that events and facts are read. They are read again if a refresh between them may have
// made the difference.
const mostTries = 3

// CompareEvents puts each order in its line, by the stored events and facts. A visitor with more than most events of the
// website is automated. limit is that of each visitor's value; 0: there is none.
func (c *Comparison) CompareEvents(ctx context.Context, shards facts.Shards, most int, limit int64) error {
	for try := 1; ; try++ {
		before, err := shards.StoredPositions(ctx)
		if err != nil {
			return err
		}
		c.reset()
		if err := c.compareOnce(ctx, shards, most, limit); err != nil {
			return err
		}
		after, err := shards.StoredPositions(ctx)
		if err != nil || c.AddsUp() || slices.Equal(before, after) || try == mostTries {
			return err
		}
	}
}

func (c *Comparison) compareOnce(ctx context.Context, shards facts.Shards, most int, limit int64) error {
	// the visitors of the export and of the report
	visitors, err := shards.ReadOrderVisitors(ctx, &c.Orders)
	if err != nil {
		return err
	}
	var open []*Row // in no line yet
	for _, row := range c.Rows {
		if row.Line == "" {
			open, visitors = append(open, row), append(visitors, row.visitor)
		}
	}
	slices.Sort(visitors)
	visitors = slices.Compact(visitors)
	slices.SortFunc(open, func(a, b *Row) int { return cmp.Compare(a.visitor, b.visitor) })

	// the orders of each visitor
	err = shards.EachVisitorsEvents(ctx, c.website, visitors, func(events []fold.Event) {
		from, _ := slices.BinarySearchFunc(open, events[0].Visitor, func(r *Row, v uint64) int { return cmp.Compare(r.visitor, v) })
		to := from
		for to < len(open) && open[to].visitor == events[0].Visitor {
			to++
		}
		c.compareVisitor(events, most, open[from:to], limit)
	})
	if err != nil {
		return err
	}

	// orders that are not stored under their visitor
	var ids []uint64
	for _, row := range open {
		if row.Line == "" {
			ids = append(ids, row.event)
		}
	}
	elsewhere, err := shards.FindEventIDs(ctx, c.website, ids)
	if err != nil {
		return err
	}
	for _, row := range open {
		switch {
		case row.Line != "":
		case elsewhere[row.event]:
			row.Line = OtherVisitor
		default:
			row.Line = NotReceived
		}
	}
	if c.Facts, err = shards.SumOrders(ctx, &c.Orders); err != nil {
		return err
	}
	c.addUp()
	return nil
}

// compareVisitor puts the orders of a visitor in their lines.
func (c *Comparison) compareVisitor(events []fold.Event, most int, rows []*Row, limit int64) {
	// what the events say
	states, first := map[uint64]*State{}, (*fold.Explained)(nil)
	fold.ExplainVisitor(events, most, nil, func(x fold.Explained) {
		if x.Subject == c.Orders.Subject && x.Reason == fold.FirstView {
			first = &x
		}
		if x.Event.Kind != moments.Goal || x.Reason <= fold.Superseded {
			return
		}
		s := &State{
			Value: x.Event.Amounts[0], Profit: x.Event.Amounts[1], goal: x.Event.Goal, at: x.At, revision: x.Event.Revision,
			reason: x.Reason, variation: x.Variation,
		}
		if x.Subject == c.Orders.Subject {
			s.rank = 2
		} else if x.Subject.Kind == schema.SubjectNone {
			s.rank = 1
		}
		if known := states[x.Event.ID]; known == nil || known.rank < s.rank {
			states[x.Event.ID] = s
		}
	})
	variation := ""
	if first != nil {
		variation = strings.TrimSuffix(first.Variation, fold.MultiExposed)
	}

	// the orders of the export
	seen := map[Line]bool{}
	for _, row := range rows {
		s := states[row.event]
		if s == nil {
			continue
		}
		row.Variation, row.Line = variation, c.lineOf(s, first)
		if row.Line == Counted {
			row.Counted, s.isExported = s, true
			if row.Value != s.Value || row.Profit != s.Profit {
				row.Line = Amount
			}
		}
		seen[row.Line] = true
	}

	// the orders that count
	var total int64
	for _, s := range states {
		if s.rank < 2 || s.reason != fold.SinceFirstView || !c.isGoal(s.goal) || !c.isWithin(s.at) {
			continue
		}
		if c.Events[s.variation] == nil {
			c.Events[s.variation] = &facts.OrderSums{}
		}
		c.Events[s.variation].Add(1, big.NewInt(s.Value), big.NewInt(s.Profit))
		if !c.isInReport(s.variation) {
			continue
		}
		total += s.Value
		if !s.isExported {
			c.Lines[NotInExport].addOrder(-1, -s.Value, -s.Profit, variation)
			seen[NotInExport] = true
		}
	}
	for line := range seen {
		c.Lines[line].visitors[variation]++
	}
	if limit > 0 && total > limit {
		c.Cap.Value.Add(&c.Cap.Value, big.NewInt(total-limit))
	}
}

// lineOf returns the line of a stored order. first is the first view of the subject; nil: none.
func (c *Comparison) lineOf(s *State, first *fold.Explained) Line {
	switch {
	case s.reason == fold.Cancelled:
		return CancelledHere
	case !c.isGoal(s.goal):
		return OtherGoal
	case !c.isWithin(s.at):
		return OtherTime
	case s.reason == fold.AutomatedVisitor:
		return AutomatedVisitor
	case first != nil && s.at < first.At:
		return BeforeFirstView
	case first == nil || s.rank < 2:
		return NotInCampaign
	case c.isExcluded(s.variation):
		return SeveralVariations
	case !c.isInReport(s.variation):
		return UndeclaredVariation
	}
	return Counted
}

// isExcluded reports whether the report excludes visitors with this variation because they saw several.
func (c *Comparison) isExcluded(variation string) bool {
	return strings.HasSuffix(variation, fold.MultiExposed) && c.plan.MultipleExposures == catalogue.ExcludeMultiExposed
}

// isInReport reports whether the report has the visitors with a variation of rows.
func (c *Comparison) isInReport(variation string) bool {
	id, err := strconv.ParseInt(strings.TrimSuffix(variation, fold.MultiExposed), 10, 64)
	return err == nil && !c.isExcluded(variation) &&
		slices.ContainsFunc(c.plan.Variations, func(v plan.Variation) bool { return v.ID == id })
}

// addUp adds up the export, its lines, and the report.
func (c *Comparison) addUp() {
	for _, row := range c.Rows {
		c.Export.Add(1, big.NewInt(row.Value), big.NewInt(row.Profit))
		value, profit := row.Value, row.Profit
		if row.Line == Amount {
			value, profit = value-row.Counted.Value, profit-row.Counted.Profit
			if row.revision > row.Counted.revision {
				c.Newer++
			}
		}
		c.Lines[row.Line].addOrder(1, value, profit, row.Variation)
	}
	for variation, sums := range c.Facts {
		if c.isInReport(variation) {
			c.Report.Add(sums.Orders, &sums.Value, &sums.Profit)
		}
	}
}

// Differs reports whether the share of the visitors with an order in a line differs between the variations of the
// report. visitors has the numbers of visitors by the variation of their first view. Such a line biases the report.
func (c *Comparison) Differs(line Line, visitors map[int64]int64) bool {
	var some, all []int64
	for _, v := range c.plan.Variations {
		some = append(some, c.Lines[line].visitors[strconv.FormatInt(v.ID, 10)])
		all = append(all, visitors[v.ID])
	}
	return stats.CompareShares(some, all).Differ
}

// IDsIn returns the ids of the orders in a line.
func (c *Comparison) IDsIn(line Line) map[string]bool {
	ids := map[string]bool{}
	for _, row := range c.Rows {
		if row.Line == line {
			ids[row.ID] = true
		}
	}
	return ids
}

// AddsUp reports whether the lines add up, and the events say of each variation what the facts do.
func (c *Comparison) AddsUp() bool {
	left := c.Difference()
	isEqual := func(a, b *facts.OrderSums) bool {
		return a.Orders == b.Orders && a.Value.Cmp(&b.Value) == 0 && a.Profit.Cmp(&b.Profit) == 0
	}
	return left.IsZero() && maps.EqualFunc(c.Events, c.Facts, isEqual)
}

// Difference returns what the lines do not explain: the export, less the lines, less the report. It is 0, unless facts
// and events differ.
func (c *Comparison) Difference() (left facts.OrderSums) {
	left.Add(c.Export.Orders, &c.Export.Value, &c.Export.Profit)
	subtract := func(orders int64, s *facts.OrderSums) {
		left.Add(-orders, new(big.Int).Neg(&s.Value), new(big.Int).Neg(&s.Profit))
	}
	for _, line := range Lines {
		sums := &c.Lines[line].OrderSums
		orders := sums.Orders
		if line == Amount { // the report has them
			orders = 0
		}
		subtract(orders, sums)
	}
	subtract(c.Report.Orders, &c.Report)
	return left
}
