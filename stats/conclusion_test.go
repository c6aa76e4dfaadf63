package stats

import (
	"slices"
	"testing"
)

// said returns a comparison with the fields that Conclude reads.
func said(verdict Verdict, difference, p, sequential float64) Comparison {
	return Comparison{
		Difference:  Effect{Value: &difference},
		Frequentist: &Frequentist{PValue: &p, AdjustedPValue: &p},
		Sequential:  &Sequential{PValue: &sequential, Significant: sequential < 0.05},
		Significant: p < 0.05,
		Verdict:     verdict,
		Reasons:     []Reason{},
	}
}

func TestConclude(t *testing.T) {
	half := 0.5
	better, seen := said(VerdictBetter, 2, 0.01, 0.2), said(VerdictBetter, 1, 0.001, 0.01)
	most := said(VerdictBetter, 3, 0.001, 0.01)
	worse, even := said(VerdictWorse, -3, 0.001, 0.01), said(VerdictInconclusive, 5, 0.4, 1)
	less, empty := said(VerdictWorse, -4, 0.01, 0.3), Comparison{Verdict: VerdictInsufficientData, Reasons: []Reason{ReasonNoVisitors}}
	tests := []struct {
		name     string
		evidence Evidence
		status   Status
		index    int
		reasons  []Reason
	}{
		{"nothing", Evidence{}, StatusInsufficientData, -1, []Reason{}},
		{"no data", Evidence{Comparisons: []Comparison{empty}}, StatusInsufficientData, -1, []Reason{ReasonNoVisitors}},
		{"one even, one empty", Evidence{Comparisons: []Comparison{empty, even}}, StatusInconclusive, -1, []Reason{ReasonNoVisitors}},
		{"better, too early", Evidence{Comparisons: []Comparison{better}}, StatusInconclusive, -1, []Reason{ReasonTooEarly}},
		{"better, another reason", Evidence{Comparisons: []Comparison{even, better}, Pending: ReasonPlannedLookInconclusive}, StatusInconclusive, -1, []Reason{ReasonPlannedLookInconclusive}},
		{"better at any look", Evidence{Comparisons: []Comparison{even, seen}}, StatusWinner, 1, []Reason{}},
		{"the larger one is too early", Evidence{Comparisons: []Comparison{seen, better}}, StatusWinner, 0, []Reason{}},
		{"the largest of two", Evidence{Comparisons: []Comparison{seen, most}}, StatusWinner, 1, []Reason{}},
		{"a winner beside a loser", Evidence{Comparisons: []Comparison{worse, seen}}, StatusWinner, 1, []Reason{}},
		{"a loser", Evidence{Comparisons: []Comparison{even, worse}}, StatusLoser, 1, []Reason{}},
		{"a loser beside a worse one that is too early", Evidence{Comparisons: []Comparison{less, worse}}, StatusLoser, 1, []Reason{}},
		{"a loser too early", Evidence{Comparisons: []Comparison{less}}, StatusInconclusive, -1, []Reason{ReasonTooEarly}},
		{"mismatch", Evidence{Comparisons: []Comparison{better}, SampleRatioMismatch: true}, StatusInvalid, -1, []Reason{ReasonSampleRatioMismatch}},
	}
	for _, test := range tests {
		got := Conclude(test.evidence)
		if got.Status != test.status || got.Index != test.index || !slices.Equal(got.Reasons, test.reasons) {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
	chance := 0.99
	for _, significant := range []bool{true, false} {
		bayes := Comparison{
			Difference: Effect{Value: &half}, Bayesian: &Bayesian{ChanceToBeatControl: &chance}, Verdict: VerdictBetter,
			Sequential: &Sequential{Significant: significant},
		}
		if got := Conclude(Evidence{Comparisons: []Comparison{bayes}}); (got.Status == StatusWinner) != significant || got.Conclusive[0] != significant {
			t.Errorf("Bayesian with a sequence significant %v: %+v", significant, got)
		}
	}
}

func TestHolm(t *testing.T) {
	tests := []struct{ p, want []float64 }{
		{nil, []float64{}},
		{[]float64{0.04}, []float64{0.04}},
		{[]float64{0.01, 0.04, 0.03}, []float64{0.03, 0.06, 0.06}},
		{[]float64{0.9, 0.8}, []float64{1, 1}},
		{[]float64{0.02, -1, 0.02}, []float64{0.04, 1, 0.04}},
	}
	for _, test := range tests {
		got := Holm(test.p)
		if !slices.EqualFunc(got, test.want, func(a, b float64) bool { return near(a, b, 1e-12) }) {
			t.Errorf("Holm(%v) = %v, want %v", test.p, got, test.want)
		}
	}
}
