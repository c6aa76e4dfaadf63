package ingest_test

import (
	"fmt"
	"strings"
	"testing"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// TestMappingOfNestedObjects maps the name a.b.c to the region of a view.
func TestMappingOfNestedObjects(t *testing.T) {
	m := must.Get(ingest.ReadMapping(strings.NewReader(`
fields: {websiteId: {value: 1}, campaignId: {value: 12}, variationId: {value: 0}, event: {value: view}, time: {value: "2026-05-01T12:00:00Z"}, visitor: {rowNumber: true},
  region: {column: a.b.c, default: "(none)"}}`)))(t)
	conn := schematest.OpenMigrated(t)
	w := ingest.NewWriter(conn, nil)
	for i, c := range []struct{ file, text, want string }{
		{"e.ndjson", `{"a":{"b":{"c":"x"}}}`, "x"},
		{"e.ndjson", `{"a":{"b":"{\"c\":7}"}}`, "7"},
		{"e.ndjson", `{"a":"{\"b\":{\"c\":true}}"}`, "true"},
		{"e.ndjson", `{"a":{"b.c":"inner"}}`, "inner"},
		{"e.ndjson", `{"a.b":{"c":"dotted"}}`, "dotted"},
		{"e.ndjson", `{"a.b.c":"whole","a":{"b":{"c":"x"}}}`, "whole"},
		{"e.ndjson", `{"a":null}`, "(none)"},
		{"e.ndjson", `{"a":""}`, "(none)"},
		{"e.ndjson", `{"a":{"b":{}}}`, "(none)"},
		{"e.ndjson", `{"a":[{"key":"x"},{"key":"b.c","value":{"string_value":null,"int_value":"7"}},{"key":"b.c","value":"second"}]}`, "7"},
		{"e.ndjson", `{"a":[{"key":"b.c","value":{"double_value":7.5}}]}`, "7.5"},
		{"e.ndjson", `{"a":[{"key":"b.c","value":true}]}`, "true"},
		{"e.ndjson", `{"a":{"b":[{"key":"c","value":"inner"}]}}`, "inner"},
		{"e.ndjson", `{"a":"[{\"key\":\"b.c\",\"value\":8}]"}`, "8"},
		{"e.ndjson", `{"a":"d: 1\nb.c: two: 2\r\nb: 3"}`, "two: 2"},
		{"e.ndjson", `{"a":[]}`, "(none)"},
		{"e.ndjson", `{"a":[{"key":"b.c","value":{"string_value":null}}]}`, "(none)"},
		{"e.ndjson", `{"a":[{"key":"b.c","value":{}}]}`, "(none)"},
		{"e.ndjson", `{"a":[{"key":"b","value":{"c":1}}]}`, "(none)"},
		{"e.ndjson", `{"a":[{"key":"b.c","value":{"c":1}}]}`, "1: a.b.c: must be a string, a number or a boolean"},
		{"e.ndjson", `{"a":[{"name":"b.c","value":1}]}`, "1: a.b.c: in a: must be a JSON object, or a list of objects with key and value"},
		{"e.ndjson", `{"a":[7]}`, "1: a.b.c: in a: must be a JSON object, or a list of objects with key and value"},
		{"e.csv", "a\n" + `"[{""key"":""b.c"",""value"":""x""}]"`, "x"},
		{"e.csv", "a\n" + "\"gift: yes\nb.c: x y\nof z\nempty:\n\"", "x y\nof z"},
		{"e.csv", "a\nb.c:", "(none)"},
		{"e.csv", "a\nhello", "2: a.b.c: not JSON"},
		{"e.ndjson", `{"a":7}`, "1: a.b.c: in a: must be a JSON object"},
		{"e.ndjson", `{"a":"b"}`, "1: a.b.c: in a: not JSON"},
		{"e.ndjson", `{"a":{"b":{"c":[]}}}`, "1: a.b.c: must be a string, a number or a boolean"},
		{"e.csv", "a\n" + `"{""b"":{""c"":""x""}}"`, "x"},
		{"e.csv", "a.b\n" + `"{""c"":""x""}"`, "x"},
		{"e.csv", "a,a.b.c\n{},whole", "whole"},
		{"e.csv", "a,k\n,1", "(none)"},
		{"e.csv", "a\n{", "2: a.b.c: not JSON"},
		{"e.csv", "a\n[1]", "2: a.b.c: must be a JSON object"},
		{"e.csv", "b\nx", `the file has no column "a.b.c"; the columns are b`},
	} {
		got := ""
		report, err := ingest.ImportFile(t.Context(), w, write(t, c.file, c.text+"\n"), ingest.Options{Mapping: m, Reject: func(line int64, reason string) { got = fmt.Sprintf("%d: %s", line, reason) }})
		switch {
		case err != nil:
			got = err.Error()
		case report.Rows == 1:
			must.OK(t, conn.QueryRow(t.Context(), "SELECT region FROM events").Scan(&got))
			must.OK(t, conn.Exec(t.Context(), "TRUNCATE TABLE events"))
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%d, %s: %q, want %q", i, c.text, got, c.want)
		}
	}
}
