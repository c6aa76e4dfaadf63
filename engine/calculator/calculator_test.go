package calculator

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"lifthouse/engine/effects"
	"lifthouse/engine/opinion"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/wording"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// answerTo returns the answer to a valid input.
func answerTo(tb testing.TB, line string) *Answer {
	tb.Helper()
	input, err := ParseInput([]byte(line))
	must.OK(tb, err, "%v", line)
	return input.ComputeAnswer()
}

// demo is what the README shows.
const demo = `{"metric":"binary","significanceLevel":95,"variations":[{"n":11927,"converted":716,"share":50},{"n":12010,"converted":900,"share":50}]}`

func TestCalculatorAnswersTheDemo(t *testing.T) {
	a := answerTo(t, demo)
	// Decision 1's z is 4.595550359; Python's math.erfc(z/sqrt(2)) is its p.
	const want = 4.316085333069935e-06
	p := *a.Variations[1].Comparison.Frequentist.PValue
	check.That(t, math.Abs(p-want) <= 1e-9*want, "p = %v, want %v", p, want)
	c := a.Variations[1].Comparison
	check.Equal(t, c.Verdict, stats.VerdictBetter, "verdict %s, conclusion %+v", c.Verdict, a.Conclusion)
	check.That(t, !*c.Conclusive, "verdict %s, conclusion %+v", c.Verdict, a.Conclusion)
	check.That(t, c.Sequential == nil, "verdict %s, conclusion %+v", c.Verdict, a.Conclusion)
	check.Equal(t, a.Conclusion.Status, stats.StatusInconclusive, "verdict %s, conclusion %+v", c.Verdict, a.Conclusion)
	check.That(t, a.Conclusion.VariationID == nil, "verdict %s, conclusion %+v", c.Verdict, a.Conclusion)
	const sentence = "No conclusion: pass the sums at each weekly look to conclude."
	check.Equal(t, a.Conclusion.Text, sentence)
}

