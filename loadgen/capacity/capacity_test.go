package capacity_test

import (
	"math"
	"testing"
	"time"

	"lifthouse/loadgen/capacity"
	"lifthouse/schema/schematest/check"
)

// TestSimulateMatchesQueueingTheory compares the simulated waits with those of an M/D/1 queue: with a constant cost on
// one core, the mean wait is ρ/(2(1-ρ)) times the cost (Pollaczek 1930, Khinchine 1932).
func TestSimulateMatchesQueueingTheory(t *testing.T) {
	const cost = 10 * time.Millisecond
	for _, busy := range []float64{0.3, 0.6, 0.8} {
		load := capacity.Load{Reports: busy / cost.Seconds(), Computed: 1}
		got := capacity.Simulate(capacity.Costs{Report: cost}, load, 1, 1)
		check.That(t, math.Abs(got.Busy-busy) < 0.01, "busy %g, want %g", got.Busy, busy)
		check.That(t, got.ReportP50 >= cost, "median %s is below the cost", got.ReportP50)
		mean := cost.Seconds() * (1 + busy/(2*(1-busy)))
		check.That(t, math.Abs(got.ReportMean.Seconds()/mean-1) < 0.05, "mean %s at %g, want %g s", got.ReportMean, busy,
			mean)
	}
}

// TestFreshnessIsThatOfTheRefreshes has few events: their age is uniform between two refreshes.
func TestFreshnessIsThatOfTheRefreshes(t *testing.T) {
	got := capacity.Simulate(capacity.Costs{}, capacity.Load{Events: 10_000}, 2, 1)
	check.That(t, got.FreshP50 > 1300*time.Millisecond, "median %s, want about 1.5 s", got.FreshP50)
	check.That(t, got.FreshP50 < 1700*time.Millisecond, "median %s, want about 1.5 s", got.FreshP50)
	check.That(t, got.FreshP99 <= 3*time.Second, "p99 %s, want at most 3 s", got.FreshP99)
}

// TestTooMuchLoadIsSaid has more work than cores.
func TestTooMuchLoadIsSaid(t *testing.T) {
	load := capacity.Load{Events: 100_000}
	got := capacity.Simulate(capacity.Costs{Insert: 5 * time.Microsecond, Fold: 30 * time.Microsecond}, load, 2, 1)
	check.That(t, got.Busy > 1, "busy %g", got.Busy)
	check.That(t, got.FreshP99 > 10*time.Second, "freshness %s", got.FreshP99)
}
