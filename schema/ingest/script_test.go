package ingest_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cockroachdb/datadriven"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/scripts"
)

// TestScripts runs the scripts of testdata/scripts. -rewrite records their outputs. The commands are:
//
//	mapping                          reads the mapping of the following files; without a text, they have none
//	file NAME [show=COLUMNS]         imports the input
//	files NAME [show=…] [in=PREFIX]  imports each line as a file, after the text of file PREFIX
//	beside NAME                      writes the input beside the files
//	events [now=… age=… skew=…]      imports an event per line: FIELD=VALUE; … replace fields of a view
//	bodies [key=KEY]                 reads each line as a body of POST /events for website 1
//	own                              the input is the mapping of the source own
//	source NAME [header=(NAME,VALUE)] [views]
//	                                 reads the input as a body of a source, which arrives at 2026-05-01T12:00:00Z
//
// Lines are templates, whose functions are below, with the escapes of Go in them. What is shown is the number of rows,
// the rejected lines and the error; or the columns of the stored events.
func TestScripts(t *testing.T) {
	s := &script{conn: schematest.OpenMigrated(t), dir: t.TempDir()}
	s.writer = ingest.NewWriter(s.conn, nil)
	s.writer.SetNameOptions(ingest.NameOptions{SaltOf: func(int64) ([]byte, error) { return []byte("salt"), nil }})
	scripts.Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string {
		s.mapping = nil
		return s.run
	})
}

// script is a store, and the mapping of a script.
type script struct {
	conn    driver.Conn
	writer  *ingest.Writer
	dir     string
	mapping *ingest.Mapping
	own     string // mapping of a source
}

// readItems reads the input as the body of a request of a source, and returns a line for each item. Names are shown by
// their keys, and the visitor and the event by the ids whose hashes they are, if the input has them.
func (s *script) readItems(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	mapping, text := d.CmdArgs[0].Key, expand(t, d.Input)
	if mapping == "own" {
		mapping = s.own
	}
	header := map[string]string{}
	for _, arg := range d.CmdArgs {
		if arg.Key == "header" {
			header[strings.ToLower(arg.Vals[0])] = arg.Vals[1]
		}
	}
	ids := map[uint64]string{}
	for _, id := range regexp.MustCompile(`[\w.-]+`).FindAllString(text, -1) {
		ids[schema.HashID(id)] = id
	}
	idOf := func(hash uint64) string { return cmp.Or(ids[hash], "another") }
	names := must.Get(s.writer.Names(t.Context()))(t)
	intake := must.Get(ingest.NewIntake(mapping, 1, d.CmdArgs[0].Key, d.HasArg("views")))(t)
	request := &ingest.Request{
		Arrived: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Names: names,
		Header: func(name string) string { return header[strings.ToLower(name)] },
	}
	var lines []string
	err := intake.ParseBody([]byte(text), request, func(item *ingest.Item) {
		switch {
		case item.Reject != nil:
			lines = append(lines, "rejected: "+shorten(item.Reject.Reason))
		case item.NoVisitor && item.Ignored:
			lines = append(lines, "no visitor: "+item.Name)
		case item.Ignored:
			lines = append(lines, "ignored: "+item.Name)
		}
		for i := range item.Events {
			e := &item.Events[i]
			name := func(kind schema.NameKind, campaign, id int64) string {
				return cmp.Or(names.KeyOf(schema.NamedID{WebsiteID: 1, Kind: kind, CampaignID: campaign, ID: id}),
					fmt.Sprint(id))
			}
			what := name(schema.NameGoal, 0, e.GoalID) + fmt.Sprintf(" of %v", float64(e.Value)/schema.MoneyScale)
			if e.Kind == schema.KindView {
				what = name(schema.NameCampaign, 0, e.SubjectID) + "/" + name(schema.NameVariation, e.SubjectID,
					e.VariationID)
			}
			if e.Currency != "" {
				what += " " + e.Currency
			}
			if e.Revision > 0 {
				what += fmt.Sprintf(" by revision %d", e.Revision)
			}
			if e.Cancelled {
				what += ", cancelled"
			}
			if e.Customer != "" {
				what += ", customer " + e.Customer
			}
			visitor := "none"
			if e.VisitorID != 0 {
				visitor = idOf(e.VisitorID)
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s, visitor %s, event %s, %s %s %s %s %s", e.Kind,
				what, visitor,
				idOf(e.EventID), e.Time.Format("2006-01-02T15:04:05.999Z"), e.Device, e.Browser, e.Country,
				e.UTMSource)))
			details := schema.Details{
				Attributes: e.Details.Attributes, Items: e.Items, Numbers: e.Numbers, Properties: e.Properties,
			}
			if text := details.EncodeDetails(); text != "" {
				lines = append(lines, "  with "+text)
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(item.Dropped)) {
			lines = append(lines, fmt.Sprintf("  dropped: %s (%d)", kind, item.Dropped[kind]))
		}
	})
	if err != nil {
		lines = append(lines, "error: "+shorten(err.Error()))
	}
	return strings.Join(lines, "\n")
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "mapping":
		s.mapping = nil
		if d.Input == "" {
			return ""
		}
		m, err := ingest.ReadMapping(strings.NewReader(expand(t, d.Input)))
		if err != nil {
			return err.Error()
		}
		s.mapping = m
		return "ok"
	case "beside":
		must.OK(t, os.WriteFile(filepath.Join(s.dir, d.CmdArgs[0].Key), []byte(d.Input+"\n"), 0o600))
		return ""
	case "file":
		return s.importFile(t, d, expand(t, d.Input)+"\n", ingest.Options{})
	case "own": // a mapping of a source
		s.own = d.Input
		_, err := ingest.NewIntake(s.own, 1, "own", false)
		return strings.ReplaceAll(fmt.Sprint(err), "<nil>", "ok")
	case "source":
		return s.readItems(t, d)
	}
	var out []string
	for line := range strings.SplitSeq(d.Input, "\n") {
		if d.Cmd != "events" {
			line = unescaped(t, line)
		}
		switch d.Cmd {
		case "files":
			in := ""
			if d.MaybeScanArgs(t, "in", &in) {
				in = string(must.Get(os.ReadFile("testdata/" + in))(t))
			}
			out = append(out, s.importFile(t, d, in+expand(t, line), ingest.Options{}))
		case "events":
			out = append(out, s.event(t, d, line))
		case "bodies":
			b := ingest.Body{WebsiteID: 1}
			d.MaybeScanArgs(t, "key", &b.Key)
			out = append(out, verdictOfBody(b, expand(t, line)))
		default:
			t.Fatalf("%s: no such command", d.Pos)
		}
	}
	return strings.Join(out, "\n")
}

