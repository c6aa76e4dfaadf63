package calculator

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"regexp"
	"testing"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/worth"
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
	if p := *a.Variations[1].Comparison.Frequentist.PValue; math.Abs(p-want) > 1e-9*want {
		t.Errorf("p = %v, want %v", p, want)
	}
	c := a.Variations[1].Comparison
	if c.Verdict != stats.VerdictBetter || *c.Conclusive || c.Sequential != nil || a.Conclusion.Status != stats.StatusInconclusive || a.Conclusion.VariationID != nil {
		t.Errorf("verdict %s, conclusion %+v", c.Verdict, a.Conclusion)
	}
	const sentence = "No conclusion: pass the sums at each weekly look to conclude."
	check.Equal(t, a.Conclusion.Text, sentence)
}

// TestCalculatorSaysWhatStatsSays has control in the middle, and compares the answer, in the order of the input, with
// package stats.
func TestCalculatorSaysWhatStatsSays(t *testing.T) {
	firstCampaign := worth.LearnPrior(worth.PoolKey{}, nil, .2)
	for _, test := range []struct {
		line    string
		samples []stats.Sample // control first
		o       stats.Options
	}{
		{
			`{"metric":"binary","variations":[{"id":5,"n":3000,"converted":160,"share":25},
			  {"id":9,"control":true,"n":6100,"converted":290,"share":50},{"id":2,"n":2950,"converted":120,"share":25}]}`,
			[]stats.Sample{stats.Rate{Visitors: 6100, Converted: 290}, stats.Rate{Visitors: 3000, Converted: 160}, stats.Rate{Visitors: 2950, Converted: 120}},
			stats.Options{SignificanceLevel: 90, Methodology: stats.MethodologyFrequentist, NonNegative: true, Shares: []float64{2, 1, 1}},
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
				Prior: &stats.Prior{StandardDeviation: firstCampaign.StandardDeviation / 100},
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
				want = result.NewComparison(comparisons[place-1], firstCampaign.Campaigns)
				want.Conclusive = new(bool)
			}
			check.That(t, reflect.DeepEqual(v.Comparison, want), "variations[%d]: comparison %+v, want %+v", i, v.Comparison, want)
		}
		split := stats.Split{Control: 50, Variations: []float64{1, 1}}
		ratio := stats.SampleRatioMismatch([]stats.SharePeriod{{Split: split, Observed: []int64{6100, 3000, 2950}}})
		wantCheck := stats.SampleRatioCheck{
			PValue: ratio.PValue, Expected: []float64{ratio.Expected[1], ratio.Expected[0], ratio.Expected[2]}, Observed: []int64{3000, 6100, 2950}, LogFactor: ratio.LogFactor,
		}
		got := a.Checks.SampleRatio
		check.That(t, reflect.DeepEqual(got, wantCheck), "sample ratio %+v, want %+v", got, wantCheck)
		check.That(t, *a.Power.RequiredVisitors == *power.RequiredVisitors && *a.Power.MinimumDetectableEffect == *power.MinimumDetectableEffect && a.Power.Reason == "",
			"power %+v, want %+v", a.Power, power)
		check.That(t, a.Looks == nil && a.Conclusion.Status == stats.StatusInconclusive && a.Conclusion.VariationID == nil, "conclusion %+v", a.Conclusion)
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
			must.That(t, errors.As(err, &invalid) && len(invalid.Faults) != 0, "ParseQuestion(%q) = %v, want faults", line, err)
			must.Get(json.Marshal(RefuseLine(1, invalid)))(t)
			return
		}
		text, err := json.Marshal(input.ComputeAnswer())
		must.That(t, err == nil && json.Valid(text) && !notNumbers.Match(text), "%s\nis answered %s, %v", line, text, err)
	})
}
