package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/loadgen/population"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestGenerateToFiles(t *testing.T) {
	dir := t.TempDir()
	events, catalogue := filepath.Join(dir, "e.ndjson"), filepath.Join(dir, "c.yaml")
	r := run(t, "generate", "--visitors", "1000", "-o", events, "--catalogue", catalogue).wantOK(t)
	var truth population.Truth
	err := json.Unmarshal([]byte(r.out), &truth)
	check.That(t, err == nil && truth.Visitors == 1000 && len(truth.Subjects) == 3,
		"truth on standard output: error %v, %d visitors, %d subjects", err, truth.Visitors, len(truth.Subjects))
	onDisk := must.Get(os.ReadFile(events))(t)
	piped := run(t, "generate", "--visitors", "1000", "-o", "-").wantOK(t)
	check.Equal(t, piped.out, string(onDisk), "events on standard output")
	check.Contains(t, string(must.Get(os.ReadFile(catalogue))(t)), "Free delivery banner", "catalogue")
}

func TestGenerateUsageErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"missing destination":                           {"generate"},
		"are mutually exclusive":                        {"generate", "-o", "x", "--store", "embedded:y"},
		`--visitors "0": must be an integer from 1`:     {"generate", "--visitors", "0", "-o", "-"},
		`invalid --start "May": must be a day`:          {"generate", "--start", "May", "-o", "-"},
		`--days "0": must be an integer from 1 to 3650`: {"generate", "--days", "0", "-o", "-"},
		`unexpected argument "x"`:                       {"generate", "x"},
		"unknown flag: --visitor":                       {"generate", "--visitor", "1"},
		"store \"x\": must be embedded:DIR":             {"generate", "--store", "x"},
		`--scale "0": must be a number from 0.0001`:     {"standard", "--store", "embedded:x", "--scale", "0"},
		"missing --store: must be a new store":          {"standard"},
	} {
		r := run(t, args...)
		check.That(t, r.code == exitUsage && strings.Contains(r.err, want) && r.out == "", "%v: exit %d, %q; want %q", args, r.code, r.err, want)
	}
}
