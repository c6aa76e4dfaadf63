package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/schematest/must"
)

func TestImportKeepsEveryRejectedLine(t *testing.T) {
	h := newHouse(t)
	dir := t.TempDir()
	file, rejects := filepath.Join(dir, "bad.ndjson"), filepath.Join(dir, "rejects.ndjson")
	must.OK(t, os.WriteFile(file, []byte(strings.Repeat("{}\n", 2*shownRejects)), 0o600))
	code, _, complaints := h.run("import", file, "--rejects", rejects)
	kept, err := os.ReadFile(rejects)
	if err != nil || code != exitRejected {
		t.Fatalf("exit %d, %v", code, err)
	}
	lines := strings.Split(strings.TrimSpace(string(kept)), "\n")
	if len(lines) != 2*shownRejects || !strings.HasSuffix(lines[0], `"}`) || !strings.Contains(lines[39], `"line":40,"reason":"visitor: missing`) {
		t.Errorf("%d lines are kept, the last %q", len(lines), lines[len(lines)-1])
	}
	if shown := strings.Count(complaints, ": line "); shown != shownRejects || !strings.Contains(complaints, "20 lines rejected besides") {
		t.Errorf("%d lines are shown: %s", shown, complaints)
	}
}

// TestImportsEndInReports checks that the facts include the events when an import ends.
func TestImportsEndInReports(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	h.must("import", "testdata/thirty.ndjson", "--dry-run")
	h.must("import", "testdata/thirty.ndjson")
	of := schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1}
	if n := h.store.Facts.SubjectCounters(of).Visitors; n == 0 {
		t.Error("reports do not include the imported events")
	}
}

func TestImportTriesGivesUpAndTakesPatterns(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	events := must.Get(os.ReadFile("testdata/thirty.ndjson"))(t)
	dir := t.TempDir()
	lines := strings.SplitAfter(string(events), "\n")
	for name, text := range map[string]string{
		"a.ndjson": strings.Join(lines[:10], ""), "b.ndjson": strings.Join(lines[10:], ""), "wrong.ndjson": strings.Repeat("{}\n", 9),
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"testdata/thirty.ndjson", "--dry-run"}, exitOK, "dry run: 30 valid rows, 0 of 30 lines rejected; nothing was inserted"},
		{[]string{filepath.Join(dir, "wrong.ndjson"), filepath.Join(dir, "a.ndjson"), "--max-errors=9"}, exitRejected, "too many lines are rejected: 9 lines (--max-errors 9); 0 rows accepted before"},
		{[]string{filepath.Join(dir, "?.ndjson")}, exitOK, "a.ndjson: 10 rows accepted"},
		{[]string{filepath.Join(dir, "b*")}, exitOK, "b.ndjson: 20 rows accepted"},
		{[]string{filepath.Join(dir, "c*")}, exitUsage, "c*: no file matches"},
	} {
		code, out, complaints := h.run(append([]string{"import"}, c.args...)...)
		if code != c.code || !strings.Contains(out+complaints, c.want) {
			t.Errorf("import %q: exit %d, %q; want %d and %q", c.args, code, out+complaints, c.code, c.want)
		}
	}
}

func TestRejectedLinesTellByExitCode(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	file := filepath.Join(t.TempDir(), "bad.ndjson")
	must.OK(t, os.WriteFile(file, []byte("{}\n"), 0o600))
	code, _, complaints := h.run("import", file)
	if code != exitRejected || !strings.Contains(complaints, "line 1: ") {
		t.Errorf("exit %d, %q; want %d and the line", code, complaints, exitRejected)
	}
}

