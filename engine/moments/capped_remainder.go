package moments

import "math/big"

// CappedRemainder has the amounts that a cap removes from the sums over visitors: the part of
// each visitor's total value above the cap, and the same amount from the visitor's profit.
type CappedRemainder struct {
	Visitors                      int64 // visitors with a total value above the cap
	ProfitNonzero, ProfitNegative int64
	Value                         *big.Int // also of profit
	ValueSquares, ProfitSquares   *big.Int
}

func noRemainder() CappedRemainder {
	return CappedRemainder{Value: new(big.Int), ValueSquares: new(big.Int), ProfitSquares: new(big.Int)}
}

func (e CappedRemainder) mergeRemainder(o CappedRemainder) CappedRemainder {
	if e.Value == nil && o.Value == nil {
		return CappedRemainder{}
	}
	sum := noRemainder()
	sum.addSigned(&e, 1)
	sum.addSigned(&o, 1)
	return sum
}

// addSigned adds other sums, or subtracts them if sign is -1.
func (e *CappedRemainder) addSigned(o *CappedRemainder, sign int64) {
	if o.Value == nil {
		return
	}
	if e.Value == nil {
		*e = noRemainder()
	}
	e.Visitors += sign * o.Visitors
	e.ProfitNonzero += sign * o.ProfitNonzero
	e.ProfitNegative += sign * o.ProfitNegative
	addBig(e.Value, o.Value, sign)
	addBig(e.ValueSquares, o.ValueSquares, sign)
	addBig(e.ProfitSquares, o.ProfitSquares, sign)
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

// WithCappedValues returns the moments with the values and profits of capped visitors. All other
// sums are unchanged.
func (m Moments) WithCappedValues() Moments {
	if m.CappedRemainder.Visitors == 0 || m.CappedRemainder.Value == nil {
		return m
	}
	capped := m.Merge(NoMoments())
	removed := Amounts{Nonzero: m.CappedRemainder.ProfitNonzero, Negative: m.CappedRemainder.ProfitNegative}
	removed.Sum, removed.Squares = m.CappedRemainder.Value, m.CappedRemainder.ProfitSquares
	capped.Profit.subtractAmounts(&removed)
	removed.Nonzero, removed.Negative, removed.Squares = 0, 0, m.CappedRemainder.ValueSquares
	capped.Value.subtractAmounts(&removed)
	return capped
}
