package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lifthouse/schema/schematest/check"
)

func TestSampleRatioMismatchFormula(t *testing.T) {
	found := SampleRatioMismatch([]SharePeriod{{Split{40, []float64{1}}, []int64{500, 500}}})
	// A Pólya urn: the product of the chances of every visitor under the prior.
	mean := 0.0
	for _, prior := range []float64{30, 300, 3_000, 30_000} {
		urn, a, b := 0.0, .4*prior, .6*prior
		for range 500 {
			urn += math.Log(a/(a+b)/.4) + math.Log(b/(a+b+1)/.6)
			a, b = a+1, b+1
		}
		mean += math.Exp(urn) / 4
	}
	check.That(t, math.Abs(*found.PValue*mean-1) <= 1e-7, "p = %v, by the urns %v", *found.PValue, 1/mean)
}

func TestSampleRatioMismatchOfSmallAndLargeSamples(t *testing.T) {
	tests := []struct {
		control  float64
		observed []int64
		want     float64 // from the formula with 30 digits
	}{
		{5, []int64{44, 216}, 2.61978e-9},
		{50, []int64{20, 80}, 4.20252e-6},
		{50, []int64{10_400, 9_600}, 2.51439e-6},
		{50, []int64{10_250, 9_750}, .0236103},
	}
	for _, test := range tests {
		found := SampleRatioMismatch([]SharePeriod{{Split{test.control, []float64{1}}, test.observed}})
		check.That(t, near(*found.PValue, test.want, 1e-5), "%v: p = %v, want %v", test.observed, *found.PValue,
			test.want)
	}
}

func TestSampleRatioMismatchAddsPeriods(t *testing.T) {
	half := Split{50, []float64{1}}
	found := SampleRatioMismatch([]SharePeriod{{half, []int64{100, 100}}, {Split{10, []float64{1}}, []int64{10, 90}}})
	check.That(t, slices.Equal(found.Observed, []int64{110, 190}), "%+v", found)
	check.That(t, slices.Equal(found.Expected, []float64{110, 190}), "%+v", found)
}

// TestSampleRatioMismatchPower simulates 48/52 and fair campaigns that are looked at each day with 1,000 visitors.
func TestSampleRatioMismatchPower(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	const campaigns, day = 1000, 1000
	alarms := func(share float64, days int) float64 {
		found := 0
		for range campaigns {
			var x [2]int64
			for range days {
				mean := day * share
				n := int64(math.Round(mean + r.NormFloat64()*math.Sqrt(mean*(1-share))))
				x[0], x[1] = x[0]+n, x[1]+day-n
				if SampleRatioMismatch([]SharePeriod{{Split{50, []float64{1}}, x[:]}}).Mismatch {
					found++
					break
				}
			}
		}
		return float64(found) / campaigns
	}
	power, by21, fair := alarms(.48, 30), alarms(.48, 21), alarms(.5, 100)
	check.That(t, power >= .985, "found by 30,000 visitors: %v, by 21,000: %v; fair: %v", power, by21, fair)
	check.That(t, by21 >= .93, "found by 30,000 visitors: %v, by 21,000: %v; fair: %v", power, by21, fair)
	check.That(t, by21 <= .97, "found by 30,000 visitors: %v, by 21,000: %v; fair: %v", power, by21, fair)
	check.That(t, fair <= .003, "found by 30,000 visitors: %v, by 21,000: %v; fair: %v", power, by21, fair)
	t.Logf("found by 30,000 visitors: %v, by 21,000: %v; fair: %v", power, by21, fair)
}

func TestLeak(t *testing.T) {
	tests := []struct {
		visitors, total int64
		want            bool
	}{{0, 0, false}, {5, 1000, false}, {6, 1000, true}, {100, 1e6, false}, {101, 1e6, true}}
	for _, test := range tests {
		check.Equal(t, IsLeak(test.visitors, test.total), test.want, "Leak(%d, %d)", test.visitors, test.total)
	}
}

func TestCompareShares(t *testing.T) {
	// chi² = 2 (30 - 60)² / (60 (1 - .006)), whose tail is erfc(sqrt(chi²/2)).
	if got := *CompareShares([]int64{30, 90}, []int64{10000, 10000}).PValue; !near(got, 3.9352851e-08, 1e-7) {
		t.Errorf("p = %v", got)
	}
	// The .05 quantile of 4 degrees of freedom.
	got := chiSquareSurvival(9.487729036781154, 4)
	check.That(t, near(got, 0.05, 1e-12), "tail %v, want .05", got)
}