// TestImportWarnsOfUndeclaredNames checks the warnings of an import and of a dry run.
func TestImportWarnsOfUndeclaredNames(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	events := must.Get(os.ReadFile("testdata/thirty.ndjson"))(t)
	code, _, complaints := h.run("import", "testdata/thirty.ndjson")
	if want := "warning: 2 events: the catalogue declares no variation 7 of campaign 1 for website 1; it declares 0, 1\n"; code != exitOK || strings.Count(complaints, "warning") != 1 || !strings.Contains(complaints, want) {
		t.Errorf("exit %d, %q; want only %q", code, complaints, want)
	}
	file := filepath.Join(t.TempDir(), "typo.ndjson")
	typo := strings.NewReplacer(`"campaignId":1,`, `"campaignId":11,`).Replace(string(events))
	must.OK(t, os.WriteFile(file, []byte(typo), 0o600))
	for _, dry := range []string{"--dry-run=true", "--dry-run=false"} {
		code, _, complaints := h.run("import", dry, file)
		if want := "warning: 30 events: the catalogue declares no campaign 11 for website 1; it declares 1\n"; code != exitOK || !strings.Contains(complaints, want) {
			t.Errorf("%s: exit %d, %q; want %q", dry, code, complaints, want)
		}
	}
}

// TestImportKeepsItsInputs names each input of an import as the file of --rejects.
func TestImportKeepsItsInputs(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"a.ndjson": "{}\n", "b.csv": "id,who\n1,x\n", "c.csv": "k,v\nx,visitor\n", "conf.yaml": "log-level: info\n",
		"m.yaml": "fields: {visitor: {column: who, lookup: {file: c.csv, key: k, column: v}}, time: {value: '2026-05-01T12:00:00Z'}, websiteId: {value: 1}, campaignId: {value: 1}, variationId: {value: 1}, event: {value: view}}\n",
	} {
		must.OK(t, os.WriteFile(at(name), []byte(text), 0o600))
	}
	must.OK(t, errors.Join(os.Symlink(at("a.ndjson"), at("symbolic")), os.Link(at("a.ndjson"), at("hard"))))
	wd := must.Get(os.Getwd())(t)
	relative := must.Get(filepath.Rel(wd, at("a.ndjson")))(t)
	h.input = at("a.ndjson")
	for _, args := range [][]string{
		{"--rejects", at("a.ndjson"), at("a.ndjson")},
		{"--rejects", relative, at("a.ndjson")},
		{"--rejects", at("symbolic"), relative},
		{"--rejects", at("hard"), at("a.ndjson")},
		{"--rejects", at("a.ndjson"), at("b.csv"), at("symbolic")},
		{"--rejects", at("a.ndjson"), at("*.ndjson"), "--dry-run"},
		{"--rejects", at("a.ndjson"), "-"},
		{"--rejects", at("m.yaml"), "-m", at("m.yaml"), at("b.csv")},
		{"--rejects", at("c.csv"), "-m", at("m.yaml"), at("b.csv")},
		{"--rejects", at("conf.yaml"), "--config", at("conf.yaml"), at("b.csv")},
	} {
		code, _, complaints := h.run(append([]string{"import"}, args...)...)
		info, err := os.Stat(args[1])
		if err != nil || info.Size() == 0 {
			t.Fatalf("import %q: the input is empty: %v", args, err)
		}
		if want := `--rejects "` + args[1] + `": is the input "`; code != exitUsage || !strings.Contains(complaints, want) || !strings.Contains(complaints, "must be another file") {
			t.Errorf("import %q: exit %d, %q; want %d and %q", args, code, complaints, exitUsage, want)
		}
	}
}

// TestRestoreKeepsItsBackup restores a backup into the folder of the backup.
func TestRestoreKeepsItsBackup(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "metadata"), 0o700))
	link := filepath.Join(t.TempDir(), "link")
	must.OK(t, os.Symlink(dir, link))
	for _, store := range []string{dir, link} {
		stderr := capture(t)
		p := &program{stdout: stderr.write, stderr: stderr.write, dir: ".", args: []string{"restore", dir, "--store", "embedded:" + store}, getenv: func(string) string { return "" }}
		code := p.runCommand(t.Context())
		if text := stderr.text(); code != exitUsage || !strings.Contains(text, `--store "`+store+`": is the input`) {
			t.Errorf("restore into %s: exit %d, %s", store, code, text)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("the backup has %v: %v", files, err)
		}
	}
}
