package stats

import (
	"math"
	"testing"
)

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
