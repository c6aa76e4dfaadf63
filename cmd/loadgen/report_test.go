package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestReport reads the results of testdata.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	page, details := filepath.Join(dir, "B.md"), filepath.Join(dir, "docs", "benchmarks")
	run(t, "report", "--results", "testdata/results", "--command", "make benchmarks SCALE=0.5", "--revision", "abc123",
		"-o", page, "--details", details).wantOK(t)
	for file, wants := range map[string][]string{ // in this order
		page: {
			"`make benchmarks SCALE=0.5`", "[docs/benchmarks](docs/benchmarks)", "| ClickHouse | 26.7, embedded |", "abc123", "148 numbers", "| Question | PostHog, events | Lifthouse",
			"| mean value | 12.0 × | 20 |", "| mean value, mobile | – | 8 |", "| Report | 50 | 5,000 | CPU ms | Ratio |\n|---|--:|--:|--:|--:|\n", "\n| unfiltered | 8.0 | 8.5 | 9.9 | 1.10 |\n",
			"| Dashboards that poll | 5 | 2531 | 0.7 | 2.8 |", "5,700 events of 10 visitors", "## Import into a running server\n\n```\nimport: 12 s\n```",
			"2,000 experiments without an effect", "| False positives | 1 | 0 |",
			"| A/A | winner or loser | 2 | 0 | 0.0415 | 0.0437 |",
		},
		filepath.Join(details, "competitors.md"): {
			"| mean value | PostHog | by time | 3.3 × | 12.0 × | – |",
			"| mean value | Lifthouse | facts | 10 | 20 | 5 |",
		},
		filepath.Join(details, "load.md"): {"| 2531 | 0.7 |", "| met |", "missed: p99 122.9 ms"},
		filepath.Join(details, "calibration.md"): {
			"## False positives", "| frequentist | 95 | goalConversionRate | even | 2000 | = 0.05 | 0.0510 | 0.0300–0.0700 | ok |",
		},
		filepath.Join(details, "decisions.md"): {
			"Simulated campaigns, decided by the engine", "## A/A", "| rate 5 %, 50/50 | frequentist | 62462 | winner or loser | 4000 | ≤ 0.05 | 0.0437 | 0.0032 | 0.0000–0.0569 | ok |",
		},
	} {
		text := must.Get(os.ReadFile(file))(t)
		at := -1
		for _, want := range wants {
			next := strings.Index(string(text), want)
			check.That(t, next > at, "%s: %q is missing or in the wrong place:\n%s", filepath.Base(file), want, text)
			at = max(at, next)
		}
	}
}

func TestReportWithoutOptionalInputs(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "B.md")
	for _, required := range []string{"standard.json", "competitors.json"} {
		text := must.Get(os.ReadFile(filepath.Join("testdata/results", required)))(t)
		must.OK(t, os.WriteFile(filepath.Join(dir, required), text, 0o600))
	}
	run(t, "report", "--results", dir, "-o", page, "--details", dir).wantOK(t)
	text := must.Get(os.ReadFile(page))(t)
	for _, unwanted := range []string{"growth", "load.md", "calibration", "Error rates", "decisions"} {
		check.That(t, !strings.Contains(string(text), unwanted), "the page contains %q:\n%s", unwanted, text)
	}
}
