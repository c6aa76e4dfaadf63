package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lifthouse/loadgen/bench"
	"lifthouse/loadgen/calibration"
	"lifthouse/loadgen/competitors"
	"lifthouse/loadgen/measure"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// writeResults writes the results that a report reads: the required ones, or all.
func writeResults(t *testing.T, dir string, all bool) {
	t.Helper()
	write := func(name string, value any) {
		must.OK(t, writeJSON(filepath.Join(dir, name), value))
	}
	step := bench.Step{Rate: 2531, Met: true, All: bench.Figures{Scheduled: 9, Succeeded: 9, Latency: bench.Latency{P50: 0.7, P99: 2.8}}}
	missed := step
	missed.Rate, missed.Met, missed.Miss, missed.All.Latency.P99 = 3797, false, "p99 122.9 ms", 122.9
	write("standard.json", measure.Insertion{Scale: 0.5, Visitors: 10, Events: 5700, Seconds: 2, EventsPerSecond: 2850})
	write("competitors.json", competitors.Result{Visitors: 7, Events: 40, Rounds: 5, ClickHouse: "26.7", Compared: 148, Rows: []competitors.Row{
		{Question: competitors.MeanValue, System: "Lifthouse", Table: "facts", Cost: measure.Cost{WallMS: 10, CPUMS: 20, PeakMB: 5}, WallRatio: 1, CPURatio: 1, MemoryRatio: 1},
		{Question: competitors.MeanValue, System: "PostHog", Table: "by time", Cost: measure.Cost{WallMS: 33, CPUMS: 240}, WallRatio: 3.3, CPURatio: 12},
		{Question: competitors.Mobile, System: "Lifthouse", Table: "facts", Cost: measure.Cost{CPUMS: 8}},
	}})
	if !all {
		return
	}
	write("growth.json", measure.Growth{Visitors: []int64{50, 5000}, Rows: []measure.GrowthRow{
		{Name: "by country", WallMS: []float64{9, 900}, CPUMS: []float64{10, 1500}},
		{Name: "unfiltered", WallMS: []float64{8, 8.5}, CPUMS: []float64{9, 9.9}},
	}})
	write("cached.json", bench.Result{Mix: "dashboard=80", TargetP99: 5, Saturation: 2531, Steps: []bench.Step{step, missed}})
	write("calibration.json", calibration.Result{Null: 2000, Effect: 1000, Reports: 64, Tested: 1, Cells: []calibration.Cell{
		{Measure: "false positives", Methodology: "frequentist", Level: 95, Metric: "goalConversionRate", Shape: "even", Nominal: 0.05, Sense: calibration.Exact, Count: 102, Experiments: 2000, Observed: 0.051, Lower: 0.03, Upper: 0.07},
	}})
	write("decisions.json", calibration.Decisions{Experiments: 4000, Seed: 1, Rows: []calibration.DecisionRow{
		{Part: "A/A", Scenario: "rate 5 %, 50/50", Methodology: "frequentist", Planned: 62462, Measure: "winner or loser", Experiments: 4000, Rate: 0.0437, Error: 0.0032, Most: 0.05, Upper: 0.0569},
		{Part: "A/A", Scenario: "rate 1 %, 50/50", Methodology: "frequentist", Planned: 85381, Measure: "winner or loser", Experiments: 4000, Rate: 0.0415, Most: 0.054, Upper: 0.0611},
	}})
	must.OK(t, os.WriteFile(filepath.Join(dir, "import.txt"), []byte("import: 12 s\n"), 0o600))
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	page, details := filepath.Join(dir, "B.md"), filepath.Join(dir, "docs", "benchmarks")
	writeResults(t, dir, true)
	run(t, "report", "--results", dir, "--command", "make benchmarks SCALE=0.5", "--revision", "abc123", "-o", page, "--details", details).wantOK(t)
	for file, wants := range map[string][]string{ // in this order
		page: {
			"`make benchmarks SCALE=0.5`", "[docs/benchmarks](docs/benchmarks)", "| ClickHouse | 26.7, embedded |", "abc123", "148 numbers", "| Question | PostHog, events | Lifthouse",
			"| mean value | 12.0 × | 20 |", "| mean value, mobile | – | 8 |", "| Report | 50 | 5,000 | CPU ms | Ratio |\n|---|--:|--:|--:|--:|\n", "\n| unfiltered | 8.0 | 8.5 | 9.9 | 1.10 |\n",
			"| Dashboards that poll | 5 | 2531 | 0.7 | 2.8 |", "5,700 events of 10 visitors", "## Import into a running server\n\n```\nimport: 12 s\n```",
			"2,000 experiments without an effect", "| False positives | 1 | 0 |", "| A/A | winner or loser | 2 | 0 | 0.0415 | 0.0437 |",
		},
		filepath.Join(details, "competitors.md"): {
			"| mean value | PostHog | by time | 3.3 × | 12.0 × | – |", "| mean value | Lifthouse | facts | 10 | 20 | 5 |",
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
			if next <= at {
				t.Errorf("%s: %q is missing or in the wrong place:\n%s", filepath.Base(file), want, text)
			}
			at = max(at, next)
		}
	}
}

func TestReportWithoutOptionalInputs(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "B.md")
	writeResults(t, dir, false)
	run(t, "report", "--results", dir, "-o", page, "--details", dir).wantOK(t)
	text := must.Get(os.ReadFile(page))(t)
	for _, unwanted := range []string{"growth", "load.md", "calibration", "Error rates", "decisions"} {
		check.That(t, !strings.Contains(string(text), unwanted), "the page contains %q:\n%s", unwanted, text)
	}
}
