package reconcile

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
	"unique"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// rank says how far an event counts for the subject. Of the events with an id, the one with the highest rank decides.
type rank int

const (
	ofOther      rank = iota // of another subject
	withoutViews             // a goal event without exposures
	ofSubject                // as it counts for the subject
)

// state is an order as it is stored.
type state struct {
	fold.Explained
	rank       rank
	isExported bool // a row of the export counts
}

// visitorStates are what is stored of a visitor.
type visitorStates struct {
	states    map[uint64]*state // of the orders, by event
	first     *fold.Explained   // the first view of the subject; nil: none
	variation string            // of the first view; empty: none
	lines     map[*LineSums]bool
}

// explainStates returns what the events of a visitor say of the orders.
func (c *Comparison) explainStates(events []fold.Event, most int) *visitorStates {
	v := &visitorStates{states: map[uint64]*state{}, lines: map[*LineSums]bool{}}
	fold.ExplainVisitor(events, most, nil, func(x fold.Explained) {
		r := c.rankOf(x.Subject)
		if r == ofSubject && x.Reason == fold.FirstView {
			v.first = &x
			v.variation = unique.Make(strings.TrimSuffix(x.Variation, fold.MultiExposed)).Value()
		}
		isOrder := x.Event.Kind == moments.Goal && x.Reason > fold.Superseded
		known := v.states[x.Event.ID]
		if isOrder && (known == nil || known.rank < r) {
			v.states[x.Event.ID] = &state{Explained: x, rank: r}
		}
	})
	return v
}

func (c *Comparison) rankOf(subject schema.Subject) rank {
	switch {
	case subject == c.plan.Subject:
		return ofSubject
	case subject.Kind == schema.SubjectNone:
		return withoutViews
	}
	return ofOther
}

// compareVisitor puts the orders of a visitor in their lines.
func (c *Comparison) compareVisitor(events []fold.Event, most int, rows orders) {
	v := c.explainStates(events, most)
	for _, row := range rows {
		if s := v.states[row.Event]; s != nil {
			c.placeOrder(v, row, s)
		}
	}
	total := int64(0)
	for _, s := range v.states {
		if c.isCounted(s, v.first) {
			total += c.addCounted(v, s)
		}
	}
	if c.limit > 0 && total > c.limit {
		c.Cap.Units.Add(&c.Cap.Units, big.NewInt(total-c.limit))
	}
	for line := range v.lines {
		line.visitors[v.variation]++
	}
}

// placeOrder puts an order of the export, which is stored, in its line.
func (c *Comparison) placeOrder(v *visitorStates, row *ExportedOrder, s *state) {
	row.Variation = v.variation
	row.Line = c.lineOf(s, v.first)
	if row.Line == Counted {
		s.isExported = true
		c.compareAmounts(v, row, s)
	}
	v.lines[c.booksIn(row.Currency).Lines[row.Line]] = true
}

// compareAmounts moves an order that counts to another line if its currency or its amounts differ from the stored ones.
func (c *Comparison) compareAmounts(v *visitorStates, row *ExportedOrder, s *state) {
	stored := cmp.Or(s.Event.Foreign, c.plan.Currency)
	if stored != row.Currency {
		row.Line = OtherCurrency
		row.Ours = [2]int64{}
		entered := c.booksIn(stored).Lines[OtherCurrency]
		entered.addOrders(-1, -s.Event.Amounts[0], -s.Event.Amounts[1], v.variation)
		v.lines[entered] = true
		return
	}
	row.Ours = [2]int64(s.Event.Amounts[:2])
	if row.Ours == [2]int64{row.Value, row.Profit} {
		return
	}
	row.Line = Amount
	if row.Revision > s.Event.Revision {
		c.booksIn(row.Currency).Lines[Amount].Newer++
	}
}

// isCounted reports whether a stored order counts by the events.
func (c *Comparison) isCounted(s *state, first *fold.Explained) bool {
	hasCounted := s.rank == ofSubject && s.Reason == fold.SinceFirstView
	isAsked := c.isGoal(s.Event.Goal) && c.isWithin(s.At)
	return hasCounted && isAsked && c.ageLine(s, first) == Counted
}

// addCounted subtracts an order that counts from those of the facts, and adds it to the line NotInExport if the export
// does not have it. It returns the value in the currency of the website that the report has of it.
func (c *Comparison) addCounted(v *visitorStates, s *state) int64 {
	value := s.Event.Amounts[0]
	profit := s.Event.Amounts[1]
	books := c.booksIn(s.Event.Foreign)
	worth := s.Worth()
	c.addUnequal(s.Variation, -1, -worth.Amounts[0], -worth.Amounts[1])
	if !c.isInReport(s.Variation) {
		return 0
	}
	if !s.isExported {
		books.Lines[NotInExport].addOrders(-1, -value, -profit, v.variation)
		v.lines[books.Lines[NotInExport]] = true
	}
	if s.Event.Foreign != "" {
		books.addForeign(s, &worth)
	}
	return worth.Amounts[0]
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
	case s.Reason == fold.AcquiredBefore:
		return AcquiredBefore
	case first != nil && s.At < first.At:
		return BeforeFirstView
	case first == nil || s.rank < ofSubject:
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
	w := c.plan.ConversionWindow
	age := s.At - first.At
	isWithin := age >= w.From.Milliseconds() && age < w.To.Milliseconds()
	switch {
	case w.IsSet() && !isWithin:
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
	return err == nil && !c.isExcluded(variation) && c.plan.IndexOfVariation(id) >= 0
}
