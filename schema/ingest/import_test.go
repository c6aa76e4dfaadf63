package ingest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) { schematest.Main(m) }

const twoEvents = `{"eventId":"e1","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v1","event":"view","campaignId":12,"variationId":1}
{"eventId":"e2","time":"2026-05-01T12:05:00Z","websiteId":1,"visitor":"v1","event":"goal","goalId":3,"value":19.9,"campaignId":12,"variationId":1}
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := must.WriteFile(t, name, text)
	return path
}

func count(t *testing.T, conn driver.Conn) (rows uint64) {
	t.Helper()
	must.OK(t, conn.QueryRow(t.Context(), "SELECT count() FROM events FINAL").Scan(&rows))
	return rows
}

// TestImportOfCopies checks that an event counts once.
func TestImportOfCopies(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	run := func(text string) ingest.Report {
		t.Helper()
		return must.Get(ingest.ImportFile(t.Context(), w, write(t, "e.ndjson", text), ingest.Options{}))(t)
	}
	for _, test := range []struct {
		name, text string
		want       uint64 // events that the store has afterwards
	}{
		{"first", twoEvents, 2},
		{"again", twoEvents, 2},
		{"twice in a file", twoEvents + twoEvents, 2},
		{"with other content", strings.Replace(twoEvents, "19.9", "20", 1), 2},
		{"for another campaign", strings.ReplaceAll(twoEvents, `"campaignId":12`, `"campaignId":13`), 4},
		{"of another visitor", strings.NewReplacer("v1", "v8").Replace(twoEvents), 6},
		{"of two visitors in a file", strings.NewReplacer("e1", "e9", "e2", "e9").Replace(twoEvents[:strings.Index(twoEvents, "\n")+1] + strings.ReplaceAll(twoEvents, "v1", "v9")), 8},
	} {
		report := run(test.text)
		got := count(t, conn)
		check.That(t, got == test.want && report.Rows == int64(strings.Count(test.text, "\n")),
			"%s: %d events, %d rows accepted; want %d events", test.name, got, report.Rows, test.want)
	}
	value := number(t, conn, "SELECT sum(value) FROM events FINAL WHERE subject_id = 12")
	check.That(t, value == 2*199000, "value %d, want 398000, of the first arrivals", value)
}

// TestImportOfSeveralBatches has more events than a batch and a look-up.
func TestImportOfSeveralBatches(t *testing.T) {
	var text strings.Builder
	const events = 120_000
	for i := range events {
		fmt.Fprintf(&text, `{"eventId":"e%d","time":%d,"websiteId":1,"visitor":"v%d","event":"view","campaignId":12,"variationId":1}`+"\n", i, 1_777_777_777_000+i, i%7_000)
	}
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	path := write(t, "many.ndjson", text.String())
	for round := range 2 {
		var reports []ingest.Report
		report, err := ingest.ImportFile(t.Context(), w, path, ingest.Options{Progress: func(r ingest.Report) { reports = append(reports, r) }})
		check.That(t, len(reports) == 2 && reports[0].Bytes < report.TotalBytes && reports[1].Bytes == report.TotalBytes,
			"reports %+v; want TotalBytes only after the last batch", reports)
		stored := count(t, conn)
		check.That(t, err == nil && report.Rows == events && stored == events, "round %d: %+v, %v; %d events", round, report, err, stored)
	}
}

func TestImportRejectsUnknownWebsites(t *testing.T) {
	report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(schematest.OpenMigrated(t), nil), write(t, "e.ndjson", twoEvents), ingest.Options{
		Owns: func(website int64) bool { return website == 2 },
	})
	check.That(t, err == nil && report.Rows == 0 && report.Rejected == 2, "report = %+v, %v; want both lines rejected", report, err)
}

func TestImportErrors(t *testing.T) {
	w := ingest.NewWriter(schematest.OpenMigrated(t), nil)
	_, err := ingest.ImportFile(t.Context(), w, "absent.ndjson", ingest.Options{})
	check.That(t, os.IsNotExist(err), "Import of a missing file: %v", err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ingest.ImportFile(ctx, w, write(t, "e.ndjson", twoEvents), ingest.Options{})
	check.That(t, err != nil, "a canceled context gives no error")
}

func TestFailedImportReportsProgress(t *testing.T) {
	text := "eventId,time,websiteId,visitor,event,campaignId,variationId\n"
	var lines strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&lines, "%d,%d,1,v,view,12,1\n", i, 1_777_777_777_000+i)
	}
	text += lines.String() + "\"x\n" + strings.Repeat("1\n", 200)
	report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(schematest.OpenMigrated(t), nil), write(t, "e.csv", text), ingest.Options{})
	check.That(t, err != nil && strings.Contains(err.Error(), "line 50002: a quote extends") && strings.Contains(err.Error(), "(50000 rows were accepted before)"),
		"%+v, %v", report, err)
}
