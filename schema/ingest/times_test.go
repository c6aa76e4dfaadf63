package ingest

import (
	"strings"
	"testing"
	"time"
)

func TestTimesOfEvents(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	day := 24 * time.Hour
	for _, c := range []struct {
		name  string
		times Times
		event string
		want  string // part of the error; empty: accepted
	}{
		{"no clock", Times{}, "2199-12-31T23:59:59Z", ""},
		{"no clock, too old", Times{}, "1969-12-31T23:59:59Z", "must be in a year from 1970 to 2199"},
		{"any age", Times{Now: clock}, "1970-01-01T00:00:00Z", ""},
		{"now", Times{Now: clock}, "2026-05-01T12:00:00Z", ""},
		{"ahead", Times{Now: clock}, "2026-05-01T12:00:00.001Z", `time: "2026-05-01T12:00:00.001Z": must be at most 0s after now, which is 2026-05-01T12:00:00Z (max-event-skew)`},
		{"just within the skew", Times{MaxSkew: day, Now: clock}, "2026-05-02T14:00:00+02:00", ""},
		{"beyond the skew", Times{MaxSkew: day, Now: clock}, "2026-05-02T12:00:01Z", "must be at most 24h0m0s after now"},
		{"just within the age", Times{MaxAge: day, Now: clock}, "2026-04-30T12:00:00Z", ""},
		{"beyond the age", Times{MaxAge: day, Now: clock}, "1777550399999", `time: "1777550399999": must be at most 24h0m0s before now, which is 2026-05-01T12:00:00Z (max-event-age)`},
		{"out of all bounds", Times{MaxAge: day, MaxSkew: 100 * 365 * day, Now: clock}, "2200-01-01T00:00:00Z", "must be in a year from 1970 to 2199"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := (&rules{times: c.times}).validate(nil, event("time="+c.event), "id")
			switch {
			case c.want == "" && err != nil:
				t.Errorf("rejected: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
