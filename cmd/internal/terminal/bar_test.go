package terminal_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lifthouse/cmd/internal/terminal"
	"lifthouse/schema/schematest/check"
)

// TestProgressIsALineEach5Seconds runs work of 12 seconds, of which the progress is known, unknown, or nothing.
func TestProgressIsALineEach5Seconds(t *testing.T) {
	for name, test := range map[string]struct {
		progress func(seconds int64) (done, all int64)
		want     string
	}{
		"known": {
			func(seconds int64) (int64, int64) { return 1000 * seconds, 12_000 },
			"copying 5,000 of 12,000 events (42 %), 1,000/s, about 7 s left\n" +
				"copying 10,000 of 12,000 events (83 %), 1,000/s, about 2 s left\n",
		},
		"unknown": {func(int64) (int64, int64) { return terminal.Unknown() }, "copying, 5 s\ncopying, 10 s\n"},
		"nothing": {func(int64) (int64, int64) { return 0, -1 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				began := time.Now()
				failed := errors.New("it failed")
				err := terminal.ShowWork(&out, "copying", "event",
					func() (int64, int64) { return test.progress(int64(time.Since(began).Seconds())) },
					func() error {
						time.Sleep(12 * time.Second) //nolint:forbidigo // in a bubble of synctest
						return failed
					})
				check.That(t, errors.Is(err, failed), "%v", err)
				check.Equal(t, out.String(), test.want)
			})
		})
	}
}

func TestShortWorkShowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		check.OK(t, terminal.ShowWork(&out, "copying", "event", terminal.Unknown, func() error {
			time.Sleep(1900 * time.Millisecond) //nolint:forbidigo // in a bubble of synctest
			return nil
		}))
		check.Equal(t, out.String(), "")
	})
}
