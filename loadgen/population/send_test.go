package population_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"lifthouse/loadgen/population"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// TestFileAndStoreAgree inserts events into a store and imports the same events from a file, which must be
// copies of them.
func TestFileAndStoreAgree(t *testing.T) {
	s := population.DefaultScenario()
	s.SetVisitors(1_500)
	s.Traffic.Duplicates = 0.1
	conn := schematest.OpenMigrated(t)
	writer := ingest.NewWriter(conn, nil)
	sent := must.Get(population.InsertScenario(t.Context(), &s, writer, noReport))(t)
	digest := func() (rows, hash uint64) {
		must.OK(t, conn.QueryRow(t.Context(), "SELECT count(), sum(cityHash64(* EXCEPT ingested_at)) FROM events FINAL").Scan(&rows, &hash))
		return rows, hash
	}
	events, want := digest()
	if events == 0 || events >= uint64(sent.Events) || sent.Visitors != 1_500 { //nolint:gosec // a number of events
		t.Fatalf("sent %+v, %d events", sent, events)
	}
	path := filepath.Join(t.TempDir(), "events.ndjson")
	file := must.Get(os.Create(path))(t)
	must.Get(population.WriteNDJSON(t.Context(), &s, file, noReport))(t)
	must.OK(t, file.Close())
	report := must.Get(ingest.ImportFile(t.Context(), writer, path, ingest.Options{Reject: func(line int64, reason string) {
		t.Errorf("line %d: %s", line, reason)
	}}))(t)
	if rows, hash := digest(); report.Rows != int64(sent.Events) || rows != events || hash != want {
		t.Errorf("%+v, %d events; want copies of %d", report, rows, events)
	}
}

// BenchmarkNDJSON measures the generation of JSON lines. The target of 10
// million events per minute is 167,000 per second.
func BenchmarkNDJSON(b *testing.B) {
	s := population.DefaultScenario()
	s.SetVisitors(50_000)
	events := 0
	for b.Loop() {
		p := must.Get(population.WriteNDJSON(b.Context(), &s, io.Discard, noReport))(b)
		events += p.Events
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
