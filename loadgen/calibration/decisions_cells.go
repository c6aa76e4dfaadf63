package calibration

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"lifthouse/stats"
)

const breakdownErrors = "Breakdown by 8 values: conclusive without an effect in any cell at any of 50 looks"

// cellShares are the shares of the visitors of the cells of a breakdown.
var cellShares = []float64{40, 20, 12, 10, 8, 5, 3, 2}

// simulatedBreakdown is a breakdown during an experiment.
type simulatedBreakdown struct {
	campaign *campaign
	cells    [][]totals // by cell and variation
	planned  [][]stats.Comparison
	order    []int // the cells with a rank
}

func newBreakdown(c *campaign) *simulatedBreakdown {
	b := &simulatedBreakdown{campaign: c, planned: make([][]stats.Comparison, len(cellShares))}
	for range cellShares {
		b.cells = append(b.cells, make([]totals, len(c.shares)))
	}
	return b
}

// breakdownError counts experiments for which any look finds an effect in any cell for a
// treatment without one. The given lifts are those of the first treatments; the others
// have none.
func (c *campaign) breakdownError(lifts ...float64) scenario {
	s := c.scenario(breakdownErrors)
	name := "without an effect"
	if len(lifts) > 0 {
		name = "without an effect, beside one with"
	}
	s.measures = []decisionMeasure{{name: name, most: decisionAlpha}}
	days := slices.Concat(equalDays(s.planned, daysToPlan), growingDays(s.planned, daysAfterPlan, lastMultiple))
	s.simulate = func(random *rand.Rand) []observation {
		b := newBreakdown(c)
		before := int64(0)
		for day, n := range days {
			b.arrive(random, n-before, slices.Concat([]float64{0}, lifts))
			if b.errs(day+1, before < s.planned && n >= s.planned, len(lifts)) {
				return []observation{{counted: true, occurred: true}}
			}
			before = n
		}
		return []observation{{counted: true}}
	}
	return s
}

// arrive divides new visitors between the cells.
func (b *simulatedBreakdown) arrive(random *rand.Rand, visitors int64, lifts []float64) {
	left := 0.0
	for _, share := range cellShares {
		left += share
	}
	for i, share := range cellShares {
		arriving := visitors
		if i+1 < len(cellShares) {
			arriving = drawBinomial(random, visitors, share/left)
		}
		visitors, left = visitors-arriving, left-share
		b.campaign.arrive(random, b.cells[i], arriving, lifts...)
	}
}

// errs judges the cells at the end of a day. It reports whether a treatment after the
// first ones, which have an effect, is conclusive.
func (b *simulatedBreakdown) errs(day int, plannedLook bool, effects int) bool {
	b.rank(day)
	o := b.campaign.options()
	o.PlannedLook = plannedLook
	if !plannedLook && !b.mayErr(effects) {
		return false
	}
	evidence := make([]stats.CellEvidence, len(b.cells))
	for i, cell := range b.cells {
		samples := b.campaign.samples(cell)
		evidence[i].Comparisons = stats.Compare(samples[0], samples[1:], o)
		evidence[i].Rank = slices.Index(b.order, i) + 1
		if plannedLook && isLarge(cell) {
			b.planned[i] = evidence[i].Comparisons
		}
		evidence[i].AtPlannedLook = b.planned[i]
	}
	return slices.ContainsFunc(stats.ConcludeCells(evidence, o), func(c stats.CellConclusion) bool {
		return slices.Contains(c.Conclusive[effects:], true)
	})
}

// mayErr reports whether the sequence of any treatment after the first ones may be
// significant. It costs much less than to judge the cells.
func (b *simulatedBreakdown) mayErr(effects int) bool {
	without := *b.campaign
	without.shares = slices.Delete(slices.Clone(without.shares), 1, 1+effects)
	all, rest := 0.0, 0.0
	for _, share := range b.campaign.shares {
		all += share
	}
	for _, share := range without.shares {
		rest += share
	}
	o := without.options()
	o.PlannedVisitors = int64(float64(b.campaign.visitors()) * rest / all) // the same for each pair
	return slices.ContainsFunc(b.cells, func(cell []totals) bool {
		samples := b.campaign.samples(cell)
		return stats.AnySignificant(samples[0], samples[1+effects:], o)
	})
}

// rank gives the cells that became large their ranks, at the ends of days 1, 2, 4, ….
func (b *simulatedBreakdown) rank(day int) {
	if day&(day-1) != 0 {
		return
	}
	visitors := func(i int) (n int64) {
		for _, t := range b.cells[i] {
			n += t.visitors
		}
		return n
	}
	var large []int
	for i, cell := range b.cells {
		if isLarge(cell) && !slices.Contains(b.order, i) {
			large = append(large, i)
		}
	}
	slices.SortStableFunc(large, func(i, j int) int { return cmp.Compare(visitors(j), visitors(i)) })
	b.order = append(b.order, large...)
}

// isLarge reports whether each variation has enough visitors for a conclusion.
func isLarge(cell []totals) bool {
	return !slices.ContainsFunc(cell, func(t totals) bool { return t.visitors < stats.MinimumVisitors })
}
