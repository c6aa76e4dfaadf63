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

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
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

const (
	columns = "eventId,time,websiteId,visitor,event,campaignId,variationId"
	first   = "e1,2026-05-01T12:00:00Z,1,v,view,12,1"
	second  = "e2,2026-05-01T12:00:00Z,1,v,view,12,1"
)

// malformed are files and their expected results: the numbers of stored and
// duplicate lines, then the beginning of each rejection, then the error that
// ended the import.
var malformed = []struct{ name, file, text, verdict string }{
	{"nothing", "e.ndjson", "", "0 stored"},
	{"blank lines", "e.ndjson", "\n \r\n\n", "0 stored"},
	{"no last line end", "e.ndjson", viewLine("a", ""), "1 stored"},
	{"byte order mark", "e.ndjson", "\ufeff" + viewLine("a", "") + "\n", "1 stored"},
	{"CRLF", "e.ndjson", viewLine("a", "") + "\r\n" + viewLine("b", "") + "\r\n", "2 stored"},
	{"UTF-16", "e.ndjson", utf16(viewLine("a", "") + "\n"), "0 stored | 1: not JSON | 2: not JSON"},
	{"an array over lines", "e.ndjson", "[\n" + viewLine("a", "") + ",\n" + viewLine("b", "") + "\n]", "1 stored | 1: not JSON | 2: not JSON | 4: not JSON"},
	{"two on a line", "e.ndjson", viewLine("a", "") + " " + viewLine("b", ""), "0 stored | 1: not JSON"},
	{"half a line", "e.ndjson", viewLine("a", "") + "\n" + viewLine("b", "")[:50], "1 stored | 2: not JSON"},
	{
		"wrong types", "e.ndjson", viewLine("a", `,"city":{}`) + "\n" + viewLine("b", `,"city":["x"]`) + "\n" + viewLine("c", `,"exposures":7`) + "\n" + viewLine("d", `,"exposures":[[]]`) + "\n" + "7",
		"0 stored | 1: city: must be a string, a number or a boolean | 2: city: must be a string, a number or a boolean | 3: exposures: must be a list | 4: exposures: [0]: must be an object | 5: must be a JSON object",
	},
	{"null is not given", "e.ndjson", viewLine("a", `,"city":null`), "1 stored"},
	{"null for what is needed", "e.ndjson", strings.Replace(viewLine("a", ""), `"visitor":"v"`, `"visitor":null`, 1), "0 stored | 1: visitor: missing"},
	{"numbers as texts", "e.ndjson", strings.Replace(viewLine("a", ""), `"websiteId":1`, `"websiteId":"1"`, 1), "1 stored"},
	{"texts as numbers", "e.ndjson", strings.Replace(viewLine("a", ""), `"visitor":"v"`, `"visitor":12`, 1), "1 stored"},
	{
		"huge numbers", "e.ndjson", goalLine("a", `,"value":1e10`) + "\n" + goalLine("b", `,"value":1e400`) + "\n" + goalLine("c", `,"value":`+strings.Repeat("9", 1000)) + "\n" +
			strings.Replace(viewLine("d", ""), `"websiteId":1`, `"websiteId":9223372036854775808`, 1),
		`0 stored | 1: value: "1e10": must be a decimal number such as 12.5, with an absolute value of at most 1000000000 | 2: value: "1e400" | 3: value: "999 | 4: websiteId: "9223372036854775808": must be an integer from 1`,
	},
	{
		"numbers with exponents", "e.ndjson", goalLine("a", `,"value":1.25E+2`) + "\n" + goalLine("b", `,"value":5e-5`) + "\n" + strings.Replace(viewLine("c", ""), `"variationId":1`, `"variationId":1e0`, 1),
		`2 stored | 3: variationId: "1e0": must be an integer from 0`,
	},
	{
		"no numbers", "e.ndjson", goalLine("a", `,"value":NaN`) + "\n" + goalLine("b", `,"value":01`) + "\n" + goalLine("c", `,"value":"NaN"`) + "\n" + goalLine("d", `,"value":"1,5"`) + "\n" + goalLine("e", `,"value":true`),
		`0 stored | 1: not JSON | 2: not JSON | 3: value: "NaN" | 4: value: "1,5" | 5: value: "true"`,
	},
	{"not UTF-8", "e.ndjson", viewLine("a", ",\"city\":\"\xff\"") + "\n" + viewLine("b", ",\"c\xffty\":\"x\"") + "\n" + viewLine("\x80", ""), `0 stored | 1: city: "�": must be UTF-8 | 2: c | 3: `},
	{"a key twice", "e.ndjson", viewLine("a", `,"city":"x","city":"x"`) + "\n" + viewLine("b", `,"c\u0069ty":"x","city":"y"`), "0 stored | 1: city: given twice | 2: city: given twice"},
	{"a thousand unknown keys", "e.ndjson", viewLine("a", strings.Repeat(`,"colour":1`, 1000)), "0 stored | 1: colour: unknown field"},
	{"a thousand exposures", "e.ndjson", viewLine("a", `,"exposures":[`+strings.TrimSuffix(strings.Repeat(`{"campaignId":1,"variationId":0},`, 1000), ",")+"]", "campaignId"), "0 stored | 1: exposures: must have at most 100 elements, has 1000"},
	{"raw NUL", "e.ndjson", "\x00\x00\x00\n" + viewLine("a", ",\"city\":\"\x00\"") + "\n" + viewLine("b", ""), "1 stored | 1: not JSON | 2: not JSON"},
	{"deep", "e.ndjson", strings.Repeat("[", 1<<19) + "\n" + viewLine("a", `,"city":`+strings.Repeat(`{"a":`, 1<<17)+"1"+strings.Repeat("}", 1<<17)) + "\n" + viewLine("b", ""), "1 stored | 1: not JSON | 2: not JSON"},
	{"a long line", "e.ndjson", viewLine("a", `,"city":"`+strings.Repeat("x", 1<<20)+`"`) + "\n" + viewLine("b", ""), "1 stored | 1: longer than 1048576 bytes"},
	{
		"one instant in several zones", "e.ndjson", viewLine("a", "") + "\n" + strings.Replace(viewLine("a", ""), "12:00:00Z", "14:00:00.000+02:00", 1) + "\n" + strings.Replace(viewLine("a", ""), `"2026-05-01T12:00:00Z"`, "1777636800000", 1) + "\n" + strings.Replace(viewLine("b", ""), "12:00:00Z", "12:00:00", 1),
		`3 stored | 4: time: "2026-05-01T12:00:00": must be RFC 3339`,
	},
	{
		"times that are none", "e.ndjson", strings.Replace(viewLine("a", ""), "05-01", "02-30", 1) + "\n" + strings.Replace(viewLine("b", ""), `"2026-05-01T12:00:00Z"`, "1777636800", 1) + "\n" + strings.Replace(viewLine("c", ""), `"2026-05-01T12:00:00Z"`, "99999999999999999999", 1),
		`0 stored | 1: time: "2026-02-30T12:00:00Z" | 2: time: "1777636800": must be at least 31536000000 (1971-01-01) | 3: time: "99999999999999999999"`,
	},

	{"gzip of two members", "e.ndjson.gz", zipped(viewLine("a", "")+"\n") + zipped(viewLine("b", "")), "2 stored"},
	{"gzip that is none", "e.ndjson.gz", viewLine("a", ""), "1 stored"},
	{"gzip by its content", "e.ndjson", zipped(viewLine("a", "")), "1 stored"},
	{"gzip cut in its head", "e.ndjson.gz", zipped(viewLine("a", ""))[:5], "0 stored | error: the file is truncated"},
	{"gzip cut in its end", "e.ndjson.gz", zipped(viewLine("a", "") + "\n" + viewLine("b", ""))[:len(zipped(viewLine("a", "")+"\n"+viewLine("b", "")))-4], "1 stored | error: the file is truncated"},
	{"gzip with a wrong sum", "e.ndjson.gz", zipped(viewLine("a", ""))[:len(zipped(viewLine("a", "")))-8] + "\x00\x00\x00\x00\x00\x00\x00\x00", "0 stored | error: gzip: invalid checksum"},
	{"gzip with a tail", "e.ndjson.gz", zipped(viewLine("a", "")+"\n") + "a tail that is no gzip", "1 stored | error: gzip: invalid header"},
	{"zstd cut", "e.ndjson.zst", zstandard(viewLine("a", "") + "\n" + viewLine("b", ""))[:40], "0 stored | error: the file is truncated"},
	{"zstd that asks for 2 GiB", "e.ndjson.zst", "\x28\xb5\x2f\xfd\x00\xa8\x29\x00\x00hello", "0 stored | error: window size exceeded"},

	{"CSV of nothing", "e.csv", "", "0 stored | error: the file is empty: must have a header"},
	{"CSV of a header", "e.csv", columns + "\n", "0 stored"},
	{"CSV with a byte order mark", "e.csv", "\ufeff" + columns + "\n" + first, "1 stored"},
	{"CSV with CRLF", "e.csv", columns + "\r\n" + first + "\r\n" + second + "\r\n", "2 stored"},
	{"CSV with CR", "e.csv", columns + "\r" + first, "0 stored | error: column \"variationId\\re1\" is not a field of an event"},
	{"CSV in UTF-16", "e.csv", utf16(columns + "\n" + first), "1 stored"},
	{"CSV with line ends in quotes", "e.csv", columns + ",city\n" + first + ",\"a\nb\r\n\"\"c\"\"\"\n" + second + ",\"\n\"\ne3,,,,,,,\n", "2 stored | 7: visitor: missing"},
	{"CSV with a wrong number of cells", "e.csv", columns + "\n" + first + ",more\n" + second + "\nless\n", "1 stored | 2: wrong number of fields | 4: wrong number of fields"},
	{"CSV with a bare quote", "e.csv", columns + "\n" + strings.Replace(first, ",v,", `,v"w,`, 1) + "\n" + second, `1 stored | 2: bare "`},
	{"CSV with an open quote", "e.csv", columns + "\n" + first + "\n\"" + second + "\n", `1 stored | 3: `},
	{"CSV with NUL", "e.csv", columns + "\n\x00\x00\n" + second, "1 stored | 2: wrong number of fields"},
	{"CSV that is not UTF-8", "e.csv", columns + "\n" + strings.Replace(first, ",v,", ",\xe9,", 1), `0 stored | 2: visitor: "�": must be UTF-8`},
	{"CSV in Latin-1 with a header in it", "e.csv", columns + ",st\xe4dt\n" + first + ",x", `0 stored | error: column "st\xe4dt" is not a field of an event`},
	{"CSV with more empty cells", "e.csv", columns + "\n" + first + ",,\n" + second + ",", "2 stored"},
	{"CSV with a long record", "e.csv", columns + "\n" + first + "\n" + strings.Repeat("x", 2<<20), "1 stored | error: line 3: the record is longer than 1048576 bytes"},
	{"CSV with a column twice", "e.csv", columns + ",visitor\n" + first + ",w", `0 stored | error: the file has several columns "visitor"`},

	{"Parquet of nothing", "e.parquet", "", "0 stored | error: not Parquet"},
	{"Parquet that is CSV", "e.parquet", columns + "\n" + first, "0 stored | error: not Parquet"},
}

