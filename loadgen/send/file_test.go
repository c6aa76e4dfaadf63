package send_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"lifthouse/loadgen/population"
	"lifthouse/loadgen/send"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

func noReport(send.Progress) {}

// TestFormatsAgree inserts events into a store and imports the same events from files of each format, which
// must be copies of them.
func TestFormatsAgree(t *testing.T) {
	s := population.DefaultScenario()
	s.SetVisitors(1_500)
	s.Traffic.Duplicates = 0.1
	conn := schematest.OpenMigrated(t)
	writer := ingest.NewWriter(conn, nil)
	sent, err := send.InsertScenario(t.Context(), &s, writer, noReport)
	if err != nil {
		t.Fatal(err)
	}
	digest := func() (rows, hash uint64) {
		if err := conn.QueryRow(t.Context(), "SELECT count(), sum(cityHash64(* EXCEPT ingested_at)) FROM events FINAL").Scan(&rows, &hash); err != nil {
			t.Fatal(err)
		}
		return rows, hash
	}
	events, want := digest()
	if events == 0 || events >= uint64(sent.Events) || sent.Visitors != 1_500 { //nolint:gosec // a number of events
		t.Fatalf("sent %+v, %d events", sent, events)
	}
	for _, name := range []string{"events.ndjson", "events.ndjson.gz", "events.ndjson.zst", "events.parquet"} {
		path := filepath.Join(t.TempDir(), name)
		if _, err := send.WriteFile(t.Context(), &s, path, nil, noReport); err != nil {
			t.Fatal(err)
		}
		report, err := ingest.ImportFile(t.Context(), writer, path, ingest.Options{Reject: func(line int64, reason string) {
			t.Errorf("%s: line %d: %s", name, line, reason)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if rows, hash := digest(); report.Rows != int64(sent.Events) || rows != events || hash != want {
			t.Errorf("%s: %+v, %d events; want copies of %d", name, report, rows, events)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkNDJSON measures the generation of JSON lines. The target of 10
// million events per minute is 167,000 per second.
func BenchmarkNDJSON(b *testing.B) {
	s := population.DefaultScenario()
	s.SetVisitors(50_000)
	var bytes int64
	events := 0
	for b.Loop() {
		p, err := send.WriteNDJSON(b.Context(), &s, io.Discard, noReport)
		if err != nil {
			b.Fatal(err)
		}
		events, bytes = events+p.Events, p.Bytes
	}
	b.SetBytes(bytes)
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
