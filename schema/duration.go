package schema

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration is like time.ParseDuration, and also accepts a whole number of days, such as
// 30d.
func ParseDuration(text string) (time.Duration, error) {
	days, inDays := strings.CutSuffix(text, "d")
	if !inDays {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16) // 16 bits of days do not overflow a duration
	if err != nil {
		return 0, fmt.Errorf("invalid duration %q: must be a whole number of days, at most 65535d", text)
	}
	return time.Duration(n) * 24 * time.Hour, nil //nolint:gosec // 16 bits
}
