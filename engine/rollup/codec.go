package rollup

import "math/big"

// Several sums are packed into one integer. The sum of packed integers is the
// packed integer of the sums.
const (
	squaresBits = 128 // bits of the sum of squares, below the sum
	signBits    = 40  // bits of each number of visitors
)

// packAmounts returns sum · 2^128 + squares.
func packAmounts(sum, squares *big.Int) *big.Int {
	packed := new(big.Int).Lsh(sum, squaresBits)
	return packed.Add(packed, squares)
}

// unpackAmounts is the inverse of packAmounts. The squares must be from -2^127 to
// 2^127 - 1. The squares of a single day may be negative: a visitor's amounts of
// a day may reduce the absolute sum of the earlier days.
func unpackAmounts(packed *big.Int) (sum, squares *big.Int) {
	sum = new(big.Int).Add(packed, halfSquares)
	sum.Rsh(sum, squaresBits) // rounds down
	squares = new(big.Int).Lsh(sum, squaresBits)
	return sum, squares.Sub(packed, squares)
}

// halfSquares is added to make the squares nonnegative.
var halfSquares = new(big.Int).Lsh(big.NewInt(1), squaresBits-1)

// packSigns packs six numbers of visitors into one integer. The first number has
// the lowest bits.
func packSigns(counts [6]int64) *big.Int {
	packed := new(big.Int)
	for i := len(counts) - 1; i >= 0; i-- {
		packed.Add(packed.Lsh(packed, signBits), big.NewInt(counts[i]))
	}
	return packed
}

// unpackSigns is the inverse of packSigns. The numbers may be negative: the
// events of a day may change the sign of a visitor's amount.
func unpackSigns(packed *big.Int) (counts [6]int64) {
	if packed.Sign() == 0 {
		return counts
	}
	var bytes [len(counts) * signBits / 8]byte
	new(big.Int).Add(packed, halfSigns).FillBytes(bytes[:])
	for i := range counts {
		from := len(bytes) - (i+1)*signBits/8
		for _, b := range bytes[from : from+signBits/8] {
			counts[i] = counts[i]<<8 | int64(b)
		}
		counts[i] -= halfSign
	}
	return counts
}

// halfSign limits the packed numbers of visitors, which must be from -halfSign to
// halfSign - 1.
const halfSign = 1 << (signBits - 1)

// halfSigns is added to make all numbers nonnegative.
var halfSigns = packSigns([6]int64{halfSign, halfSign, halfSign, halfSign, halfSign, halfSign})
