package result

import (
	"math/big"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Distribution has the counted goal events of each variation by their value. A cap does not apply: it limits totals of
// visitors.
type Distribution struct {
	// Ascending: from the first to the last one from 0.01 with events, and before them others with events.
	Bins []DistributionBin `json:"bins"`
}

// DistributionBin has the goal events with values in [From, To).
type DistributionBin struct {
	From  *Money  `json:"from"`  // null: no bound
	To    *Money  `json:"to"`    // null: no bound
	Goals []int64 `json:"goals"` // in the order of the variations
}

// ValueBins returns the lower bounds of the bins, in 1/schema.MoneyScale: of values below 0, of 0, of values below
// 0.01, and then ten for each power of ten. These are the preferred numbers of the series R10 (ISO 3), which are round
// and about equally wide on a logarithmic scale.
func ValueBins() []int64 {
	const most = schema.MaxMoney * schema.MoneyScale
	bins := []int64{-most, 0, 1}
	for power := int64(schema.MoneyScale / 100); power <= most; power *= 10 {
		for _, hundredths := range []int64{100, 125, 160, 200, 250, 315, 400, 500, 630, 800} {
			bins = append(bins, power*hundredths/100)
		}
	}
	return bins
}

// positiveBins is the number of bins before that of 0.01.
const positiveBins = 3

// NewDistribution returns the distribution of a report. steps has the goal events by the lower bound of their bin.
func NewDistribution(p *plan.Plan, steps []moments.Step) *Distribution {
	bounds, index := ValueBins(), map[int64]int{}
	for i, bound := range bounds {
		index[bound] = i
	}
	goals, all := make([][]int64, len(bounds)), make([]int64, len(bounds))
	for i := range goals {
		goals[i] = make([]int64, len(p.Variations))
	}
	for _, s := range steps {
		if s.MultiExposed && p.MultipleExposures == catalogue.ExcludeMultiExposed {
			continue
		}
		for v := range p.Variations {
			if p.Variations[v].ID == s.VariationID {
				goals[index[s.Bucket]][v] += s.GoalsReached()
				all[index[s.Bucket]] += s.GoalsReached()
			}
		}
	}
	first, last := len(bounds), 0
	for i := len(bounds) - 1; i >= positiveBins; i-- {
		if all[i] > 0 {
			first, last = i, max(i, last)
		}
	}
	found := &Distribution{Bins: []DistributionBin{}}
	bound := func(i int) *Money { return &Money{big.NewInt(bounds[i])} }
	for i := range bounds {
		if (i >= positiveBins || all[i] == 0) && (i < first || i > last) {
			continue
		}
		bin := DistributionBin{Goals: goals[i]}
		if i > 0 {
			bin.From = bound(i)
		}
		if i+1 < len(bounds) {
			bin.To = bound(i + 1)
		}
		found.Bins = append(found.Bins, bin)
	}
	return found
}
