package ingest

import (
	"errors"
	"strconv"
	"strings"

	"lifthouse/schema"
)

// moneyDecimals is the number of decimals of a stored amount,
// log10(schema.MoneyScale).
const moneyDecimals = 4

// parseMoney reads a decimal number ("12.5", "-3", "1.2e3", "18.990000000000002") and returns it in units of
// 1/schema.MoneyScale, rounded half away from zero. It works on the decimal digits, so the result is exact. It returns
// false if the text is not a decimal number or its absolute value exceeds schema.MaxMoney.
func parseMoney(text string) (int64, bool) {
	mantissa, exponentText, scientific := strings.Cut(strings.ToLower(text), "e")
	exponent := 0
	if scientific {
		var ok bool
		if exponent, ok = parseExponent(exponentText); !ok {
			return 0, false
		}
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, decimals, _ := strings.Cut(mantissa, ".")
	if whole+decimals == "" || strings.Trim(whole+decimals, "0123456789") != "" {
		return 0, false
	}
	digits := strings.TrimLeft(whole+decimals, "0")
	if digits == "" {
		return 0, true
	}
	// The amount is 0.digits times 10^kept, so the first kept digits are whole units.
	kept := len(digits) - len(decimals) + exponent + moneyDecimals
	switch {
	case kept < 0:
		return 0, true
	case kept > maxMoneyDigits:
		return 0, false
	case kept > len(digits):
		digits += strings.Repeat("0", kept-len(digits))
	}
	amount := int64(0)
	for _, digit := range digits[:kept] {
		amount = 10*amount + int64(digit-'0')
	}
	rest := digits[kept:]
	const limit = schema.MaxMoney * schema.MoneyScale
	if amount > limit || amount == limit && strings.Trim(rest, "0") != "" {
		return 0, false
	}
	if rest != "" && rest[0] >= '5' {
		amount++
	}
	if negative {
		amount = -amount
	}
	return amount, true
}

// maxMoneyDigits is the number of digits of schema.MaxMoney in units of 1/schema.MoneyScale.
const maxMoneyDigits = len("1000000000") + moneyDecimals

// maxExponent exceeds the number of digits of any text that is read, so larger exponents have the same effect.
const maxExponent = 1 << 40

// parseExponent reads the exponent of a number in scientific notation and limits its absolute value to maxExponent.
func parseExponent(text string) (int, bool) {
	exponent, err := strconv.Atoi(text)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return max(-maxExponent, min(exponent, maxExponent)), true
}
