package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// inspected returns the inspection of a file with the content.
func inspected(t *testing.T, name, content string) *Inspection {
	t.Helper()
	path := must.WriteFile(t, name, content)
	return must.Get(InspectFile(t.Context(), path, Options{}))(t)
}

func TestDraftMapsControlToZero(t *testing.T) {
	in := inspected(t, "x.csv", "visitor,ts,group,revenue\na,1777636800,New,1\nb,1777636801,Control,2\nc,1777636802,New,0\n")
	draft := in.DraftMapping("x.csv")
	for _, want := range []string{`variationId: {column: "group", map: {"Control": 0, "New": 1}}`, `time: {column: "ts", format: "unix"}`, `when: {column: "revenue", above: 0}`} {
		check.Contains(t, draft, want)
	}
}

// FuzzInspect checks that no file crashes the inspection, and that a draft with all guesses is a mapping.
func FuzzInspect(f *testing.F) {
	f.Add("a;b\n1;2\n")
	f.Add("visitor,time,variation,value\nx,2026-05-01,control,\"1\n2\"\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content string) {
		path := filepath.Join(dir, "f.csv")
		must.OK(t, os.WriteFile(path, []byte(content), 0o600))
		in, err := InspectFile(t.Context(), path, Options{})
		if err != nil {
			return
		}
		found := in.GuessColumns()
		for _, field := range []string{"visitor", "time", "variationId"} {
			if c, known := found[field]; !known || c.Name == "" {
				return
			}
		}
		if _, err := ReadMapping(strings.NewReader(in.DraftMapping(content))); err != nil {
			t.Errorf("%v\n%s", err, in.DraftMapping(content))
		}
	})
}
