package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// foreign are files as spreadsheets, databases and shops write them, part of the output of their import, and the visitors,
// converted visitors and value of control and of the variation.
var foreign = []struct {
	file    string
	reports string // part of the output of the import
	numbers string
	removed string // a line of the mapping without which lines are rejected
	reason  string // of the first of these lines
}{
	{
		"semicolons.csv", " 0 of 6 lines rejected", "3/1/7.25 3/2/1262.49",
		"decimal:", `line 3: revenue: "12,50": must be a number, because a condition compares it; for decimal commas, set decimal: "," in the mapping`,
	},
	{"tabs.tsv", " 0 of 6 lines rejected", "3/2/7.5 3/2/20", "", ""},
	{"pipes.csv", " 0 of 6 lines rejected", "3/2/40.5 3/2/24", "", ""},
	{"byte-order-mark.csv", " 0 of 6 lines rejected", "3/1/3 3/2/10.75", "", ""},
	{
		"excel-latin1.csv", " 0 of 6 lines rejected", "3/1/9.9 3/2/15.55",
		"encoding:", `line 2: Kunde: "J�rgen Gro�": must be UTF-8: if the file has another encoding, name it in the mapping, for example encoding: windows-1252`,
	},
	{"utf16.csv", " 0 of 6 lines rejected", "3/2/5.75 3/2/10.5", "", ""},
	{"quoted-lines.csv", " 0 of 6 lines rejected", "3/1/11 3/2/25.5", "", ""},
	{
		"thousands.csv", " 2 of 6 lines rejected", "2/1/20 2/1/999.99",
		"#", `line 2: sales: "1,234.50": must be a number, because a condition compares it; export the numbers without thousands separators`,
	},
	{"umlauts.csv", " 0 of 6 lines rejected", "3/2/60 3/2/60", "", ""},
	{
		"short-rows.csv", " 0 of 6 lines rejected", "3/1/8 3/2/19.5",
		"shortRows:", "line 3: wrong number of fields: 4, the header has 7: if empty cells at the end are left out, set shortRows: true in the mapping",
	},
}

// TestForeignFiles imports files with their mappings.
func TestForeignFiles(t *testing.T) {
	tier.OnlyLong(t)
	for _, c := range foreign {
		t.Run(c.file, func(t *testing.T) {
			h := newHouse(t)
			h.must("apply", "-f", "testdata/exports.catalog.yaml")
			data, mapping := filepath.Join("testdata/foreign", c.file), filepath.Join("testdata/foreign", c.file+".mapping.yaml")
			committed := string(must.Get(os.ReadFile(mapping))(t))
			if c.removed != "" {
				without := filepath.Join(t.TempDir(), "mapping.yaml")
				lines := slices.DeleteFunc(strings.SplitAfter(committed, "\n"), func(l string) bool { return strings.HasPrefix(l, c.removed) })
				must.OK(t, os.WriteFile(without, []byte(strings.Join(lines, "")), 0o600))
				if code, _, complaints := h.run("import", "--dry-run", "-m", without, data); code != exitRejected || !strings.Contains(complaints, c.reason+"\n") {
					t.Errorf("without %s exit %d: %s\nwant %s", c.removed, code, complaints, c.reason)
				}
			}
			if _, out, complaints := h.run("import", "-m", mapping, data); !strings.Contains(out, c.reports) {
				t.Errorf("import: %s%s; want %s", out, complaints, c.reports)
			}
			check.Equal(t, h.reported("campaign", "12"), c.numbers)
			if c.file != "umlauts.csv" { // half past midnight in Berlin is the day before
				return
			}
			if got, want := h.reported("campaign", "12", "--filter", "dateFrom=2026-05-01", "--filter", "dateTo=2026-05-01"), "2/1/15 2/1/25"; got != want {
				t.Errorf("on the first of May %s, want %s", got, want)
			}
		})
	}
}