// TestCalculatorSaysWhatStatsSays has control in the middle, and compares the answer, in the order of the input, with
// package stats.
func TestCalculatorSaysWhatStatsSays(t *testing.T) {
	weak := plan.WeakPrior(20)
	for _, test := range []struct {
		line    string
		samples []stats.Sample // control first
		o       stats.Options
	}{
		{
			`{"metric":"binary","variations":[{"id":5,"n":3000,"converted":160,"share":25},
			  {"id":9,"control":true,"n":6100,"converted":290,"share":50},{"id":2,"n":2950,"converted":120,"share":25}]}`,
			[]stats.Sample{
				stats.Rate{Visitors: 6100, Converted: 290},
				stats.Rate{Visitors: 3000, Converted: 160},
				stats.Rate{Visitors: 2950, Converted: 120},
			},
			stats.Options{
				SignificanceLevel: 90, Methodology: stats.MethodologyFrequentist, NonNegative: true,
				Shares: []float64{2, 1, 1},
			},
		},
		{
			`{"metric":"mean","methodology":"bayesian","significanceLevel":80,"variations":[{"n":3000,"mean":4.5,"variance":81,"share":1},
			  {"control":true,"n":6100,"mean":-4.1,"variance":90,"share":2},{"n":2950,"mean":4,"variance":88,"share":1}]}`,
			[]stats.Sample{
				stats.Mean{Visitors: 6100, Mean: -4.1, Variance: 90, Nonzero: -1},
				stats.Mean{Visitors: 3000, Mean: 4.5, Variance: 81, Nonzero: -1},
				stats.Mean{Visitors: 2950, Mean: 4, Variance: 88, Nonzero: -1},
			},
			stats.Options{
				SignificanceLevel: 80, Methodology: stats.MethodologyBayesian, Shares: []float64{2, 1, 1},
				Prior: &stats.Prior{StandardDeviation: weak.StandardDeviation / 100},
			},
		},
	} {
		a := answerTo(t, test.line)
		comparisons := stats.Compare(test.samples[0], test.samples[1:], test.o)
		size, _ := stats.NewSampleSize(stats.SamplePlan{
			Control: test.samples[0], Shares: test.o.Shares, Looks: 4, Power: 0.8, Prior: test.o.Prior,
		}, stats.NewLookDesign(test.o.Alpha(), test.o.Shares))
		power := size.ProgressTowards(0.2, 12050, 1)
		for place, i := range []int{1, 0, 2} {
			v := a.Variations[i]
			if want := result.NewEstimate(test.samples[place], test.o); !reflect.DeepEqual(v.Estimate, want) {
				t.Errorf("variations[%d]: estimate %+v, want %+v", i, v.Estimate, want)
			}
			var want *result.Comparison
			if place > 0 {
				want = result.NewComparison(comparisons[place-1])
				want.Conclusive = new(bool)
			}
			check.That(t, reflect.DeepEqual(v.Comparison, want), "variations[%d]: comparison %+v, want %+v", i,
				v.Comparison, want)
		}
		split := stats.Split{Control: 50, Variations: []float64{1, 1}}
		ratio := stats.SampleRatioMismatch([]stats.SharePeriod{{Split: split, Observed: []int64{6100, 3000, 2950}}})
		wantCheck := stats.SampleRatioCheck{
			PValue: ratio.PValue, Expected: []float64{ratio.Expected[1], ratio.Expected[0], ratio.Expected[2]},
			Observed: []int64{3000, 6100, 2950}, LogFactor: ratio.LogFactor,
		}
		got := a.Checks.SampleRatio
		check.That(t, reflect.DeepEqual(got, wantCheck), "sample ratio %+v, want %+v", got, wantCheck)
		check.Equal(t, *a.Power.RequiredVisitors, *power.RequiredVisitors, "power %+v, want %+v", a.Power, power)
		check.Equal(t, *a.Power.MinimumDetectableEffect, *power.MinimumDetectableEffect, "power %+v, want %+v", a.Power,
			power)
		check.Equal(t, a.Power.Reason, "", "power %+v, want %+v", a.Power, power)
		check.That(t, a.Looks == nil, "conclusion %+v", a.Conclusion)
		check.Equal(t, a.Conclusion.Status, stats.StatusInconclusive, "conclusion %+v", a.Conclusion)
		check.That(t, a.Conclusion.VariationID == nil, "conclusion %+v", a.Conclusion)
	}
}

// notNumbers matches values that no answer may contain.
var notNumbers = regexp.MustCompile(`NaN|Inf`)

