package stats

import (
	"fmt"
	"slices"
	"testing"
)

var level95 = Options{SignificanceLevel: 95}

// atLook returns comparisons with the p-values of the sequence at the planned look. A
// negative p-value is that of a negative difference.
func atLook(p ...float64) []Comparison {
	var all []Comparison
	for _, p := range p {
		verdict, difference := VerdictBetter, 1.0
		if p < 0 {
			verdict, difference, p = VerdictWorse, -1, -p
		}
		c := said(verdict, difference, 0.9*p, p)
		c.Sequential.PlannedLook = true
		all = append(all, c)
	}
	return all
}

// cellNow returns a cell with one comparison.
func cellNow(p, sequential float64, rank int) CellEvidence {
	return CellEvidence{Evidence: Evidence{Comparisons: []Comparison{said(VerdictBetter, 1, p, sequential)}}, Rank: rank}
}

// nothingNow returns a cell without an effect at this look.
func nothingNow(then []Comparison) CellEvidence {
	cell := CellEvidence{AtPlannedLook: then}
	for range max(len(then), 1) {
		cell.Comparisons = append(cell.Comparisons, said(VerdictInconclusive, 0.1, 0.7, 1))
	}
	return cell
}

// texts returns the conclusions as text: status, index, and whether the planned look
// decided.
func texts(cells ...CellEvidence) []string {
	var all []string
	for _, c := range ConcludeCells(cells, level95) {
		text := fmt.Sprint(c.Status, " ", c.Index)
		if c.Decided != nil {
			text += " planned"
		}
		all = append(all, text)
	}
	return all
}

func TestVerdictsOfCellsAreWeakenedByHolm(t *testing.T) {
	// .04 * 1, .01 * 3, .03 * 2 = .06. The procedure stops at .06, before .04.
	got := texts(cellNow(0.04, 1e-6, 1), cellNow(0.01, 1e-6, 2), cellNow(0.03, 1e-6, 3))
	if want := []string{"inconclusive -1", "winner 0", "inconclusive -1"}; !slices.Equal(got, want) {
		t.Errorf("three cells: %v, want %v", got, want)
	}
	// Cells without a p-value do not count.
	if got := texts(CellEvidence{}, cellNow(0.04, 1e-6, 1), CellEvidence{}); got[1] != "winner 0" {
		t.Errorf("one cell of three has data: %v", got)
	}
	cells := []CellEvidence{cellNow(0.04, 0.001, 1), cellNow(0.03, 1, 2)}
	if c := ConcludeCells(cells, level95)[0]; !slices.Equal(c.Reasons, []Reason{ReasonNotSignificantAcrossBreakdown}) {
		t.Errorf("reasons %v", c.Reasons)
	}
	if c := cells[0].Comparisons[0]; c.Verdict != VerdictBetter || !c.Sequential.Significant || len(c.Reasons) > 0 {
		t.Errorf("the comparison given is changed to %+v", c)
	}
}

// TestCellsAtTheirRanks checks both sides of alpha / (j (j + 1)).
func TestCellsAtTheirRanks(t *testing.T) {
	for _, test := range []struct {
		rank       int
		sequential float64
		want       bool
	}{
		{0, 1e-9, false},
		{1, 0.0249, true},
		{1, 0.0251, false},
		{2, 0.0083, true},
		{2, 0.0084, false},
		{7, 0.00089, true},
		{7, 0.0009, false},
	} {
		c := ConcludeCells([]CellEvidence{cellNow(0.001, test.sequential, test.rank)}, level95)[0]
		if (c.Status == StatusWinner) != test.want || c.Conclusive[0] != test.want || c.Decided != nil {
			t.Errorf("rank %d, p %v: %+v", test.rank, test.sequential, c)
		}
	}
	cell := cellNow(0.001, 0.04, 1)
	if c := ConcludeCells([]CellEvidence{cell}, level95)[0]; !slices.Equal(c.Reasons, []Reason{ReasonTooEarly}) {
		t.Errorf("reasons %v", c.Reasons)
	}
	cell.Pending = ReasonPlannedLookInconclusive
	if c := ConcludeCells([]CellEvidence{cell}, level95)[0]; !slices.Equal(c.Reasons, []Reason{ReasonPlannedLookInconclusive}) {
		t.Errorf("reasons %v", c.Reasons)
	}
	planned := CellEvidence{Evidence: Evidence{Comparisons: atLook(1e-9)}, Rank: 1}
	if got := texts(planned); got[0] != "inconclusive -1" {
		t.Errorf("the p-value of a planned look passes as always-valid: %v", got)
	}
}

