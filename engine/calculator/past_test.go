package calculator

import (
	"math"
	"strings"
	"testing"

	"lifthouse/engine/audit"
	"lifthouse/engine/effects"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// TestWorthOfAComparison checks that the worth of a comparison is the fit of its own effect and those of past tests,
// however these are given: as sums, as lifts with standard errors, and in a file.
func TestWorthOfAComparison(t *testing.T) {
	rate := func(visitors, converted int64) stats.Rate {
		return stats.Rate{Visitors: visitors, Converted: converted}
	}
	effect := func(control, treatment stats.Rate) stats.PooledEffect {
		return stats.NewPooledEffect([]stats.Stratum{{Control: control, Treatment: treatment}})
	}
	own, first, second := effect(rate(9000, 500), rate(10000, 590)), effect(rate(10000, 500), rate(10000, 560)), stats.PooledEffect{Value: .01, StandardError: .02}
	lift := func(effect float64) float64 { return effect / (1 - 10./19*effect) } // relative to the mean of 9,000 and 10,000 visitors
	const question = `{"metric":"binary","mde":10,"variations":[{"id":4,"n":10000,"converted":590},{"id":7,"control":true,"n":9000,"converted":500}]`
	answer := func(past string) *AnswerWorth {
		return must.Get(ParseInput([]byte(question + past + "}")))(t).ComputeAnswer().Worth
	}
	for _, test := range []struct {
		past  string
		tests [][]stats.PooledEffect
	}{
		{"", [][]stats.PooledEffect{{own}}},
		{`,"past":[{"variations":[{"n":10000,"converted":500},{"n":10000,"converted":560}]},{"lift":1,"standardError":2}]`, [][]stats.PooledEffect{{first}, {second}, {own}}},
		{`,"past":[{"variations":[{"n":10,"converted":5},{"n":10,"converted":6}]},{"lift":1,"standardError":2}]`, [][]stats.PooledEffect{{second}, {own}}},
	} {
		fit := effects.NewFit(.1, test.tests)
		want, got := fit.TrueEffect(len(test.tests)-1), answer(test.past)
		item := got.Items[0]
		check.That(t, item.VariationID == 4 && item.Expected != nil && math.Abs(item.Expected.Value-lift(want.Mean)) <= 1e-12 && math.Abs(item.Expected.Interval[1]-lift(want.Upper)) <= 1e-9 && math.Abs(*item.Chance-want.Chance) <= 1e-12,
			"%s: %+v, want %+v", test.past, item, want)
		check.That(t, got.Pool.Campaigns == len(test.tests) && got.Total == nil && len(got.InWords()) == 2, "%s: %+v, %q", test.past, got, got.InWords())
	}
	input := must.Get(ParseInput([]byte(question + "}")))(t)
	input.Past = must.Get(audit.ReadTable(strings.NewReader("name,control,treatment,shipped\nBanner,500/10000,560/10000,yes\n")))(t).Past()
	ofFile, ofLine := input.ComputeAnswer().Worth, answer(`,"past":[{"name":"Banner","variations":[{"n":10000,"converted":500},{"n":10000,"converted":560}],"shipped":1}]`)
	if *ofFile.Total != *ofLine.Total && (ofFile.Total.Expected != ofLine.Total.Expected || ofFile.Total.Shipped != 1) || ofFile.Items[0].Text != ofLine.Items[0].Text {
		t.Errorf("a file gives %+v, and a line %+v", ofFile, ofLine)
	}
}

// TestPriorOfAComparison checks that a Bayesian comparison without a prior has the one that its past tests say, without
// its own numbers; and without past tests, the mean of the model's own prior, summed here over its grid.
func TestPriorOfAComparison(t *testing.T) {
	priorOf := func(more string) *stats.Prior {
		const question = `{"metric":"binary","methodology":"bayesian","mde":10,"variations":[{"n":9000,"converted":500},{"n":10000,"converted":590}]`
		return must.Get(ParseInput([]byte(question + more +
			"}")))(t).ComputeAnswer().Variations[1].Comparison.Bayesian.Prior
	}
	mean, weights := 0.0, 0.0
	for k := range 24 {
		tau := math.Pow(2, -6+8*float64(k)/23) // 1/64 to 4
		weight := math.Exp(-math.Pow(math.Log(tau/.15), 2) / 2)
		mean, weights = mean+weight*tau, weights+weight
	}
	past := effects.NewFit(.1, [][]stats.PooledEffect{
		{{Value: .01, StandardError: .02}},
		{{Value: -.03, StandardError: .01}},
	}).TypicalEffect().Mean
	for more, want := range map[string]struct {
		deviation float64
		campaigns int
	}{
		"":                   {.1 * mean / weights, 0},
		`,"prior":"learned"`: {.1 * mean / weights, 0},
		`,"past":[{"lift":1,"standardError":2},{"lift":-3,"standardError":1}]`: {past, 2},
	} {
		got := priorOf(more)
		check.That(t, math.Abs(got.StandardDeviation-want.deviation) <= 1e-12 && got.Mean == 0 && got.Campaigns != nil && *got.Campaigns == want.campaigns,
			"%s: %+v, want %+v", more, got, want)
	}
	if got := priorOf(`,"prior":{"mean":1,"standardDeviation":5},"past":[{"lift":1,"standardError":2}]`); got.Campaigns != nil || got.Mean != .01 || got.StandardDeviation != .05 {
		t.Errorf("declared: %+v", got)
	}
}

// TestNothingIsWorth checks what says nothing about a worth: a sample ratio mismatch, too few visitors, and numbers
// beyond floating point. None of them changes the past tests.
func TestNothingIsWorth(t *testing.T) {
	for variations, want := range map[string]stats.Reason{
		`"binary","variations":[{"n":10000,"converted":500,"share":90},{"n":10000,"converted":590,"share":10}]`:  stats.ReasonSampleRatioMismatch,
		`"binary","variations":[{"n":99,"converted":50},{"n":10000,"converted":590}]`:                            stats.ReasonTooFewVisitors,
		`"binary","variations":[{"n":2000,"converted":0},{"n":2000,"converted":60}]`:                             stats.ReasonBaselineZero,
		`"mean","variations":[{"n":9000,"mean":0.01,"variance":4},{"n":9000,"mean":1.7e308,"variance":4}]`:       stats.ReasonInvalidData,
		`"mean","variations":[{"n":9000,"mean":-1e90,"variance":0},{"n":9000,"mean":1.0000001e90,"variance":4}]`: stats.ReasonInvalidData,
	} {
		w := must.Get(ParseInput([]byte(`{"metric":` + variations + `,"past":[{"lift":2,"standardError":1,"shipped":1}]}`)))(t).ComputeAnswer().Worth
		item := w.Items[0]
		check.That(t, item.Reason == want && item.Expected == nil && w.InWords() == nil, "%s: %+v, want %s", variations, item, want)
		if want == stats.ReasonBaselineZero {
			continue // it says how large effects are
		}
		check.That(t, w.Pool.Campaigns == 1 && w.Total != nil && w.Total.Expected > 0 && w.Total.Expected < .02, "%s: the past is worth %+v", variations, w.Total)
	}
}
