package calibration

import (
	"math/rand/v2"
	"slices"
	"testing"

	"lifthouse/stats"
)

// TestBreakdownErrors runs two scenarios with few experiments. Without any correction for
// the number of cells, the errors are outside the band.
func TestBreakdownErrors(t *testing.T) {
	o := DecisionOptions{Experiments: 300, Seed: 1}
	c := usual.with(50, 50)
	if d := mustDecide(t, o, c.breakdownError(), usual.with(40, 30, 30).plannedAt(20_000).breakdownError(1)); d.Err() != nil {
		t.Errorf("%v\n%s", d.Err(), decisionText(d))
	}
	wrong := c.breakdownError()
	options := c.options()
	options.PlannedLook = true
	wrong.simulate = func(random *rand.Rand) []observation {
		b := newBreakdown(c)
		b.arrive(random, wrong.planned, nil)
		return []observation{{counted: true, occurred: slices.ContainsFunc(b.cells, func(cell []totals) bool {
			samples := c.samples(cell)
			return stats.AnySignificant(samples[0], samples[1:], options)
		})}}
	}
	if d := mustDecide(t, o, wrong); d.Outside != 1 {
		t.Errorf("uncorrected cells are inside the band:\n%s", decisionText(d))
	}
}

// TestRanksOfSimulatedCells checks when cells get their ranks, and in which order.
func TestRanksOfSimulatedCells(t *testing.T) {
	b := newBreakdown(usual.with(50, 50))
	add := func(cell int, visitors ...int64) {
		for i, n := range visitors {
			b.cells[cell][i].visitors += n
		}
	}
	add(0, 100, 99)
	add(1, 100, 100)
	add(2, 120, 120)
	for day := 1; day <= 5; day++ {
		b.rank(day)
		want := []int{2, 1}
		if day >= 4 {
			want = []int{2, 1, 0}
		}
		if !slices.Equal(b.order, want) {
			t.Errorf("day %d: order %v, want %v", day, b.order, want)
		}
		if day == 2 {
			add(0, 0, 200)
		}
	}
}
