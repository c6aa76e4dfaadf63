package report

import (
	"cmp"
	"slices"

	"lifthouse/loadgen/calibration"
)

// DecisionGroup holds the rates of decisions in a part of the table, or for one
// measure of a part.
type DecisionGroup struct {
	Part, Measure string // Measure is "" for all measures
	Rows          []calibration.DecisionRow
}

// DecisionParts returns the rates of decisions grouped by part.
func (b *Benchmarks) DecisionParts() []DecisionGroup {
	return b.groupDecisions(func(r *calibration.DecisionRow) DecisionGroup { return DecisionGroup{Part: r.Part} })
}

// DecisionMeasures returns the rates of decisions grouped by part and measure.
func (b *Benchmarks) DecisionMeasures() []DecisionGroup {
	return b.groupDecisions(func(r *calibration.DecisionRow) DecisionGroup {
		return DecisionGroup{Part: r.Part, Measure: r.Measure}
	})
}

func (b *Benchmarks) groupDecisions(group func(*calibration.DecisionRow) DecisionGroup) []DecisionGroup {
	var groups []DecisionGroup
	for _, r := range b.Decisions.Rows {
		g := group(&r)
		i := slices.IndexFunc(groups, func(other DecisionGroup) bool { return other.Part == g.Part && other.Measure == g.Measure })
		if i < 0 {
			i, groups = len(groups), append(groups, g)
		}
		groups[i].Rows = append(groups[i].Rows, r)
	}
	return groups
}

// Outside returns the number of rates outside their bands.
func (g DecisionGroup) Outside() int {
	n := 0
	for _, r := range g.Rows {
		if r.Outside {
			n++
		}
	}
	return n
}

func compareRates(a, b calibration.DecisionRow) int { return cmp.Compare(a.Rate, b.Rate) }

// Lowest returns the lowest rate.
func (g DecisionGroup) Lowest() float64 { return slices.MinFunc(g.Rows, compareRates).Rate }

// Highest returns the highest rate.
func (g DecisionGroup) Highest() float64 { return slices.MaxFunc(g.Rows, compareRates).Rate }
