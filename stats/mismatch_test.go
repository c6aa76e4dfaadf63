package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSampleRatioMismatchFormula(t *testing.T) {
	check := SampleRatioMismatch([]SharePeriod{{Split{40, []float64{1}}, []int64{500, 500}}})
	lg := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	// A Pólya urn: the product of the chances of every visitor under the prior.
	urn, a, b := 0.0, 1200.0, 1800.0
	for range 500 {
		urn += math.Log(a/(a+b)/.4) + math.Log(b/(a+b+1)/.6)
		a, b = a+1, b+1
	}
	formula := lg(3000) - lg(4000) + lg(1700) - lg(1200) - 500*math.Log(.4) + lg(2300) - lg(1800) - 500*math.Log(.6)
	if math.Abs(math.Log(*check.PValue)+formula) > 1e-8 || math.Abs(urn-formula) > 1e-8 || check.Mismatch {
		t.Errorf("p = %v, ln B = %v, by the urn %v", *check.PValue, formula, urn)
	}
}

func TestSampleRatioMismatch(t *testing.T) {
	half := Split{50, []float64{1}}
	thirds := Split{33, []float64{34, 33}}
	for _, test := range []struct {
		name     string
		periods  []SharePeriod
		mismatch bool
		reason   Reason
	}{
		{"even", []SharePeriod{{half, []int64{50_000, 50_100}}}, false, ""},
		{"48/52", []SharePeriod{{half, []int64{19_200, 20_800}}}, true, ""},
		{"few visitors", []SharePeriod{{half, []int64{3, 0}}}, false, ""},
		{"no visitors", []SharePeriod{{half, []int64{0, 0}}}, false, ""},
		{"thirds", []SharePeriod{{thirds, []int64{1_000_000, 1_000_000, 1_000_000}}}, false, ""},
		{"no thirds", []SharePeriod{{thirds, []int64{1_000_000, 1_080_000, 1_000_000}}}, true, ""},
		{"changed shares", []SharePeriod{{half, []int64{5000, 5000}}, {Split{10, []float64{1}}, []int64{1000, 9000}}}, false, ""},
		{"wrong after the change", []SharePeriod{{half, []int64{5000, 5000}}, {Split{10, []float64{1}}, []int64{2000, 9000}}}, true, ""},
		{"two periods, a little each", []SharePeriod{{half, []int64{9800, 10_200}}, {half, []int64{9800, 10_200}}}, false, ""},
		{"one variation", []SharePeriod{{Split{100, []float64{0}}, []int64{1000, 0}}}, false, ReasonTooFewVariations},
		{"nothing", nil, false, ReasonTooFewVariations},
		{"negative", []SharePeriod{{half, []int64{-1, 0}}}, false, ReasonInvalidData},
		{"other variations", []SharePeriod{{half, []int64{1, 1, 1}}}, false, ReasonInvalidData},
		{"no remainder", []SharePeriod{{Split{50, []float64{0}}, []int64{1, 1}}}, false, ReasonInvalidData},
	} {
		check := SampleRatioMismatch(test.periods)
		if check.Mismatch != test.mismatch || check.Reason != test.reason || (check.PValue == nil) != (test.reason != "") {
			t.Errorf("%s: %+v", test.name, check)
		}
		if check.PValue != nil && !(*check.PValue >= 0 && *check.PValue <= 1) {
			t.Errorf("%s: p = %v", test.name, *check.PValue)
		}
	}
	check := SampleRatioMismatch([]SharePeriod{{half, []int64{100, 100}}, {Split{10, []float64{1}}, []int64{10, 90}}})
	if !slices.Equal(check.Observed, []int64{110, 190}) || !slices.Equal(check.Expected, []float64{110, 190}) {
		t.Errorf("%+v", check)
	}
}

// TestSampleRatioMismatchPower simulates 48/52 and fair campaigns that are looked at each day
// with 1,000 visitors.
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
	if power < .985 || by21 < .93 || by21 > .97 || fair > .003 {
		t.Errorf("found by 30,000 visitors: %v, by 21,000: %v; fair: %v", power, by21, fair)
	}
	t.Logf("found by 30,000 visitors: %v, by 21,000: %v; fair: %v", power, by21, fair)
}
