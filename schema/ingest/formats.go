package ingest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// Formats of times, in addition to Go's layouts.
const (
	formatUnix             = "unix"
	formatUnixMilliseconds = "unixMilliseconds"
	formatUnixMicroseconds = "unixMicroseconds"
	formatAge              = "age" // milliseconds before the arrival over HTTP
)

// formatCountry is the format of a country that is a name in English or a code of ISO 3166.
const formatCountry = "country"

// countryCodes has the codes of ISO 3166 by the names of countries in English, in lower case.
var countryCodes = sync.OnceValue(func() map[string]string {
	codes, names := map[string]string{}, display.English.Regions()
	for first := 'A'; first <= 'Z'; first++ {
		for second := 'A'; second <= 'Z'; second++ {
			if region, err := language.ParseRegion(string(first) + string(second)); err == nil && region.IsCountry() {
				codes[strings.ToLower(names.Name(region))] = region.String()
			}
		}
	}
	return codes
})

// isFormat reports whether the format is that of a time with a year, or empty.
func isFormat(format string) bool {
	switch format {
	case "", formatUnix, formatUnixMilliseconds, formatUnixMicroseconds, formatAge, formatCountry:
		return true
	}
	one := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	return one.Format(format) != one.AddDate(1, 0, 0).Format(format)
}

// maxSeconds exceeds the Unix seconds of every accepted time.
const maxSeconds = 1e11

// toUnixMilliseconds converts a time in the format to Unix milliseconds, rounded down. zone is the time zone of a time
// without offset.
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
	case formatUnix: // any number of decimals
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
	t, err := time.ParseInLocation(format, value, zone)
	if err != nil {
		return 0, fmt.Errorf("must have the format %s", format)
	}
	// The parser treats times with the abbreviation of a zone that it does not know, such as CEST, as UTC.
	name, offset := t.Zone()
	known := t.Location() == zone || t.Location() == time.UTC || offset != 0
	if !known && name != "" && name != "GMT" && name != "UTC" && !strings.Contains(format, "07") {
		return 0, fmt.Errorf("the time zone %s is not known: set zone to the place that uses it, such as Europe/Paris",
			name)
	}
	return t.UnixMilli(), nil
}

// timeOnArrival returns the time of an event that arrived over HTTP, in Unix milliseconds. An event without a time
// happened on its arrival. A sender's clock that is ahead of ours, by its time of the request, is corrected. One that
// is behind is believed, because some senders repeat the time of their first attempt in every retry. No event happened
// after its arrival. An invalid time is returned unchanged: validation reports it.
func timeOnArrival(value, sent string, arrived time.Time) string {
	happened := arrived
	if value != "" {
		var err error
		if happened, err = parseTime(value); err != nil {
			return value
		}
		if sentAt, err := parseTime(sent); err == nil && sentAt.After(arrived) {
			happened = happened.Add(arrived.Sub(sentAt))
		}
	}
	if happened.After(arrived) {
		happened = arrived
	}
	return strconv.FormatInt(happened.UnixMilli(), 10)
}
