package source

import (
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema/schematest"
)

// FuzzLiteral checks that the store parses every literal to the same value.
func FuzzLiteral(f *testing.F) {
	for _, seed := range []string{"", "a", "'", `\`, `\'`, "a\x00b", "\n\r\t", "{x:String}", "--", "/*", "ü", "\xff", strings.Repeat("'", 512), `\x41`} {
		f.Add(seed)
	}
	s := &Store{Conn: schematest.OpenEmpty(f), Limits: Limits{}}
	f.Fuzz(func(t *testing.T, text string) {
		var got string
		q := &Statement{SQL: "SELECT " + quoteText(text)}
		if err := s.EachRow(t.Context(), q, func(row driver.Rows) error { return row.Scan(&got) }); err != nil {
			t.Fatal(err)
		}
		if got != text {
			t.Errorf("%q reads back as %q", text, got)
		}
		if strings.ContainsAny(q.SQL, "\n\r\x00") {
			t.Errorf("%q breaks the line", text)
		}
	})
}

// FuzzParameter checks that the store returns every bound text unchanged.
func FuzzParameter(f *testing.F) {
	for _, seed := range []string{"", "'", `\`, `\N`, "a\x00b", "\n\r\t", "{x:String}", "NULL", "[", "ü", strings.Repeat("\\", 512)} {
		f.Add(seed)
	}
	s := &Store{Conn: schematest.OpenEmpty(f), Limits: Limits{}}
	f.Fuzz(func(t *testing.T, text string) {
		var alone, listed string
		q := &Statement{SQL: "SELECT {text:String}, {texts:Array(String)}[1]", Params: []Param{{"text", text}, {"texts", []string{text, "'"}}}}
		if err := s.EachRow(t.Context(), q, func(row driver.Rows) error { return row.Scan(&alone, &listed) }); err != nil {
			t.Fatal(err)
		}
		if alone != text || listed != text {
			t.Errorf("%q reads back as %q and %q", text, alone, listed)
		}
	})
}
