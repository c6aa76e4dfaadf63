package ingest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"

	"github.com/parquet-go/parquet-go"
)

// draftOf returns the draft for a file with a name and a content.
func draftOf(t *testing.T, name, content string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	check.OK(t, os.WriteFile(path, []byte(content), 0o600))
	return DraftMapping(context.Background(), path, Options{})
}

func TestDraftHasTheColumnsOfAFile(t *testing.T) {
	const head = `# Draft of a mapping of FILE, from its first 2 lines. Each field takes the column after its colon.
# Name a field for the columns that you need, and check with: lifthouse import --dry-run -m MAPPING FILE
# docs/data-in.md shows what a mapping can do: several events in a line, constants, formats of times.
`
	for name, of := range map[string]struct{ content, want string }{
		"orders.csv": {
			"Name;event_id;time;Total;note\n#1;e1;2026-05-01;12,50;\"a\nb\"\n#2;e2;2026-05-02;9;\n",
			`format: csv
separator: ";"
fields:
  time: time # 2026-05-01 | 2026-05-02
  eventId: event_id # e1 | e2
  # FIELD: Name # #1 | #2
  # FIELD: Total # 12,50 | 9
  # FIELD: note # a b
`,
		},
		"events.ndjson": {
			`{"visitor":"v1","Visitor":"w1","order":{"total":1.50,"lines":[{"sku":"x"},{"sku":"y"}]},"empty":[]}` + "\n" +
				`{"visitor":"v2","order":{"total":2e3,"note":"a very long note about nothing"},"gone":null}`,
			`format: ndjson
fields:
  visitor: visitor # v1 | v2
  # FIELD: Visitor # w1
  # FIELD: order.total # 1.50 | 2e3
  # FIELD: order.lines.0.sku # x
  # FIELD: order.note # a very long note about…
  # FIELD: gone # empty
`,
		},
	} {
		got, err := draftOf(t, name, of.content)
		check.OK(t, err, name)
		check.Equal(t, got, strings.Replace(head, "FILE", name, 1)+of.want, name)
	}
}

func TestDraftOfParquet(t *testing.T) {
	type row struct {
		Visitor string `parquet:"visitor"`
		Price   struct {
			Amount float64 `parquet:"amount"`
		} `parquet:"price"`
		Tags []string `parquet:"tags"`
	}
	path := filepath.Join(t.TempDir(), "rows.parquet")
	rows := []row{{Visitor: "a", Tags: []string{"x"}}, {Visitor: "b"}}
	rows[1].Price.Amount = 2.5
	check.OK(t, parquet.WriteFile(path, rows))
	got, err := DraftMapping(context.Background(), path, Options{})
	check.OK(t, err)
	_, fields, _ := strings.Cut(got, "fields:\n")
	check.Equal(t, fields, "  visitor: visitor # a | b\n  # FIELD: price.amount # 0 | 2.5\n", "the fields")
}

// Whatever a column is named, a draft is a mapping, and one in which a field takes the column is a mapping of it.
func TestDraftsAreMappings(t *testing.T) {
	for _, column := range []string{
		"plain", "null", "~", "true", "010", "a: b", "a#b", " lead", "tail ", `say "hi"`, `back\slash`, "a\tb", "- list",
		"{brace", "[list", "*star", "&and", "!bang", "%per cent", "@at", "`tick", "größe", "日本", "a\u2028b", "a.b.0.c",
	} {
		content := `"` + strings.ReplaceAll(column, `"`, `""`) + "\",time\nvalue,2026-05-01T00:00:00Z\n"
		draft, err := draftOf(t, "a.csv", content)
		check.OK(t, err, column)
		_, err = ReadMapping(strings.NewReader(draft))
		check.OK(t, err, draft)
		named := strings.Replace(draft, "  # FIELD:", "  visitor:", 1)
		m, err := ReadMapping(strings.NewReader(named))
		check.OK(t, err, named)
		check.Equal(t, string(m.Fields["visitor"].Column[0]), column, named)
	}
}

// A file without columns, or whose lines are no objects, has no draft.
func TestFilesWithoutADraft(t *testing.T) {
	for _, of := range []struct{ name, content, want string }{
		{"a.csv", "", "the file is empty: must have a header"},
		{"a.ndjson", "", "the first lines have no columns"},
		{"a.ndjson", "[1]\n", "line 1: must be a JSON object in each line"},
		{"a.ndjson", `{"a":1}` + "\n{\"a\":", "line 2: unexpected EOF"},
		{"a.csv", "a,b\n\"1,2\n", "line 1: "},
		{"a.parquet", "PAR1", "not Parquet"},
	} {
		_, err := draftOf(t, of.name, of.content)
		check.Contains(t, fmt.Sprint(err), of.want, of.content)
	}
}

// A text that is not UTF-8 is shown as far as it can be, and its encoding is asked for.
func TestDraftAsksForAnEncoding(t *testing.T) {
	got, err := draftOf(t, "a.csv", "Stra\xdfe,visitor\nx,v1\n")
	check.OK(t, err)
	check.Contains(t, got, "# encoding: windows-1252 # the file is not UTF-8", "the draft")
}
