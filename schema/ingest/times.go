package ingest

import (
	"fmt"
	"time"

	"lifthouse/schema"
)

// leastMilliseconds is the smallest integer that is read as Unix milliseconds, the
// first instant of 1971. Smaller integers are probably Unix seconds.
const leastMilliseconds = 365 * 24 * 60 * 60 * 1000

// Times is the range of accepted event times. The zero value accepts all times
// from 1970 to 2199.
type Times struct {
	MaxAge  time.Duration    // maximum time before now; 0: no maximum
	MaxSkew time.Duration    // maximum time after now
	Now     func() time.Time // the clock; nil: MaxAge and MaxSkew do not apply
}

// DefaultTimes accepts all past times, and times up to 24 hours ahead, which covers
// clock skew and time zone errors.
var DefaultTimes = Times{MaxSkew: 24 * time.Hour, Now: time.Now}

// timeFault returns what is allowed instead of the time, or an empty string if the
// time is accepted.
func (t Times) timeFault(at time.Time) string {
	if !schema.IsStorable(at) {
		return "must be in a year from 1970 to 2199"
	}
	if t.Now == nil {
		return ""
	}
	now := t.Now().UTC().Truncate(time.Millisecond)
	if at.After(now.Add(t.MaxSkew)) {
		return fmt.Sprintf("must be at most %v after now, which is %s (max-event-skew)", t.MaxSkew, now.Format(time.RFC3339))
	}
	if t.MaxAge > 0 && at.Before(now.Add(-t.MaxAge)) {
		return fmt.Sprintf("must be at most %v before now, which is %s (max-event-age)", t.MaxAge, now.Format(time.RFC3339))
	}
	return ""
}
