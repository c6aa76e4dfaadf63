package moments

import (
	"math/big"

	"lifthouse/stats"
)

// Moments are exact sums over a set of visitors. Every number of a report is
// computed from them. Money is in 1/schema.MoneyScale.
type Moments struct {
	Visitors    int64
	SinceShares int64 // visitors first exposed since the current shares took effect
	Recent      int64 // visitors first exposed in the last plan.RecentDays full days
	Views       int64
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
}

// Actions count the events of a widget other than views and goals.
type Actions struct {
	Clicks      int64 `json:"clicks"`
	Submits     int64 `json:"submits"`
	Completions int64 `json:"completions"`
	Conversions int64 `json:"conversions"`
	Contacts    int64 `json:"contacts"`
}

func (a Actions) mergeActions(o Actions) Actions {
	return Actions{
		Clicks: a.Clicks + o.Clicks, Submits: a.Submits + o.Submits, Completions: a.Completions + o.Completions,
		Conversions: a.Conversions + o.Conversions, Contacts: a.Contacts + o.Contacts,
	}
}

// Amounts are sums over visitors of the visitor's total of a money column.
type Amounts struct {
	stats.Sums
	Nonzero  int64 // visitors whose total is not zero
	Negative int64 // visitors whose total is below zero
}

// Merge returns the moments of the union of two disjoint sets of visitors.
func (m Moments) Merge(o Moments) Moments {
	return Moments{
		Visitors:        m.Visitors + o.Visitors,
		SinceShares:     m.SinceShares + o.SinceShares,
		Recent:          m.Recent + o.Recent,
		Views:           m.Views + o.Views,
		Actions:         m.mergeActions(o.Actions),
		Converted:       m.Converted + o.Converted,
		Completed:       m.Completed + o.Completed,
		Conversion:      m.Conversion + o.Conversion,
		Goals:           m.Goals.Merge(o.Goals),
		Value:           m.Value.mergeAmounts(o.Value),
		Profit:          m.Profit.mergeAmounts(o.Profit),
		ExtraValue:      m.ExtraValue.mergeAmounts(o.ExtraValue),
		ValueGoals:      stats.Sums{Sum: m.ValueGoals}.Merge(stats.Sums{Sum: o.ValueGoals}).Sum,
		CappedRemainder: m.CappedRemainder.mergeRemainder(o.CappedRemainder),
	}
}

// Subtract subtracts the moments of a subset of the visitors.
func (m *Moments) Subtract(o *Moments) {
	m.Visitors -= o.Visitors
	m.SinceShares -= o.SinceShares
	m.Recent -= o.Recent
	m.Views -= o.Views
	m.Clicks -= o.Clicks
	m.Submits -= o.Submits
	m.Completions -= o.Completions
	m.Conversions -= o.Conversions
	m.Contacts -= o.Contacts
	m.Converted -= o.Converted
	m.Completed -= o.Completed
	m.Conversion -= o.Conversion
	subtractSums(&m.Goals, o.Goals)
	m.Value.subtractAmounts(&o.Value)
	m.Profit.subtractAmounts(&o.Profit)
	m.ExtraValue.subtractAmounts(&o.ExtraValue)
	m.ValueGoals.Sub(m.ValueGoals, o.ValueGoals)
	m.CappedRemainder.addSigned(&o.CappedRemainder, -1)
}

func (a *Amounts) subtractAmounts(o *Amounts) {
	subtractSums(&a.Sums, o.Sums)
	a.Nonzero -= o.Nonzero
	a.Negative -= o.Negative
}

func subtractSums(from *stats.Sums, o stats.Sums) {
	from.Sum.Sub(from.Sum, o.Sum)
	from.Squares.Sub(from.Squares, o.Squares)
}

func (a Amounts) mergeAmounts(o Amounts) Amounts {
	return Amounts{Sums: a.Merge(o.Sums), Nonzero: a.Nonzero + o.Nonzero, Negative: a.Negative + o.Negative}
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
		merged := had.Merge(*m)
		m = &merged
	}
	sums[key] = m
}
