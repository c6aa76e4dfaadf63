package result

import (
	"math"
	"testing"

	"lifthouse/engine/moments"
	"lifthouse/schema/schematest/check"
	"lifthouse/stats"
)

// TestOutliersCheckWithoutBounds checks bounds that JSON cannot express.
func TestOutliersCheckWithoutBounds(t *testing.T) {
	for _, test := range []struct {
		of     moments.Outliers
		lower  bool
		upper  bool
		reason stats.Reason
	}{
		{moments.Outliers{Values: 3, Lower: -1, Upper: 2}, true, true, ""},
		{moments.Outliers{Values: 3, Lower: math.Inf(-1), Upper: math.Inf(1)}, false, false, "BOUND_OVERFLOW"},
		{moments.Outliers{Values: 3, Lower: -1e300, Upper: math.Inf(1)}, true, false, "BOUND_OVERFLOW"},
		{moments.Outliers{Values: 1, Open: true}, false, false, "NO_SPREAD"},
	} {
		c := outliersCheck(&test.of, 3)
		check.That(t, (c.Lower != nil) == test.lower && (c.Upper != nil) == test.upper && c.Reason == test.reason, "%+v: %+v", test.of, c)
	}
}
