package rollup

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestSumOfPackedNumbers packs random numbers of either sign, adds the packed
// numbers, and compares the unpacked sums.
func TestSumOfPackedNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(40, 128))
	number := func(bits int) *big.Int {
		n := new(big.Int).Rsh(new(big.Int).SetUint64(r.Uint64()), uint(64-r.IntN(min(bits, 63))-1)) //nolint:gosec // under 64
		n.Lsh(n, uint(r.IntN(max(1, bits-63))))                                                     //nolint:gosec // small
		if r.IntN(2) == 0 {
			n.Neg(n)
		}
		return n
	}
	for range 1000 {
		var sum, squares, packed, signs big.Int
		var counts [6]int64
		for range 1 + r.IntN(5) {
			s, q := number(80), number(120)
			sum.Add(&sum, s)
			squares.Add(&squares, q)
			packed.Add(&packed, packAmounts(s, q))
			var part [6]int64
			for i := range part {
				part[i] = r.Int64N(1<<34) - 1<<33
				counts[i] += part[i]
			}
			signs.Add(&signs, packSigns(part))
		}
		if s, q := unpackAmounts(&packed); s.Cmp(&sum) != 0 || q.Cmp(&squares) != 0 {
			t.Fatalf("%v, %v; want %v, %v", s, q, &sum, &squares)
		}
		if got := unpackSigns(&signs); got != counts {
			t.Fatalf("%v; want %v", got, counts)
		}
	}
}
