// Package books says what amounts mean in the money of a website: it knows the rates of an account, and converts
// amounts at them. It is pure: it knows neither the store nor the time.
package books

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// MaxDigits is the maximum number of digits of a rate, without leading zeros, and of its decimals.
const MaxDigits = 12

// Rate is an exact decimal number above 0: units of a currency for one unit of the base.
type Rate struct {
	units    uint64 // below 10^MaxDigits
	decimals uint8  // at most MaxDigits
}

// one is the rate of the base.
var one = Rate{units: 1}

// rateDetail says what a rate must be.
var rateDetail = fmt.Sprintf("must be a number above 0 such as 160.25, with at most %d digits", MaxDigits)

// ParseRate returns the rate of a decimal text such as 160.25. The error says what a rate must be.
func ParseRate(text string) (Rate, error) {
	whole, decimals, hasPoint := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+decimals, "0")
	isDecimal := whole != "" && (decimals != "" || !hasPoint)
	isShort := len(digits) <= MaxDigits && len(decimals) <= MaxDigits
	isOther := func(r rune) bool { return r < '0' || r > '9' }
	if digits == "" || !isDecimal || !isShort || strings.ContainsFunc(digits, isOther) {
		return Rate{}, fmt.Errorf("%s", rateDetail)
	}
	units, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return Rate{}, fmt.Errorf("%s", rateDetail)
	}
	return Rate{units, uint8(len(decimals))}, nil //nolint:gosec // at most MaxDigits
}

// String returns the rate as a decimal text, with the decimals of the text that it was parsed from.
func (r Rate) String() string { return r.rational().FloatString(int(r.decimals)) }

// IsSame reports whether two rates are the same number.
func (r Rate) IsSame(o Rate) bool { return r.rational().Cmp(o.rational()) == 0 }

func (r Rate) rational() *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).SetUint64(r.units), powerOfTen(r.decimals))
}

func powerOfTen(exponent uint8) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exponent)), nil)
}
