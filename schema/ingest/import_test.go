package ingest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/parquet-go/parquet-go"
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
		check.Equal(t, got, test.want, "%s: %d events, %d rows accepted; want %d events", test.name, got, report.Rows,
			test.want)
		check.Equal(t, report.Rows, int64(strings.Count(test.text, "\n")),
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
		report, err := ingest.ImportFile(t.Context(), w, path,
			ingest.Options{Progress: func(r ingest.Report) { reports = append(reports, r) }})
		must.Equal(t, len(reports), 2, "reports %+v; want TotalBytes only after the last batch", reports)
		check.That(t, reports[0].Bytes < report.TotalBytes, "reports %+v; want TotalBytes only after the last batch",
			reports)
		check.Equal(t, reports[1].Bytes, report.TotalBytes, "reports %+v; want TotalBytes only after the last batch",
			reports)
		stored := count(t, conn)
		must.That(t, err == nil, "round %d: %+v, %v; %d events", round, report, err, stored)
		check.Equal(t, report.Rows, events, "round %d: %+v, %v; %d events", round, report, err, stored)
		check.Equal(t, stored, events, "round %d: %+v, %v; %d events", round, report, err, stored)
	}
}

func TestImportRejectsUnknownWebsites(t *testing.T) {
	report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(schematest.OpenMigrated(t), nil),
		write(t, "e.ndjson", twoEvents), ingest.Options{
			Owns: func(website int64) bool { return website == 2 },
		})
	must.That(t, err == nil, "report = %+v, %v; want both lines rejected", report, err)
	check.Equal(t, report.Rows, 0, "report = %+v, %v; want both lines rejected", report, err)
	check.Equal(t, report.Rejected, 2, "report = %+v, %v; want both lines rejected", report, err)
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
	report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(schematest.OpenMigrated(t), nil),
		write(t, "e.csv", text), ingest.Options{})
	must.That(t, err != nil, "%+v, %v", report, err)
	check.Contains(t, err.Error(), "line 50002: a quote extends", "%+v, %v", report, err)
	check.Contains(t, err.Error(), "(50000 rows were accepted before)", "%+v, %v", report, err)
}

// TestCopyEvents copies random events from an embedded store to a server and back, twice each. The oracle is the first
// store.
func TestCopyEvents(t *testing.T) {
	tier.OnlyLong(t)
	r := rand.New(rand.NewPCG(61, 0))
	from := schematest.OpenMigrated(t)
	w := ingest.NewWriter(from, nil)
	for visitor := range uint64(tier.Of(3, 80)) {
		for _, e := range arrivals(r, visitor) { // one by one, so that the order of their arrival counts
			must.OK(t, w.WriteEvents(t.Context(), []schema.Event{e}))
		}
	}
	want := storedRows(t, from)
	server := schematest.SharedServer(t)
	for i := range 3 {
		to := schematest.OpenMigrated(t)
		if i%2 == 0 {
			to = server.OpenMigrated(t)
		}
		for range 2 {
			copied, err := ingest.CopyEvents(t.Context(), ingest.NewWriter(to, nil), from, func(done, total uint64) {
				check.That(t, done <= total, "%d of %d events", done, total)
			})
			must.That(t, err == nil, "%d copied, want %d events; %v", copied, len(want), err)
			must.That(t, copied >= uint64(len(want)), "%d copied, want %d events; %v", copied, len(want), err)
			compareRows(t, storedRows(t, to), want)
		}
		from = to
	}
}

