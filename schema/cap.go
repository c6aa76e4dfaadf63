package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Cap limits the total value of each visitor, either to a percentile of the totals of converted visitors or to an
// amount.
type Cap struct {
	Percentile float64 // in per cent; 0: an amount
	Units      int64   // amount in 1/MoneyScale
}

// capPattern matches percentiles from p50 to p99.9 with at most one decimal, and amounts above 0 with at most four. A
// cap below the median would remove most of the values.
var capPattern = regexp.MustCompile(`^(p[5-9][0-9](\.[0-9])?|[1-9][0-9]{0,12}(\.[0-9]{1,4})?|0\.[0-9]{0,3}[1-9])$`)

var errCap = fmt.Errorf("must be a percentile from p50 to p99.9, such as p99, or an amount above 0 and at most %d",
	int64(MaxMoney))

// ParseCap parses p99 or an amount. The error says what is allowed.
func ParseCap(text string) (Cap, error) {
	if !capPattern.MatchString(text) {
		return Cap{}, errCap
	}
	number, isPercentile := strings.CutPrefix(text, "p")
	if isPercentile {
		p, err := strconv.ParseFloat(number, 64)
		return Cap{Percentile: p}, err
	}
	amount, _ := new(big.Rat).SetString(number)
	amount.Mul(amount, big.NewRat(MoneyScale, 1))
	if amount.Cmp(big.NewRat(MaxMoney*MoneyScale, 1)) > 0 {
		return Cap{}, errCap
	}
	return Cap{Units: amount.Num().Int64()}, nil
}

// String returns the cap as it is written.
func (c Cap) String() string {
	if c.Percentile > 0 {
		return "p" + strconv.FormatFloat(c.Percentile, 'f', -1, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(FormatUnits(c.Units), "0"), ".")
}

// FormatUnits writes an amount in 1/MoneyScale with all its four decimals.
func FormatUnits(units int64) string { return big.NewRat(units, MoneyScale).FloatString(4) }

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

// UnmarshalText parses a cap.
func (c *Cap) UnmarshalText(text []byte) (err error) {
	*c, err = ParseCap(string(text))
	return err
}

// Equal reports whether two caps are the same; nil: none.
func (c *Cap) Equal(o *Cap) bool {
	if c == nil || o == nil {
		return c == o
	}
	return *c == *o
}
