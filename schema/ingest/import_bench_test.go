package ingest_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lifthouse/loadgen/population"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// BenchmarkImport imports a file of about IMPORT_EVENTS events, by default 250,000, into an empty store. With
// IMPORT_LINES=1, they have own attributes, and orders properties and lines. It reports events per second and the peak
// memory of the process, including the embedded store.
func BenchmarkImport(b *testing.B) {
	events := 250_000
	if n, err := strconv.Atoi(os.Getenv("IMPORT_EVENTS")); err == nil {
		events = n
	}
	scenario := population.DefaultScenario()
	scenario.Lines = os.Getenv("IMPORT_LINES") != ""
	scenario.SetVisitors(events / 5)
	path := filepath.Join(b.TempDir(), "events.ndjson")
	file := must.Get(os.Create(path))(b)
	sent := must.Get(population.WriteNDJSON(b.Context(), &scenario, file, func(population.Progress) {}))(b)
	must.OK(b, file.Close())
	w := ingest.NewWriter(schematest.OpenMigrated(b), nil)
	started := time.Now()
	report, err := ingest.ImportFile(b.Context(), w, path, ingest.Options{})
	must.That(b, err == nil, "%+v, %v", report, err)
	must.Equal(b, report.Rows, int64(sent.Events), "%+v, %v", report, err)
	b.ReportMetric(0, "ns/op") // there is one import for any b.N
	b.ReportMetric(float64(sent.Events)/time.Since(started).Seconds(), "events/s")
	b.ReportMetric(residentPeak(b), "peak-MiB")
}

// residentPeak returns the peak memory of the process in MiB.
func residentPeak(b *testing.B) float64 {
	b.Helper()
	status := must.Get(os.ReadFile("/proc/self/status"))(b)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib := must.Get(strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64))(b)
			return kib / 1024
		}
	}
	b.Fatal("no VmHWM in /proc/self/status")
	return 0
}
