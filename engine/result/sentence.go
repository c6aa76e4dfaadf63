package result

import (
	"fmt"
	"time"

	"lifthouse/engine/looks"
)

// lastDay returns the date of the day that ends at a time.
func lastDay(end time.Time) string { return end.Add(-time.Millisecond).UTC().Format(time.DateOnly) }

// LookInWords returns the lift that a look found, such as "a lift of +5 % (95 % interval +2 %
// to +8 %)", or else the difference. rate reports whether the metric is a rate.
func LookInWords(row *looks.Row, level int, rate bool) string {
	if row.Lift.Value != nil && row.Lift.Interval != nil {
		return "a lift of " + withInterval(newEffect(row.Lift), level, PercentDecimals, func(x float64, decimals int) string {
			return FormatPercent(x, decimals, true)
		})
	}
	decimals, unit, scale := SpreadDecimals, "", 1.0
	if rate {
		decimals, unit, scale = PercentDecimals, " percentage points", 100
	}
	return "a difference of " + withInterval(newEffect(row.Difference), level, decimals, func(x float64, decimals int) string {
		return FormatSigned(scale*x, decimals) + unit
	})
}

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
