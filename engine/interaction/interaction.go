// Package interaction finds campaigns that disturb each other: visitors of two campaigns whose variations depend on
// each other, or whose lift in one campaign depends on the variation of the other one. It knows no store.
package interaction

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/stats"
)

// LeastShared is the number of shared visitors from which a pair is measured.
const LeastShared = 1000

// The evidence of a pair, after the number of pairs, from which it is an alarm. By Ville's inequality, an alarm of any
// pair of a website without an interaction has at most the inverse probability, however often the pairs are read.
const (
	EffectAlarm     = 20   // an error rate of .05
	AssignmentAlarm = 1000 // an error rate of .001
)

// Campaign has the visitors of a campaign or of an experiment of a widget.
type Campaign struct {
	Plan     *plan.Plan // in force at the first view
	Name     string
	Start    time.Time // first view
	End      time.Time // zero: it runs
	Visitors []Visitor // by id
}

// Visitor is a visitor that counts for a campaign.
type Visitor struct {
	ID        uint64
	Variation uint8   // index
	Value     float64 // of the declared metric
}

// Overlaps reports whether two campaigns ran at the same time for at least a day.
func (c *Campaign) Overlaps(o *Campaign, now time.Time) bool {
	start := schema.LaterTime(c.Start, o.Start)
	end := now
	for _, of := range []*Campaign{c, o} {
		if !of.End.IsZero() && of.End.Before(end) {
			end = of.End
		}
	}
	return c.Plan.Subject != o.Plan.Subject && end.Sub(start) >= 24*time.Hour
}

// Pair is what a pair of campaigns says about the effect and the split of one of them.
type Pair struct {
	Of, By *Campaign
	Shared int64 // visitors
	// evidence that the lift of Of differs between the variations of By, and that the split of Of does, after the
	// number of pairs; 1: none, or it cannot be measured
	Effect, Assignment float64
	Cells              [][]Cell // by variation of Of and variation of By
}

// Cell has the visitors of two variations, and the sums of their values in the metric of Pair.Of.
type Cell struct {
	Visitors int64
	Sum      float64
	Squares  float64
	Nonzero  int64
}

// MeasurePairs measures all pairs of campaigns of a website that overlap, in both directions. The j-th pair has the
// weight 1/(j (j+1)) of the error budget, whose sum is 1. Pairs are in the order in which they began to overlap, so
// the weight of a pair does not depend on later ones. Half of its weight is of each direction.
func MeasurePairs(campaigns []*Campaign, now time.Time) []Pair {
	return MeasureSums(campaigns, now, countShared)
}

// MeasureSums is MeasurePairs for campaigns of which only sums are known. sums returns those of the visitors that two
// campaigns share, by variation of each.
func MeasureSums(campaigns []*Campaign, now time.Time, sums func(of, by *Campaign) [][]Cell) (pairs []Pair) {
	type overlap struct {
		a, b  *Campaign
		since time.Time
	}
	var all []overlap
	for i, a := range campaigns {
		for _, b := range campaigns[i+1:] {
			if a.Overlaps(b, now) {
				all = append(all, overlap{a, b, schema.LaterTime(a.Start, b.Start)})
			}
		}
	}
	slices.SortFunc(all, func(x, y overlap) int {
		return cmp.Or(x.since.Compare(y.since), x.a.Plan.Subject.Compare(y.a.Plan.Subject),
			x.b.Plan.Subject.Compare(y.b.Plan.Subject))
	})
	for j, of := range all {
		const directions = 2
		weight := 1 / (float64(j+1) * float64(j+2) * directions)
		for _, pair := range []Pair{{Of: of.a, By: of.b}, {Of: of.b, By: of.a}} {
			pair.Cells = sums(pair.Of, pair.By)
			for _, cells := range pair.Cells {
				for _, cell := range cells {
					pair.Shared += cell.Visitors
				}
			}
			if pair.Shared < LeastShared {
				continue
			}
			pair.Effect = weight * pair.effectEvidence()
			pair.Assignment = weight * pair.assignmentEvidence()
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// countShared returns the sums of the visitors of both campaigns.
func countShared(of, by *Campaign) [][]Cell {
	cells := make([][]Cell, len(of.Plan.Variations))
	for i := range cells {
		cells[i] = make([]Cell, len(by.Plan.Variations))
	}
	others := by.Visitors
	for _, v := range of.Visitors {
		for len(others) > 0 && others[0].ID < v.ID {
			others = others[1:]
		}
		if len(others) == 0 {
			break
		}
		if others[0].ID != v.ID {
			continue
		}
		cell := &cells[v.Variation][others[0].Variation]
		cell.Visitors++
		cell.Sum += v.Value
		cell.Squares += v.Value * v.Value
		if v.Value != 0 {
			cell.Nonzero++
		}
	}
	return cells
}

// sample returns the visitors of a cell as a sample of the metric.
func (p *Pair) sample(of, by int) stats.Sample {
	c := p.Cells[of][by]
	if p.Of.Plan.Declared.Metric.IsRate() {
		return stats.Rate{Visitors: c.Visitors, Converted: c.Nonzero}
	}
	n := float64(c.Visitors)
	mean := c.Sum / max(n, 1)
	variance := 0.0
	if c.Visitors > 1 {
		variance = max(c.Squares-n*mean*mean, 0) / (n - 1)
	}
	return stats.Mean{Visitors: c.Visitors, Mean: mean, Variance: variance, Nonzero: c.Nonzero}
}

// Effects returns the effect of each treatment of Of among the visitors of each variation of By.
func (p *Pair) Effects() [][]stats.PooledEffect {
	effects := make([][]stats.PooledEffect, len(p.Cells)-1)
	for t := range effects {
		for by := range p.By.Plan.Variations {
			effect := stats.NewPooledEffect([]stats.Stratum{{Control: p.sample(0, by), Treatment: p.sample(t+1, by)}})
			effects[t] = append(effects[t], effect)
		}
	}
	return effects
}

// effectEvidence returns the Bayes factor of lifts of Of that differ between the variations of By by about half of the
// minimum effect, see stats.MeasureHeterogeneity.
func (p *Pair) effectEvidence() float64 {
	if p.Of.Plan.Declared.Metric.IsRatio() {
		return 1
	}
	const partOfEffect = 2
	found := stats.MeasureHeterogeneity(p.Effects(), p.Of.Plan.Rules.MDE/100/partOfEffect)
	if found.BayesFactor == nil {
		return 1
	}
	return *found.BayesFactor
}

// assignmentEvidence returns the mean over the variations of By of the Bayes factors against the shares of Of among
// their visitors, see stats.SampleRatioMismatch. If the shares of Of changed, it is not measured.
func (p *Pair) assignmentEvidence() float64 {
	if len(p.Of.Plan.SharePeriods) != 1 {
		return 1
	}
	sum := 0.0
	for by := range p.By.Plan.Variations {
		observed := map[int64]int64{}
		for i := range p.Cells {
			observed[p.Of.Plan.Variations[i].ID] = p.Cells[i][by].Visitors
		}
		period := p.Of.Plan.ObservedSplit(0, func(variation int64) int64 { return observed[variation] })
		check := stats.SampleRatioMismatch([]stats.SharePeriod{period})
		factor := 1.0
		if check.Reason == "" {
			factor = math.Exp(min(check.LogFactor, largestLog))
		}
		sum += factor
	}
	return sum / float64(len(p.By.Plan.Variations))
}

// largestLog keeps the evidence finite.
const largestLog = 700
