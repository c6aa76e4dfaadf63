package ingest_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

type parquetEvent struct {
	EventID     string    `parquet:"eventId"`
	Time        time.Time `parquet:"time,timestamp(microsecond)"`
	WebsiteID   uint32    `parquet:"websiteId"`
	Visitor     string    `parquet:"visitor,dict"`
	Event       string    `parquet:"event"`
	CampaignID  int64     `parquet:"campaignId"`
	VariationID int32     `parquet:"variationId"`
	GoalID      *int64    `parquet:"goalId,optional"`
	Value       int64     `parquet:"value,decimal(2:18)"`
	Profit      float64   `parquet:"profit"`
	Country     *string   `parquet:"country,optional"`
}

func parquetBytes(t *testing.T, events []parquetEvent) string {
	t.Helper()
	var file bytes.Buffer
	must.OK(t, parquet.Write(&file, events))
	return file.String()
}

// TestImportParquet compares a Parquet file with NDJSON lines of the same events.
func TestImportParquet(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 7_000_000, time.UTC)
	goal, country := int64(3), "FR"
	events := []parquetEvent{
		{EventID: "e1", Time: at, WebsiteID: 1, Visitor: "v1", Event: "view", CampaignID: 12, VariationID: 1, GoalID: nil, Value: 0, Profit: 0, Country: &country},
		{EventID: "e2", Time: at.Add(time.Minute), WebsiteID: 1, Visitor: "v1", Event: "goal", CampaignID: 12, VariationID: 1, GoalID: &goal, Value: -1990, Profit: 0.0001, Country: nil},
		{EventID: "e3", Time: at, WebsiteID: 1, Visitor: "", Event: "view", CampaignID: 12, VariationID: 1, GoalID: nil, Value: 0, Profit: 0, Country: nil},
	}
	for range 600 { // more rows than one read
		events = append(events, events[0])
	}
	const lines = `{"eventId":"e1","time":"2026-05-01T12:00:00.007Z","websiteId":1,"visitor":"v1","event":"view","campaignId":12,"variationId":1,"country":"FR"}
{"eventId":"e2","time":"2026-05-01T12:01:00.007Z","websiteId":1,"visitor":"v1","event":"goal","campaignId":12,"variationId":1,"goalId":3,"value":-19.90,"profit":0.0001}
`
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	var rejected []string
	report, err := ingest.ImportFile(t.Context(), w, write(t, "events.parquet", parquetBytes(t, events)), ingest.Options{Reject: func(_ int64, reason string) { rejected = append(rejected, reason) }})
	check.That(t, err == nil && report.Rows == 602 && report.Lines == 603 && report.Bytes == report.TotalBytes, "%+v, %v", report, err)
	check.That(t, len(rejected) == 1 && strings.HasPrefix(rejected[0], "visitor: missing"), "rejected: %q", rejected)
	report, err = ingest.ImportFile(t.Context(), w, "-", ingest.Options{Input: strings.NewReader(lines)})
	stored := count(t, conn)
	check.That(t, err == nil && report.Rows == 2 && stored == 2, "the same as lines: %+v, %v; %d events, want 2", report, err, stored)
}