// readBody returns all lines of a body.
func readBody(b ingest.Body, text string) (lines []ingest.Line, err error) {
	err = b.ParseLines([]byte(text), func(line ingest.Line) error {
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return lines, nil
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"eventId":"e","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"goal","goalId":1}`))
	f.Add([]byte(`[{},[],"",null,{"exposures":[{}]}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, err := readBody(ingest.Body{WebsiteID: 1, Key: "k"}, string(body))
		if err != nil {
			return
		}
		for _, line := range lines {
			check.That(t, (line.Reason == "") == (len(line.Events) > 0), "line %d: %d rows, fault %v", line.Line,
				len(line.Events), line.Reason)
			for i := range line.Events {
				check.Equal(t, line.Events[i].WebsiteID, 1, "line %d: website", line.Line)
			}
		}
	})
}

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
	report, err := ingest.ImportFile(t.Context(), w, write(t, "events.parquet", parquetBytes(t, events)),
		ingest.Options{Reject: func(_ int64, reason string) { rejected = append(rejected, reason) }})
	must.That(t, err == nil, "%+v, %v", report, err)
	check.Equal(t, report.Rows, 602, "%+v, %v", report, err)
	check.Equal(t, report.Lines, 603, "%+v, %v", report, err)
	check.Equal(t, report.Bytes, report.TotalBytes, "%+v, %v", report, err)
	must.Equal(t, len(rejected), 1, "rejected: %q", rejected)
	check.That(t, strings.HasPrefix(rejected[0], "visitor: missing"), "rejected: %q", rejected)
	report, err = ingest.ImportFile(t.Context(), w, "-", ingest.Options{Input: strings.NewReader(lines)})
	stored := count(t, conn)
	must.That(t, err == nil, "the same as lines: %+v, %v; %d events, want 2", report, err, stored)
	check.Equal(t, report.Rows, 2, "the same as lines: %+v, %v; %d events, want 2", report, err, stored)
	check.Equal(t, stored, 2, "the same as lines: %+v, %v; %d events, want 2", report, err, stored)
}

func TestImportOfStreams(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	pipe := filepath.Join(t.TempDir(), "pipe.ndjson")
	must.OK(t, syscall.Mkfifo(pipe, 0o600))
	go func() {
		if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil {
			_, _ = io.WriteString(f, twoEvents)
			_ = f.Close()
		}
	}()
	report, err := ingest.ImportFile(t.Context(), w, pipe, ingest.Options{})
	must.That(t, err == nil, "a pipe: %+v, %v; want 2 rows", report, err)
	check.Equal(t, report.Rows, 2, "a pipe: %+v, %v; want 2 rows", report, err)
	report, err = ingest.ImportFile(t.Context(), w, "-",
		ingest.Options{Input: io.MultiReader(strings.NewReader(twoEvents))})
	stored := count(t, conn)
	must.That(t, err == nil, "standard input: %+v, %v, %d events; want 2", report, err, stored)
	check.Equal(t, report.Rows, 2, "standard input: %+v, %v, %d events; want 2", report, err, stored)
	check.Equal(t, stored, 2, "standard input: %+v, %v, %d events; want 2", report, err, stored)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := ingest.ImportFile(ctx, w, pipe, ingest.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a pipe without a writer: %v", err)
	}
	silent, end, err := os.Pipe()
	must.OK(t, err)
	defer func() { _, _ = end.Close(), silent.Close() }()
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := ingest.ImportFile(ctx, w, "-", ingest.Options{Input: silent}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("a silent standard input: %v", err)
	}
}

func TestImportRejectsPathsOfTheProcess(t *testing.T) {
	w := ingest.NewWriter(schematest.OpenMigrated(t), nil)
	for path, want := range map[string]string{
		"/dev/stdin":        "or - for standard input",
		"/dev/fd/0":         "or - for standard input",
		"/tmp/../dev/fd/0":  "or - for standard input",
		"/proc/self/fd/0":   "or - for standard input",
		t.TempDir():         "is a directory: must be a file",
		"-":                 "there is no standard input",
		"/dev/absent.jsonl": "or - for standard input",
	} {
		_, err := ingest.ImportFile(t.Context(), w, path, ingest.Options{})
		must.That(t, err != nil, "%s: %v, want %q", path, err, want)
		check.Contains(t, err.Error(), want, "%s: %v, want %q", path, err, want)
	}
}

// TestCompressedFileHasSameIDs imports lines without ids.
func TestCompressedFileHasSameIDs(t *testing.T) {
	plain := strings.NewReplacer(`"eventId":"e1",`, "", `"eventId":"e2",`, "").Replace(twoEvents)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(plain))
	_ = z.Close()
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	for _, test := range []struct {
		name, text string
		want       uint64 // events that the store has afterwards
	}{
		{"e.ndjson", plain, 2},
		{"e.ndjson.gz", zipped.String(), 2},
		{"grown.ndjson", plain + "\n", 4},
	} {
		report, err := ingest.ImportFile(t.Context(), w, write(t, test.name, test.text), ingest.Options{})
		stored := count(t, conn)
		must.That(t, err == nil, "%s: %+v, %v; %d events, want %d", test.name, report, err, stored, test.want)
		check.Equal(t, report.Rows, 2, "%s: %+v, %v; %d events, want %d", test.name, report, err, stored, test.want)
		check.Equal(t, stored, test.want, "%s: %+v, %v; %d events, want %d", test.name, report, err, stored, test.want)
	}
}
