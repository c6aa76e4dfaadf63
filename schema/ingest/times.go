package ingest

import (
	"fmt"
	"time"
)

// Times outside are typing errors, or another unit than was said: read as
// milliseconds, Unix seconds of our days are in January 1970.
var (
	earliest = time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Times says which times of events are taken. The zero value takes all from
// 1971 to 2099.
type Times struct {
	MaxAge  time.Duration    // how long before the clock an event may be; 0: any time
	MaxSkew time.Duration    // how far ahead of it
	Now     func() time.Time // the clock; nil: there is none, and nothing is held against it
}

// DefaultTimes take all history, and what the senders' clocks of any zone may
// say by mistake.
var DefaultTimes = Times{MaxSkew: 24 * time.Hour, Now: time.Now}

// fault says what is allowed in place of the time; nothing where it is taken.
func (t Times) fault(at time.Time) string {
	if at.Before(earliest) || !at.Before(latest) {
		return "want a time from 1971 to 2099; integers are Unix milliseconds"
	}
	if t.Now == nil {
		return ""
	}
	now := t.Now().UTC().Truncate(time.Millisecond)
	if at.After(now.Add(t.MaxSkew)) {
		return fmt.Sprintf("want at most %v after now, which is %s (max-event-skew)", t.MaxSkew, now.Format(time.RFC3339))
	}
	if t.MaxAge > 0 && at.Before(now.Add(-t.MaxAge)) {
		return fmt.Sprintf("want at most %v before now, which is %s (max-event-age)", t.MaxAge, now.Format(time.RFC3339))
	}
	return ""
}
