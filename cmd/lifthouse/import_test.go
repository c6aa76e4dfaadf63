package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImportKeepsEveryRejectedLine(t *testing.T) {
	h := newHouse(t)
	dir := t.TempDir()
	file, rejects := filepath.Join(dir, "bad.ndjson"), filepath.Join(dir, "rejects.ndjson")
	if err := os.WriteFile(file, []byte(strings.Repeat("{}\n", 2*shownRejects)), 0o600); err != nil {
		t.Fatal(err)
	}
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

func TestImportTriesGivesUpAndTakesPatterns(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	events, err := os.ReadFile("testdata/thirty.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	lines := strings.SplitAfter(string(events), "\n")
	for name, text := range map[string]string{
		"a.ndjson": strings.Join(lines[:10], ""), "b.ndjson": strings.Join(lines[10:], ""), "wrong.ndjson": strings.Repeat("{}\n", 9),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"testdata/thirty.ndjson", "--dry-run"}, exitOK, "dry run: 30 valid rows, 0 of 30 lines rejected; nothing was inserted"},
		{[]string{filepath.Join(dir, "wrong.ndjson"), filepath.Join(dir, "a.ndjson"), "--max-errors=9"}, exitRejected, "too many lines are rejected: 9 lines (--max-errors 9); 0 rows inserted before"},
		{[]string{filepath.Join(dir, "?.ndjson")}, exitOK, "a.ndjson: 10 rows inserted"},
		{[]string{filepath.Join(dir, "b*")}, exitOK, "b.ndjson: 0 rows inserted, 20 duplicates"},
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
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, complaints := h.run("import", file)
	if code != exitRejected || !strings.Contains(complaints, "line 1: ") {
		t.Errorf("exit %d, %q; want %d and the line", code, complaints, exitRejected)
	}
}

// TestImportWarnsOfUndeclaredNames checks the warnings of an import and of a dry run.
func TestImportWarnsOfUndeclaredNames(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	events, err := os.ReadFile("testdata/thirty.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	code, _, complaints := h.run("import", "testdata/thirty.ndjson")
	if want := "warning: 2 events: the catalogue declares no variation 7 of campaign 1 for website 1; the nearest is 1\n"; code != exitOK || strings.Count(complaints, "warning") != 1 || !strings.Contains(complaints, want) {
		t.Errorf("exit %d, %q; want only %q", code, complaints, want)
	}
	file := filepath.Join(t.TempDir(), "typo.ndjson")
	typo := strings.NewReplacer(`"campaignId":1,`, `"campaignId":11,`).Replace(string(events))
	if err := os.WriteFile(file, []byte(typo), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []string{"--dry-run=true", "--dry-run=false"} {
		code, _, complaints := h.run("import", dry, file)
		if want := "warning: 30 events: the catalogue declares no campaign 11 for website 1; the nearest is 1\n"; code != exitOK || !strings.Contains(complaints, want) {
			t.Errorf("%s: exit %d, %q; want %q", dry, code, complaints, want)
		}
	}
}
