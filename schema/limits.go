package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ConversionWindow is a half-open range of ages in which events count. The age of an event is the time since the
// visitor's first view. Settle is the time after the window, or without a window after the order, in which orders still
// change: results wait for it, and it limits no age. The zero value has no limits: all events from the first view on
// count.
type ConversionWindow struct{ From, To, Settle time.Duration }

// The maximum end of a conversion window, and the maximum time after it. A look has to wait for both.
const (
	maxWindow = 90 * 24 * time.Hour
	maxSettle = 180 * 24 * time.Hour
)

// windowPattern matches 7d, 72h, 7d..14d, 7d+30d and none+30d.
var windowPattern = regexp.MustCompile(`^(?:none|(?:(\d{1,4})([hd])\.\.)?(\d{1,4})([hd]))(?:\+(\d{1,4})([hd]))?$`)

var errWindow = errors.New("must be a duration from 1h to 90d such as 7d or 72h, a range such as 7d..14d, or " +
	"none, each perhaps with a time to settle of at most 180d such as 7d+30d")

// ParseConversionWindow parses the end of a window, a range of ages, or none. The error says what is allowed.
func ParseConversionWindow(text string) (ConversionWindow, error) {
	parts := windowPattern.FindStringSubmatch(text)
	if parts == nil {
		return ConversionWindow{}, errWindow
	}
	w := ConversionWindow{parseAge(parts[1], parts[2]), parseAge(parts[3], parts[4]), parseAge(parts[5], parts[6])}
	hasNone := parts[3] == ""
	if !hasNone && (w.To < time.Hour || w.To > maxWindow || w.From >= w.To) || w.Settle > maxSettle {
		return ConversionWindow{}, errWindow
	}
	return w, nil
}

// parseAge returns a number of hours or days. An empty number is 0.
func parseAge(number, unit string) time.Duration {
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	if unit == "d" {
		n *= 24
	}
	return time.Duration(n) * time.Hour
}

// IsSet reports whether the window limits the ages.
func (w ConversionWindow) IsSet() bool { return w.To > 0 }

// SettlesOnly reports whether the window limits no age, but results wait until orders have settled.
func (w ConversionWindow) SettlesOnly() bool { return !w.IsSet() && w.Settle > 0 }

// Maturity returns the time from a visitor's first view until the visitor is mature; without a window, from an order
// until it has settled.
func (w ConversionWindow) Maturity() time.Duration { return w.To + w.Settle }

// String returns the window as it is written: 7d, 72h, 7d..14d, 7d+30d, none or none+30d.
func (w ConversionWindow) String() string {
	text := "none"
	if w.IsSet() {
		text = formatAge(w.To)
	}
	if w.From > 0 {
		text = formatAge(w.From) + ".." + text
	}
	if w.Settle > 0 {
		text += "+" + formatAge(w.Settle)
	}
	return text
}

// unitOf returns the unit in which ages are whole: days, or otherwise hours.
func unitOf(ages ...time.Duration) (name string, unit time.Duration) {
	for _, age := range ages {
		if age%day != 0 {
			return "hour", time.Hour
		}
	}
	return "day", day
}

// formatAge formats an age: 7d or 36h.
func formatAge(age time.Duration) string {
	name, unit := unitOf(age)
	return fmt.Sprintf("%d%c", age/unit, name[0])
}

// InWords returns the words that follow the name of a metric: "within 7 days", "from day 7 to 14", "within 7 days,
// settled after 30 days", "settled after 30 days", or "".
func (w ConversionWindow) InWords() string {
	switch {
	case w.SettlesOnly():
		return "settled after " + ageInWords(w.Settle)
	case !w.IsSet():
		return ""
	}
	text := "within " + ageInWords(w.To)
	if w.From > 0 {
		name, unit := unitOf(w.From, w.To)
		text = fmt.Sprintf("from %s %d to %d", name, w.From/unit, w.To/unit)
	}
	if w.Settle > 0 {
		text += ", settled after " + ageInWords(w.Settle)
	}
	return text
}

// EndInWords returns the time until a visitor is mature in words: 7 days.
func (w ConversionWindow) EndInWords() string { return ageInWords(w.Maturity()) }

// ageInWords writes an age: 7 days or 36 hours.
func ageInWords(age time.Duration) string {
	name, unit := unitOf(age)
	if age == unit {
		return "1 " + name
	}
	return fmt.Sprintf("%d %ss", age/unit, name)
}

const day = 24 * time.Hour

// Settle is the time after a conversion window, or after the order, in which orders still change.
type Settle time.Duration

// MarshalText returns the time as it is written.
func (s Settle) MarshalText() ([]byte, error) { return []byte(formatAge(time.Duration(s))), nil }

// UnmarshalText parses a time.
func (s *Settle) UnmarshalText(text []byte) error {
	w, err := ParseConversionWindow("1h+" + string(text))
	if err != nil {
		return errors.New("must be a duration from 0h to 180d, such as 30d")
	}
	*s = Settle(w.Settle)
	return nil
}

// MarshalText returns the window as it is written.
func (w ConversionWindow) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText parses a window.
func (w *ConversionWindow) UnmarshalText(text []byte) (err error) {
	*w, err = ParseConversionWindow(string(text))
	return err
}

// ValueOrNone returns the window; nil: none.
func (w *ConversionWindow) ValueOrNone() ConversionWindow {
	if w == nil {
		return ConversionWindow{}
	}
	return *w
}

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
func (c *Cap) Equal(o *Cap) bool { return c == o || c != nil && o != nil && *c == *o }