var action = regexp.MustCompile(`\{\{.*?\}\}`)

// unescaped resolves the escapes of Go in a line, outside of the actions of a template.
func unescaped(t *testing.T, line string) string {
	t.Helper()
	var text strings.Builder
	add := func(plain string) {
		text.WriteString(must.Get(strconv.Unquote(`"` + strings.ReplaceAll(plain, `"`, `\"`) + `"`))(t))
	}
	from := 0
	for _, at := range action.FindAllStringIndex(line, -1) {
		add(line[from:at[0]])
		text.WriteString(line[at[0]:at[1]])
		from = at[1]
	}
	add(line[from:])
	return text.String()
}

// expand executes a template.
func expand(t *testing.T, text string) string {
	t.Helper()
	functions := template.FuncMap{
		"view": func(id string, more ...string) string { return viewLine(id, strings.Join(more, "")) }, "goal": goalLine,
		"gzip": zipped, "zstd": zstandard, "utf16": utf16,
		"cut":     func(n int, text string) string { return text[:(len(text)+n)%len(text)] },
		"replace": func(from, to, text string) string { return strings.Replace(text, from, to, 1) },
	}
	return scripts.Expand(t, text, functions)
}

// importFile imports a text as the file of a command. The store is empty afterwards.
func (s *script) importFile(t *testing.T, d *datadriven.TestData, text string, o ingest.Options) string {
	t.Helper()
	name := "e.ndjson"
	if d.Cmd != "events" {
		name = d.CmdArgs[0].Key
	}
	var lines []string
	o.Mapping, o.Dir = s.mapping, s.dir
	o.Reject = func(line int64, reason string) { lines = append(lines, shorten(fmt.Sprintf("%d: %s", line, reason))) }
	path := filepath.Join(s.dir, name)
	must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	report, err := ingest.ImportFile(t.Context(), s.writer, path, o)
	if err != nil {
		lines = append(lines, "error: "+shorten(strings.ReplaceAll(err.Error(), s.dir+"/", "")))
	}
	rows := uint64(0)
	if report.Rows > 0 {
		rows = count(t, s.conn)
	}
	if s.mapping == nil && strings.HasSuffix(name, ".ndjson") && d.Cmd == "files" && !strings.HasPrefix(text, "\x1f") {
		s.compareBody(t, text, report)
	}
	if show, given := d.Arg("show"); given && rows > 0 {
		shown := must.Get(s.conn.Query(t.Context(),
			"SELECT concatWithSeparator(' ', "+strings.Join(show.Vals, ", ")+") FROM events ORDER BY time, event"))(t)
		for shown.Next() {
			var row string
			must.OK(t, shown.Scan(&row))
			lines = append(lines, strings.ReplaceAll(row, "\n", `\n`))
		}
		must.OK(t, shown.Close())
	} else {
		lines = slices.Insert(lines, 0, fmt.Sprintf("%d rows", rows))
	}
	if rows > 0 {
		must.OK(t, s.conn.Exec(t.Context(), "TRUNCATE TABLE events"))
	}
	return strings.Join(lines, " | ")
}

