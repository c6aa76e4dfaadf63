package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"lifthouse/schema/schematest/check"
)

// TestExceedance compares with values by mpmath at 25 digits: the same integral, with panels of a half between all of
// its steps.
func TestExceedance(t *testing.T) {
	for _, test := range readRows(t, "exceedance.txt") {
		c, want, lambdas := test[0], test[1], test[2:]
		got := family{size: len(lambdas), loadings: newLoadings(lambdas)}.exceedanceProbability(c)
		check.That(t, math.Abs(got-want) <= 1e-9*want, "P(max|Z| > %v) with %v = %v, want %v", c, lambdas, got, want)
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

// TestFalseDiscovery compares with statsmodels 0.14 multipletests(p, method="fdr_bh").
func TestFalseDiscovery(t *testing.T) {
	for _, test := range []struct{ p, want []float64 }{
		{nil, nil},
		{[]float64{.03}, []float64{.03}},
		{[]float64{.01, .04, .03, .005}, []float64{.02, .04, .04, .02}},
		{[]float64{.5, .9, .9, 1}, []float64{1, 1, 1, 1}},
		{[]float64{.02, math.NaN(), .01, 2}, []float64{.02, math.NaN(), .02, math.NaN()}},
		// Benjamini and Hochberg (1995), section 3.2: 15 p-values, of which 4 are below .05.
		{
			[]float64{
				.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262, .5719, .6528, .7590,
				1.0,
			},
			[]float64{
				.0015, .003, .0095, .035625, .0603, .0638571428571429, .0638571428571429, .0645, .0765, .486,
				.581181818181818, .714875, .753230769230769, .813214285714286, 1,
			},
		},
	} {
		got := FalseDiscovery(test.p)
		for i, want := range test.want {
			if math.IsNaN(want) != math.IsNaN(got[i]) || math.Abs(got[i]-want) > 1e-12 {
				t.Errorf("%v: q %v, want %v", test.p, got, test.want)
				break
			}
		}
	}
}

// TestSimultaneousCriticalIsPococks compares the critical values for equal steps with those of Pocock (Jennison and
// Turnbull 2000, table 2.1).
func TestSimultaneousCriticalIsPococks(t *testing.T) {
	for _, test := range readRows(t, "pocock.txt") {
		information := make([]float64, int(test[0]))
		for i := range information {
			information[i] = float64(i+1) * test[3]
		}
		got := SimultaneousCritical(information, test[1])
		check.That(t, math.Abs(got-test[2]) <= 6e-4, "%v points at %v: %v, want %v", test[0], test[1], got, test[2])
	}
}

// TestSimultaneousCriticalOfUnevenSteps draws paths with uneven steps, some of 0.
func TestSimultaneousCriticalOfUnevenSteps(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 9))
	information := []float64{0, .6, .6, 1, 1.02, 1.0201, 3, 3.5, 7}
	c, outside := SimultaneousCritical(information, .05), 0
	const paths = 40_000
	for range paths {
		sum, last := 0.0, 0.0
		for _, i := range information {
			sum += math.Sqrt(i-last) * random.NormFloat64()
			if last = i; i > 0 && math.Abs(sum/math.Sqrt(i)) > c {
				outside++
				break
			}
		}
	}
	rate := float64(outside) / paths
	check.That(t, math.Abs(rate-.05) <= 3.3*math.Sqrt(.05*.95/paths), "%v of the paths are outside", rate)
}

// TestSimultaneousCriticalOfWeakData has no point, no information, or no alpha.
func TestSimultaneousCriticalOfWeakData(t *testing.T) {
	single := normalQuantile(.025)
	for _, information := range [][]float64{nil, {0}, {0, 0, 0}, {1}, {2, 2, 2}, {math.NaN(), 1}, {math.Inf(1)}} {
		got := SimultaneousCritical(information, .05)
		check.That(t, math.Abs(got-single) <= 1e-6, "%v: %v", information, got)
	}
	for _, alpha := range []float64{0, 1, -1, math.NaN()} {
		got := SimultaneousCritical([]float64{1, 2}, alpha)
		check.That(t, math.IsInf(got, 1), "alpha %v: %v", alpha, got)
	}
}