func TestMalformedFiles(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	for _, c := range malformed {
		t.Run(c.name, func(t *testing.T) {
			must.OK(t, conn.Exec(t.Context(), "TRUNCATE TABLE events"))
			var got []string
			report, err := ingest.ImportFile(t.Context(), w, write(t, c.file, c.text), ingest.Options{
				Reject: func(line int64, reason string) { got = append(got, fmt.Sprintf("%d: %s", line, reason)) },
			})
			counts := fmt.Sprintf("%d stored", report.Rows)
			got = append([]string{counts}, got...)
			if err != nil {
				got = append(got, "error: "+err.Error()[strings.Index(err.Error(), c.file)+len(c.file)+len(": "):])
			}
			judge(t, got, c.verdict)
		})
	}
}

// judge compares the beginnings of verdicts.
func judge(t *testing.T, got []string, verdict string) {
	t.Helper()
	want := strings.Split(verdict, " | ")
	same := len(got) == len(want) && got[0] == want[0]
	for i := 1; same && i < len(want); i++ {
		same = strings.HasPrefix(got[i], want[i])
	}
	if !same {
		t.Errorf("%.900q\nwant %q", got, want)
	}
	for _, one := range got {
		if len(one) > 5_000 {
			t.Errorf("a verdict has %d bytes: %.100q", len(one), one)
		}
	}
}

