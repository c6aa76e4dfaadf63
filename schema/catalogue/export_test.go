package catalogue_test

import (
	"bytes"
	_ "embed"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

//go:embed testdata/whole.yaml
var whole string

func export(t *testing.T, c *catalogue.Catalogue) string {
	t.Helper()
	var text bytes.Buffer
	must.OK(t, c.Snapshot().CatalogueFile().WriteYAML(&text))
	return text.String()
}

func TestApplyOfExportChangesNothing(t *testing.T) {
	c, empty := open(t), open(t)
	mustApply(t, c, whole)
	text := export(t, c)
	for _, prune := range []bool{false, true} {
		file, err := catalogue.ReadYAML(strings.NewReader(text))
		must.OK(t, err, "%v", text)
		file.Prune = prune
		if changes, err := c.ApplyFile(t.Context(), file, false); err != nil || len(changes) != 0 {
			t.Errorf("prune %v: applying the export changes %+v, %v\n%s", prune, changes, err, text)
		}
	}
	mustApply(t, empty, text)
	check.Equal(t, export(t, empty), text, "the export of the new store")
}

// TestLearnedPriorIsExported reads a catalogue with a prior that is learned. It is another one than the default.
func TestLearnedPriorIsExported(t *testing.T) {
	read := func(prior string) catalogue.File {
		const wide = ", prior: {standardDeviation: 50}"
		return must.Get(catalogue.ReadYAML(strings.NewReader(strings.Replace(whole, wide, prior, 1))))(t)
	}
	written, without := read(", prior: learned"), read("")
	check.That(t, !reflect.DeepEqual(written.Accounts, without.Accounts), "a learned prior is the default")
	c := open(t)
	must.Get(c.ApplyFile(t.Context(), written, false))(t)
	check.Contains(t, export(t, c), "prior: learned")
}

// TestExportKeepsNames has names that YAML would decode as another type.
func TestExportKeepsNames(t *testing.T) {
	c := open(t)
	names := []string{
		"010", "1.10", "1_000", "0x10", "1e3", "true", "True", "FALSE", "false", "Null", "No", "y", "null", "~", "NaN",
		".inf", "2026-05-01", "2026-05-01T12:00:00Z",
		" lead", "trail ", "a: b", "a #b", "#b", "- a", "-", "?", "!tag", "&anchor", "*alias", "|", ">", "%", "@", "`", "[a]", "{a: b}", ",",
		`"quoted"`, `'single'`, `it's`, `back\slash`, "tab\tin", "two\nlines", "\nlines\n\n", "é", "日本", "\u2028", "\u00a0", "\ufeffbom", "\u200b", "😀", "=", "<<", "---", "...", "\x7f", "a\x00b", "a\rb", "\u0085",
	}
	var file catalogue.File
	var goals []catalogue.Goal
	for i, name := range names {
		goals = append(goals, catalogue.Goal{ID: int64(i + 1), WebsiteID: 1, Name: name, Action: name})
	}
	file.Accounts = []catalogue.Account{{
		ID: 1, Name: "Shop",
		Websites: []catalogue.Website{{ID: 1, Domain: "shop.example.com", Goals: goals}},
	}}
	must.Get(c.ApplyFile(t.Context(), file, false))(t)
	text := export(t, c)
	again, err := catalogue.ReadYAML(strings.NewReader(text))
	must.OK(t, err, "%v", text)
	for i, goal := range again.Accounts[0].Websites[0].Goals {
		check.Equal(t, goal.Name, names[i], "%q is exported as %q and %q", names[i], goal.Name, goal.Action)
		check.Equal(t, goal.Action, names[i], "%q is exported as %q and %q", names[i], goal.Name, goal.Action)
	}
	check.Equal(t, len(must.Get(c.ApplyFile(t.Context(), again, true))(t)), 0, "changes of applying it")
}

// TestTextsSurviveAFile writes names that YAML could read as another type or layout, and random ones, and reads them back.
func TestTextsSurviveAFile(t *testing.T) {
	texts := []string{
		"yes", "null", "~", "True", "0x1F", "0o7", "1_000", "1e3", ".inf", "2026-05-01", "=", "<<", "- a",
		"a: b", "a #b", "", " a", "a ", "\n", "a\n\n", " a\nb", "---", "%YAML", "!!str a", "*a", "&a", "12:30:45",
	}
	characters := []rune("ab \t\n\r\"'\\:#-?[]{},&*!|>%@`~=0.\u0085\u00a0\u2028\ufeff\x7f\x00\x1b\ufffd😀é\u202e/ud83d")
	for range 500 {
		text := make([]rune, rand.IntN(12))
		for i := range text {
			text[i] = characters[rand.IntN(len(characters))]
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		file := catalogue.File{Accounts: []catalogue.Account{{
			ID: 1, Name: text,
			Websites: []catalogue.Website{{Campaigns: []catalogue.Campaign{{Tags: []string{text, text}}}}},
		}}}
		for _, write := range []func(io.Writer) error{file.WriteYAML, file.WriteJSON} {
			var written bytes.Buffer
			must.OK(t, write(&written), "%v", text)
			read, err := catalogue.ReadYAML(bytes.NewReader(written.Bytes()))
			if err != nil || read.Accounts[0].Name != text ||
				read.Accounts[0].Websites[0].Campaigns[0].Tags[1] != text {
				t.Errorf("%q: %v\n%s", text, err, written.Bytes())
			}
		}
	}
}
