package ingest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Formats of times, in addition to Go's layouts.
const (
	formatUnix             = "unix"
	formatUnixMilliseconds = "unixMilliseconds"
	formatUnixMicroseconds = "unixMicroseconds"
)

// isFormat reports whether the format is that of a time with a year, or empty.
func isFormat(format string) bool {
	switch format {
	case "", formatUnix, formatUnixMilliseconds, formatUnixMicroseconds:
		return true
	}
	one := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	return one.Format(format) != one.AddDate(1, 0, 0).Format(format)
}

// toUnixMilliseconds converts a time in the format to Unix milliseconds, rounded down. zone
// is the time zone of a time without offset.
func toUnixMilliseconds(value, format string, zone *time.Location) (int64, error) {
	switch format {
	case formatUnixMilliseconds, formatUnixMicroseconds:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("must be an integer, because its format is %s", format)
		}
		if format == formatUnixMicroseconds {
			return time.UnixMicro(n).UnixMilli(), nil
		}
		return n, nil
	case formatUnix:
		return secondsToMilliseconds(value)
	}
	t, err := time.ParseInLocation(format, value, zone)
	if err != nil {
		return 0, fmt.Errorf("must have the format %s", format)
	}
	if name, invented := inventedZone(t, zone); invented && !strings.Contains(format, "07") {
		return 0, fmt.Errorf("the time zone %s is not known: set zone to the place that uses it, such as Europe/Paris", name)
	}
	return t.UnixMilli(), nil
}

// inventedZone returns the abbreviation of a time's zone, such as CEST, and reports whether
// the parser did not know it. The parser treats such times as UTC.
func inventedZone(t time.Time, zone *time.Location) (name string, invented bool) {
	name, offset := t.Zone()
	known := t.Location() == zone || t.Location() == time.UTC || offset != 0
	return name, !known && name != "" && name != "GMT" && name != "UTC"
}

// maxSeconds exceeds the Unix seconds of every accepted time.
const maxSeconds = 1e11

// secondsToMilliseconds reads seconds with any number of decimals.
func secondsToMilliseconds(value string) (int64, error) {
	whole, decimals, _ := strings.Cut(value, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err == nil && seconds >= 0 && seconds < maxSeconds && strings.Trim(decimals, "0123456789") == "" {
		thousandths, _ := strconv.ParseInt((decimals + "000")[:3], 10, 64)
		return seconds*1000 + thousandths, nil
	}
	number, err := strconv.ParseFloat(value, 64) // 1.7776368e9
	if err != nil || !(number > -maxSeconds && number < maxSeconds) {
		return 0, errors.New("must be a number of seconds, because its format is unix")
	}
	return int64(number * 1000), nil
}
