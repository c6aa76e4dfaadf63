package fold

import (
	"math/big"
	"math/bits"

	"lifthouse/engine/moments"
	"lifthouse/stats"
)

// The sums of a cell, in the order of the column sums.
const (
	Visitors = iota
	Views    // events by kind, from moments.View to moments.Contact
	Clicks
	Submits
	Completions
	Conversions
	Contacts
	Completed // visitors with a completion
	Conversed // visitors with a conversion
	Goals     // goal events
	GoalsSquares
	Converted // visitors with a goal event
	ValueGoals
	Value // of each of value, profit and extra value: sum, sum of squares, visitors whose total is not 0, and below 0
)

const (
	sumOf = iota
	squaresOf
	nonzeroOf
	negativeOf
	sumsOfAmount
)

// NegativeGoals are the goal events with a value below 0.
const NegativeGoals = Value + 3*sumsOfAmount

// UnknownValues are the goal events whose amounts are not known in the currency of the website.
const UnknownValues = NegativeGoals + 1

// The sums of orders that name no visitor, by their customer.
const (
	CarriedGoals = UnknownValues + 1 + iota // orders of customers that an order of the visitor acquired
	CarriedValue                            // their value
	RevisedGoals                            // orders of visitors that such a row revises
)

// NumberOfSums is the number of sums of a cell.
const NumberOfSums = RevisedGoals + 1

// CellSums are sums over visitors, exact.
type CellSums [NumberOfSums]Int128

// Int128 is an integer of 128 bits.
type Int128 struct {
	High int64
	Low  uint64
}

func newInt128(x int64) Int128 { return Int128{x >> 63, uint64(x)} } //nolint:gosec // bits

// Plus returns the sum of two integers.
func (a Int128) Plus(b Int128) Int128 {
	low, carry := bits.Add64(a.Low, b.Low, 0)
	return Int128{a.High + b.High + int64(carry), low} //nolint:gosec // 0 or 1
}

func (a Int128) negative() Int128 {
	low, carry := bits.Add64(^a.Low, 1, 0)
	return Int128{^a.High + int64(carry), low} //nolint:gosec // 0 or 1
}

// exactProduct returns a b.
func exactProduct(a, b int64) Int128 {
	high, low := bits.Mul64(absoluteValue(a), absoluteValue(b))
	p := Int128{int64(high), low} //nolint:gosec // below 2^62
	if (a < 0) != (b < 0) {
		return p.negative()
	}
	return p
}

func absoluteValue(a int64) uint64 {
	if a < 0 {
		return -uint64(a) //nolint:gosec // also right for the smallest number
	}
	return uint64(a)
}

// IsInt64 reports whether the integer fits into 64 bits.
func (a Int128) IsInt64() bool { return a == newInt128(int64(a.Low)) } //nolint:gosec // bits

// BigInt returns the integer as a big.Int.
func (a Int128) BigInt() *big.Int {
	x := big.NewInt(a.High)
	return x.Lsh(x, 64).Add(x, new(big.Int).SetUint64(a.Low))
}

// ToInt128 returns a big.Int of at most 128 bits.
func ToInt128(x *big.Int) Int128 {
	low := new(big.Int).And(x, new(big.Int).SetUint64(^uint64(0)))
	return Int128{new(big.Int).Rsh(x, 64).Int64(), low.Uint64()}
}

// AddSigned adds other sums, or subtracts them if sign is -1.
func (s *CellSums) AddSigned(o *CellSums, sign int64) {
	for i := range s {
		switch {
		case o[i] == Int128{}:
		case sign < 0:
			s[i] = s[i].Plus(o[i].negative())
		default:
			s[i] = s[i].Plus(o[i])
		}
	}
}

func (s *CellSums) addAt(at int, n int64) {
	if n != 0 {
		s[at] = s[at].Plus(newInt128(n))
	}
}

// totals are the totals of a visitor's goal events, of one goal or of all.
type totals struct {
	events  int64
	amounts [3]int64
}

// addGoal adds a goal event to the sums. before has the visitor's totals before the event; addGoal returns the totals
// after it.
func (s *CellSums) addGoal(before totals, r *FactRow) totals {
	after := before
	amounts := &r.Amounts
	after.events++
	s.addAt(Goals, 1)
	s.addAt(GoalsSquares, after.events*after.events-before.events*before.events)
	s.addAt(Converted, oneIf(before.events == 0))
	s.addAt(NegativeGoals, oneIf(amounts[0] < 0))
	s.addAt(UnknownValues, oneIf(r.Marks&UnknownValueMark != 0))
	if r.Marks&CarriedMark != 0 {
		s.addAt(CarriedGoals, 1)
		s.addAt(CarriedValue, amounts[0])
	}
	s.addAt(RevisedGoals, oneIf(r.Marks&RevisedMark != 0))
	for k := range amounts {
		was := before.amounts[k]
		is := before.amounts[k] + amounts[k]
		after.amounts[k] = is
		at := Value + k*sumsOfAmount
		s.addAt(at+sumOf, amounts[k])
		s[at+squaresOf] = s[at+squaresOf].Plus(exactProduct(is, is)).Plus(exactProduct(was, was).negative())
		s.addAt(at+nonzeroOf, oneIf(is != 0)-oneIf(was != 0))
		s.addAt(at+negativeOf, oneIf(is < 0)-oneIf(was < 0))
	}
	now := exactProduct(after.amounts[0], after.events)
	was := exactProduct(before.amounts[0], before.events)
	s[ValueGoals] = s[ValueGoals].Plus(now).Plus(was.negative())
	return after
}

func oneIf(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// CountAt returns a sum that counts events or visitors.
func (s *CellSums) CountAt(at int) int64 { return int64(s[at].Low) } //nolint:gosec // below 2^63

// AmountSum returns the sum of an amount: 0 is value, 1 is profit, 2 is extra value.
func (s *CellSums) AmountSum(amount int) Int128 { return s[Value+amount*sumsOfAmount+sumOf] }

// AmountTotals returns the sum of the squares of the visitors' totals of an amount, and the numbers of visitors whose
// total is not 0, and below 0.
func (s *CellSums) AmountTotals(amount int) (squares Int128, nonzero, negative int64) {
	at := Value + amount*sumsOfAmount
	return s[at+squaresOf], s.CountAt(at + nonzeroOf), s.CountAt(at + negativeOf)
}

// AsMoments returns the sums as moments of a report.
func (s *CellSums) AsMoments() moments.Moments {
	n := s.CountAt
	amount := func(k int) moments.Amounts {
		at := Value + k*sumsOfAmount
		sums := stats.Sums{Sum: s[at+sumOf].BigInt(), Squares: s[at+squaresOf].BigInt()}
		return moments.Amounts{Sums: sums, Nonzero: n(at + nonzeroOf), Negative: n(at + negativeOf)}
	}
	return moments.Moments{
		Visitors: n(Visitors), Views: n(Views), Actions: moments.Actions{
			Clicks: n(Clicks), Submits: n(Submits), Completions: n(Completions), Conversions: n(Conversions),
			Contacts: n(Contacts),
		},
		Completed: n(Completed), Conversion: n(Conversed), Converted: n(Converted),
		Goals: stats.Sums{Sum: s[Goals].BigInt(), Squares: s[GoalsSquares].BigInt()},
		Value: amount(0), Profit: amount(1), ExtraValue: amount(2), ValueGoals: s[ValueGoals].BigInt(),
		Unknown: n(UnknownValues),
	}
}
