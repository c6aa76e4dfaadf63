package ingest_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// TestUnstoredLinesAreCountedByCause imports lines with each kind of fault, more than the
// journal keeps, and compares the counts.
func TestUnstoredLinesAreCountedByCause(t *testing.T) {
	conn := schematest.Open(t)
	w, journal := ingest.NewWriter(conn), ingest.NewJournal(conn)
	const good = `{"eventId":"e","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":12,"variationId":1}`
	change := func(from, to string) string { return strings.Replace(good, from, to, 1) }
	lines := map[string]string{
		"":                   good,
		"duplicate":          good,
		"conflict":           change(`"variationId":1`, `"variationId":0`),
		"visitor":            change(`"visitor":"v"`, `"visitor":""`),
		"time":               change("2026-05-01T12:00:00Z", "yesterday"),
		"time in the future": change("2026-05-01", "2098-05-01"),
		"time too long ago":  change("2026-05-01", "1999-05-01"),
		"unknown website":    change(`"websiteId":1`, `"websiteId":2`),
		"unknown field":      change(`"visitor"`, `"visitr"`),
		"not JSON":           "{",
		"exposures":          change(`"campaignId":12,"variationId":1`, `"exposures":[{"campaignId":0,"variationId":1}]`),
		"other":              "[]",
	}
	text := lines[""] + "\n"
	for cause, line := range lines {
		if cause != "" {
			text += strings.Repeat(line+"\n", len(cause))
		}
	}
	text += strings.Repeat("{\n", 1_000)
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	options := ingest.Options{Journal: journal, Owns: func(id int64) bool { return id == 1 }, Times: ingest.Times{MaxAge: 10 * 365 * 24 * time.Hour, MaxSkew: time.Hour, Now: func() time.Time { return now }}}
	if _, err := ingest.Import(t.Context(), w, write(t, "faults.ndjson", text), options); err != nil {
		t.Fatal(err)
	}
	stored, unstored, err := ingest.Received(t.Context(), conn, 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if len(stored) != 1 || stored[0].Accepted != (ingest.Windows{Hour: 1, Day: 1, Week: 1}) || stored[0].Late != stored[0].Accepted {
		t.Errorf("stored are %+v, want one late row", stored)
	}
	got, want := map[string]uint64{}, map[string]uint64{}
	for _, u := range unstored {
		name := u.Cause
		if name == "" {
			name = u.Verdict
		}
		got[name] += u.Lines.Week
	}
	for cause := range lines {
		if cause != "" {
			want[cause] = uint64(len(cause))
		}
	}
	want["not JSON"] += 1_000
	if !maps.Equal(got, want) {
		t.Errorf("counted are\n%v, want\n%v", got, want)
	}
}
