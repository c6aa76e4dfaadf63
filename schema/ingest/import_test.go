package ingest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/klauspost/compress/zstd"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) { schematest.Main(m) }

const twoEvents = `{"eventId":"e1","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v1","event":"view","campaignId":12,"variationId":1}
{"eventId":"e2","time":"2026-05-01T12:05:00Z","websiteId":1,"visitor":"v1","event":"goal","goalId":3,"value":19.9,"campaignId":12,"variationId":1}
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
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
		report := must.Get(ingest.ImportFile(t.Context(), w, write(t, "e.ndjson", text), ingest.Options{}))(t)
		return report
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
		if got := count(t, conn); got != test.want || report.Rows != int64(strings.Count(test.text, "\n")) {
			t.Errorf("%s: %d events, %d rows accepted; want %d events", test.name, got, report.Rows, test.want)
		}
	}
	if value := number(t, conn, "SELECT sum(value) FROM events FINAL WHERE subject_id = 12"); value != 2*199000 {
		t.Errorf("value %d, want 398000, of the first arrivals", value)
	}
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
		if len(reports) != 2 || reports[0].Bytes >= report.TotalBytes || reports[1].Bytes != report.TotalBytes {
			t.Errorf("reports %+v; want TotalBytes only after the last batch", reports)
		}
		if stored := count(t, conn); err != nil || report.Rows != events || stored != events {
			t.Errorf("round %d: %+v, %v; %d events", round, report, err, stored)
		}
	}
}

func TestImportRejectsLinesByNumber(t *testing.T) {
	text := twoEvents +
		"\n" +
		"not json\n" +
		`{"visitor":"v"}` + "\n" +
		`{"eventId":"e3","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v1","event":"view","campaignId":12,"variationId":1,"colour":"red"}` + "\n" +
		`{"visitor":"v","visitor":"w"}` + "\n" +
		`[1]` + "\n" +
		`{"exposures":[{"campaignId":1,"arm":2}]}` + "\n" +
		`{"exposures":[{"campaignId":1,"campaignId":2}]}` + "\n" +
		`{"variationId":0012}` + "\n" +
		"{\"visitor\":\"a\tb\"}\n" +
		`{"visitor":"a\qb"}` + "\n" +
		strings.Repeat("x", 3<<20) + "\n" +
		strings.Repeat("y", 1<<20-1) + "\n" +
		strings.ReplaceAll(strings.SplitAfter(twoEvents, "\n")[0], "e1", "e4")
	var lines []string
	conn := schematest.OpenMigrated(t)
	report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(conn, nil), write(t, "e.ndjson", text), ingest.Options{
		Reject: func(line int64, reason string) { lines = append(lines, fmt.Sprintf("%d %s", line, reason)) },
	})
	if err != nil || report.Rows != 3 || report.Rejected != 12 || report.Lines != 15 {
		t.Errorf("report = %+v, %v; want 3 inserted, 12 of 15 lines rejected", report, err)
	}
	for i, want := range []string{"4 not JSON", "5 websiteId: missing", "6 colour: unknown field", "7 visitor: given twice", "8 must be a JSON object", `9 exposures: [0]: unknown field "arm"`, "10 exposures: [0]: campaignId: given twice", "11 not JSON", "12 not JSON", "13 not JSON", "14 longer than 1048576 bytes", "15 not JSON"} {
		number, detail, _ := strings.Cut(want, " ")
		if i >= len(lines) || !strings.HasPrefix(lines[i], number+" ") || !strings.Contains(lines[i], detail) {
			t.Errorf("rejects = %q, want line %s with %q", lines, number, detail)
		}
	}
}

func TestImportRejectsUnknownWebsites(t *testing.T) {
	report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(schematest.OpenMigrated(t), nil), write(t, "e.ndjson", twoEvents), ingest.Options{
		Owns: func(website int64) bool { return website == 2 },
	})
	if err != nil || report.Rows != 0 || report.Rejected != 2 {
		t.Errorf("report = %+v, %v; want both lines rejected", report, err)
	}
}

func TestImportReadsCompressedFilesAndCSV(t *testing.T) {
	var zipped, packed bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(twoEvents))
	_ = z.Close()
	p := must.Get(zstd.NewWriter(&packed))(t)
	_, _ = p.Write([]byte(twoEvents))
	_ = p.Close()
	csv := "\ufeffeventId,time,websiteId,visitor,event,campaignId,variationId,city\r\ne1,2026-05-01T12:00:00Z,1,v1,view,12,1,\"Paris, the\r\nother\"\r\n"
	for _, test := range []struct {
		name, text string
		want       int
	}{
		{"e.ndjson.gz", zipped.String(), 2},
		{"e.ndjson.zst", packed.String(), 2},
		{"e.csv", csv, 1},
	} {
		conn := schematest.OpenMigrated(t)
		report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(conn, nil), write(t, test.name, test.text), ingest.Options{})
		if err != nil || report.Rows != int64(test.want) {
			t.Errorf("%s: %+v, %v; want %d rows", test.name, report, err, test.want)
		}
	}
}

func TestImportErrors(t *testing.T) {
	w := ingest.NewWriter(schematest.OpenMigrated(t), nil)
	for _, test := range []struct{ name, text, want string }{
		{"e.csv", "colour,size\nred,1\n", `column "colour" is not a field of an event`},
		{"e.csv", "", "the file is empty: must have a header"},
		{"e.csv", "visitor,city\nv,x\nv,\"Paris\n" + strings.Repeat("v,x\n", 200), "line 3: a quote extends the record to line 203"},
		{"e.csv", "visitor,city\nv,x\nv,\"Paris\n" + strings.Repeat("v,x\n", 200) + "\",1\n", "line 3: a quote extends the record"},
		{"e.csv", "visitor,city\n\"v\n2\",\"x\ny\"\nv,\"Paris\n" + strings.Repeat("v,xxxxxxxxxx\n", 200_000), "line 5: the record is longer than 1048576 bytes: check for an unclosed quote"},
		{"e.csv", "visitor,city,visitor\n", `several columns "visitor"`},
		{"e.ndjson.gz", "\x1f\x8bnot really", "gzip"},
	} {
		_, err := ingest.ImportFile(t.Context(), w, write(t, test.name, test.text), ingest.Options{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error = %v, want %q", test.name, err, test.want)
		}
	}
	if _, err := ingest.ImportFile(t.Context(), w, "absent.ndjson", ingest.Options{}); !os.IsNotExist(err) {
		t.Errorf("Import of a missing file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ingest.ImportFile(ctx, w, write(t, "e.ndjson", twoEvents), ingest.Options{}); err == nil {
		t.Error("a canceled context gives no error")
	}
}

const mappedCSV = `when;who;group;spent;lang
01/05/2026 14:00;7;B;12.50;fr
01/05/2026 14:30;8;A;0;de
01/05/2026 14:45;9;C;1;xx
`

const mapping = `
separator: ";"
fields:
  websiteId: {value: 1}
  campaignId: {value: 12}
  visitor: who
  time: {column: when, format: "02/01/2006 15:04", zone: Europe/Paris}
  variationId: {column: group, map: {A: 0, B: 1}}
  country: {column: lang, lookup: {file: countries.csv, key: lang, column: country}, default: ""}
