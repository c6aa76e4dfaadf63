package schema

import (
	"strings"
	"time"
)

// ParseTime parses an RFC 3339 time with any number of decimals. T and Z may be
// lower case, as section 5.6 of RFC 3339 allows.
func ParseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		if upper := strings.ToUpper(text); upper != text {
			return time.Parse(time.RFC3339Nano, upper)
		}
	}
	return t, err
}
