package result

import (
	"math"
	"testing"
	"time"

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
		check.Equal(t, (c.Lower != nil), test.lower, "%+v: %+v", test.of, c)
		check.Equal(t, (c.Upper != nil), test.upper, "%+v: %+v", test.of, c)
		check.Equal(t, c.Reason, test.reason, "%+v: %+v", test.of, c)
	}
}

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

// TestValueBins checks that the bins have about equal widths on a logarithmic scale, 10 to the power of 1/10, from 0.01 to
// the largest amount.
func TestValueBins(t *testing.T) {
	bins := ValueBins()
	for i := positiveBins + 1; i < len(bins); i++ {
		if ratio := float64(bins[i]) / float64(bins[i-1]); ratio < 1.23 || ratio > 1.29 {
			t.Errorf("bin %d begins at %d, after %d", i, bins[i], bins[i-1])
		}
	}
	first, last := bins[positiveBins], bins[len(bins)-10]
	check.Equal(t, first, 100, "from %d to %d", first, last)
	check.Equal(t, last, 1e13, "from %d to %d", first, last)
}

func TestSilence(t *testing.T) {
	first := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		newest, now time.Duration
		views       int64
		want        time.Duration
	}{
		{10 * time.Hour, 10*time.Hour + 59*time.Minute, 1001, 0},            // less than an hour
		{10 * time.Hour, 11 * time.Hour, 1001, time.Hour},                   // a view every 36 s
		{100 * time.Hour, 119 * time.Hour, 51, 0},                           // a view every two hours
		{100 * time.Hour, 120 * time.Hour, 51, 20 * time.Hour},              // ten gaps
		{100 * time.Hour, 1000 * time.Hour, 1, 0},                           // no usual gap
		{10 * time.Hour, 9 * time.Hour, 1001, 0},                            // events of the future
		{10 * time.Hour, 10*time.Hour + 72*time.Hour, 1001, 72 * time.Hour}, // three days
	} {
		got := (&Pulse{First: first, Newest: first.Add(test.newest), Views: test.views}).SilenceAt(first.Add(test.now))
		check.That(t, got == test.want, "%+v: %s", test, got)
	}
	check.That(t, (&Pulse{Newest: first, Views: 10}).SilenceAt(first.AddDate(1, 0, 0)) == 0,
		"silent without a first event")
}

func TestFullWeeks(t *testing.T) {
	for days, want := range map[int]FullWeeks{
		0: {0, 0, false}, 6: {6, 0, false}, 7: {7, 1, true}, 8: {8, 1, false},
		28: {28, 4, true},
	} {
		got := newFullWeeks(days)
		check.That(t, *got == want, "%d days: %+v", days, *got)
	}
}
