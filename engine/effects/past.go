package effects

import (
	"fmt"

	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// PastTest is a test of which only the effects are known.
type PastTest struct {
	Name    string
	Effects []stats.PooledEffect // by treatment
	Shipped int                  // number of the shipped treatment, from 1; 0: none
}

// Past is what past tests say about each other, in lifts. Their visitors a month are not known.
type Past struct {
	Pool  PoolSummary `json:"pool"`
	Total *PastTotal  `json:"total"` // of the shipped treatments; null: none is known
	Items []PastItem  `json:"items"`
}

// PastTotal is the sum of the effects of the shipped treatments, each relative to the mean of its test.
type PastTotal struct {
	Sum
	Shipped         int      `json:"shipped"`
	Exaggeration    *float64 `json:"exaggeration"`    // observed / expected; null: the expected sum is not above 0
	ProbablyNothing float64  `json:"probablyNothing"` // expected number with a true effect at or below 0
}

// PastItem is a treatment of a past test.
type PastItem struct {
	Name      string       `json:"name"`
	Treatment int          `json:"treatment"` // from 1
	Shipped   bool         `json:"shipped"`
	Observed  *float64     `json:"observed"` // lift
	Expected  *Estimate    `json:"expected"` // lift
	Chance    *float64     `json:"chance"`   // that the true effect is above 0
	Reason    stats.Reason `json:"reason,omitempty"`
}

// NewPast returns what tests say about each other. mde is the minimum effect, as a fraction. Tests with too few
// visitors say nothing.
func NewPast(mde float64, tests []PastTest) *Past {
	p := &Past{Items: []PastItem{}}
	var fitted [][]stats.PooledEffect
	var numbers []int // of the fitted treatment of each item; -1: none
	n := 0
	for _, t := range tests {
		var own []stats.PooledEffect
		for i := range t.Effects {
			e := &t.Effects[i]
			item := PastItem{Name: t.Name, Treatment: i + 1, Shipped: t.Shipped == i+1, Reason: e.Reason}
			number := -1
			if e.Reason == "" {
				item.Observed = ObservedLift(e)
				number, own = n, append(own, *e)
				n++
			}
			p.Items, numbers = append(p.Items, item), append(numbers, number)
		}
		if len(own) > 0 {
			fitted = append(fitted, own)
		}
	}
	fit := NewFit(mde, fitted)
	p.Pool = fit.Summary()
	factors := make([]float64, n)
	var total PastTotal
	for i := range p.Items {
		item, number := &p.Items[i], numbers[i]
		if number < 0 {
			continue
		}
		e := fit.TrueEffect(number)
		item.Expected, item.Chance = ExpectedLift(e, &fit.Effects[number]), &e.Chance
		switch {
		case item.Observed == nil:
			item.Reason = stats.ReasonBaselineZero
		case item.Expected == nil:
			item.Reason = stats.ReasonBaselineNotDistinguishable
		}
		if item.Shipped {
			factors[number] = 1
			total.Shipped++
			total.Observed += fit.Effects[number].Value
			total.ProbablyNothing += 1 - e.Chance
		}
	}
	if total.Shipped > 0 {
		e := fit.Total(factors)
		total.Expected, total.Interval = e.Mean, [2]float64{e.Lower, e.Upper}
		if e.Mean > 0 {
			total.Exaggeration = new(total.Observed / e.Mean)
		}
		p.Total = &total
	}
	return p
}

// PoolSummary says how much a pool knows.
type PoolSummary struct {
	Campaigns     int      `json:"campaigns"` // from which the typical effect is known
	TypicalEffect Estimate `json:"typicalEffect"`
	Anchor        float64  `json:"anchor"` // the typical effect that is assumed without campaigns
}

// Summary says how much the campaigns of a fit say.
func (f *Fit) Summary() PoolSummary {
	return PoolSummary{len(f.first), EstimateOf(f.TypicalEffect(), Unscaled), medianTau * f.mde}
}

// Estimate is a number with its interval at Level.
type Estimate struct {
	Value    float64    `json:"value"`
	Interval [2]float64 `json:"interval"`
}

// Sum is a sum as observed and as expected, with the interval of the true sum.
type Sum struct {
	Observed float64    `json:"observed"`
	Expected float64    `json:"expected"`
	Interval [2]float64 `json:"interval"`
}

// Unscaled returns a number as it is.
func Unscaled(x float64) float64 { return x }

// EstimateOf returns the mean and the interval of a posterior, on another scale.
func EstimateOf(e Expected, scale func(float64) float64) Estimate {
	return Estimate{scale(e.Mean), [2]float64{scale(e.Lower), scale(e.Upper)}}
}

// ObservedLift returns the observed lift; nil: the mean of control is not above 0.
func ObservedLift(effect *stats.PooledEffect) *float64 {
	if lift, exists := effect.Lift(effect.Value); exists {
		return &lift
	}
	return nil
}

// ExpectedLift returns the lift of a true effect; nil: the mean of control may not be above 0.
func ExpectedLift(e Expected, effect *stats.PooledEffect) *Estimate {
	lower, _ := effect.Lift(e.Lower)
	mean, _ := effect.Lift(e.Mean)
	upper, exists := effect.Lift(e.Upper)
	if !exists {
		return nil
	}
	return &Estimate{mean, [2]float64{lower, upper}}
}

// LiftInWords says what lift is expected.
func (e *Estimate) LiftInWords() string {
	inPercent := func(x float64) string { return wording.FormatPercent(x, 1, true) }
	return fmt.Sprintf("Expected a lift of %s.", e.InWords(inPercent))
}

// InWords writes an estimate with its interval.
func (e *Estimate) InWords(write func(float64) string) string {
	return fmt.Sprintf("%s (%.0f %% interval %s to %s)", write(e.Value), 100*Level, write(e.Interval[0]),
		write(e.Interval[1]))
}

// InWords says how large effects typically are here. of is the word for what the pool is made of.
func (pool *PoolSummary) InWords(metric, of string) string {
	in := func(x float64) string { return "±" + wording.FormatPercent(x, 1, false) }
	if pool.Campaigns == 0 {
		return fmt.Sprintf("No %s is known yet: an experiment is assumed to change %s by %s.", of, metric,
			in(pool.TypicalEffect.Value))
	}
	text := fmt.Sprintf("An experiment here typically changes %s by %s (from %s", metric,
		in(pool.TypicalEffect.Value), wording.CountNoun(pool.Campaigns, of))
	if pool.Campaigns < leastPool {
		text += fmt.Sprintf("; %s is assumed without any", in(pool.Anchor))
	}
	return text + ")."
}

// leastPool is the number of campaigns from which their effects say more than the assumption before them.
const leastPool = 5