// FuzzCalculator checks that no line panics, and that answers are JSON without NaN and infinities.
func FuzzCalculator(f *testing.F) {
	for _, seed := range []string{
		demo, `{}`, `[`, `{"metric":"binary","variations":[{"n":0,"converted":0},{"n":0,"converted":0}]}`,
		`{"metric":"binary","methodology":"bayesian","variations":[{"n":1000000000000,"converted":1},{"n":5,"converted":5},{"n":100,"converted":7}]}`,
		`{"metric":"mean","variations":[{"n":2,"mean":-1e308,"variance":1e308},{"n":3,"mean":5e-324,"variance":5e-324,"control":true}]}`,
		`{"metric":"mean","nonnegative":true,"variations":[{"id":3,"n":9000,"mean":0.01,"variance":4},{"id":2,"n":9000,"mean":1.7e308,"variance":4}]}`,
		`{"metric":"mean","methodology":"bayesian","significanceLevel":100,"variations":[{"n":1,"mean":1,"share":99},{"n":0,"share":1}]}`,
		`{"metric":"binary","power":99,"mde":100,"plannedVisitors":1,"variations":[{"n":10,"converted":9,"share":0},{"n":10,"converted":10,"share":1e-320}]}`,
		`{"metric":"binary","looks":[{"days":7,"variations":[{"n":100,"converted":5},{"n":0,"converted":0}]}],"variations":[{"n":900,"converted":5},{"n":1000,"converted":900}]}`,
		`{"metric":"mean","methodology":"bayesian","looks":[{"tau":1e-300,"variations":[{"n":900,"mean":1e300,"variance":1e308},{"n":200,"mean":-1,"variance":0}]},{"tau":999,"variations":[{"n":900,"mean":1,"variance":1},{"n":200,"mean":-1,"variance":0}]}],"variations":[{"n":900,"mean":1,"variance":1},{"n":1000,"mean":2,"variance":3}]}`,
		`{"metric":"binary","metric":"mean","variation":[{"n":"1"}],"variations":[1,{"share":"NaN"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		input, err := ParseInput(line)
		var invalid *query.InvalidError
		if err != nil {
			must.That(t, errors.As(err, &invalid), "ParseQuestion(%q) = %v, want faults", line, err)
			must.That(t, len(invalid.Faults) != 0, "ParseQuestion(%q) = %v, want faults", line, err)
			must.Get(json.Marshal(RefuseLine(1, invalid)))(t)
			return
		}
		text, err := json.Marshal(input.ComputeAnswer())
		must.That(t, err == nil, "%s\nis answered %s, %v", line, text, err)
		must.That(t, json.Valid(text), "%s\nis answered %s, %v", line, text, err)
		must.That(t, !notNumbers.Match(text), "%s\nis answered %s, %v", line, text, err)
	})
}

// rateSums returns the sums of rates, of n visitors per variation.
func rateSums(n int64, converted ...int64) string {
	texts := make([]string, len(converted))
	for i, x := range converted {
		texts[i] = fmt.Sprintf(`{"n":%d,"converted":%d}`, n, x)
	}
	return `"variations":[` + strings.Join(texts, ",") + `]`
}

// weekly returns an input with weekly looks, of which the last is today's.
func weekly(options string, sums ...string) string {
	looks := make([]string, len(sums))
	for i, s := range sums {
		looks[i] = fmt.Sprintf(`{"days":%d,%s}`, 7*(i+1), s)
	}
	return fmt.Sprintf(`{"metric":"binary","significanceLevel":95,%s"looks":[%s],%s}`, options,
		strings.Join(looks, ","), sums[len(sums)-1])
}

// TestLooksAgreeWithStats has control in the middle, shares and three treatments.
func TestLooksAgreeWithStats(t *testing.T) {
	a := answerTo(t, `{"metric":"mean","significanceLevel":95,"plannedVisitors":40000,
		"variations":[{"id":5,"share":10,"n":2000,"mean":5,"variance":90},
		  {"id":9,"control":true,"share":70,"n":14000,"mean":4,"variance":81},
		  {"id":2,"share":10,"n":2000,"mean":4.1,"variance":80},{"id":3,"share":10,"n":2000,"mean":3.9,"variance":80}],
		"looks":[{"variations":[{"n":1000,"mean":5,"variance":90},{"n":7000,"mean":4,"variance":81},
		    {"n":1000,"mean":4.1,"variance":80},{"n":1000,"mean":3.9,"variance":80}]},
		  {"variations":[{"n":2000,"mean":5,"variance":90},{"n":14000,"mean":4,"variance":81},
		    {"n":2000,"mean":4.1,"variance":80},{"n":2000,"mean":3.9,"variance":80}]}]}`)
	var points []stats.LookPoint
	for k, n := range []int64{1000, 2000} {
		look := a.Looks[k]
		strata := []stats.Stratum{{
			Control:   stats.Mean{Visitors: 7 * n, Mean: 4, Variance: 81, Nonzero: -1},
			Treatment: stats.Mean{Visitors: n, Mean: 5, Variance: 90, Nonzero: -1}, SmallerShare: 0.125,
		}}
		points = append(points,
			stats.LookPoint{Tau: float64(k+1) / 4, Information: stats.LookInformation(strata, false)})
		sequence := stats.NewLookDesign(0.05, []float64{70, 10, 10, 10}).NewSequence(points, nil)
		want := sequence.AnalyzeLook(k, strata, false)
		got, p := look.Variations[0], *sequence.PValue(k, want)
		check.Equal(t, look.Number, k+1, "look %+v", look)
		check.Equal(t, look.Visitors, 10*n, "look %+v", look)
		check.Equal(t, look.Tau, float64(k+1)/4, "look %+v", look)
		check.Equal(t, got.ID, 5, "look %+v", look)
		check.Equal(t, len(look.Variations), 3, "look %+v", look)
		check.Equal(t, *got.CriticalValue, *want.Critical, "look %d: %+v, want %+v", k+1, got, want)
		check.Equal(t, *got.Z, *want.Z, "look %d: %+v, want %+v", k+1, got, want)
		check.Equal(t, got.Significant, want.Significant, "look %d: %+v, want %+v", k+1, got, want)
		check.Equal(t, *got.PValue, p, "look %d: %+v, want %+v", k+1, got, want)
		check.Equal(t, *got.Improvement.Interval[0], *want.Lift.Interval[0], "look %d: %+v, want %+v", k+1, got, want)
	}
	last := a.Variations[0].Comparison.Sequential
	check.Equal(t, *last.Look, 2, "%+v", last)
	check.Equal(t, *last.PValue, *a.Looks[1].Variations[0].PValue, "%+v", last)
	check.That(t, a.Variations[1].Comparison == nil, "%+v", last)
}

// TestMismatchAtALookRemains checks that shares that match again do not clear the alarm.
func TestMismatchAtALookRemains(t *testing.T) {
	a := answerTo(t, `{"metric":"binary","looks":[{"tau":0.5,"variations":[{"n":2000,"converted":200},{"n":2600,"converted":500}]}],
		"variations":[{"n":9000,"converted":900,"share":50},{"n":9000,"converted":1800,"share":50}]}`)
	if c := a.Conclusion; c.Status != stats.StatusInvalid || c.VariationID != nil ||
		*a.Variations[1].Comparison.Conclusive || a.Checks.SampleRatio.Observed[0] != 2000 {
		t.Errorf("conclusion %+v, checks %+v", c, a.Checks)
	}
}

func TestCalculatorExplainsEveryReason(t *testing.T) {
	var source []byte
	for _, file := range []string{"types.go", "look.go"} {
		text := must.Get(os.ReadFile("../../stats/" + file))(t)
		source = append(source, text...)
	}
	reasons := regexp.MustCompile(`Reason = "([A-Z_0-9]+)"`).FindAllStringSubmatch(string(source), -1)
	must.That(t, len(reasons) >= 16, "found %d reasons", len(reasons))
	for _, reason := range reasons {
		check.That(t, wording.ExplainReason(stats.Reason(reason[1])) != reason[1], "%s has no words", reason[1])
	}
}

// TestWorthOfAComparison checks that the worth of a comparison is the fit of its own effect and those of past tests,
// however these are given: as sums, as lifts with standard errors, and in a file.
func TestWorthOfAComparison(t *testing.T) {
	rate := func(visitors, converted int64) stats.Rate {
		return stats.Rate{Visitors: visitors, Converted: converted}
	}
	effect := func(control, treatment stats.Rate) stats.PooledEffect {
		return stats.NewPooledEffect([]stats.Stratum{{Control: control, Treatment: treatment}})
	}
	own, first, second := effect(rate(9000, 500), rate(10000, 590)), effect(rate(10000, 500),
		rate(10000, 560)), stats.PooledEffect{Value: .01, StandardError: .02}
	// relative to the mean of 9,000 and 10,000 visitors
	lift := func(effect float64) float64 { return effect / (1 - 10./19*effect) }
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
		check.Equal(t, item.VariationID, 4, "%s: %+v, want %+v", test.past, item, want)
		must.That(t, item.Expected != nil, "%s: %+v, want %+v", test.past, item, want)
		check.That(t, math.Abs(item.Expected.Value-lift(want.Mean)) <= 1e-12, "%s: %+v, want %+v", test.past, item,
			want)
		check.That(t, math.Abs(item.Expected.Interval[1]-lift(want.Upper)) <= 1e-9, "%s: %+v, want %+v", test.past,
			item, want)
		check.That(t, math.Abs(*item.Chance-want.Chance) <= 1e-12, "%s: %+v, want %+v", test.past, item, want)
		check.Equal(t, got.Pool.Campaigns, len(test.tests), "%s: %+v, %q", test.past, got, got.InWords())
		check.That(t, got.Total == nil, "%s: %+v, %q", test.past, got, got.InWords())
		check.Equal(t, len(got.InWords()), 2, "%s: %+v, %q", test.past, got, got.InWords())
	}
	input := must.Get(ParseInput([]byte(question + "}")))(t)
	input.Past = must.Get(opinion.ReadTable(strings.NewReader("name,control,treatment,shipped\nBanner,500/10000,560/10000,yes\n")))(t).Past()
	ofFile, ofLine := input.ComputeAnswer().Worth, answer(`,"past":[{"name":"Banner","variations":[{"n":10000,"converted":500},{"n":10000,"converted":560}],"shipped":1}]`)
	check.That(t,
		(*ofFile.Total == *ofLine.Total || ofFile.Total.Expected == ofLine.Total.Expected && ofFile.Total.Shipped == 1),
		"a file gives %+v, and a line %+v", ofFile, ofLine)
	check.Equal(t, ofFile.Items[0].Text, ofLine.Items[0].Text, "a file gives %+v, and a line %+v", ofFile, ofLine)
}

// TestPriorOfAComparison checks that a Bayesian comparison without a prior has a weak one, and that a learned prior is the one
// that its past tests say, or without any, the mean of the model's own prior, summed here over its grid.
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
		`,"prior":"learned"`: {.1 * mean / weights, 0},
		`,"prior":"learned","past":[{"lift":1,"standardError":2},{"lift":-3,"standardError":1}]`: {past, 2},
	} {
		got := priorOf(more)
		check.That(t, math.Abs(got.StandardDeviation-want.deviation) <= 1e-12, "%s: deviation %v, want %v", more,
			got.StandardDeviation, want.deviation)
		must.That(t, got.Campaigns != nil, "%s: learned from no campaigns", more)
		check.Equal(t, *got.Campaigns, want.campaigns, "%s: campaigns", more)
		check.That(t, got.Mean <= 0, "%s: the mean %v starts ahead", more, got.Mean)
	}
	weak := priorOf("")
	check.That(t, math.Abs(weak.StandardDeviation-.1/1.96) <= 1e-12, "the default has the deviation %v",
		weak.StandardDeviation)
	check.Equal(t, weak.Mean, 0, "the default is %+v", weak)
	check.That(t, weak.Campaigns == nil, "the default is %+v", weak)
	got := priorOf(`,"prior":{"mean":1,"standardDeviation":5},"past":[{"lift":1,"standardError":2}]`)
	check.That(t, got.Campaigns == nil, "declared: %+v", got)
	check.Equal(t, got.Mean, .01, "declared: %+v", got)
	check.Equal(t, got.StandardDeviation, .05, "declared: %+v", got)
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
		check.Equal(t, item.Reason, want, "%s: %+v, want %s", variations, item, want)
		check.That(t, item.Expected == nil, "%s: %+v, want %s", variations, item, want)
		check.That(t, w.InWords() == nil, "%s: %+v, want %s", variations, item, want)
		if want == stats.ReasonBaselineZero {
			continue // it says how large effects are
		}
		check.Equal(t, w.Pool.Campaigns, 1, "%s: the past is worth %+v", variations, w.Total)
		must.That(t, w.Total != nil, "%s: the past is worth %+v", variations, w.Total)
		check.That(t, w.Total.Expected > 0, "%s: the past is worth %+v", variations, w.Total)
		check.That(t, w.Total.Expected < .02, "%s: the past is worth %+v", variations, w.Total)
	}
}
