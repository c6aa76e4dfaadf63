package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/must"
)

// TestInspectDraftsAMappingThatImports goes from a spreadsheet to stored events with the
// drafted mapping, in which only the ids are edited.
func TestInspectDraftsAMappingThatImports(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "shop.csv")
	content := "Kunde;Datum;Gruppe;Umsatz\r\nJürgen;02.05.2026 14:00;kontrolle;0\r\nAna;02.05.2026 15:10;neu;1234,56\r\nBo;03.05.2026 09:00;neu;1.234,5\r\n"
	must.OK(t, os.WriteFile(file, []byte(content), 0o600))
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	out := h.must("import", "--inspect", file)
	for _, want := range []string{`csv, separator ';', the first 3 rows`, "variationId", "Jürgen", "Wrote "} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if again := h.must("import", "--inspect", file); !strings.Contains(again, "exists and was kept") {
		t.Errorf("a second time: %s", again)
	}
	mapping := file + ".mapping.yaml"
	edited := must.Get(os.ReadFile(mapping))(t)
	if want := `# Umsatz has numbers such as 1.234,5: export them without thousands separators.`; !strings.Contains(string(edited), want) {
		t.Errorf("the draft lacks %q:\n%s", want, edited)
	}
	code, out, complaints := h.run("import", "-m", mapping, file)
	if code != exitRejected || !strings.Contains(out, "3 rows accepted, 1 of 3 lines rejected, separator ';'") {
		t.Errorf("exit %d: %s%s", code, out, complaints)
	}
	if want := `line 4: Umsatz: "1.234,5": must have no thousands separators`; !strings.Contains(complaints, want) {
		t.Errorf("complaints %s; want %s", complaints, want)
	}
}
