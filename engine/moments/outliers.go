package moments

import (
	"math/big"

	"lifthouse/schema"
)

// Outliers are the bounds of the goal values that count. They follow from the
// z-score of the whole report.
type Outliers struct {
	Values       int64   // goal events before removal
	Lower, Upper float64 // in the sender's unit, inclusive; infinite if a float64 overflows
	Least, Most  int64   // the same in 1/schema.MoneyScale, rounded inwards
	Open         bool    // fewer than two values or no deviation: nothing is removed
}

// NewOutliers returns the bounds mean ± z·sd of n values with sum s and sum of
// squares ss; sd is the standard deviation with n-1. A value v counts if
//
//	(n v - s)² (n - 1) <= z² n (n ss - s²)
//
// which is evaluated in exact arithmetic.
func NewOutliers(n int64, s, ss *big.Int, z float64) *Outliers {
	o := &Outliers{Values: n}
	count := big.NewInt(n)
	spread := new(big.Int).Mul(count, ss)
	spread.Sub(spread, new(big.Int).Mul(s, s))
	if n < 2 || spread.Sign() <= 0 {
		o.Open = true
		return o
	}
	limit := new(big.Rat).SetFloat64(z)
	limit.Mul(limit, limit).Mul(limit, new(big.Rat).SetInt(new(big.Int).Mul(count, spread)))
	counts := func(v *big.Int) bool {
		d := new(big.Int).Mul(count, v)
		d.Sub(d, s)
		d.Mul(d, d).Mul(d, big.NewInt(n-1))
		return new(big.Rat).SetInt(d).Cmp(limit) <= 0
	}
	mean := new(big.Float).SetPrec(256).SetInt(s)
	mean.Quo(mean, new(big.Float).SetInt(count))
	width := new(big.Float).SetPrec(256).SetInt(spread)
	width.Quo(width, new(big.Float).SetInt(new(big.Int).Mul(count, big.NewInt(n-1))))
	width.Sqrt(width).Mul(width, big.NewFloat(z))
	low, high := new(big.Float).Sub(mean, width), new(big.Float).Add(mean, width)
	o.Lower, o.Upper = inUnits(low), inUnits(high)
	o.Least, o.Most = outermostInteger(low, counts, 1), outermostInteger(high, counts, -1)
	return o
}

func inUnits(x *big.Float) float64 {
	unit, _ := new(big.Float).Quo(x, big.NewFloat(schema.MoneyScale)).Float64()
	return unit
}

// outermostInteger returns the outermost integer near the bound that counts. It searches
// inwards by step, from the largest possible amount if the bound is beyond it. If there is no
// integer between the bounds, it returns one beyond the opposite bound, which makes the range
// empty.
func outermostInteger(bound *big.Float, counts func(*big.Int) bool, step int64) int64 {
	const most = schema.MaxMoney * schema.MoneyScale
	v, _ := bound.Int(nil)
	if v.Cmp(big.NewInt(most)) > 0 || v.Cmp(big.NewInt(-most)) < 0 {
		return -step * most
	}
	near := v.Int64() - 2*step
	for range 4 {
		if counts(big.NewInt(near)) {
			return near
		}
		near += step
	}
	return near
}
