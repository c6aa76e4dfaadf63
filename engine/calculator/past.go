package calculator

import (
	"fmt"

	"lifthouse/engine/effects"
	"lifthouse/stats"
)

// maxPastTests is the maximum number of tests of an input: a fit of a thousand takes a tenth of a second.
const maxPastTests = 1000

// pooledEffects returns the effects of the treatments.
func (q *Input) pooledEffects() []stats.PooledEffect {
	samples := q.statsSamples(q.Variations, q.controlFirst())
	var effects []stats.PooledEffect
	for _, treatment := range samples[1:] {
		effects = append(effects, stats.NewPooledEffect([]stats.Stratum{{Control: samples[0], Treatment: treatment}}))
	}
	return effects
}

// pastText is a past test: the sums of its variations, control first, or the lift of its treatment in per cent.
type pastText struct {
	Name          string     `yaml:"name"`
	Variations    []sumsText `yaml:"variations"`
	Lift          *float64   `yaml:"lift"`
	StandardError *float64   `yaml:"standardError"`
	Shipped       *float64   `yaml:"shipped"`
}

// checkPast returns the past tests of an input.
func (c *checker) checkPast(given []pastText) []effects.PastTest {
	if len(given) > maxPastTests {
		c.Add("past", len(given), fmt.Sprintf("must be an array of at most %d tests", maxPastTests))
		return nil
	}
	var tests []effects.PastTest
	for i := range given {
		g, path := &given[i], fmt.Sprintf("past[%d]", i)
		test := effects.PastTest{Name: g.Name}
		if g.Variations == nil {
			test.Effects = []stats.PooledEffect{{
				Value:         c.checkNumber(path+".lift", g.Lift, -100, 1000, perCent) / 100,
				StandardError: c.checkNumber(path+".standardError", g.StandardError, 0.01, 1000, perCent) / 100,
			}}
		} else {
			const detail = "must be omitted, because variations are given"
			c.refuse(path+".lift", g.Lift, detail)
			c.refuse(path+".standardError", g.StandardError, detail)
			test.Effects = c.checkPastSums(path+".variations", g.Variations)
		}
		if g.Shipped != nil {
			test.Shipped = int(c.checkWhole(path+".shipped", g.Shipped, 0, int64(max(len(test.Effects), 1)), ""))
		}
		tests = append(tests, test)
	}
	return tests
}

// checkPastSums returns the effects of the treatments of a past test: of rates if control has converted visitors, or
// else of means.
func (c *checker) checkPastSums(path string, given []sumsText) []stats.PooledEffect {
	if n := len(given); n < leastVariations || n > maxVariations {
		c.Add(path, n, fmt.Sprintf("must be an array of %d to %d variations, control first, has %d",
			leastVariations, maxVariations, n))
		return nil
	}
	q := Input{Metric: MetricMean}
	if given[0].Converted != nil {
		q.Metric = MetricBinary
	}
	for i := range given {
		v := Variation{ID: int64(i), Control: i == 0}
		c.checkSums(&q, fmt.Sprintf("%s[%d]", path, i), &given[i], &v)
		q.Variations = append(q.Variations, v)
	}
	return q.pooledEffects()
}

// AnswerWorth is what the treatments are truly worth, given past tests, in lifts.
type AnswerWorth struct {
	Pool  effects.PoolSummary `json:"pool"` // with the treatments of the input
	Items []AnswerWorthItem   `json:"items"`
	Total *effects.PastTotal  `json:"total,omitempty"` // of the shipped treatments of past tests; nil: there is none
	Text  string              `json:"text"`
}

// AnswerWorthItem is what a treatment is worth.
type AnswerWorthItem struct {
	VariationID int64             `json:"variationId"`
	Expected    *effects.Estimate `json:"expected"` // lift
	Chance      *float64          `json:"chance"`   // that the true effect is above 0
	Reason      stats.Reason      `json:"reason,omitempty"`
	Text        string            `json:"text,omitempty"`
}

// InWords says what to expect of each treatment, and how that is known. It says nothing if no treatment can be judged.
func (w *AnswerWorth) InWords() (sentences []string) {
	for _, item := range w.Items {
		if item.Text != "" {
			sentences = append(sentences, fmt.Sprintf("Variation %d: %s", item.VariationID, item.Text))
		}
	}
	if len(sentences) > 0 {
		sentences = append(sentences, w.Text)
	}
	return sentences
}

// computeWorth computes what the treatments are worth. The tests of a pool are the past ones and that of the input.
// With a sample ratio mismatch, its numbers say nothing, neither about itself nor about others.
func (q *Input) computeWorth(order []int, isInvalid bool) *AnswerWorth {
	tests := q.Past
	if !isInvalid {
		tests = append(tests[:len(tests):len(tests)], effects.PastTest{Effects: q.pooledEffects()})
	}
	found := effects.NewPast(q.MDE/100, tests)
	w := &AnswerWorth{Pool: found.Pool, Total: found.Total, Text: found.Pool.InWords("the metric", "test")}
	for place, i := range order[1:] {
		item := AnswerWorthItem{VariationID: q.Variations[i].ID, Reason: stats.ReasonSampleRatioMismatch}
		if !isInvalid {
			of := &found.Items[len(found.Items)-len(order)+1+place]
			item.Expected, item.Chance, item.Reason = of.Expected, of.Chance, of.Reason
		}
		if item.Expected != nil {
			item.Text = item.Expected.LiftInWords()
		}
		w.Items = append(w.Items, item)
	}
	return w
}
