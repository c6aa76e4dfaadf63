package tables

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestColumnsOfTheContract compares all columns with those of the contract. Columns may only be appended, each as a new
// last line of its table; anything else needs another Contract and a major release.
func TestColumnsOfTheContract(t *testing.T) {
	var text strings.Builder
	for i := range All {
		fmt.Fprintf(&text, "%s: %s\n", All[i].Name, All[i].Grain)
		for _, c := range All[i].Columns {
			fmt.Fprintf(&text, "  %s %s", c.Name, c.Type)
			if c.Null != "" {
				text.WriteString(" null")
			}
			text.WriteString("\n")
		}
	}
	golden := must.Get(os.ReadFile(fmt.Sprintf("testdata/contract%d.txt", Contract)))(t)
	check.Equal(t, text.String(), string(golden), "columns")
}

// TestColumnsAreDescribed checks that each column has a name of its own, a meaning, and a null where it can be null.
func TestColumnsAreDescribed(t *testing.T) {
	keys := fieldsOf(reflect.TypeFor[subjectKey]())
	for i := range All {
		seen := map[string]bool{}
		for k, c := range All[i].Columns {
			name := All[i].Name + "." + c.Name
			check.That(t, !seen[c.Name], "%s stands twice", name)
			check.That(t, c.Meaning != "", "%s has no meaning", name)
			seen[c.Name] = true
			if k < len(keys) {
				check.Equal(t, c, keys[k].Column, "key column of "+All[i].Name)
			}
		}
	}
	for _, row := range []reflect.Type{
		reflect.TypeFor[experimentRow](), reflect.TypeFor[resultRow](), reflect.TypeFor[lookRow](),
		reflect.TypeFor[decisionRow](), reflect.TypeFor[worthRow](), reflect.TypeFor[seriesRow](),
		reflect.TypeFor[segmentRow](),
	} {
		for _, f := range fieldsOf(row) {
			isPointer := row.FieldByIndex(f.index).Type.Kind() == reflect.Pointer
			check.Equal(t, f.Null != "", isPointer, fmt.Sprint(row, ".", f.Name, " can be null"))
		}
	}
}

// TestFilesWithoutRows checks that a table without rows is a valid file of each format.
func TestFilesWithoutRows(t *testing.T) {
	fields := fieldsOf(reflect.TypeFor[seriesRow]())
	for format, want := range map[Format]string{JSON: "[]\n", NDJSON: "", CSV: "websiteId,domain,kind,subjectId,"} {
		var file bytes.Buffer
		must.OK(t, newWriter[seriesRow](&file, format, fields).close())
		check.That(t, strings.HasPrefix(file.String(), want), "%s: %q", format, file.String())
		check.That(t, want != "" || file.Len() == 0, "%s: %q", format, file.String())
	}
	var file bytes.Buffer
	must.OK(t, newWriter[seriesRow](&file, Parquet, fields).close())
	read := must.Get(parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len())))(t)
	check.Equal(t, read.NumRows(), 0, "rows")
	check.Equal(t, len(read.Schema().Columns()), len(fields), "columns")
}

// TestDays checks the days of the catalogue and of times, also before 1970.
func TestDays(t *testing.T) {
	check.Equal(t, parseDay("2026-03-02").String(), "2026-03-02", "parsed")
	check.That(t, parseDay("") == nil, "no day")
	check.Equal(t, Day(0).String(), "1970-01-01", "the first day")
}

// columnsInWords returns the section of docs/tables.md about the columns.
func columnsInWords() string {
	var text strings.Builder
	text.WriteString("All tables begin with the key:\n\n| column | type | meaning | null |\n|---|---|---|---|\n")
	keys := len(fieldsOf(reflect.TypeFor[subjectKey]()))
	write := func(columns []Column) {
		for _, c := range columns {
			kind := string(c.Type)
			if c.Unit != "" {
				kind += ", " + c.Unit
			}
			fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", c.Name, kind, c.Meaning, c.Null)
		}
	}
	write(All[0].Columns[:keys])
	for i := range All {
		fmt.Fprintf(&text, "\n### %s\n\nA row is %s.\n\n| column | type | meaning | null |\n|---|---|---|---|\n",
			All[i].Name, All[i].Grain)
		write(All[i].Columns[keys:])
	}
	return text.String()
}

var rewrite = flag.Bool("rewrite", false, "write the columns to docs/tables.md")

// TestColumnsAreDocumented compares the columns with docs/tables.md. With -rewrite, it writes them.
func TestColumnsAreDocumented(t *testing.T) {
	const path, title = "../../docs/tables.md", "\n## Columns\n\n"
	document := string(must.Get(os.ReadFile(path))(t))
	before, after, found := strings.Cut(document, title)
	must.That(t, found, "%s has no columns", path)
	if *rewrite {
		must.OK(t, os.WriteFile(path, []byte(before+title+columnsInWords()), 0o600))
		return
	}
	check.Equal(t, after, columnsInWords(), "columns; go test ./engine/tables -run Documented -rewrite writes them")
}
