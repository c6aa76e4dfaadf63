package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/engine/embedded"
	"lifthouse/loadgen"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := embedded.Shutdown(); err != nil {
		code = 1
	}
	os.Exit(code)
}

// ran is what a command gave.
type ran struct {
	code     int
	out, err string
}

func run(t *testing.T, args ...string) ran {
	t.Helper()
	var out, err bytes.Buffer
	p := &program{in: strings.NewReader(""), out: &out, err: &err}
	code := p.run(t.Context(), args)
	return ran{code, out.String(), err.String()}
}

// wantOK fails unless the command ended well.
func (r ran) wantOK(t *testing.T) ran {
	t.Helper()
	if r.code != exitOK {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	return r
}

func TestGenerateToFiles(t *testing.T) {
	dir := t.TempDir()
	events, catalogue := filepath.Join(dir, "e.ndjson"), filepath.Join(dir, "c.yaml")
	r := run(t, "generate", "--visitors", "1000", "-o", events, "--catalogue", catalogue).wantOK(t)
	var truth loadgen.Truth
	if err := json.Unmarshal([]byte(r.out), &truth); err != nil || truth.Visitors != 1000 || len(truth.Subjects) != 3 {
		t.Errorf("the truth on standard output: %v, %d visitors, %d subjects", err, truth.Visitors, len(truth.Subjects))
	}
	onDisk, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	piped := run(t, "generate", "--visitors", "1000", "-o", "-").wantOK(t)
	if piped.out != string(onDisk) {
		t.Error("standard output and a file differ")
	}
	if text, err := os.ReadFile(catalogue); err != nil || !strings.Contains(string(text), "Free delivery banner") {
		t.Errorf("catalogue: %v, %s", err, text)
	}
}

// TestHelpIsAPopulation reads the example in the help.
func TestHelpIsAPopulation(t *testing.T) {
	_, example, found := strings.Cut(generateHelp, "what the YAML file says:\n")
	if !found {
		t.Fatal("the help has no example")
	}
	path := filepath.Join(t.TempDir(), "population.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(example, "\n  ", "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, "generate", "-f", path, "--visitors", "100", "--truth", filepath.Join(t.TempDir(), "t.json")).wantOK(t)
	if r.out != "" {
		t.Errorf("standard output has %q", r.out)
	}
}

func TestGenerateRefusals(t *testing.T) {
	for want, args := range map[string][]string{
		"where do the events go?":            {"generate"},
		"want one of them":                   {"generate", "-o", "x", "--store", "embedded:y"},
		"--visitors 0: want at least 1":      {"generate", "--visitors", "0", "-o", "-"},
		`--start "May": want a day`:          {"generate", "--start", "May", "-o", "-"},
		"days: 0: want 1 to 3650":            {"generate", "--days", "0", "-o", "-"},
		"--token: goes with --url":           {"generate", "--token", "lh_x", "-o", "-"},
		"of the scope ingest for website 1":  {"generate", "--url", "http://127.0.0.1:1"},
		`unexpected "x"`:                     {"generate", "x"},
		"unknown flag: --visitor":            {"generate", "--visitor", "1"},
		"store \"x\": must be embedded:DIR":  {"generate", "--store", "x"},
		"--scale 0: want more than 0":        {"standard", "--store", "embedded:x", "--scale", "0"},
		"--store: want the store to be made": {"standard"},
	} {
		if r := run(t, args...); r.code != exitUsage || !strings.Contains(r.err, want) || r.out != "" {
			t.Errorf("%v: exit %d, %q; want %q", args, r.code, r.err, want)
		}
	}
}
