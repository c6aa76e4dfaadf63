package result

import (
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
)

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
		got := SilenceDuration(first, first.Add(test.newest), test.views, first.Add(test.now))
		check.That(t, got == test.want, "%+v: %s", test, got)
	}
	check.That(t, SilenceDuration(time.Time{}, first, 10, first.AddDate(1, 0, 0)) == 0, "silent without a first event")
}

func TestFullWeeks(t *testing.T) {
	for days, want := range map[int]FullWeeks{0: {0, 0, false}, 6: {6, 0, false}, 7: {7, 1, true}, 8: {8, 1, false}, 28: {28, 4, true}} {
		got := newFullWeeks(days)
		check.That(t, *got == want, "%d days: %+v", days, *got)
	}
}
