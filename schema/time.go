package schema

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rfc3339 matches RFC 3339 times. The standard parser also accepts offsets of 24 hours, hours of one digit and decimal
// commas.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseTime parses an RFC 3339 time with any number of decimals. T and Z may be lower case, as section 5.6 of RFC 3339
// allows.
func ParseTime(text string) (time.Time, error) {
	if !rfc3339.MatchString(text) {
		return time.Time{}, fmt.Errorf("invalid time %q: must be RFC 3339 with an offset (2026-05-01T00:00:00Z)", text)
	}
	return time.Parse(time.RFC3339Nano, strings.ToUpper(text))
}

// FirstTime and EndOfTime bound the years 1970 to 2199, which the time columns store and requests may name. EndOfTime
// is the first instant after them.
var (
	FirstTime = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	EndOfTime = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// IsStorable reports whether a time is in the years 1970 to 2199 in UTC.
func IsStorable(t time.Time) bool { return !t.Before(FirstTime) && t.Before(EndOfTime) }

// LaterTime returns the later of two times.
func LaterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// ParseDuration is like time.ParseDuration, and also accepts a whole number of days, such as 30d.
func ParseDuration(text string) (time.Duration, error) {
	days, inDays := strings.CutSuffix(text, "d")
	if !inDays {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16) // 16 bits of days do not overflow a duration
	if err != nil {
		return 0, fmt.Errorf("invalid duration %q: must be a whole number of days, at most 65535d", text)
	}
	return time.Duration(n) * 24 * time.Hour, nil //nolint:gosec // 16 bits
}

// Repeat does a task at once and then at each interval, until the context ends. It logs errors, and goes on.
func Repeat(ctx context.Context, every time.Duration, task string, do func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, task+" failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// LoadZone returns the time zone with a name of the IANA database. It refuses other files in the folder of the
// database, such as localtime: they differ between machines, or count leap seconds.
func LoadZone(name string) (*time.Location, error) {
	first, _, _ := strings.Cut(name, "/")
	if slices.Contains([]string{"Local", "localtime", "posix", "posixrules", "right", "Factory"}, first) {
		return nil, fmt.Errorf("unknown time zone %s", name)
	}
	return time.LoadLocation(name)
}
