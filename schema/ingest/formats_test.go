package ingest

import (
	"strings"
	"testing"
	"time"

	"lifthouse/schema/schematest/must"
)

func TestMilliseconds(t *testing.T) {
	berlin := must.Get(time.LoadLocation("Europe/Berlin"))(t)
	const noon = 1777636800000 // 2026-05-01 12:00 UTC
	for _, test := range []struct {
		value, format string
		want          int64
		fault         string
	}{
		{"1777636800123999", formatUnixMicroseconds, noon + 123, ""},
		{"1777636800.5", formatUnixMicroseconds, 0, "must be an integer, because its format is unixMicroseconds"},
		{"1777636800123", formatUnixMilliseconds, noon + 123, ""},
		{"today", formatUnixMilliseconds, 0, "must be an integer, because its format is unixMilliseconds"},
		{"1777636800", formatUnix, noon, ""},
		{"1777636800.1239", formatUnix, noon + 123, ""},
		{"1777636800.7", formatUnix, noon + 700, ""},
		{"1.7776368e9", formatUnix, noon, ""},
		{"1777636800000", formatUnix, 0, "must be a number of seconds"},
		{"NaN", formatUnix, 0, "must be a number of seconds"},
		{"-Inf", formatUnix, 0, "must be a number of seconds"},
		{"1e999", formatUnix, 0, "must be a number of seconds"},
		{"2026-05-01 14:00:00 +0200", "2006-01-02 15:04:05 -0700", noon, ""},
		{"2026-05-01 12:00:00.123+00", "2006-01-02 15:04:05-07", noon + 123, ""},
		{"2026-05-01 14:00:00", "2006-01-02 15:04:05", noon, ""},
		{"2026-05-01 12:00:00 UTC", "2006-01-02 15:04:05 MST", noon, ""},
		{"2026-05-01 12:00:00 GMT", "2006-01-02 15:04:05 MST", noon, ""},
		{"2026-05-01 14:00:00 CEST", "2006-01-02 15:04:05 MST", noon, ""},
		{"2026-05-01 08:00:00 EDT", "2006-01-02 15:04:05 MST", 0, "the time zone EDT is not known: set zone to the place"},
		{"01.05.2026", "2006-01-02", 0, "must have the format 2006-01-02"},
	} {
		got, err := toUnixMilliseconds(test.value, test.format, berlin)
		if test.fault != "" {
			if err == nil || !strings.HasPrefix(err.Error(), test.fault) {
				t.Errorf("%s as %s: %d, %v; want %s", test.value, test.format, got, err, test.fault)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("%s as %s: %d, %v; want %d", test.value, test.format, got, err, test.want)
		}
	}
}

func TestMappingRefusesFormatsWithoutYear(t *testing.T) {
	for format, want := range map[string]bool{
		"unix": true, "unixMilliseconds": true, "unixMicroseconds": true, "02.01.06 15:04": true, time.RFC1123: true,
		"unixmicroseconds": false, "YYYY-MM-DD": false, "15:04": false, "iso8601": false,
	} {
		_, err := ReadMapping(strings.NewReader("fields: {time: {column: t, format: " + `"` + format + `"}}`))
		if (err == nil) != want {
			t.Errorf("%s: %v", format, err)
		}
		if err != nil && !strings.Contains(err.Error(), `fields.time.format "`+format+`": must be unix, unixMilliseconds, unixMicroseconds or a Go layout with a year`) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestInspectFindsFormatsOfTimesAndNumbers(t *testing.T) {
	for _, test := range []struct {
		values string
		want   Column
	}{
		{"1777636800000000 1777636800000001", Column{Type: ColumnTime, Layout: formatUnixMicroseconds}},
		{"1777636800000", Column{Type: ColumnTime}},
		{"1777636800 1777636800.25", Column{Type: ColumnTime, Layout: formatUnix}},
		{"1777636800 1777636800000000", Column{Type: ColumnInteger}},
		{"2026-05-01_12:00:00_+0200", Column{Type: ColumnTime, Layout: "2006-01-02 15:04:05 -0700"}},
		{"2026-05-01_12:00:00.5+00 2026-05-01_12:00:00-03", Column{Type: ColumnTime, Layout: "2006-01-02 15:04:05-07"}},
		{"2026-05-01_12:00:00_UTC", Column{Type: ColumnTime, Layout: "2006-01-02 15:04:05 MST"}},
		{"12,5 3", Column{Type: ColumnNumber, Comma: true}},
		{"12,5 1,234", Column{Type: ColumnNumber, Comma: true}},
		{"0,125", Column{Type: ColumnNumber, Comma: true}},
		{"1,234 12,000", Column{Type: ColumnNumber, Grouped: "1,234"}},
		{"1,234.50 7", Column{Type: ColumnNumber, Grouped: "1,234.50"}},
		{"1.234,50 7", Column{Type: ColumnNumber, Comma: true, Grouped: "1.234,50"}},
		{"1.234 12,5", Column{Type: ColumnNumber, Comma: true, Grouped: "1.234"}},
		{"1.234.567", Column{Type: ColumnNumber, Grouped: "1.234.567"}},
		{"1'234.5", Column{Type: ColumnNumber, Grouped: "1'234.5"}},
		{"1.5 1,5", Column{Type: ColumnText}},
		{"1.234 2.5", Column{Type: ColumnNumber}},
	} {
		values := strings.Fields(test.values)
		for i := range values {
			values[i] = strings.ReplaceAll(values[i], "_", " ")
		}
		got := typeOf(values)
		if got.Type != test.want.Type || got.Layout != test.want.Layout || got.Comma != test.want.Comma || got.Grouped != test.want.Grouped {
			t.Errorf("%q: %+v, want %+v", values, got, test.want)
		}
	}
}
