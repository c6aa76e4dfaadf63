package visit

import "math/big"

// Excess is what a cap removes from the sums over visitors: the part of each visitor's
// total value above the cap, and the same amount of the visitor's profit.
type Excess struct {
	Visitors                      int64 // visitors with a total value above the cap
	ProfitNonzero, ProfitNegative int64
	Value                         *big.Int // also of profit
	ValueSquares, ProfitSquares   *big.Int
}

func noExcess() Excess {
	return Excess{Value: new(big.Int), ValueSquares: new(big.Int), ProfitSquares: new(big.Int)}
}

func (e Excess) mergeExcess(o Excess) Excess {
	if e.Value == nil && o.Value == nil {
		return Excess{}
	}
	sum := noExcess()
	sum.addSigned(&e, 1)
	sum.addSigned(&o, 1)
	return sum
}

// addSigned adds other sums, or subtracts them if sign is -1.
func (e *Excess) addSigned(o *Excess, sign int64) {
	if o.Value == nil {
		return
	}
	if e.Value == nil {
		*e = noExcess()
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
// sums are the same.
func (m Moments) WithCappedValues() Moments {
	if m.Excess.Visitors == 0 || m.Excess.Value == nil {
		return m
	}
	capped := m.Merge(NoMoments())
	removed := Amounts{Nonzero: m.Excess.ProfitNonzero, Negative: m.Excess.ProfitNegative}
	removed.Sum, removed.Squares = m.Excess.Value, m.Excess.ProfitSquares
	capped.Profit.subtractAmounts(&removed)
	removed.Nonzero, removed.Negative, removed.Squares = 0, 0, m.Excess.ValueSquares
	capped.Value.subtractAmounts(&removed)
	return capped
}
