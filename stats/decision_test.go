package stats

import (
	"slices"
	"testing"
)

// looksAt returns the looks at a campaign of two or more variations with the given
// converted visitors per variation at each look, of 1,000 visitors per look each.
func looksAt(converted ...[]int64) []Look {
	looks := make([]Look, len(converted))
	for i, each := range converted {
		n := int64(i+1) * 1000
		for _, x := range each {
			looks[i].Samples = append(looks[i].Samples, Rate{Visitors: n, Converted: x})
			looks[i].Visitors += n
		}
	}
	return looks
}

func TestDecide(t *testing.T) {
	plan := DecisionPlan{Shares: []float64{1, 1}, MinimumEffect: 0.2, Power: 0.8}
	three := DecisionPlan{Shares: []float64{1, 1, 1}, MinimumEffect: 0.2, Power: 0.8}
	even := []int64{100, 102}
	for _, test := range []struct {
		name    string
		looks   []Look
		plan    DecisionPlan
		planned int64
		level   int

		plannedLook, decided int // look; -1: none
		atPlannedLook        bool
		status               Status
		index                int
	}{
		{name: "no looks", plan: plan, planned: 4000, level: 95, plannedLook: -1, decided: -1},
		{name: "not yet", looks: looksAt(even), plan: plan, planned: 4000, level: 95, plannedLook: -1, decided: -1},
		{name: "nothing", looks: looksAt(even, []int64{200, 203}), plan: plan, planned: 4000, level: 95, plannedLook: 1, decided: -1},
		// p = .022 at the planned look; it would not do at any other.
		{name: "at the planned look", looks: looksAt(even, []int64{200, 249}, []int64{300, 320}), plan: plan, planned: 4000, level: 95, plannedLook: 1, decided: 1, atPlannedLook: true, status: StatusWinner},
		{name: "one look late", looks: looksAt(even, []int64{200, 203}, []int64{300, 355}), plan: plan, planned: 4000, level: 95, plannedLook: 1, decided: -1},
		// p = .048 is below alpha, but not below .9 alpha.
		{name: "ahead", looks: looksAt(even, []int64{200, 239}), plan: plan, planned: 4000, level: 95, plannedLook: 1, decided: -1},
		{name: "before the planned look, and back", looks: looksAt([]int64{100, 190}, []int64{200, 203}), plan: plan, planned: 4000, level: 95, plannedLook: 1, decided: 0, status: StatusWinner},
		{name: "after the planned look", looks: looksAt(even, []int64{200, 203}, []int64{400, 300}), plan: plan, planned: 4000, level: 95, plannedLook: 1, decided: 2, status: StatusLoser},
		{name: "a loser, then a winner", looks: looksAt([]int64{100, 30, 105}, []int64{200, 90, 210}, []int64{300, 150, 420}), plan: three, planned: 6000, level: 95, plannedLook: 1, decided: 2, status: StatusWinner, index: 1},
		{name: "a loser does not become the winner", looks: looksAt([]int64{100, 30}, []int64{200, 420}, []int64{300, 630}), plan: plan, planned: 4000, level: 95, plannedLook: 1, decided: 0, status: StatusLoser},
		{name: "a winner stays", looks: looksAt([]int64{100, 30, 190}, []int64{200, 290, 300}), plan: three, planned: 6000, level: 95, plannedLook: 1, decided: 0, status: StatusWinner, index: 1},
		{name: "level 100", looks: looksAt(even, []int64{200, 290}), plan: plan, planned: 4000, level: 100, plannedLook: 1, decided: -1},
	} {
		d := Decide(test.looks, test.plan, Options{SignificanceLevel: test.level, Shares: test.plan.Shares, PlannedVisitors: test.planned})
		if d.PlannedLook != test.plannedLook || (d.AtPlannedLook != nil) != (d.PlannedLook >= 0) {
			t.Errorf("%s: planned look %d with %d comparisons, want %d", test.name, d.PlannedLook, len(d.AtPlannedLook), test.plannedLook)
		}
		if (d.Decided != nil) != (test.decided >= 0) {
			t.Errorf("%s: decided %+v", test.name, d.Decided)
			continue
		}
		if x := d.Decided; x != nil && (x.Look != test.decided || x.PlannedLook != test.atPlannedLook || x.Conclusion.Status != test.status || x.Conclusion.Index != test.index) {
			t.Errorf("%s: %+v", test.name, *x)
		}
	}
}

// TestDecideWithoutPlannedVisitors checks that rates take their sample from the data
// up to each look, and that means have none.
func TestDecideWithoutPlannedVisitors(t *testing.T) {
	plan := DecisionPlan{Shares: []float64{1, 1}, MinimumEffect: 0.2, Power: 0.8}
	o := Options{SignificanceLevel: 95, Shares: plan.Shares}
	looks := looksAt([]int64{0, 10}, []int64{200, 203}, []int64{300, 310}, []int64{400, 410}, []int64{500, 510})
	d := Decide(looks, plan, o)
	at := looks[d.PlannedLook]
	want := Power(Plan{Control: at.Samples[0], Shares: plan.Shares, Visitors: at.Visitors, MinimumEffect: 0.2, Power: 0.8}, o)
	if d.PlannedLook != 3 || *d.Required != *want.RequiredVisitors || *want.Progress < 1 {
		t.Errorf("planned look %d with %d visitors, want %d", d.PlannedLook, *d.Required, *want.RequiredVisitors)
	}
	if d := Decide(looks[:1], plan, o); d.Required != nil || d.Reason != ReasonBaselineZero {
		t.Errorf("no conversions in control: %+v", d)
	}
	m := []Look{{Samples: []Sample{mean(5000, 1, 3), mean(5000, 1.01, 3)}, Visitors: 10_000}}
	if d := Decide(m, plan, o); d.PlannedLook != -1 || d.Reason != ReasonNoPlannedSample {
		t.Errorf("means: %+v", d)
	}
}

// TestAnySignificantAgreesWithCompare checks the quick test of a look.
func TestAnySignificantAgreesWithCompare(t *testing.T) {
	r := newRand(31)
	for range rounds(2000) {
		o := randomOptions(r)
		control := randomRate(r)
		treatments := []Sample{randomRival(r, control), randomRival(r, control)}
		if r.IntN(2) == 0 {
			o.Shares = []float64{1, r.Float64(), float64(r.IntN(2))}
		}
		want := slices.ContainsFunc(Compare(control, treatments, o), func(c Comparison) bool { return c.Sequential.Significant })
		if got := AnySignificant(control, treatments, o); got != want {
			t.Fatalf("AnySignificant(%v, %v, %+v) = %v", control, treatments, o, got)
		}
	}
}