func TestCellsAtThePlannedLook(t *testing.T) {
	for _, test := range []struct {
		name  string
		cells []CellEvidence
		want  []string
	}{
		{"later data say nothing", []CellEvidence{nothingNow(atLook(0.04))}, []string{"winner 0 planned"}},
		{"a loser", []CellEvidence{nothingNow(atLook(-0.04))}, []string{"loser 0 planned"}},
		{"not significant then", []CellEvidence{nothingNow(atLook(0.051))}, []string{"inconclusive -1"}},
		// .02 * 2, .04 * 1; .02 * 3 = .06 with a third cell.
		{"two pass", []CellEvidence{nothingNow(atLook(0.02)), nothingNow(atLook(0.04))}, []string{"winner 0 planned", "winner 0 planned"}},
		{"none of three", []CellEvidence{nothingNow(atLook(0.02)), nothingNow(atLook(0.04)), nothingNow(atLook(0.9))}, []string{"inconclusive -1", "inconclusive -1", "inconclusive -1"}},
		{"stopped before the last", []CellEvidence{nothingNow(atLook(0.01)), nothingNow(atLook(0.03)), nothingNow(atLook(0.04))}, []string{"winner 0 planned", "inconclusive -1", "inconclusive -1"}},
		{"a cell that was too small then does not count", []CellEvidence{nothingNow(atLook(0.04)), nothingNow(nil)}, []string{"winner 0 planned", "inconclusive -1"}},
		{"a cell that is no longer in the report counts", []CellEvidence{nothingNow(atLook(0.04)), {AtPlannedLook: atLook(0.9)}}, []string{"inconclusive -1", "insufficientData -1"}},
		// The second cell is not rejected as a whole, so the first one keeps the factor 2.
		{"two treatments", []CellEvidence{nothingNow(atLook(0.04, 0.9)), nothingNow(atLook(0.001, 0.9))}, []string{"inconclusive -1", "winner 0 planned"}},
		{"both treatments pass", []CellEvidence{nothingNow(atLook(0.04, 0.9)), nothingNow(atLook(0.001, -0.02))}, []string{"winner 0 planned", "winner 0 planned"}},
	} {
		if got := texts(test.cells...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestPlannedLookOfACellStands checks what later looks may change.
func TestPlannedLookOfACellStands(t *testing.T) {
	conclude := func(change func(*CellEvidence)) CellConclusion {
		cell := nothingNow(atLook(0.04))
		change(&cell)
		return ConcludeCells([]CellEvidence{cell}, level95)[0]
	}
	then := atLook(0.04)[0]
	if c := conclude(func(*CellEvidence) {}); c.Conclusive[0] || len(c.Decided) != 1 || *c.Decided[0].Sequential.PValue != *then.Sequential.PValue {
		t.Errorf("inconclusive today: %+v", c)
	}
	if c := conclude(func(cell *CellEvidence) { cell.Comparisons = []Comparison{then} }); !c.Conclusive[0] {
		t.Errorf("the same verdict today: %+v", c)
	}
	worse := said(VerdictWorse, -1, 1e-9, 1e-9)
	if c := conclude(func(cell *CellEvidence) { cell.Comparisons, cell.Rank = []Comparison{worse}, 1 }); c.Status != StatusWinner {
		t.Errorf("a loser today: %+v", c)
	}
	c := conclude(func(cell *CellEvidence) { cell.SampleRatioMismatch = true })
	if c.Status != StatusInvalid || c.Index != -1 || c.Decided != nil || c.Conclusive[0] {
		t.Errorf("the sample ratio is wrong: %+v", c)
	}
	// A cell that was inconclusive at the planned look becomes conclusive later.
	later := cellNow(1e-6, 0.02, 1)
	later.AtPlannedLook = atLook(0.06)
	if got := texts(later); got[0] != "winner 0" {
		t.Errorf("always-valid after the planned look: %v", got)
	}
	// At level 100, nothing is conclusive.
	for _, c := range ConcludeCells([]CellEvidence{nothingNow(atLook(1e-9)), cellNow(1e-9, 1e-9, 1)}, Options{SignificanceLevel: 100}) {
		if c.Index >= 0 {
			t.Errorf("level 100: %+v", c)
		}
	}
}
