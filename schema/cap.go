package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Cap limits the total value of each visitor: to a percentile of the totals of the
// converted visitors, or to an amount.
type Cap struct {
	Percentile float64 // in per cent; 0: an amount
	Units      int64   // amount in 1/MoneyScale
}

// The bounds of the percentiles of caps. A cap below the median would remove most of
// the values.
const (
	minPercentile = 50
	maxPercentile = 99.9
)

// capForm is what a cap must be.
var capForm = fmt.Sprintf("must be a percentile such as p99, from p%v to p%v with at most one decimal, or an amount above 0", minPercentile, maxPercentile)

// ParseCap parses p99 or an amount. The error says what is allowed.
func ParseCap(text string) (Cap, error) {
	refused := fmt.Errorf("%s", capForm)
	if number, is := strings.CutPrefix(text, "p"); is {
		p, err := strconv.ParseFloat(number, 64)
		if _, decimals, has := strings.Cut(number, "."); err != nil || p < minPercentile || p > maxPercentile || has && len(decimals) != 1 || strings.ContainsAny(number, "eExX_+-") {
			return Cap{}, refused
		}
		return Cap{Percentile: p}, nil
	}
	amount, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "/eExX_") {
		return Cap{}, refused
	}
	amount.Mul(amount, big.NewRat(MoneyScale, 1))
	if !amount.IsInt() || amount.Sign() <= 0 || amount.Cmp(big.NewRat(MaxMoney*MoneyScale, 1)) > 0 {
		return Cap{}, refused
	}
	return Cap{Units: amount.Num().Int64()}, nil
}

// String returns the cap as it is written.
func (c Cap) String() string {
	if c.Percentile > 0 {
		return "p" + strconv.FormatFloat(c.Percentile, 'f', -1, 64)
	}
	text := strings.TrimRight(big.NewRat(c.Units, MoneyScale).FloatString(4), "0")
	return strings.TrimSuffix(text, ".")
}

// MarshalJSON returns a text, or a number for an amount.
func (c Cap) MarshalJSON() ([]byte, error) {
	if c.Percentile > 0 {
		return json.Marshal(c.String())
	}
	return []byte(c.String()), nil
}

// UnmarshalJSON parses the output of MarshalJSON.
func (c *Cap) UnmarshalJSON(text []byte) (err error) {
	*c, err = ParseCap(strings.Trim(string(text), `"`))
	return err
}

// MarshalYAML returns a text, or a number for an amount.
func (c Cap) MarshalYAML() (any, error) {
	if c.Percentile > 0 {
		return c.String(), nil
	}
	return json.Number(c.String()), nil
}

// UnmarshalYAML decodes a text or a number.
func (c *Cap) UnmarshalYAML(text []byte) (err error) {
	given := strings.Trim(strings.TrimSpace(string(text)), `"'`)
	if *c, err = ParseCap(given); err != nil {
		return fmt.Errorf("valueCap: %q: %w", given, err)
	}
	return nil
}
