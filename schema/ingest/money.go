package ingest

import (
	"strconv"
	"strings"

	"lifthouse/schema"
)

// moneyDecimals is how many decimals schema.MoneyScale keeps.
const moneyDecimals = 4

// parseMoney reads a decimal number ("12.5", "-3", "1.2e3") exactly, in units
// of 1/schema.MoneyScale. It is false where the text is no number, has more
// decimals than are kept, or is larger than schema.MaxMoney.
func parseMoney(text string) (int64, bool) {
	mantissa, exponentText, scientific := strings.Cut(strings.ToLower(text), "e")
	exponent := 0
	if scientific {
		var err error
		if exponent, err = strconv.Atoi(exponentText); err != nil || exponent < -64 || exponent > 64 {
			return 0, false
		}
	}
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, decimals, _ := strings.Cut(digits, ".")
	if whole+decimals == "" || strings.Trim(whole+decimals, "0123456789") != "" {
		return 0, false
	}
	// The amount is the integer whole·decimals times 10^shift.
	shift := moneyDecimals + exponent - len(decimals)
	all := strings.TrimLeft(whole+decimals, "0")
	for shift < 0 {
		cut, zero := strings.CutSuffix(all, "0")
		if !zero && all != "" {
			return 0, false
		}
		all = cut
		shift++
	}
	if all == "" {
		return 0, true
	}
	if len(all)+shift > len("1000000000")+moneyDecimals {
		return 0, false
	}
	amount, err := strconv.ParseInt(all+strings.Repeat("0", shift), 10, 64)
	if err != nil || amount > schema.MaxMoney*schema.MoneyScale {
		return 0, false
	}
	if negative {
		amount = -amount
	}
	return amount, true
}
