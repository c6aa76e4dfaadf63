package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"lifthouse/schema/schematest/check"
)

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
