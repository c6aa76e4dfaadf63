package ingest_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestFloatNoiseIsRounded sends amounts that JavaScript computes (3*6.33,
// 0.1+0.2) and half units of the last stored decimal, as a body, CSV, Parquet and
// inbox rows.
func TestFloatNoiseIsRounded(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	imported := func(name, text string) {
		t.Helper()
		report, err := ingest.ImportFile(t.Context(), w, write(t, name, text), ingest.Options{})
		check.That(t, err == nil && report.Rows == 1, "%s: %+v, %v", name, report, err)
	}
	lines, err := readBody(ingest.Body{WebsiteID: 1}, `{"eventId":"body","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"goal","goalId":3,"value":18.990000000000002,"profit":-0.00005,"extraValue":0.30000000000000004}`)
	if err != nil || lines[0].Reason != "" {
		t.Fatal(err, lines)
	}
	must.OK(t, w.WriteEvents(t.Context(), lines[0].Events))
	imported("e.csv", "eventId,time,websiteId,visitor,event,goalId,value,profit,extraValue\ncsv,2026-05-01T12:00:00Z,1,v,goal,3,18.990000000000002,-5e-5,0.30000000000000004\n")
	var file bytes.Buffer
	must.OK(t, parquet.Write(&file, []struct {
		EventID    string    `parquet:"eventId"`
		Time       time.Time `parquet:"time,timestamp(microsecond)"`
		WebsiteID  int64     `parquet:"websiteId"`
		Visitor    string    `parquet:"visitor"`
		Event      string    `parquet:"event"`
		GoalID     int64     `parquet:"goalId"`
		Value      float64   `parquet:"value"`
		Profit     float64   `parquet:"profit"`
		ExtraValue int64     `parquet:"extraValue,decimal(17:18)"`
	}{{"parquet", time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), 1, "v", "goal", 3, 18.990000000000002, -0.00005, 30_000_000_000_000_004}}))
	imported("e.parquet", file.String())
	exec(t, conn, `INSERT INTO events_inbox (event_id, time, website_id, visitor, event, goal_id, value, profit, extra_value)
		VALUES ('inbox', '2026-05-01 12:00:00', 1, 'v', 'goal', 3, 18.990000000000002, '-0.00005', '0.30000000000000004')`)
	move(t, ingest.NewInbox(conn, w), ingest.Moved{Accepted: 1})
	if n := number(t, conn, "SELECT countIf((value, profit, extra_value) = (189900, -1, 3000)) * 10 + count() FROM events"); n != 44 {
		t.Errorf("%d of 4 events have the rounded amounts, %d are stored", n/10, n%10)
	}
}
