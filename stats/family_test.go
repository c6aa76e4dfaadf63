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
			[]float64{.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262, .5719, .6528, .7590, 1.0},
			[]float64{.0015, .003, .0095, .035625, .0603, .0638571428571429, .0638571428571429, .0645, .0765, .486, .581181818181818, .714875, .753230769230769, .813214285714286, 1},
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
	for _, test := range []struct {
		points            int
		alpha, want       float64
		informationOfStep float64
	}{
		{1, .05, 1.960, 1},
		{2, .05, 2.178, 1},
		{3, .05, 2.289, 3},
		{4, .05, 2.361, 1},
		{5, .05, 2.413, 1e-9},
		{10, .05, 2.555, 1e9},
		{5, .01, 2.986, 1},
		{5, .10, 2.122, 1},
		{20, .05, 2.672, 1},
	} {
		information := make([]float64, test.points)
		for i := range information {
			information[i] = float64(i+1) * test.informationOfStep
		}
		got := SimultaneousCritical(information, test.alpha)
		check.That(t, math.Abs(got-test.want) <= 6e-4, "%d points at %v: %v, want %v", test.points, test.alpha, got, test.want)
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
