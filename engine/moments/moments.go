// Package moments defines the moments of a report, which are exact sums over visitors. It also defines their rows, the
// bounds of outliers, and caps.
package moments

import (
	"math/big"

	"lifthouse/stats"
)

// Moments are exact sums over a set of visitors. Every number of a report is computed from them. Money is in
// 1/schema.MoneyScale.
type Moments struct {
	Visitors int64
	Recent   int64 // visitors first exposed in the last plan.RecentDays full days
	Views    int64
	Actions
	Converted       int64 // visitors with at least one counted goal
	Completed       int64 // visitors with at least one completion
	Conversion      int64 // visitors with at least one conversion
	Goals           stats.Sums
	Value           Amounts
	Profit          Amounts
	ExtraValue      Amounts
	ValueGoals      *big.Int        // sum over visitors of value times goals
	CappedRemainder CappedRemainder `json:",omitzero"` // removed by the cap of the report; nil sums: no cap
	FirstAge        stats.Sums      `json:",omitzero"` // of first conversions, in milliseconds; only in a curve by age
}

// Actions count the events of a widget other than views and goals.
type Actions struct {
	Clicks      int64 `json:"clicks"`
	Submits     int64 `json:"submits"`
	Completions int64 `json:"completions"`
	Conversions int64 `json:"conversions"`
	Contacts    int64 `json:"contacts"`
}

// Amounts are sums over visitors of the visitor's total of a money column.
type Amounts struct {
	stats.Sums
	Nonzero  int64 // visitors whose total is not zero
	Negative int64 // visitors whose total is below zero
}

// Merge returns the moments of the union of two disjoint sets of visitors.
func (m Moments) Merge(o Moments) Moments { return m.combine(&o, 1) }

// Subtract returns the moments without those of a subset of the visitors.
func (m Moments) Subtract(o Moments) Moments { return m.combine(&o, -1) }

// combine returns the sums plus sign times other sums.
func (m *Moments) combine(o *Moments, sign int64) Moments {
	return Moments{
		Visitors: m.Visitors + sign*o.Visitors,
		Recent:   m.Recent + sign*o.Recent,
		Views:    m.Views + sign*o.Views,
		Actions: Actions{
			Clicks:      m.Clicks + sign*o.Clicks,
			Submits:     m.Submits + sign*o.Submits,
			Completions: m.Completions + sign*o.Completions,
			Conversions: m.Conversions + sign*o.Conversions,
			Contacts:    m.Contacts + sign*o.Contacts,
		},
		Converted:       m.Converted + sign*o.Converted,
		Completed:       m.Completed + sign*o.Completed,
		Conversion:      m.Conversion + sign*o.Conversion,
		Goals:           combineSums(m.Goals, o.Goals, sign),
		Value:           m.Value.combine(&o.Value, sign),
		Profit:          m.Profit.combine(&o.Profit, sign),
		ExtraValue:      m.ExtraValue.combine(&o.ExtraValue, sign),
		ValueGoals:      combineSums(stats.Sums{Sum: m.ValueGoals}, stats.Sums{Sum: o.ValueGoals}, sign).Sum,
		CappedRemainder: m.CappedRemainder.combine(&o.CappedRemainder, sign),
		FirstAge:        combineSums(m.FirstAge, o.FirstAge, sign),
	}
}

func (a *Amounts) combine(o *Amounts, sign int64) Amounts {
	return Amounts{
		Sums: combineSums(a.Sums, o.Sums, sign), Nonzero: a.Nonzero + sign*o.Nonzero,
		Negative: a.Negative + sign*o.Negative,
	}
}

func combineSums(a, b stats.Sums, sign int64) stats.Sums {
	if sign < 0 {
		b = stats.Sums{Sum: negate(b.Sum), Squares: negate(b.Squares)}
	}
	return a.Merge(b)
}

func negate(x *big.Int) *big.Int {
	if x == nil {
		return nil
	}
	return new(big.Int).Neg(x)
}

// NoMoments returns the moments of no visitors, whose sums the caller may modify.
func NoMoments() Moments {
	m := Moments{ValueGoals: new(big.Int)}
	for _, sums := range []*stats.Sums{&m.Goals, &m.Value.Sums, &m.Profit.Sums, &m.ExtraValue.Sums} {
		sums.Sum, sums.Squares = new(big.Int), new(big.Int)
	}
	return m
}

// IsEmpty reports whether there are neither visitors nor events.
func (m *Moments) IsEmpty() bool {
	return m.Visitors == 0 && m.Views == 0 && m.Actions == (Actions{}) && m.GoalsReached() == 0
}

// GoalsReached returns the number of goal events.
func (m *Moments) GoalsReached() int64 {
	if m.Goals.Sum == nil {
		return 0
	}
	return m.Goals.Sum.Int64()
}

// AddTo adds moments to the entry of a key. It modifies neither m nor the previous entry.
func AddTo[K comparable](sums map[K]*Moments, key K, m *Moments) {
	if had := sums[key]; had != nil {
		m = new(had.Merge(*m))
	}
	sums[key] = m
}

// Kind is the kind of an event, with the values of the column event.
type Kind uint8

// The kinds.
const (
	View Kind = iota + 1
	Click
	Submit
	Completion
	Conversion
	Contact
	Goal
)

// CappedRemainder has what a cap removes from the sums over visitors: the part of each visitor's total value above the
// cap, and the same amount from the visitor's profit.
type CappedRemainder struct {
	Visitors      int64 // with a total value above the cap
	Value, Profit Amounts
}

func (e *CappedRemainder) combine(o *CappedRemainder, sign int64) CappedRemainder {
	if e.Value.Sum == nil && o.Value.Sum == nil {
		return CappedRemainder{}
	}
	return CappedRemainder{
		e.Visitors + sign*o.Visitors, e.Value.combine(&o.Value, sign), e.Profit.combine(&o.Profit, sign),
	}
}

// WithCappedValues returns the moments with the values and profits of capped visitors. All other sums are unchanged.
func (m Moments) WithCappedValues() Moments {
	if m.CappedRemainder.Visitors != 0 && m.CappedRemainder.Value.Sum != nil {
		m.Value = m.Value.combine(&m.CappedRemainder.Value, -1)
		m.Profit = m.Profit.combine(&m.CappedRemainder.Profit, -1)
	}
	return m
}
