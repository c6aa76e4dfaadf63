package stats

import (
	"math"
	"slices"
	"testing"
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
		got := test.split.Expected()
		if !slices.EqualFunc(got, test.want, func(a, b float64) bool { return near(a, b, 1e-15) }) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestSampleRatio(t *testing.T) {
	tests := []struct {
		name     string
		observed []int64
		split    Split
		mismatch bool
		reason   Reason
		p        float64 // 0: not checked
	}{
		// The first two are from GrowthBook's tests. chi² of the share 0 is 100²/1900.
		{"half and half", []int64{1000, 1200}, Split{Control: 50, Variations: []float64{100}}, true, "", 2.0079e-05},
		{"close", []int64{135, 115}, Split{Control: 50, Variations: []float64{100}}, false, "", 0.205903211},
		{"5/95 as planned", []int64{500, 9500}, Split{Control: 5, Variations: []float64{100}}, false, "", 1},
		{"5/95 off", []int64{620, 9380}, Split{Control: 5, Variations: []float64{100}}, true, "", 0},
		{"thirds written 34, 33, 33", []int64{1e6, 1e6, 1e6}, Split{Control: 34, Variations: []float64{33, 33}}, false, "", 1},
		{"thirds written 33, 33, 34", []int64{0, 1e6, 1e6, 1e6}, Split{Variations: []float64{33, 33, 34}}, false, "", 1},
		{"thirds of what control leaves", []int64{150000, 950000, 950000, 950000}, Split{Control: 5, Variations: []float64{33, 33, 34}}, false, "", 1},
		{"sixths written 17 and 16", []int64{0, 1e6, 1e6, 1e6, 1e6, 1e6, 1e6}, Split{Variations: []float64{17, 17, 17, 17, 16, 16}}, false, "", 1},
		{"a half and three sixths", []int64{3e6, 1e6, 1e6, 1e6}, Split{Control: 50, Variations: []float64{17, 17, 16}}, false, "", 1},
		{"as written, too", []int64{34e4, 33e4, 33e4}, Split{Control: 34, Variations: []float64{33, 33}}, false, "", 1},
		{"quarters are not thirds", []int64{25e4, 25e4, 50e4}, Split{Control: 34, Variations: []float64{33, 33}}, true, "", 0},
		{"40/60 is not 5/12 and 7/12", []int64{5e5, 7e5}, Split{Control: 40, Variations: []float64{1}}, true, "", 0},
		{"share 0 is left out", []int64{1000, 900, 5000}, Split{Control: 50, Variations: []float64{1, 0}}, false, "", 0.0217815},
		{"99 visitors", []int64{9, 90}, Split{Control: 50, Variations: []float64{1}}, false, ReasonTooFewVisitors, 0},
		{"a cell below 5", []int64{0, 400}, Split{Control: 1, Variations: []float64{1}}, false, ReasonTooFewVisitors, 0},
		{"nobody", []int64{0, 0}, Split{Control: 50, Variations: []float64{1}}, false, ReasonTooFewVisitors, 0},
		{"one variation", []int64{0, 500}, Split{Variations: []float64{1}}, false, ReasonTooFewVariations, 0},
		{"a variation too many", []int64{1, 2, 3}, Split{Control: 50, Variations: []float64{1}}, false, ReasonInvalidData, 0},
		{"negative count", []int64{-1, 200}, Split{Control: 50, Variations: []float64{1}}, false, ReasonInvalidData, 0},
	}
	for _, test := range tests {
		got := SampleRatio(test.observed, test.split)
		if got.Mismatch != test.mismatch || got.Reason != test.reason || (got.PValue == nil) != (test.reason != "") {
			t.Errorf("%s: %+v", test.name, got)
		}
		if test.p > 0 && !near(*got.PValue, test.p, 1e-4) {
			t.Errorf("%s: p = %v, want %v", test.name, *got.PValue, test.p)
		}
		mustFinite(t, got)
	}
	got := SampleRatio([]int64{1e6, 1e6, 1e6}, Split{Control: 34, Variations: []float64{33, 33}})
	if !near(got.Expected[0], 1e6, 1e-12) {
		t.Errorf("expected %v, which is not the division of the p-value", got.Expected)
	}
}

func TestLeak(t *testing.T) {
	tests := []struct {
		visitors, total int64
		want            bool
	}{{0, 0, false}, {5, 1000, false}, {6, 1000, true}, {100, 1e6, false}, {101, 1e6, true}}
	for _, test := range tests {
		if got := Leak(test.visitors, test.total); got != test.want {
			t.Errorf("Leak(%d, %d) = %v", test.visitors, test.total, got)
		}
	}
}

func TestMultipleExposureSkew(t *testing.T) {
	tests := []struct {
		name                   string
		multiExposed, visitors []int64
		skewed, warning        bool
		reason                 Reason
	}{
		{"none", []int64{0, 0}, []int64{500, 500}, false, false, ReasonTooFewVisitors},
		{"few and even", []int64{50, 51}, []int64{10000, 10000}, false, false, ""},
		{"many and even", []int64{200, 201}, []int64{10000, 10000}, false, true, ""},
		{"few and uneven", []int64{30, 90}, []int64{10000, 10000}, true, true, ""},
		{"an empty variation", []int64{50, 0, 55}, []int64{10000, 0, 10000}, false, false, ""},
		{"one variation", []int64{50}, []int64{10000}, false, false, ReasonTooFewVariations},
		{"nobody", []int64{0, 0}, []int64{0, 0}, false, false, ReasonNoVisitors},
		{"more than there are", []int64{9, 0}, []int64{8, 100}, false, false, ReasonInvalidData},
		{"unequal lengths", []int64{9}, []int64{80, 100}, false, false, ReasonInvalidData},
		{"everybody", []int64{80, 90}, []int64{80, 90}, false, true, ReasonTooFewVisitors},
	}
	for _, test := range tests {
		got := MultipleExposureSkew(test.multiExposed, test.visitors)
		if got.Skewed != test.skewed || got.Warning != test.warning || got.Reason != test.reason || (got.PValue == nil) != (test.reason != "") {
			t.Errorf("%s: %+v", test.name, got)
		}
		mustFinite(t, got)
	}
	// chi² = 2 (30 - 60)² / (60 (1 - .006)), whose tail is erfc(sqrt(chi²/2)).
	if got := *MultipleExposureSkew([]int64{30, 90}, []int64{10000, 10000}).PValue; !near(got, 3.9352851e-08, 1e-7) {
		t.Errorf("p = %v", got)
	}
}