// TestMalformedBodies parses the uncompressed JSON files as request bodies.
func TestMalformedBodies(t *testing.T) {
	for _, c := range malformed {
		if c.file != "e.ndjson" || strings.HasPrefix(c.text, "\x1f") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			lines, err := readBody(ingest.Body{WebsiteID: 1}, c.text)
			switch { // these have another meaning in a body
			case strings.HasPrefix(c.verdict, "0 stored") && len(lines) == 0:
				if err == nil {
					t.Error("no line and no error")
				}
				return
			case strings.HasPrefix(c.text, "["): // is an array
				if good := strings.Count(c.text, "eventId"); len(lines) != good && (len(lines) > 0 || err == nil) {
					t.Errorf("%d lines, %v", len(lines), err)
				}
				return
			}
			good, got := 0, []string{""}
			for _, line := range lines {
				if line.Reason == "" {
					good++
					continue
				}
				got = append(got, fmt.Sprintf("%d: %v", line.Line, line.Reason))
			}
			got[0] = fmt.Sprintf("%d stored", good)
			judge(t, got, c.verdict)
		})
	}
}

func TestTruncatedParquetFile(t *testing.T) {
	events := make([]parquetEvent, 300)
	for i := range events {
		events[i] = parquetEvent{EventID: fmt.Sprint(i), Time: time.UnixMilli(1_777_777_777_000), WebsiteID: 1, Visitor: "v", Event: "view", CampaignID: 12, VariationID: 1}
	}
	whole := parquetBytes(t, events)
	w := ingest.NewWriter(schematest.OpenMigrated(t), nil)
	step := len(whole) / 40
	for cut := 0; cut < len(whole); cut += step {
		if report, err := ingest.ImportFile(t.Context(), w, write(t, "e.parquet", whole[:cut]), ingest.Options{}); err == nil || report.Rows > 0 {
			t.Fatalf("%d of %d bytes: %+v, %v", cut, len(whole), report, err)
		}
	}
	for at := 7; at < len(whole); at += step { // a changed byte gives an error or other lines, but no panic
		spoilt := whole[:at] + string([]byte{whole[at] ^ 0x55}) + whole[at+1:]
		_, _ = ingest.ImportFile(t.Context(), w, write(t, "e.parquet", spoilt), ingest.Options{DryRun: true})
	}
}

// TestDeeplyNestedBody would overflow the stack of a recursive parser without a
// limit.
func TestDeeplyNestedBody(t *testing.T) {
	for _, text := range []string{"[", `{"a":`} {
		lines, err := readBody(ingest.Body{WebsiteID: 1}, "["+strings.Repeat(text, 64<<20/len(text)))
		if err == nil || !strings.HasPrefix(err.Error(), "not JSON: ") || len(lines) > 0 {
			t.Errorf("%.20q: %d lines, %.200v", text, len(lines), err)
		}
	}
}

// TestMemoryOfLongLine checks the total allocations of the import, an upper bound
// of its memory. They are usually 51 and 13 MiB; a garbage collection empties the
// pools of the decompressor and adds to them.
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
		_, err := ingest.ImportFile(t.Context(), w, path, ingest.Options{Reject: func(line int64, reason string) { got = fmt.Sprintf("%d: %s", line, reason) }})
		if err != nil {
			got = err.Error()
		}
		runtime.ReadMemStats(&after)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > size/2 {
			t.Errorf("%s: %d MiB allocated for a line of %d", name, took>>20, size>>20)
		}
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
