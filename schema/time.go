package schema

import (
	"strings"
	"time"
)

// ParseTime reads an instant in the form of RFC 3339, with any number of
// decimals of a second. As section 5.6 of RFC 3339 allows, T and Z may be
// lower case.
func ParseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		if upper := strings.ToUpper(text); upper != text {
			return time.Parse(time.RFC3339Nano, upper)
		}
	}
	return t, err
}
