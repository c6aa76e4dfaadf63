package wording

import (
	"fmt"
	"math"
	"time"
)

// ApproximateDuration returns a duration that nobody needs exactly, such as "40 s", "2 min" or "3 h".
func ApproximateDuration(d time.Duration) string {
	const (
		belowMinutes = 90 * time.Second
		belowHours   = 90 * time.Minute
	)
	switch {
	case d < belowMinutes:
		return fmt.Sprintf("%d s", int(math.Ceil(d.Seconds())))
	case d < belowHours:
		return fmt.Sprintf("%d min", int(math.Round(d.Minutes())))
	}
	return fmt.Sprintf("%d h", int(math.Round(d.Hours())))
}
