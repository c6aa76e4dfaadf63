package fold

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"lifthouse/schema/schematest/must"
)

var twoTo128 = new(big.Int).Lsh(big.NewInt(1), 128)

// bigOf returns an integer of 128 bits, in two's complement, digit by digit.
func bigOf(a Int128) *big.Int {
	var digits [16]byte
	for i := range 8 {
		digits[7-i] = byte(uint64(a.High) >> (8 * i))
		digits[15-i] = byte(a.Low >> (8 * i))
	}
	x := new(big.Int).SetBytes(digits[:])
	if digits[0] >= 128 {
		x.Sub(x, twoTo128)
	}
	return x
}

// wrapped returns the integer of 128 bits that differs from x by a multiple of 2^128.
func wrapped(x *big.Int) *big.Int {
	half := new(big.Int).Rsh(twoTo128, 1)
	y := new(big.Int).Add(x, half)
	return y.Mod(y, twoTo128).Sub(y, half)
}

// integers returns extreme and random integers of 64 bits, of all sizes.
func integers() []int64 {
	all := []int64{
		0, 1, -1, 2, -2, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1, math.MaxUint32,
		math.MaxUint32 + 1, -math.MaxUint32, -math.MaxUint32 - 1, 1e13, -1e13,
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		all = append(all, int64(random.Uint64())>>random.IntN(64))
	}
	return all
}

func wide() []Int128 {
	var all []Int128
	for _, high := range integers() {
		for _, low := range integers() {
			all = append(all, Int128{high, uint64(low)})
		}
	}
	return all
}

func TestInt128AndBigAreInverse(t *testing.T) {
	for _, a := range wide() {
		must.Equal(t, a.BigInt().Cmp(bigOf(a)), 0, "%+v is %v", a, a.BigInt())
		must.Equal(t, ToInt128(bigOf(a)), a, "%v", bigOf(a))
	}
	for _, x := range integers() {
		must.Equal(t, bigOf(newInt128(x)).Cmp(big.NewInt(x)), 0, "%d is %+v", x, newInt128(x))
	}
}

func TestProductsAreExact(t *testing.T) {
	for _, a := range integers() {
		for _, b := range integers() {
			got, want := bigOf(exactProduct(a, b)), new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
			must.That(t, got.Cmp(want) == 0, "%d times %d is %v, want %v", a, b, got, want)
		}
	}
}

func TestInt128AddsAndNegates(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	all := wide()
	for _, a := range all {
		if got, want := bigOf(a.negative()), wrapped(new(big.Int).Neg(bigOf(a))); got.Cmp(want) != 0 {
			t.Fatalf("minus %v is %v, want %v", bigOf(a), got, want)
		}
		for range 10 {
			b := all[random.IntN(len(all))]
			if got, want := bigOf(a.Plus(b)), wrapped(new(big.Int).Add(bigOf(a), bigOf(b))); got.Cmp(want) != 0 {
				t.Fatalf("%v plus %v is %v, want %v", bigOf(a), bigOf(b), got, want)
			}
		}
	}
}

func TestSumsAddAndSubtract(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	all := wide()
	var s CellSums
	var want [NumberOfSums]big.Int
	for range 2000 {
		var o CellSums
		sign := []int64{1, -1}[random.IntN(2)]
		for i := range o {
			if random.IntN(3) > 0 {
				o[i] = all[random.IntN(len(all))]
			}
			want[i].Add(&want[i], new(big.Int).Mul(bigOf(o[i]), big.NewInt(sign)))
		}
		s.AddSigned(&o, sign)
		for i := range s {
			must.Equal(t, bigOf(s[i]).Cmp(wrapped(&want[i])), 0, "sum %d, want %v", i, wrapped(&want[i]))
		}
	}
}
