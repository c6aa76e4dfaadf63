package ingest

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// verdict is the result of parsing a line: its events, or an error.
type verdict struct {
	number int64
	events []fields
	fault  error
}

// verdicts parses a whole file in the same way as an import.
func verdicts(t *testing.T, text []byte, format string) ([]verdict, error) {
	t.Helper()
	lines, err := openLines(bytes.NewReader(text), format, nil, nil)
	if err != nil {
		return nil, err
	}
	var all []verdict
	for {
		parse, err := lines.readPart()
		parse(func(line origin, events []fields, fault error) {
			all = append(all, verdict{line.number, events, fault})
		})
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// written returns an event as a JSON line with Lifthouse's field names.
func written(t *testing.T, event *fields) []byte {
	t.Helper()
	object := map[string]any{}
	for f, value := range event.values {
		if value != "" {
			object[fieldNames[f]] = value
		}
	}
	if event.exposures != nil {
		var list []map[string]string
		for _, e := range event.exposures {
			list = append(list,
				map[string]string{
					"campaignId": e.campaignID, "widgetId": e.widgetID, "experimentId": e.experimentID,
					"variationId": e.variationID,
				})
		}
		object[exposuresName] = list
	}
	return must.Get(json.Marshal(object))(t)
}

// survives fails if an accepted event differs after it is written and parsed again.
func survives(t *testing.T, v verdict) {
	t.Helper()
	if v.fault != nil {
		return
	}
	for i := range v.events {
		rows, err := (&rules{}).validate(nil, &v.events[i], "fallback")
		if err != nil {
			continue
		}
		line := written(t, &v.events[i])
		again, err := new(jsonReader).readEvent(line)
		must.OK(t, err, "%v", line)
		if same, err := (&rules{}).validate(nil, &again, "fallback"); err != nil || !reflect.DeepEqual(same, rows) {
			t.Fatalf("%s: %+v, %v; was %+v", line, same, err, rows)
		}
	}
}

func compressed(text []byte) bool {
	return bytes.HasPrefix(text, gzipMagic) || bytes.HasPrefix(text, zstdMagic)
}

const fuzzedEvent = `{"eventId":"e1","time":"2026-05-01T12:00:00+02:00","websiteId":1,"visitor":"vé","event":"goal","goalId":3,"value":1.25e1,"exposures":[{"campaignId":12,"variationId":1},{"widgetId":"7","variationId":0}]}`

func FuzzImportOfLines(f *testing.F) {
	f.Add([]byte(fuzzedEvent + "\n\n" + fuzzedEvent + "\r\n{}"))
	f.Add([]byte("\ufeff[\n" + `{"visitor":"\ud800\u0000","time":1777777777000}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := verdicts(t, text, formatNDJSON)
		if compressed(text) {
			return
		}
		var want []int64
		number := int64(0)
		for line := range bytes.Lines(bytes.TrimPrefix(text, byteOrder)) {
			number++
			if len(bytes.TrimSpace(line)) > 0 {
				want = append(want, number)
			}
		}
		var got []int64
		for _, v := range all {
			got = append(got, v.number)
			check.That(t, v.fault != nil || len(v.events) == 1, "line %d: %d events and no error", v.number,
				len(v.events))
			survives(t, v)
		}
		must.That(t, err == nil, "lines %v, want %v; %v", got, want, err)
		check.That(t, slices.Equal(got, want), "lines %v, want %v; %v", got, want, err)
	})
}

func FuzzImportOfCSV(f *testing.F) {
	header := "eventId,time,websiteId,visitor,event,campaignId,variationId,city\n"
	f.Add([]byte(header + "e1,2026-05-01T12:00:00Z,1,v,view,12,1,\"a\n\"\"b\"\"\"\n"))
	f.Add([]byte(header + "e1,1777777777000,1,v,view,12,1,x\r\ne2,\"\n\"\n,,,,,,,"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := verdicts(t, text, formatCSV)
		if compressed(text) {
			return
		}
		var bad *csv.ParseError
		records := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, byteOrder)))
		count := -1 // the header
		for {
			_, ended := records.Read()
			if ended != nil && !errors.As(ended, &bad) {
				break
			}
			count++
		}
		check.That(t, err != nil || len(all) == count, "%d verdicts for %d records", len(all), count)
		last := int64(1)
		for _, v := range all {
			check.That(t, v.number > last, "line %d after line %d", v.number, last)
			check.That(t, v.number <= int64(strings.Count(string(text), "\n"))+1, "line %d after line %d", v.number,
				last)
			last = v.number
			survives(t, v)
		}
	})
}

//go:embed testdata/fuzzed.yaml
var fuzzedMapping string

// FuzzMapping checks that no mapping crashes the import of a file, and that each line is either rejected or has at most
// the events of the mapping, of which each that is built has valid text.
func FuzzMapping(f *testing.F) {
	f.Add(fuzzedMapping, []byte("v;t;r;p\nx;1777636800000000;1,5;\"x: a\ny: b\"\ny;1\n"), false)
	f.Add(fuzzedMapping, []byte(`{"v":"x","t":"1777636800000000","r":"2","p":[{"key":"x","value":{"string_value":"b"}},{"key":"y","value":7}]}`), true)
	f.Add("extends: shopify\neach: o\nevents: [{each: a.b, when: {column: [x, header.y], not: [p, q]}, fields: "+
		"{eventId: {hash: [t, x]}, country: {column: c, format: country}, goalId: {column: g, match: '-(.+)'}, time: "+
		"{column: t, sentAt: s}}}]",
		[]byte(`{"o":[{"id":1,"t":"2026-05-01T12:00:00Z","a":[{"b":[{"x":"z","g":"a-b"}]},{"b":{}}]}],"c":"France"}`), true)
	f.Add("encoding: utf-16le\nseparator: \"\\t\"\nfields: {visitor: {rowNumber: true}, time: {column: t, format: \"02.01.2006 MST\", zone: Europe/Berlin}}", []byte("t\x00\n\x00"), false)
	f.Fuzz(func(t *testing.T, text string, content []byte, json bool) {
		if compressed(content) {
			return
		}
		m, err := ReadMapping(strings.NewReader(text))
		if err != nil {
			return
		}
		compiled, err := newMapper(m, 1, func(string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("k,c\na,b\n")), nil
		})
		if err != nil {
			return
		}
		format := formatCSV
		if json {
			format = formatNDJSON
		}
		l, err := openLines(bytes.NewReader(content), format, m, compiled)
		for err == nil {
			var parse parse
			parse, err = l.readPart()
			parse(func(line origin, events []fields, fault error) {
				lists := m.Each != "" ||
					slices.ContainsFunc(m.Events, func(e EventMapping) bool { return e.Each != "" })
				check.That(t, fault != nil || lists || len(events) <= len(m.Events), "line %d has %d events of %d",
					line.number, len(events), len(m.Events))
				for i := range events {
					_, fault := (&rules{}).validate(nil, &events[i], "fallback")
					if fault == nil && !utf8.ValidString(events[i].values[fieldVisitor]) {
						t.Errorf("the visitor %q is accepted", events[i].values[fieldVisitor])
					}
				}
			})
		}
	})
}

// FuzzIntake checks that no body of a request, with any mapping, crashes, and that every event of it is one that can be
// stored: of the website of the source, with valid text, and not after its arrival.
func FuzzIntake(f *testing.F) {
	for _, body := range []string{
		`{"batch":[{"anonymousId":"a","messageId":"m","event":"Order Completed","timestamp":"2026-05-01T12:00:00Z","sentAt":"2026-05-01T14:00:00Z","properties":{"revenue":1e3}}]}`,
		`[{"event_name":"Experiment Viewed","properties_json":"{\"experimentId\":\"x\",\"variationId\":\"\ud800\"}","device_id":"\u0000"}]`,
		`{"visitor":"v","batch":[{"age":-1,"event":"purchase"},{"age":1e300,"event":"experience_impression","variant":"a-b-"},[],null,7]}`,
		`{"refunds":[{"transactions":[{"kind":"refund","status":"success","id":1,"amount":"1"},7]},{}],"note_attributes":[{"name":"lifthouse","value":"v"}]}`,
		"\x1f\x8b", "[[[[[[", `{"batch":{}}`, `{"a":1,"a":2}`,
	} {
		for _, mapping := range ShippedMappings() {
			f.Add(mapping, []byte(body), "orders/create")
		}
	}
	f.Add(fuzzedMapping, []byte(`{"v":"x","t":"1"}`), "")
	arrived := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, mapping string, body []byte, header string) {
		intake, err := NewIntake(mapping, 7, "fuzz", false)
		if err != nil {
			return
		}
		request := &Request{Arrived: arrived, Header: func(string) string { return header }}
		_ = intake.ParseBody(body, request, func(item *Item) {
			check.That(t, (item.Reject == nil || len(item.Events) == 0), "%+v has events", item)
			check.That(t, (!item.Ignored || len(item.Events) == 0), "%+v has events", item)
			for i := range item.Events {
				if e := &item.Events[i]; e.WebsiteID != 7 && !strings.Contains(mapping, "websiteId") ||
					e.Time.After(arrived) || !utf8.ValidString(e.Country+e.City+e.Referrer) {
					t.Errorf("%+v is accepted", e)
				}
			}
		})
	})
}
