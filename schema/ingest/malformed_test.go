package ingest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// viewLine returns an event with more fields, and without the fields of cut.
func viewLine(id, more string, cut ...string) string {
	line := fmt.Sprintf(`{"eventId":%q,"time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":12,"variationId":1%s}`, id, more)
	for _, field := range cut {
		from := strings.Index(line, `"`+field+`":`)
		line = line[:from] + line[from+strings.IndexByte(line[from:], ',')+1:]
	}
	return line
}

func goalLine(id, more string) string {
	return strings.Replace(viewLine(id, `,"goalId":3`+more), `"view"`, `"goal"`, 1)
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func zstandard(text string) string {
	w, _ := zstd.NewWriter(nil)
	return string(w.EncodeAll([]byte(text), nil))
}

// utf16 encodes ASCII as UTF-16 with a byte order mark.
func utf16(text string) string {
	wide := "\xff\xfe"
	for _, b := range []byte(text) {
		wide += string([]byte{b, 0})
	}
	return wide
}

// TestInvalidParquetFiles truncates files at many places, and inverts bytes. A changed byte gives an error or other
// lines, but no panic.
func TestInvalidParquetFiles(t *testing.T) {
	w := ingest.NewWriter(schematest.OpenMigrated(t), nil)
	e := parquetEvent{
		Time: time.UnixMilli(1_777_777_777_000), WebsiteID: 1, Visitor: "v", Event: "view",
		CampaignID: 12, VariationID: 1,
	}
	for _, rows := range []int{1, 300} {
		events := make([]parquetEvent, rows)
		for i := range events {
			events[i] = e
			events[i].EventID = fmt.Sprint(i)
		}
		whole := parquetBytes(t, events)
		for at := 0; at < len(whole); at += max(7, len(whole)/tier.Of(15, 60)) {
			report, err := ingest.ImportFile(t.Context(), w, write(t, "e.parquet", whole[:at]), ingest.Options{})
			must.That(t, err != nil, "%d of %d bytes: %+v, %v", at, len(whole), report, err)
			must.Equal(t, report.Rows, 0, "%d of %d bytes: %+v, %v", at, len(whole), report, err)
			spoilt := whole[:at] + string([]byte{whole[at] ^ 0x55}) + whole[at+1:]
			_, _ = ingest.ImportFile(t.Context(), w, write(t, "e.parquet", spoilt), ingest.Options{DryRun: true})
		}
	}
}

// TestDeeplyNestedBody would overflow the stack of a recursive parser without a limit.
func TestDeeplyNestedBody(t *testing.T) {
	for _, text := range []string{"[", `{"a":`} {
		lines, err := readBody(ingest.Body{WebsiteID: 1}, "["+strings.Repeat(text, 64<<20/len(text)))
		must.That(t, err != nil, "%.20q: %d lines, %.200v", text, len(lines), err)
		check.That(t, strings.HasPrefix(err.Error(), "not JSON: "), "%.20q: %d lines, %.200v", text, len(lines), err)
		check.Equal(t, len(lines), 0, "%.20q: %d lines, %.200v", text, len(lines), err)
	}
}

// TestMemoryOfLongLine checks the total allocations of the import, an upper bound of its memory. They are usually 51
// and 13 MiB; a garbage collection empties the pools of the decompressor and adds to them.
func TestMemoryOfLongLine(t *testing.T) {
	tier.OnlyLong(t)
	const size = 1 << 30
	w := ingest.NewWriter(schematest.OpenMigrated(t), nil)
	for name, want := range map[string]string{
		"e.ndjson.zst": "1: longer than 1048576 bytes",
		"e.csv.zst":    "read header: the record is longer than 1048576 bytes",
	} {
		var bomb bytes.Buffer
		z := must.Get(zstd.NewWriter(&bomb, zstd.WithEncoderLevel(zstd.SpeedFastest)))(t)
		must.Get(io.CopyN(z, endless{}, size))(t)
		must.OK(t, z.Close())
		path := write(t, name, bomb.String())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := ""
		_, err := ingest.ImportFile(t.Context(), w, path,
			ingest.Options{Reject: func(line int64, reason string) { got = fmt.Sprintf("%d: %s", line, reason) }})
		if err != nil {
			got = err.Error()
		}
		runtime.ReadMemStats(&after)
		check.Contains(t, got, want, "%v", name)
		took := after.TotalAlloc - before.TotalAlloc
		check.That(t, took <= size/2, "%s: %d MiB allocated for a line of %d", name, took>>20, size>>20)
	}
}

// endless is a reader of a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestFloatNoiseIsRounded sends amounts that JavaScript computes (3*6.33,
// 0.1+0.2) and half units of the last stored decimal, as a body, CSV, Parquet and
// inbox rows.
func TestFloatNoiseIsRounded(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	imported := func(name, text string) {
		t.Helper()
		report, err := ingest.ImportFile(t.Context(), w, write(t, name, text), ingest.Options{})
		must.That(t, err == nil, "%s: %+v, %v", name, report, err)
		check.Equal(t, report.Rows, 1, "%s: %+v, %v", name, report, err)
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
	}{{
		"parquet", time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), 1, "v", "goal", 3, 18.990000000000002, -0.00005,
		30_000_000_000_000_004,
	}}))
	imported("e.parquet", file.String())
	exec(t, conn, `INSERT INTO events_inbox (event_id, time, website_id, visitor, event, goal_id, value, profit, extra_value)
		VALUES ('inbox', '2026-05-01 12:00:00', 1, 'v', 'goal', 3, 18.990000000000002, '-0.00005', '0.30000000000000004')`)
	move(t, ingest.NewInbox(conn, w), ingest.Moved{Accepted: 1})
	n := number(t, conn, "SELECT countIf((value, profit, extra_value) = (189900, -1, 3000)) * 10 + count() FROM events")
	check.That(t, n == 44, "%d of 4 events have the rounded amounts, %d are stored", n/10, n%10)
}
