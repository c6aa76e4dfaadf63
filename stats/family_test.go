package stats

import (
	"math"
	"testing"

	"lifthouse/schema/schematest/check"
)

// TestExceedance compares with values by mpmath at 25 digits: the same integral, with panels of a half between all of
// its steps.
func TestExceedance(t *testing.T) {
	tests := []struct {
		c       float64
		lambdas []float64
		want    float64
	}{
		{2.5, []float64{0.7071, 0.7071, 0.7071}, 0.033583057584766016},
		{3, []float64{0.95, 0.96, 0.97}, 0.0049563987107787371},
		{2.2, []float64{0.9999999, 0.5, 0.3}, 0.076682623208420479},
		{2.4, []float64{1 - 1e-9, 1 - 1e-9, 1 - 1e-9, 1 - 1e-9}, 0.016397133775793614},
		{8, []float64{0.7, 0.8}, 2.4883635166707567e-15},
		{1, []float64{0.99999, 0.9999, 0.999, 0.99}, 0.35077382387262015},
		{5, []float64{0.2, 0.999999}, 1.1465910569941569e-6},
		{0.01, []float64{0.5, 0.5, 0.6}, 0.99999943301340321},
	}
	for _, test := range tests {
		f := family{size: len(test.lambdas), loadings: newLoadings(test.lambdas)}
		got := f.exceedanceProbability(test.c)
		check.That(t, math.Abs(got-test.want) <= 1e-9*test.want, "P(max|Z| > %v) with %v = %v, want %v", test.c, test.lambdas, got, test.want)
	}
}

// TestCriticalAgainstDunnettsTable compares with Dunnett's table II b (two-sided, alpha .05, infinite degrees of
// freedom) for equal allocation, lambda² = 1/2: 1 to 9 treatments.
func TestCriticalAgainstDunnettsTable(t *testing.T) {
	table := []float64{1.96, 2.21, 2.35, 2.44, 2.51, 2.57, 2.61, 2.65, 2.69}
	for i, want := range table {
		lambdas := make([]float64, i+1)
		for j := range lambdas {
			lambdas[j] = math.Sqrt(0.5)
		}
		got := family{size: i + 1, loadings: newLoadings(lambdas)}.criticalValue(0.05)
		check.That(t, math.Abs(got-want) <= 0.006, "critical value of %d = %v, want %v", i+1, got, want)
	}
}
