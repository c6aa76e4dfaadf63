package result

import (
	"fmt"
	"time"
)

// lastDay returns the date of the day that ends at a time.
func lastDay(end time.Time) string { return end.Add(-time.Millisecond).UTC().Format(time.DateOnly) }

// withInterval formats an effect and its interval: 5 (95 % interval 2 to 8).
func withInterval(e Effect, level int, precision func(spread float64) int, write func(x float64, decimals int) string) string {
	decimals := precision(HalfWidth(e.Value, e.Interval))
	text := write(*e.Value, decimals)
	if e.Interval == nil {
		return text
	}
	switch lower, upper := e.Interval[0], e.Interval[1]; {
	case lower != nil && upper != nil:
		return text + fmt.Sprintf(" (%d %% interval %s to %s)", level, write(*lower, decimals), write(*upper, decimals))
	case lower != nil:
		return text + fmt.Sprintf(" (%d %% interval from %s upward)", level, write(*lower, decimals))
	case upper != nil:
		return text + fmt.Sprintf(" (%d %% interval up to %s)", level, write(*upper, decimals))
	}
	return text
}
