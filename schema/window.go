package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// ConversionWindow is a half-open range of ages in which events count. The age of an event is the time since the
// visitor's first view. The zero value has no limits: all events from the first view on count.
type ConversionWindow struct{ From, To time.Duration }

// MaxConversionWindow is the maximum end of a conversion window. A look has to wait for this time.
const MaxConversionWindow = 90 * 24 * time.Hour

// windowPattern matches 7d, 72h and 7d..14d.
var windowPattern = regexp.MustCompile(`^(?:(\d{1,4})([hd])\.\.)?(\d{1,4})([hd])$`)

var errWindow = errors.New("must be a duration from 1h to 90d such as 7d or 72h, a range such as 7d..14d, or none")

// ParseConversionWindow parses the end of a window, a range of ages, or none. The error says what is allowed.
func ParseConversionWindow(text string) (ConversionWindow, error) {
	if text == "none" {
		return ConversionWindow{}, nil
	}
	parts := windowPattern.FindStringSubmatch(text)
	if parts == nil {
		return ConversionWindow{}, errWindow
	}
	w := ConversionWindow{From: parseAge(parts[1], parts[2]), To: parseAge(parts[3], parts[4])}
	if w.To < time.Hour || w.To > MaxConversionWindow || w.From >= w.To {
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

// String returns the window as it is written: 7d, 72h, 7d..14d or none.
func (w ConversionWindow) String() string {
	switch {
	case !w.IsSet():
		return "none"
	case w.From == 0:
		return formatAge(w.To)
	}
	return formatAge(w.From) + ".." + formatAge(w.To)
}

// formatAge formats an age in days if it is whole days, and otherwise in hours.
func formatAge(age time.Duration) string {
	hours := int(age / time.Hour)
	if hours%24 == 0 {
		return fmt.Sprintf("%dd", hours/24)
	}
	return fmt.Sprintf("%dh", hours)
}

// InWords returns the words that follow the name of a metric: "within 7 days", "from day 7 to 14", or "".
func (w ConversionWindow) InWords() string {
	switch {
	case !w.IsSet():
		return ""
	case w.From == 0:
		return "within " + w.EndInWords()
	}
	unit, width := w.unit()
	return fmt.Sprintf("from %s %d to %d", unit, w.From/width, w.To/width)
}

// EndInWords returns the end of the window in words: 7 days.
func (w ConversionWindow) EndInWords() string {
	unit, width := w.unit()
	if w.To == width {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", w.To/width, unit)
}

// unit returns the unit in which both ends are whole numbers.
func (w ConversionWindow) unit() (name string, width time.Duration) {
	const day = 24 * time.Hour
	if w.From%day == 0 && w.To%day == 0 {
		return "day", day
	}
	return "hour", time.Hour
}

// MarshalText returns the window as it is written.
func (w ConversionWindow) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText parses a window.
func (w *ConversionWindow) UnmarshalText(text []byte) (err error) {
	if *w, err = ParseConversionWindow(string(text)); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	return nil
}

// ValueOrNone returns the window; nil: none.
func (w *ConversionWindow) ValueOrNone() ConversionWindow {
	if w == nil {
		return ConversionWindow{}
	}
	return *w
}
