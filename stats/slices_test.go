package stats

import (
	"slices"
	"testing"
)

// withP returns a comparison with a fixed-horizon p-value.
func withP(p float64) Comparison {
	c := Comparison{Frequentist: &Frequentist{PValue: &p, AdjustedPValue: &p}, Significant: p < 0.05, Verdict: VerdictInconclusive, Reasons: []Reason{}}
	if c.Significant {
		c.Verdict = VerdictBetter
	}
	return c
}

func TestWeakenAcrossSlices(t *testing.T) {
	chance := 0.001
	for _, test := range []struct {
		name string
		all  [][]Comparison
		want []bool // whether the verdict of the first comparison remains
	}{
		// .01 * 3, .03 * 2 = .06. The procedure stops at .06, before .04.
		{"three slices", [][]Comparison{{withP(.04)}, {withP(.01)}, {withP(.03)}}, []bool{false, true, false}},
		{"two slices", [][]Comparison{{withP(.04)}, {withP(.02)}}, []bool{true, true}},
		{"slices without a p-value do not count", [][]Comparison{{}, {withP(.04)}, {{Verdict: VerdictInsufficientData}}}, []bool{false, true, false}},
		{"the smallest p-value of a slice", [][]Comparison{{withP(.03), withP(.001)}, {withP(.04)}}, []bool{false, true}},
		{"the rest of a slice that passes", [][]Comparison{{withP(.02), withP(.001)}, {withP(.04)}}, []bool{true, true}},
		{"Bayesian", [][]Comparison{{{Bayesian: &Bayesian{ChanceToBeatControl: &chance}, Verdict: VerdictWorse}}, {withP(.04)}}, []bool{true, true}},
	} {
		given := slices.Clone(test.all[0])
		WeakenAcrossSlices(test.all, Options{SignificanceLevel: 95})
		for i, part := range test.all {
			if len(part) == 0 || part[0].Verdict == VerdictInsufficientData {
				continue
			}
			remains := part[0].Verdict != VerdictInconclusive
			if remains != test.want[i] || remains == slices.Contains(part[0].Reasons, ReasonNotSignificantAcrossBreakdown) {
				t.Errorf("%s: slice %d: %+v", test.name, i, part[0])
			}
		}
		if len(given) > 0 && len(given[0].Reasons) > 0 {
			t.Errorf("%s: the reasons given are changed", test.name)
		}
	}
	all := [][]Comparison{{withP(1e-9)}}
	if WeakenAcrossSlices(all, Options{SignificanceLevel: 100}); all[0][0].Verdict != VerdictInconclusive {
		t.Errorf("level 100: %+v", all[0][0])
	}
}

func TestHolmFactors(t *testing.T) {
	for _, test := range []struct{ p, want []float64 }{
		{nil, []float64{}},
		{[]float64{.04}, []float64{1}},
		{[]float64{.01, .04, .03}, []float64{3, 0, 0}},
		{[]float64{.01, .04, .02}, []float64{3, 1, 2}},
		{[]float64{.02, -1, .02}, []float64{2, 0, 1}},
	} {
		if got := holmFactors(test.p, 0.05); !slices.Equal(got, test.want) {
			t.Errorf("holmFactors(%v) = %v, want %v", test.p, got, test.want)
		}
	}
}
