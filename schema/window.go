package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// ConversionWindow is a half-open range of ages in which events count. The age of an event is the time since the
// visitor's first view. Settle is the time after the window, or without a window after the order, in which orders still
// change: results wait for it, and it limits no age. The zero value has no limits: all events from the first view on
// count.
type ConversionWindow struct{ From, To, Settle time.Duration }

// The maximum end of a conversion window, and the maximum time after it.
const (
	// MaxWindow includes a renewal after a year.
	MaxWindow = 400 * 24 * time.Hour
	maxSettle = 180 * 24 * time.Hour
)

// MaxLookWindow is the maximum end of the conversion window of a metric that has looks, because they wait for it.
const MaxLookWindow = 90 * 24 * time.Hour

// windowPattern matches 7d, 72h, 7d..14d, 7d+30d and none+30d.
var windowPattern = regexp.MustCompile(`^(?:none|(?:(\d{1,4})([hd])\.\.)?(\d{1,4})([hd]))(?:\+(\d{1,4})([hd]))?$`)

var errWindow = errors.New("must be a duration from 1h to 400d such as 7d or 72h, a range such as 7d..14d, or " +
	"none, each perhaps with a time to settle of at most 180d such as 7d+30d")

// ParseConversionWindow parses the end of a window, a range of ages, or none. The error says what is allowed.
func ParseConversionWindow(text string) (ConversionWindow, error) {
	parts := windowPattern.FindStringSubmatch(text)
	if parts == nil {
		return ConversionWindow{}, errWindow
	}
	w := ConversionWindow{parseAge(parts[1], parts[2]), parseAge(parts[3], parts[4]), parseAge(parts[5], parts[6])}
	hasNone := parts[3] == ""
	isRange := w.To >= time.Hour && w.To <= MaxWindow && w.From < w.To
	if !hasNone && !isRange || w.Settle > maxSettle {
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
