package moments

import (
	"math/big"

	"lifthouse/stats"
)

// CappedRemainder has the amounts that a cap removes from the sums over visitors: the part of
// each visitor's total value above the cap, and the same amount from the visitor's profit.
type CappedRemainder struct {
	Visitors                      int64 // visitors with a total value above the cap
	ProfitNonzero, ProfitNegative int64
	Value                         *big.Int // also of profit
	ValueSquares, ProfitSquares   *big.Int
}

func (e *CappedRemainder) combine(o *CappedRemainder, sign int64) CappedRemainder {
	if e.Value == nil && o.Value == nil {
		return CappedRemainder{}
	}
	values := combineSums(stats.Sums{Sum: e.Value, Squares: e.ValueSquares}, stats.Sums{Sum: o.Value, Squares: o.ValueSquares}, sign)
	return CappedRemainder{
		Visitors: e.Visitors + sign*o.Visitors, ProfitNonzero: e.ProfitNonzero + sign*o.ProfitNonzero, ProfitNegative: e.ProfitNegative + sign*o.ProfitNegative,
		Value: values.Sum, ValueSquares: values.Squares,
		ProfitSquares: combineSums(stats.Sums{Squares: e.ProfitSquares}, stats.Sums{Squares: o.ProfitSquares}, sign).Squares,
	}
}

// WithCappedValues returns the moments with the values and profits of capped visitors. All other
// sums are unchanged.
func (m Moments) WithCappedValues() Moments {
	if m.CappedRemainder.Visitors == 0 || m.CappedRemainder.Value == nil {
		return m
	}
	removed := Amounts{Nonzero: m.CappedRemainder.ProfitNonzero, Negative: m.CappedRemainder.ProfitNegative}
	removed.Sum, removed.Squares = m.CappedRemainder.Value, m.CappedRemainder.ProfitSquares
	m.Profit = m.Profit.combine(&removed, -1)
	removed.Nonzero, removed.Negative, removed.Squares = 0, 0, m.CappedRemainder.ValueSquares
	m.Value = m.Value.combine(&removed, -1)
	return m
}
