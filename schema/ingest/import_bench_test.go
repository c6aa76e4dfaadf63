package ingest_test

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// exported is an event of an exported history.
type exported struct {
	EventID     string `parquet:"eventId"`
	Time        string `parquet:"time"`
	WebsiteID   int64  `parquet:"websiteId"`
	CampaignID  int64  `parquet:"campaignId"`
	VariationID int64  `parquet:"variationId"`
	Visitor     string `parquet:"visitor"`
	Event       string `parquet:"event"`
	GoalID      string `parquet:"goalId"`
	Value       string `parquet:"value"`
	Device      string `parquet:"device"`
	Browser     string `parquet:"browser"`
	Country     string `parquet:"country"`
	Channel     string `parquet:"channel"`
	Referrer    string `parquet:"referrer"`
}

// history generates the events of a month in the order of time. Each visitor has about three events within days, and
// one event in ten is a purchase.
func history(events int, yield func(*exported)) {
	random := rand.New(rand.NewPCG(6, uint64(events))) //nolint:gosec // reproducible
	start := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	step := 30 * 24 * time.Hour / time.Duration(events)
	for i := range events {
		visitor := max(0, i-random.IntN(events/20+1)) / 3
		e := exported{
			EventID: "e" + strconv.Itoa(i), Time: start.Add(step * time.Duration(i)).Format("2006-01-02T15:04:05.000Z"),
			WebsiteID: 1, CampaignID: 12, VariationID: int64(visitor % 2), Visitor: "visitor-" + strconv.Itoa(visitor), Event: "view",
			Device: []string{"mobile", "desktop", "tablet"}[visitor%3], Browser: []string{"chrome", "safari", "firefox"}[visitor%3],
			Country: []string{"FR", "DE", "GB", "US"}[visitor%4], Channel: "organic", Referrer: "https://news.example.com/" + strconv.Itoa(visitor%1000),
		}
		if i%10 == 9 {
			e.Event, e.GoalID, e.Value = "goal", "3", strconv.FormatFloat(float64(random.IntN(20_000))/100, 'f', 2, 64)
		}
		yield(&e)
	}
}

// BenchmarkImport imports a file of IMPORT_EVENTS events, by default 300,000, into an empty store. It reports events
// per second and the peak memory of the process, including the embedded store.
func BenchmarkImport(b *testing.B) {
	events := 300_000
	if n, err := strconv.Atoi(os.Getenv("IMPORT_EVENTS")); err == nil {
		events = n
	}
	for _, format := range []string{"ndjson", "csv", "parquet"} {
		b.Run(format, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "history."+format)
			exportHistory(b, path, events)
			w := ingest.NewWriter(schematest.OpenMigrated(b), nil)
			started := time.Now()
			report, err := ingest.ImportFile(b.Context(), w, path, ingest.Options{})
			must.That(b, err == nil && report.Rows == int64(events), "%+v, %v", report, err)
			b.ReportMetric(0, "ns/op") // there is one import for any b.N
			b.ReportMetric(float64(events)/time.Since(started).Seconds(), "events/s")
			b.ReportMetric(residentPeak(b), "peak-MiB")
		})
	}
}

func exportHistory(b *testing.B, path string, events int) {
	b.Helper()
	file := must.Get(os.Create(path))(b)
	buffered := bufio.NewWriterSize(file, 1<<20)
	switch filepath.Ext(path) {
	case ".ndjson":
		history(events, func(e *exported) {
			_, _ = fmt.Fprintf(buffered, `{"eventId":%q,"time":%q,"websiteId":%d,"campaignId":%d,"variationId":%d,"visitor":%q,"event":%q`,
				e.EventID, e.Time, e.WebsiteID, e.CampaignID, e.VariationID, e.Visitor, e.Event)
			if e.GoalID != "" {
				_, _ = fmt.Fprintf(buffered, `,"goalId":%s,"value":%s`, e.GoalID, e.Value)
			}
			_, _ = fmt.Fprintf(buffered, `,"device":%q,"browser":%q,"country":%q,"channel":%q,"referrer":%q}`+"\n", e.Device, e.Browser, e.Country, e.Channel, e.Referrer)
		})
	case ".csv":
		w := csv.NewWriter(buffered)
		_ = w.Write(strings.Split("eventId,time,websiteId,campaignId,variationId,visitor,event,goalId,value,device,browser,country,channel,referrer", ","))
		history(events, func(e *exported) {
			_ = w.Write([]string{e.EventID, e.Time, strconv.FormatInt(e.WebsiteID, 10), strconv.FormatInt(e.CampaignID, 10), strconv.FormatInt(e.VariationID, 10), e.Visitor, e.Event, e.GoalID, e.Value, e.Device, e.Browser, e.Country, e.Channel, e.Referrer})
		})
		w.Flush()
	case ".parquet":
		w := parquet.NewGenericWriter[exported](buffered, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(1_000_000))
		history(events, func(e *exported) {
			must.Get(w.Write([]exported{*e}))(b)
		})
		must.OK(b, w.Close())
	}
	must.OK(b, buffered.Flush())
	must.OK(b, file.Close())
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