events:
  - fields: {event: {value: view}}
  - when: {column: spent, above: 0}
    fields: {event: {value: goal}, goalId: {value: 3}, value: spent}
`

func TestMappingOfRows(t *testing.T) {
	m := must.Get(ingest.ReadMapping(strings.NewReader(mapping)))(t)
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "countries.csv"), []byte("lang,country\nfr,FR\nde,DE\n"), 0o600))
	conn := schematest.OpenMigrated(t)
	var rejects []string
	report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(conn, nil), write(t, "rows.csv", mappedCSV), ingest.Options{
		Mapping: m, Dir: dir, Reject: func(line int64, reason string) { rejects = append(rejects, fmt.Sprint(line, reason)) },
	})
	if err != nil || report.Rows != 3 || len(rejects) != 1 || !strings.Contains(rejects[0], `4variationId: column group: "C" is not in the map`) {
		t.Fatalf("report = %+v, %v, rejects %q", report, err, rejects)
	}
	var got string
	must.OK(t, conn.QueryRow(t.Context(), "SELECT arrayStringConcat(groupArray(concat(toString(time), ' ', toString(variation_id), ' ', event, ' ', toString(value), ' ', country)), '; ') FROM (SELECT * FROM events ORDER BY time, event)").Scan(&got))
	want := "2026-05-01 12:00:00.000 1 view 0 FR; 2026-05-01 12:00:00.000 1 goal 125000 FR; 2026-05-01 12:30:00.000 0 view 0 DE"
	if got != want {
		t.Errorf("stored %q, want %q", got, want)
	}
}

func TestMappingOfJSONLines(t *testing.T) {
	m := must.Get(ingest.ReadMapping(strings.NewReader(`
