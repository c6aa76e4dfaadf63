package visit

import (
	"math/big"

	"lifthouse/stats"
)

// Sums are sums over visitors of their totals of one kind of event. They are
// signed: what a period adds to earlier totals may be negative.
type Sums struct {
	Visitors         int64 // visitors with at least one event
	Events           int64
	EventsSquares    big.Int
	Amounts          [3]AmountSums // of value, profit and extra value
	ValueTimesEvents big.Int
}

// AmountSums are sums over visitors of their total of an amount.
type AmountSums struct {
	Sum, Squares      big.Int
	Nonzero, Negative int64 // visitors whose total is not zero, and below zero
}

// Change adds the change of the sums when the totals of a visitor change.
func (s *Sums) Change(before, after Totals) {
	s.Visitors += one(after.Events > 0) - one(before.Events > 0)
	s.Events += after.Events - before.Events
	addDifference(&s.EventsSquares, after.Events, after.Events, before.Events, before.Events)
	for i := range s.Amounts {
		was, is, to := before.Amounts[i], after.Amounts[i], &s.Amounts[i]
		if was == is {
			continue
		}
		addDifference(&to.Sum, is, 1, was, 1)
		addDifference(&to.Squares, is, is, was, was)
		to.Nonzero += one(is != 0) - one(was != 0)
		to.Negative += one(is < 0) - one(was < 0)
	}
	addDifference(&s.ValueTimesEvents, after.Amounts[0], after.Events, before.Amounts[0], before.Events)
}

// addDifference adds a·b - c·d.
func addDifference(to *big.Int, a, b, c, d int64) {
	if a != 0 && b != 0 {
		to.Add(to, new(big.Int).Mul(big.NewInt(a), big.NewInt(b)))
	}
	if c != 0 && d != 0 {
		to.Sub(to, new(big.Int).Mul(big.NewInt(c), big.NewInt(d)))
	}
}

// Add adds other sums, or subtracts them if sign is -1.
func (s *Sums) Add(o *Sums, sign int64) {
	s.Visitors += sign * o.Visitors
	s.Events += sign * o.Events
	addBig(&s.EventsSquares, &o.EventsSquares, sign)
	for i := range s.Amounts {
		to, from := &s.Amounts[i], &o.Amounts[i]
		addBig(&to.Sum, &from.Sum, sign)
		addBig(&to.Squares, &from.Squares, sign)
		to.Nonzero += sign * from.Nonzero
		to.Negative += sign * from.Negative
	}
	addBig(&s.ValueTimesEvents, &o.ValueTimesEvents, sign)
}

func addBig(to, from *big.Int, sign int64) {
	switch {
	case from.Sign() == 0:
	case sign < 0:
		to.Sub(to, from)
	default:
		to.Add(to, from)
	}
}

// IsZero reports whether all sums are zero.
func (s *Sums) IsZero() bool {
	zero := s.Visitors == 0 && s.Events == 0 && s.EventsSquares.Sign() == 0 && s.ValueTimesEvents.Sign() == 0
	for i := range s.Amounts {
		a := &s.Amounts[i]
		zero = zero && a.Sum.Sign() == 0 && a.Squares.Sign() == 0 && a.Nonzero == 0 && a.Negative == 0
	}
	return zero
}

// Cell has sums over the visitors of a cell of a report.
type Cell struct {
	SinceShares int64 // visitors first exposed since the current shares took effect
	Recent      int64 // visitors first exposed in the recent days
	events      [kinds]int64
	visitors    [kinds]int64 // with at least one event
	goals       Sums
	limit       int64 // of the total value of a visitor; 0: none
	excess      Excess
}

// NewCell returns the sums over no visitors. Their total values are limited by a cap;
// 0: they are not.
func NewCell(limit int64) *Cell {
	c := &Cell{limit: limit}
	if limit > 0 {
		c.excess = noExcess()
	}
	return c
}

// Change adds the change of the sums when the totals of a visitor change.
func (c *Cell) Change(before, after *Visitor) {
	for kind := range after.Events {
		was, is := before.Events[kind], after.Events[kind]
		c.events[kind] += is - was
		c.visitors[kind] += one(is > 0) - one(was > 0)
	}
	if before.Goals.Events != after.Goals.Events {
		c.goals.Change(before.Goals, after.Goals)
		if c.limit > 0 {
			c.excess.addTotals(&before.Goals, c.limit, -1)
			c.excess.addTotals(&after.Goals, c.limit, 1)
		}
	}
}

// Moments returns the sums as moments. Visitors are those with a view.
func (c *Cell) Moments() Moments {
	return Moments{
		Visitors: c.visitors[View], SinceShares: c.SinceShares, Recent: c.Recent, Views: c.events[View],
		Actions: Actions{
			Clicks: c.events[Click], Submits: c.events[Submit], Completions: c.events[Completion],
			Conversions: c.events[Conversion], Contacts: c.events[Contact],
		},
		Completed: c.visitors[Completion], Conversion: c.visitors[Conversion], Converted: c.goals.Visitors,
		Goals: stats.Sums{Sum: big.NewInt(c.goals.Events), Squares: &c.goals.EventsSquares},
		Value: c.goals.Amounts[0].amounts(), Profit: c.goals.Amounts[1].amounts(), ExtraValue: c.goals.Amounts[2].amounts(),
		ValueGoals: &c.goals.ValueTimesEvents, Excess: c.excess,
	}
}

func (a *AmountSums) amounts() Amounts {
	return Amounts{Sums: stats.Sums{Sum: &a.Sum, Squares: &a.Squares}, Nonzero: a.Nonzero, Negative: a.Negative}
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
