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

// TestFormatsAgree inserts events into a store and imports the same events from
// files of each format. All imported rows must be duplicates with the same
// content.
func TestFormatsAgree(t *testing.T) {
	s := population.DefaultScenario()
	s.SetVisitors(1_500)
	s.Traffic.Duplicates = 0.1
	conn := schematest.Open(t)
	writer := ingest.NewWriter(conn)
	sent, stored, err := send.Insert(t.Context(), &s, writer, noReport)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Duplicates == 0 || stored.Conflicts != 0 || stored.Inserted+stored.Duplicates != sent.Events || sent.Visitors != 1_500 {
		t.Fatalf("sent %+v, stored %+v", sent, stored)
	}
	for _, name := range []string{"events.ndjson", "events.ndjson.gz", "events.ndjson.zst", "events.parquet"} {
		path := filepath.Join(t.TempDir(), name)
		if _, err := send.WriteFile(t.Context(), &s, path, nil, noReport); err != nil {
			t.Fatal(err)
		}
		report, err := ingest.Import(t.Context(), writer, path, ingest.Options{Reject: func(line int64, reason string) {
			t.Errorf("%s: line %d: %s", name, line, reason)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if report.Inserted != 0 || report.Conflicts != 0 || report.Duplicates != sent.Events {
			t.Errorf("%s: %+v, want only duplicates, %d of them", name, report, sent.Events)
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