fields:
  websiteId: {value: 1}
  campaignId: {value: 12}
  visitor: distinct_id
  time: {column: ts, format: unix}
  variationId: {column: flag, map: {"true": 1, "false": 0}}
  event: {value: view}
`)))(t)
	conn := schematest.OpenMigrated(t)
	report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(conn, nil), write(t, "rows.ndjson", `{"distinct_id":7,"ts":1777777777.5,"flag":true}`+"\n"), ingest.Options{Mapping: m})
	if err != nil || report.Rows != 1 {
		t.Fatalf("report = %+v, %v", report, err)
	}
	var variation int64
	var at string
	if err := conn.QueryRow(t.Context(), "SELECT variation_id, toString(time) FROM events").Scan(&variation, &at); err != nil || variation != 1 || at != "2026-05-03 03:09:37.500" {
		t.Errorf("stored variation %d at %s, %v", variation, at, err)
	}
}

func TestImportOfMissingKeyStoresNothing(t *testing.T) {
	m := must.Get(ingest.ReadMapping(strings.NewReader("fields: {websiteId: websiteId, visitor: visitor, time: time, event: event, campaignId: campaignId, variationId: variationId, country: contry}")))(t)
	conn := schematest.OpenMigrated(t)
	line := `{"time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v1","event":"view","campaignId":12,"variationId":1,"%s":"FR"}` + "\n"
	_, err := ingest.ImportFile(t.Context(), ingest.NewWriter(conn, nil), write(t, "e.ndjson", fmt.Sprintf(line, "country")), ingest.Options{Mapping: m})
	if err == nil || !strings.Contains(err.Error(), `no line has the key "contry"; the lines have campaignId, country, `) || count(t, conn) != 0 {
		t.Errorf("%v, %d rows", err, count(t, conn))
	}
	text := fmt.Sprintf(line, "contry") + fmt.Sprintf(line, "city")
	if report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(conn, nil), write(t, "e.ndjson", text), ingest.Options{Mapping: m}); err != nil || report.Rows != 2 {
		t.Errorf("a key that one line has: %+v, %v", report, err)
	}
}

func TestFailedImportReportsProgress(t *testing.T) {
	text := "eventId,time,websiteId,visitor,event,campaignId,variationId\n"
	var lines strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&lines, "%d,%d,1,v,view,12,1\n", i, 1_777_777_777_000+i)
	}
	text += lines.String() + "\"x\n" + strings.Repeat("1\n", 200)
	report, err := ingest.ImportFile(t.Context(), ingest.NewWriter(schematest.OpenMigrated(t), nil), write(t, "e.csv", text), ingest.Options{})
	if err == nil || !strings.Contains(err.Error(), "line 50002: a quote extends") || !strings.Contains(err.Error(), "(50000 rows were accepted before)") {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestReadMappingReportsAllErrors(t *testing.T) {
	_, err := ingest.ReadMapping(strings.NewReader(`
format: xml
separator: ";;"
fields:
  visitors: who
  visitor: {column: a, value: b}
  country: {column: c, zone: Nowhere}
  city: {value: x, lookup: {file: f}}
events:
  - when: {column: a}
`))
	for _, want := range []string{`format "xml"`, `separator ";;"`, "fields.visitors: unknown field", "fields.visitor: must have one of column, value, rowNumber", "format and zone are only allowed for time", "fields.country.zone", "fields.city.lookup", "events[0].when"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
	if _, err := ingest.ReadMapping(strings.NewReader("feilds: {}")); err == nil || !strings.Contains(err.Error(), "unknown field") {
		t.Errorf("a misspelt key gives %v", err)
	}
}

func TestReadMappingRejectsOneIDForSeveralEvents(t *testing.T) {
	for text, refused := range map[string]bool{
		"fields: {eventId: id}\nevents: [{}, {}]":                  true,
		"fields: {eventId: id}\nevents: [{}]":                      false,
		"fields: {eventId: id}":                                    false,
		"events: [{fields: {eventId: a}}, {fields: {eventId: b}}]": false,
	} {
		_, err := ingest.ReadMapping(strings.NewReader(text))
		if refused != (err != nil && strings.Contains(err.Error(), "fields.eventId: ")) {
			t.Errorf("%s: %v; want an error: %v", text, err, refused)
		}
	}
}
