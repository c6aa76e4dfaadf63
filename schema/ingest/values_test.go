package ingest

import (
	"testing"
	"time"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestUnixSeconds(t *testing.T) {
	for text, want := range map[string]int64{
		"1777636800":         1777636800000,
		"1777636800.1239":    1777636800123, // rounded down, exactly
		"1777636800.5":       1777636800500,
		"1.7776368e9":        1777636800000,
		"-1.5":               -1500,
		"99999999999.999999": 99999999999999,
	} {
		got, err := parseUnixSeconds(text)
		check.OK(t, err, text)
		check.Equal(t, got, want, text)
	}
	for _, text := range []string{"", "1e11", "-1e11", "noon", "NaN", "2026-05-01"} {
		_, err := parseUnixSeconds(text)
		check.That(t, err != nil, "%q is accepted", text)
	}
}

func TestUnknownZones(t *testing.T) {
	paris := must.Get(time.LoadLocation("Europe/Paris"))(t)
	const named, offset = "2006-01-02 15:04 MST", "2006-01-02 15:04 -0700"
	for _, c := range []struct {
		text, format string
		want         string
	}{
		{"2026-05-01 12:00 CEST", named, ""},
		{"2026-05-01 12:00 UTC", named, ""},
		{"2026-05-01 12:00 GMT", named, ""},
		{"2026-05-01 12:00 EDT", named, "EDT"},
		{"2026-05-01 12:00 -0400", offset, ""},
		{"2026-05-01 12:00 +0000", offset, ""},
	} {
		at := must.Get(time.ParseInLocation(c.format, c.text, paris))(t)
		check.Equal(t, unknownZone(at, c.format, paris), c.want, c.text)
	}
}

func TestRoundDigits(t *testing.T) {
	for _, c := range []struct {
		digits string
		kept   int
		want   int64
	}{
		{"125", 3, 125},
		{"125", 2, 13}, // half up
		{"124", 2, 12},
		{"5", 0, 1},
		{"49", 0, 0},
		{"9", -1, 0},
		{"12", 4, 1200},
		{"10000000000000", 14, 10_000_000_000_000},
		{"100000000000000", 14, 10_000_000_000_000},
	} {
		got, isAllowed := roundDigits(c.digits, c.kept)
		check.That(t, isAllowed, "%q, %d is not allowed", c.digits, c.kept)
		check.Equal(t, got, c.want, c.digits)
	}
	for _, digits := range []string{"100000000000001", "10000000000001", "99999999999999"} {
		_, isAllowed := roundDigits(digits, 14)
		check.That(t, !isAllowed, "%q is allowed", digits)
	}
}

func TestCountryCodes(t *testing.T) {
	for text, want := range map[string]bool{"FR": true, "fr": false, "FRA": false, "F": false, "F1": false} {
		check.Equal(t, isCountryCode(text), want, text)
	}
}
