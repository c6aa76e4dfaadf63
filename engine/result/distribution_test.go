package result

import (
	"testing"

	"lifthouse/schema/schematest/check"
)

// TestValueBins checks that the bins have about equal widths on a logarithmic scale, 10 to the power of 1/10, from 0.01 to
// the largest amount.
func TestValueBins(t *testing.T) {
	bins := ValueBins()
	for i := positiveBins + 1; i < len(bins); i++ {
		if ratio := float64(bins[i]) / float64(bins[i-1]); ratio < 1.23 || ratio > 1.29 {
			t.Errorf("bin %d begins at %d, after %d", i, bins[i], bins[i-1])
		}
	}
	first, last := bins[positiveBins], bins[len(bins)-10]
	check.That(t, first == 100 && last == 1e13, "from %d to %d", first, last)
}
