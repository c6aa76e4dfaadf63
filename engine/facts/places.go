package facts

import (
	"strconv"
	"strings"
)

// places numbers the groups of visitors of a statement: each combination of a goal, a variation, and a rank of the
// value, or the pair of values, of the dimension. ClickHouse groups by one number much faster than by several columns.
type places struct {
	goals      []int64    // whose events are summed apart; nil: those of all goals are summed together
	variations []string   // of the stored visitors
	dimensions []string   // expressions of the attributes of the dimension
	tops       [][]string // of each attribute, the values with a rank
}

// countRanks returns the number of ranks.
func (p *places) countRanks() uint32 {
	ranks := uint32(1)
	for _, top := range p.tops {
		ranks *= uint32(len(top) + 1) //nolint:gosec // few
	}
	return ranks
}

// writePlace returns the place of a row. It adds parameters. A place whose variation is not stored has the number of
// the variation 0.
func (p *places) writePlace(to *parameters) string {
	ranks := p.countRanks()
	to.add("stored_variations", p.variations)
	to.add("places", multiples(ranks, 1, len(p.variations)))
	parts := []string{"transform(variation, {stored_variations:Array(String)}, {places:Array(UInt32)}, toUInt32(0))"}
	stride := ranks
	for i, top := range p.tops {
		stride /= uint32(len(top) + 1) //nolint:gosec // few
		if len(top) == 0 {
			continue
		}
		n := strconv.Itoa(i)
		to.add("top"+n, top)
		to.add("ranks"+n, multiples(stride, 1, len(top)))
		parts = append(parts, "transform("+p.dimensions[i]+", {top"+n+":Array(String)}, {ranks"+n+
			":Array(UInt32)}, toUInt32(0))")
	}
	if p.goals != nil {
		to.add("place_goals", p.goals)
		to.add("goal_places", multiples(ranks*p.variationNumbers(), 0, len(p.goals)))
		parts = append(parts,
			"transform(goal_id, {place_goals:Array(Int64)}, {goal_places:Array(UInt32)}, toUInt32(0))")
	}
	return strings.Join(parts, " + ")
}

// variationNumbers returns the number of the numbers of variations. 0 is that of events that do not count.
func (p *places) variationNumbers() uint32 { return uint32(len(p.variations) + 1) } //nolint:gosec // few

// multiples returns n multiples of a number, from the given one on.
func multiples(of uint32, from, n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(from+i) * of //nolint:gosec // few
	}
	return all
}

// groupAt returns the goal, the variation and the rank of a place. The goal is 0 if goals are not summed apart, the
// variation empty if its events do not count, and the rank 0 if one of the values has none.
func (p *places) groupAt(place uint32) (goal int64, variation string, rank uint16) {
	ranks, variations := p.countRanks(), p.variationNumbers()
	if v := place / ranks % variations; v > 0 {
		variation = p.variations[v-1]
	}
	if p.goals != nil {
		goal = p.goals[place/ranks/variations]
	}
	return goal, variation, p.rankAt(place % ranks)
}

// rankAt returns the rank of the value, or of the pair of values, from the number of its place. It starts at 1.
func (p *places) rankAt(number uint32) uint16 {
	if len(p.tops) < 2 {
		return uint16(number) //nolint:gosec // few
	}
	seconds := uint32(len(p.tops[1])) //nolint:gosec // few
	first, second := number/(seconds+1), number%(seconds+1)
	if first == 0 || second == 0 {
		return 0
	}
	return uint16((first-1)*seconds + second) //nolint:gosec // few
}