// compareBody reads a file of lines as a body, which accepts the same lines, unless it is an array.
func (s *script) compareBody(t *testing.T, text string, report ingest.Report) {
	t.Helper()
	lines, _ := readBody(ingest.Body{WebsiteID: 1}, text)
	good := int64(0)
	for _, line := range lines {
		if line.Reason == "" {
			good++
		}
	}
	check.That(t, good == report.Lines-report.Rejected || strings.HasPrefix(text, "["),
		"a body of %d lines, the file of %d: %.300q", good, report.Lines-report.Rejected, text)
}

// event imports a view with other fields.
func (s *script) event(t *testing.T, d *datadriven.TestData, changes string) string {
	t.Helper()
	fields := map[string]string{
		"eventId": "e1", "time": "2026-05-01T12:00:00Z", "websiteId": "1", "visitor": "v",
		"event": "view", "campaignId": "12", "variationId": "1",
	}
	for change := range strings.SplitSeq(changes, "; ") {
		name, value, _ := strings.Cut(change, "=")
		fields[name] = expand(t, value)
	}
	line := "{"
	for name, value := range fields {
		if value != "" && !strings.HasPrefix(value, "[") {
			value = `"` + value + `"`
		}
		if value != "" {
			line += fmt.Sprintf("%q:%s,", name, value)
		}
	}
	o := ingest.Options{}
	if d.HasArg("now") {
		var now, age, skew string
		d.ScanArgs(t, "now", &now)
		d.ScanArgs(t, "age", &age)
		d.ScanArgs(t, "skew", &skew)
		at := must.Get(time.Parse(time.RFC3339, now))(t)
		o.Times = ingest.Times{
			Now: func() time.Time { return at }, MaxAge: must.Get(time.ParseDuration(age))(t),
			MaxSkew: must.Get(time.ParseDuration(skew))(t),
		}
	}
	return s.importFile(t, d, strings.TrimSuffix(line, ",")+"}\n", o)
}

func verdictOfBody(b ingest.Body, text string) string {
	var verdicts []string
	lines, err := readBody(b, text)
	if err != nil {
		verdicts = append(verdicts, shorten(err.Error()))
	}
	for _, line := range lines {
		verdict := fmt.Sprintf("%d: %d rows", line.Line, len(line.Events))
		if line.Reason != "" {
			verdict = shorten(fmt.Sprintf("%d: %s", line.Line, line.Reason))
		}
		verdicts = append(verdicts, verdict)
	}
	return strings.Join(verdicts, " | ")
}

// shorten returns the first characters of a text, as it can be in a script.
func shorten(text string) string {
	short := []rune(strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, text), "?"))
	if len(short) > 120 {
		return string(short[:119]) + "…"
	}
	return string(short)
}
