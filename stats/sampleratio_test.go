package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lifthouse/schema/schematest/check"
)

func TestSplitExpected(t *testing.T) {
	tests := []struct {
		name  string
		split Split
		want  []float64
	}{
		{"control and two equals", Split{Control: 10, Variations: []float64{50, 50}}, []float64{0.1, 0.45, 0.45}},
		{"weights in proportion", Split{Control: 40, Variations: []float64{1, 2}}, []float64{0.4, 0.2, 0.4}},
		{"no control", Split{Variations: []float64{3, 1}}, []float64{0, 0.75, 0.25}},
		{"control alone", Split{Control: 100, Variations: []float64{0}}, []float64{1, 0}},
		{"nobody takes the rest", Split{Control: 40, Variations: []float64{0}}, nil},
		{"beyond all", Split{Control: 101, Variations: []float64{1}}, nil},
		{"negative weight", Split{Control: 1, Variations: []float64{1, -1}}, nil},
		{"NaN", Split{Control: math.NaN(), Variations: []float64{1}}, nil},
		{"infinite", Split{Control: 1, Variations: []float64{math.Inf(1)}}, nil},
	}
	for _, test := range tests {
		got := test.split.ExpectedShares()
		check.That(t, slices.EqualFunc(got, test.want, func(a, b float64) bool { return near(a, b, 1e-15) }), "%s: %v, want %v", test.name, got, test.want)
	}
}

func TestSampleRatioMismatchFormula(t *testing.T) {
	found := SampleRatioMismatch([]SharePeriod{{Split{40, []float64{1}}, []int64{500, 500}}})
	lg := func(x float64) float64 { v, _ := math.Lgamma(x); return v }
	// A Pólya urn: the product of the chances of every visitor under the prior.
	urn, a, b := 0.0, 1200.0, 1800.0
	for range 500 {
		urn += math.Log(a/(a+b)/.4) + math.Log(b/(a+b+1)/.6)
		a, b = a+1, b+1
	}
	formula := lg(3000) - lg(4000) + lg(1700) - lg(1200) - 500*math.Log(.4) + lg(2300) - lg(1800) - 500*math.Log(.6)
	check.That(t, math.Abs(math.Log(*found.PValue)+formula) <= 1e-8 && math.Abs(urn-formula) <= 1e-8 && !found.Mismatch,
		"p = %v, ln B = %v, by the urn %v", *found.PValue, formula, urn)
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
		{"thirds written 34, 33, 33", []SharePeriod{{Split{34, []float64{33, 33}}, []int64{1e6, 1e6, 1e6}}}, false, ""},
		{"thirds of what control leaves", []SharePeriod{{Split{5, []float64{33, 33, 34}}, []int64{150_000, 950_000, 950_000, 950_000}}}, false, ""},
		{"sixths written 17 and 16", []SharePeriod{{Split{0, []float64{17, 17, 17, 17, 16, 16}}, []int64{0, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6}}}, false, ""},
		{"a half and three sixths", []SharePeriod{{Split{50, []float64{17, 17, 16}}, []int64{3e6, 1e6, 1e6, 1e6}}}, false, ""},
		{"as written, too", []SharePeriod{{Split{34, []float64{33, 33}}, []int64{34e4, 33e4, 33e4}}}, false, ""},
		{"quarters are not thirds", []SharePeriod{{Split{34, []float64{33, 33}}, []int64{25e4, 25e4, 50e4}}}, true, ""},
		{"40/60 is not 5/12 and 7/12", []SharePeriod{{Split{40, []float64{1}}, []int64{5e5, 7e5}}}, true, ""},
		{"share 0 is left out", []SharePeriod{{Split{50, []float64{1, 0}}, []int64{1000, 900, 5000}}}, false, ""},
		{"changed shares", []SharePeriod{{half, []int64{5000, 5000}}, {Split{10, []float64{1}}, []int64{1000, 9000}}}, false, ""},
		{"wrong after the change", []SharePeriod{{half, []int64{5000, 5000}}, {Split{10, []float64{1}}, []int64{2000, 9000}}}, true, ""},
		{"two periods, a little each", []SharePeriod{{half, []int64{9800, 10_200}}, {half, []int64{9800, 10_200}}}, false, ""},
		{"one variation", []SharePeriod{{Split{100, []float64{0}}, []int64{1000, 0}}}, false, ReasonTooFewVariations},
		{"nothing", nil, false, ReasonTooFewVariations},
		{"negative", []SharePeriod{{half, []int64{-1, 0}}}, false, ReasonInvalidData},
		{"other variations", []SharePeriod{{half, []int64{1, 1, 1}}}, false, ReasonInvalidData},
		{"no remainder", []SharePeriod{{Split{50, []float64{0}}, []int64{1, 1}}}, false, ReasonInvalidData},
	} {
		found := SampleRatioMismatch(test.periods)
		check.That(t, found.Mismatch == test.mismatch && found.Reason == test.reason && (found.PValue == nil) == (test.reason != ""), "%s: %+v", test.name, found)
		mustFinite(t, found)
		if found.PValue != nil && !(*found.PValue >= 0 && *found.PValue <= 1) {
			t.Errorf("%s: p = %v", test.name, *found.PValue)
		}
	}
	found := SampleRatioMismatch([]SharePeriod{{half, []int64{100, 100}}, {Split{10, []float64{1}}, []int64{10, 90}}})
	check.That(t, slices.Equal(found.Observed, []int64{110, 190}) && slices.Equal(found.Expected, []float64{110, 190}), "%+v", found)
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
	check.That(t, power >= .985 && by21 >= .93 && by21 <= .97 && fair <= .003, "found by 30,000 visitors: %v, by 21,000: %v; fair: %v", power, by21, fair)
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
	tests := []struct {
		name                   string
		multiExposed, visitors []int64
		skewed                 bool
		reason                 Reason
	}{
		{"none", []int64{0, 0}, []int64{500, 500}, false, ReasonTooFewVisitors},
		{"few and even", []int64{50, 51}, []int64{10000, 10000}, false, ""},
		{"many and even", []int64{200, 201}, []int64{10000, 10000}, false, ""},
		{"few and uneven", []int64{30, 90}, []int64{10000, 10000}, true, ""},
		{"an empty variation", []int64{50, 0, 55}, []int64{10000, 0, 10000}, false, ""},
		{"one variation", []int64{50}, []int64{10000}, false, ReasonTooFewVariations},
		{"nobody", []int64{0, 0}, []int64{0, 0}, false, ReasonNoVisitors},
		{"more than there are", []int64{9, 0}, []int64{8, 100}, false, ReasonInvalidData},
		{"unequal lengths", []int64{9}, []int64{80, 100}, false, ReasonInvalidData},
		{"everybody", []int64{80, 90}, []int64{80, 90}, false, ReasonTooFewVisitors},
	}
	for _, test := range tests {
		got := CompareShares(test.multiExposed, test.visitors)
		check.That(t, got.Differ == test.skewed && got.Reason == test.reason && (got.PValue == nil) == (test.reason != ""), "%s: %+v", test.name, got)
		mustFinite(t, got)
	}
	// chi² = 2 (30 - 60)² / (60 (1 - .006)), whose tail is erfc(sqrt(chi²/2)).
	if got := *CompareShares([]int64{30, 90}, []int64{10000, 10000}).PValue; !near(got, 3.9352851e-08, 1e-7) {
		t.Errorf("p = %v", got)
	}
	// The .05 quantile of 4 degrees of freedom.
	if got := chiSquareSurvival(9.487729036781154, 4); !near(got, 0.05, 1e-12) {
		t.Errorf("tail %v, want .05", got)
	}
}
