package looks

import (
	"testing"

	"lifthouse/schema/schematest/check"
	"lifthouse/stats"
)

// TestSupportsNeedsTheChance checks that a Bayesian look supports a verdict only if the chance agrees with its
// boundary.
func TestSupportsNeedsTheChance(t *testing.T) {
	z, chance := 3.0, 0.96
	q := Question{Rows: [][]Row{{{LookResult: stats.LookResult{Z: &z, Significant: true}}}}}
	check.That(t, q.SupportsVerdict(0, stats.VerdictBetter, 0.05) && !q.SupportsVerdict(0, stats.VerdictWorse, 0.05) && !q.SupportsVerdict(0, stats.VerdictInconclusive, 0.05),
		"a frequentist look above its boundary supports what it does not say")
	q.Rows[0][0].Chance = &chance
	if q.SupportsVerdict(0, stats.VerdictBetter, 0.05) || q.FindOutcome(0.05) != nil {
		t.Error("a chance of 96 % is enough at alpha .05")
	}
	chance = 0.98
	if !q.SupportsVerdict(0, stats.VerdictBetter, 0.05) || q.FindOutcome(0.05) == nil {
		t.Error("a chance of 98 % is not enough at alpha .05")
	}
}
