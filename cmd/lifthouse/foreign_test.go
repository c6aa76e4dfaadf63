package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// foreign are files as spreadsheets, databases and shops write them, what is found in them, and the visitors, converted
// visitors and value of control and of the variation.
var foreign = []struct {
	file    string
	guesses string // of visitor, time with its format, variation and value
	reports string // part of the output of the import
	numbers string
	removed string // a line of the mapping without which lines are rejected
	reason  string // of the first of these lines
}{
	{
		"semicolons.csv", "customer, created_at 2006-01-02 15:04:05, variant, revenue", " 0 of 6 lines rejected, separator ';'", "3/1/7.25 3/2/1262.49",
		"decimal:", `line 3: revenue: "12,50": must be a number, because a condition compares it; for decimal commas, set decimal: "," in the mapping`,
	},
	{"tabs.tsv", "user_id, event_time, variation_id, amount", ` 0 of 6 lines rejected, separator '\t'`, "3/2/7.5 3/2/20", "", ""},
	{"pipes.csv", "visitor_id, ts unix, bucket, price", " 0 of 6 lines rejected, separator '|'", "3/2/40.5 3/2/24", "", ""},
	{"byte-order-mark.csv", "Visitor, Time 2006-01-02 15:04, Variation, Value", " 0 of 6 lines rejected", "3/1/3 3/2/10.75", "", ""},
	{
		"excel-latin1.csv", "Kunde, Datum 02.01.2006 15:04:05, Gruppe, Umsatz", " 0 of 6 lines rejected, separator ';'", "3/1/9.9 3/2/15.55",
		"encoding:", `line 2: Kunde: "J�rgen Gro�": must be UTF-8: if the file has another encoding, name it in the mapping, for example encoding: windows-1252`,
	},
	{"utf16.csv", "Kunde, Datum 02.01.2006, Gruppe, Umsatz", ` 0 of 6 lines rejected, separator '\t'`, "3/2/5.75 3/2/10.5", "", ""},
	{"quoted-lines.csv", "client_id, timestamp, variant, total", " 0 of 6 lines rejected", "3/1/11 3/2/25.5", "", ""},
	{
		"thousands.csv", "visitor, time 2006-01-02 15:04:05 MST, group, sales", " 2 of 6 lines rejected", "2/1/20 2/1/999.99",
		"#", `line 2: sales: "1,234.50": must be a number, because a condition compares it; export the numbers without thousands separators`,
	},
	{"umlauts.csv", "Kundennummer, Bestelldatum 02.01.2006 15:04, Test Gruppe, Umsatz (€)", " 0 of 6 lines rejected, separator ';'", "3/2/60 3/2/60", "", ""},
	{
		"short-rows.csv", "anonymous_id, date 2006-01-02, experiment_group, spend", " 0 of 6 lines rejected", "3/1/8 3/2/19.5",
		"shortRows:", "line 3: wrong number of fields: 4, the header has 7: if empty cells at the end are left out, set shortRows: true in the mapping",
	},
}

// TestForeignFiles inspects and imports files. Their mappings are the drafts with other ids and another zone.
func TestForeignFiles(t *testing.T) {
	tier.OnlyLong(t)
	for _, c := range foreign {
		t.Run(c.file, func(t *testing.T) {
			h := newHouse(t)
			h.must("apply", "-f", "testdata/exports.catalog.yaml")
			data, mapping := filepath.Join("testdata/foreign", c.file), filepath.Join("testdata/foreign", c.file+".mapping.yaml")
			check.Equal(t, guessesOf(t, data), c.guesses, "guesses")
			committed := string(must.Get(os.ReadFile(mapping))(t))
			check.Equal(t, editedDraft(t, h, data), committed, "the edited draft")
			if c.removed != "" {
				without := filepath.Join(t.TempDir(), "mapping.yaml")
				lines := slices.DeleteFunc(strings.SplitAfter(committed, "\n"), func(l string) bool { return strings.HasPrefix(l, c.removed) })
				must.OK(t, os.WriteFile(without, []byte(strings.Join(lines, "")), 0o600))
				code, _, complaints := h.run("import", "--dry-run", "-m", without, data)
				check.That(t, code == exitRejected && strings.Contains(complaints, c.reason+"\n"), "without %s exit %d: %s\nwant %s", c.removed, code, complaints, c.reason)
			}
			if _, out, complaints := h.run("import", "-m", mapping, data); !strings.Contains(out, c.reports) {
				t.Errorf("import: %s%s; want %s", out, complaints, c.reports)
			}
			check.Equal(t, h.reported("campaign", "12"), c.numbers)
			if c.file != "umlauts.csv" { // half past midnight in Berlin is the day before
				return
			}
			check.Equal(t, h.reported("campaign", "12", "--filter", "dateFrom=2026-05-01", "--filter", "dateTo=2026-05-01"), "2/1/15 2/1/25", "on the first of May")
		})
	}
}

func guessesOf(t *testing.T, path string) string {
	t.Helper()
	guess := must.Get(ingest.InspectFile(t.Context(), path, ingest.Options{}))(t).GuessColumns()
	var found []string
	for _, field := range []string{"visitor", "time", "variationId", "value"} {
		found = append(found, strings.TrimSpace(fmt.Sprint(guess[field].Name, " ", guess[field].Layout)))
	}
	return strings.Join(found, ", ")
}

// editedDraft returns the mapping that --inspect drafts, with the ids of the catalogue.
func editedDraft(t *testing.T, h *house, path string) string {
	t.Helper()
	name := filepath.Base(path)
	beside := must.WriteFile(t, name, string(must.Get(os.ReadFile(path))(t)))
	h.must("import", "--inspect", beside)
	_, draft, _ := strings.Cut(string(must.Get(os.ReadFile(beside+".mapping.yaml"))(t)), "\n")
	zone := "zone: UTC}"
	if name == "umlauts.csv" {
		zone = "zone: Europe/Berlin}"
	}
	edit := strings.NewReplacer("campaignId: {value: 1} ", "campaignId: {value: 12}", "goalId: {value: 1}", "goalId: {value: 3}", "zone: UTC}", zone)
	return "# Drafted by lifthouse import --inspect. The ids and the zone are edited.\n" + edit.Replace(draft)
}
