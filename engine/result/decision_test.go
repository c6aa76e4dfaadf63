package result

import (
	"testing"

	"lifthouse/schema/schematest/check"
)

func TestExcludedLifts(t *testing.T) {
	at := func(lift float64) *float64 { return &lift }
	for _, test := range []struct {
		lower, upper *float64
		want         string
	}{
		{nil, nil, ""},
		{at(-1), nil, ""},
		{at(-1), at(0.25), "a lift above +25.0 %"},
		{nil, at(0.25), "a lift above +25.0 %"},
		{at(-0.1), nil, "a lift below -10.0 %"},
		{at(-0.1), at(0.25), "a lift above +25.0 % or below -10.0 %"},
	} {
		check.Equal(t, excludedLifts(test.lower, test.upper), test.want, "%v to %v", test.lower, test.upper)
	}
}
