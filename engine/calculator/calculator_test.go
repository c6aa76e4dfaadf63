package calculator

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema/faults"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

func TestCalculatorReadsAQuestion(t *testing.T) {
	half := 50.0
	for _, test := range []struct {
		line string
		want Input
	}{
		{
			`{"metric":"binary","variations":[{"n":100,"converted":5},{"n":90,"converted":6}]}`,
			Input{
				Metric: MetricBinary, SignificanceLevel: 90, Methodology: stats.MethodologyFrequentist, Power: 80, MDE: 20, PlannedDays: 28,
				Variations: []Variation{{Control: true, Visitors: 100, Converted: 5}, {ID: 1, Visitors: 90, Converted: 6}},
			},
		},
		{
			`{"metric":"mean","significanceLevel":100,"methodology":"bayesian","power":99,"mde":1.5,"plannedVisitors":1e4,"prior":{"mean":-2,"standardDeviation":5},"nonnegative":true,
			  "variations":[{"id":7,"control":false,"share":50,"n":1e2,"mean":4.25,"variance":0},{"id":3.0,"control":true,"share":50,"n":90.0,"mean":0,"variance":1e-3}]}`,
			Input{
				Metric: MetricMean, SignificanceLevel: 100, Methodology: stats.MethodologyBayesian, Power: 99, MDE: 1.5, PlannedDays: 28, PlannedVisitors: 10000, NonNegative: true, Prior: &stats.Prior{Mean: -0.02, StandardDeviation: 0.05},
				Variations: []Variation{
					{ID: 7, Share: &half, Visitors: 100, Mean: 4.25},
					{ID: 3, Control: true, Share: &half, Visitors: 90, Variance: 0.001},
				},
			},
		},
		{
			// The mean without visitors and the variance of one visitor may be
			// absent; null means absent.
			`{"metric":"mean","mde":null,"variations":[{"n":0,"mean":null},{"n":1,"mean":-3}]}`,
			Input{
				Metric: MetricMean, SignificanceLevel: 90, Methodology: stats.MethodologyFrequentist, Power: 80, MDE: 20, PlannedDays: 28,
				Variations: []Variation{{Control: true}, {ID: 1, Visitors: 1, Mean: -3}},
			},
		},
		{
			`{"metric":"binary","plannedDays":14,"variations":[{"n":100,"converted":5},{"n":90,"converted":6}],
			  "looks":[{"days":7,"variations":[{"n":50,"converted":2},{"n":50,"converted":3}]},{"tau":1,"variations":[{"n":100,"converted":5},{"n":90,"converted":6}]}]}`,
			Input{
				Metric: MetricBinary, SignificanceLevel: 90, Methodology: stats.MethodologyFrequentist, Power: 80, MDE: 20, PlannedDays: 14,
				Variations: []Variation{{Control: true, Visitors: 100, Converted: 5}, {ID: 1, Visitors: 90, Converted: 6}},
				Looks: []Look{
					{0.5, []Variation{{Control: true, Visitors: 50, Converted: 2}, {ID: 1, Visitors: 50, Converted: 3}}},
					{1, []Variation{{Control: true, Visitors: 100, Converted: 5}, {ID: 1, Visitors: 90, Converted: 6}}},
				},
			},
		},
		{
			`{"metric":"mean","methodology":"bayesian","prior":"flat","variations":[{"n":0},{"n":0}]}`,
			Input{Metric: MetricMean, SignificanceLevel: 90, Methodology: stats.MethodologyBayesian, Power: 80, MDE: 20, PlannedDays: 28, Variations: []Variation{{Control: true}, {ID: 1}}},
		},
		{
			`{"metric":"mean","methodology":"bayesian","mde":19.6,"variations":[{"n":0},{"n":0}]}`,
			Input{
				Metric: MetricMean, SignificanceLevel: 90, Methodology: stats.MethodologyBayesian, Power: 80, MDE: 19.6, PlannedDays: 28,
				Prior: &stats.Prior{StandardDeviation: 0.196 / 1.96}, Variations: []Variation{{Control: true}, {ID: 1}},
			},
		},
	} {
		got, err := ParseInput([]byte(test.line))
		if err != nil || !reflect.DeepEqual(*got, test.want) {
			t.Errorf("ParseQuestion(%s) = %+v, %v; want %+v", test.line, got, err, test.want)
		}
	}
}

// TestCalculatorNamesEveryFault compares faults. The expected details are
// substrings.
func TestCalculatorNamesEveryFault(t *testing.T) {
	const first, second = `{"n":100,"converted":5}`, `"n":90,"converted":6`
	more := func(fields string) string {
		return `{"metric":"binary","variations":[` + first + `,{` + second + `}]` + fields + `}`
	}
	inVariation := func(fields string) string {
		return `{"metric":"binary","variations":[` + first + `,{` + second + fields + `}]}`
	}
	asking := func(metric string, variations ...string) string {
		return `{"metric":"` + metric + `","variations":[` + strings.Join(variations, ",") + `]}`
	}
	var many strings.Builder
	manyFaults := []faults.Fault{}
	for i := range 2 * maxFaults {
		fmt.Fprintf(&many, `,"x%d":0`, i)
		if i < maxFaults {
			manyFaults = append(manyFaults, faults.Fault{Name: fmt.Sprintf("x%d", i), Value: "0", Detail: "unknown field"})
		}
	}
	for _, test := range []struct {
		line string
		want []faults.Fault
	}{
		{``, []faults.Fault{{Name: "line", Value: "", Detail: "unexpected end of JSON input"}}},
		{`{`, []faults.Fault{{Name: "line", Value: "{", Detail: "unexpected end of JSON input, at byte 1"}}},
		{`{"metric":NaN}`, []faults.Fault{{Name: "line", Value: `{"metric":N`, Detail: "invalid character 'N'"}}},
		{asking("binary") + ` {}`, []faults.Fault{{Name: "line", Value: `","variations":[]} {`, Detail: "after top-level value"}}},
		{"{\"metric\":\"\xff\"}", []faults.Fault{{Name: "line", Value: "", Detail: "must be UTF-8"}}},
		{strings.Repeat("[", 20000), []faults.Fault{{Name: "line", Value: strings.Repeat("[", 20), Detail: "exceeded max depth"}}},
		{strings.Repeat(" ", MaxInput+1), []faults.Fault{{Name: "line", Value: "", Detail: "at most 1048576 bytes"}}},
		{`[1]`, []faults.Fault{{Name: "line", Value: "[1]", Detail: `must be an object: {"metric": …}`}}},
		{`null`, []faults.Fault{{Name: "line", Value: "null", Detail: "must be an object"}}},
		{`{}`, []faults.Fault{{Name: "metric", Value: "", Detail: "is missing: must be one of binary, mean"}, {Name: "variations", Value: "", Detail: "is missing: must be an array of 2 to 21"}}},
		{more(`,"metric":"mean"`), []faults.Fault{{Name: "metric", Value: `"mean"`, Detail: "must be given once"}}},
		{inVariation(`,"n":7`), []faults.Fault{{Name: "variations[1].n", Value: "7", Detail: "must be given once"}}},
		{more(`,"Power":80,"significancelevel":95,"plannedVisitor":3`), []faults.Fault{
			{Name: "Power", Value: "80", Detail: "did you mean power"},
			{Name: "significancelevel", Value: "95", Detail: "did you mean significanceLevel"},
			{Name: "plannedVisitor", Value: "3", Detail: "did you mean plannedVisitors"},
		}},
		{inVariation(`,"conversions":5,"shares":5`), []faults.Fault{
			{Name: "variations[1].conversions", Value: "5", Detail: "must be one of id, control, share, n, converted"}, {Name: "variations[1].shares", Value: "5", Detail: "did you mean share"},
		}},
		{more(`,"significanceLevel":0.95,"power":0.8,"mde":0.2,"plannedVisitors":0,"nonnegative":1,"methodology":"Bayesian"`), []faults.Fault{
			{Name: "significanceLevel", Value: "0.95", Detail: "must be one of 80, 90, 95, 100 per cent"},
			{Name: "methodology", Value: "Bayesian", Detail: "must be one of frequentist, bayesian"},
			{Name: "mde", Value: "0.2", Detail: "must be a number from 1 to 100 per cent"},
			{Name: "nonnegative", Value: "1", Detail: "must be true or false"},
			{Name: "power", Value: "0.8", Detail: "must be an integer from 60 to 99 per cent"},
			{Name: "plannedVisitors", Value: "0", Detail: "must be an integer from 1 to 1000000000000"},
		}},
		{more(`,"mde":"20","power":"80","significanceLevel":"90"`), []faults.Fault{
			{Name: "significanceLevel", Value: "90", Detail: "per cent, without quotes"}, {Name: "mde", Value: "20", Detail: "per cent, without quotes"}, {Name: "power", Value: "80", Detail: "per cent, without quotes"},
		}},
		{more(`,"plannedDays":1.5,"looks":{}`), []faults.Fault{
			{Name: "plannedDays", Value: "1.5", Detail: "must be an integer from 1 to 3650"}, {Name: "looks", Value: "{}", Detail: "must be an array of 1 to 200 looks"},
		}},
		{more(`,"plannedDays":28,"plannedVisitors":500`), []faults.Fault{{Name: "plannedDays", Value: "28", Detail: "must be omitted, because plannedVisitors measures the time"}}},
		{asking("ratio", `{"n":1,"converted":2}`, `{"n":-1}`), []faults.Fault{
			{Name: "metric", Value: "ratio", Detail: "must be one of binary, mean"}, {Name: "variations[1].n", Value: "-1", Detail: "must be an integer from 0 to 1000000000000"},
		}},
		{`{"metric":"binary","variations":{}}`, []faults.Fault{{Name: "variations", Value: "{}", Detail: "must be an array of 2 to 21"}}},
		{asking("binary"), []faults.Fault{{Name: "variations", Value: "[]", Detail: "2 to 21 variations, have 0"}}},
		{asking("binary", `{"n":1,"converted":3}`), []faults.Fault{
			{Name: "variations", Value: `[{"n":1,"converted":3}]`, Detail: "2 to 21 variations, have 1"}, {Name: "variations[0].converted", Value: "3", Detail: "must be at most n, which is 1"},
		}},
		{asking("binary", strings.Repeat(first+",", 21)+first), []faults.Fault{
			{Name: "variations", Value: ("[" + strings.Repeat(first+",", 21))[:maxShown] + "…", Detail: "2 to 21 variations, have 22"},
		}},
		{asking("binary", `7`, `{"n":1.5,"converted":1}`), []faults.Fault{
			{Name: "variations[0]", Value: "7", Detail: `must be an object: {"id": …}`}, {Name: "variations[1].n", Value: "1.5", Detail: "must be an integer"},
		}},
		{asking("binary", first, `{"n":1000000000001,"converted":-1}`), []faults.Fault{
			{Name: "variations[1].n", Value: "1000000000001", Detail: "to 1000000000000"}, {Name: "variations[1].converted", Value: "-1", Detail: "must be an integer from 0"},
		}},
		{asking("mean", `{"n":5,"mean":1e999,"variance":-1}`, `{"n":2,"converted":1}`), []faults.Fault{
			{Name: "variations[0].mean", Value: "1e999", Detail: "must be a number"},
			{Name: "variations[0].variance", Value: "-1", Detail: "must be a number from 0"},
			{Name: "variations[1].converted", Value: "1", Detail: `is only valid for the metric "binary"`},
			{Name: "variations[1].mean", Value: "", Detail: "is missing: must be a number"},
			{Name: "variations[1].variance", Value: "", Detail: "is missing: must be a number from 0"},
		}},
		{inVariation(`,"mean":1`), []faults.Fault{{Name: "variations[1].mean", Value: "1", Detail: `is only valid for the metric "mean"`}}},
		{inVariation(`,"id":0`), []faults.Fault{{Name: "variations[1].id", Value: "0", Detail: "must be unique: variations[0] has the same id"}}},
		{inVariation(`,"id":-3`), []faults.Fault{{Name: "variations[1].id", Value: "-3", Detail: "must be an integer from 0"}}},
		{inVariation(`,"id":9223372036854775808`), []faults.Fault{{Name: "variations[1].id", Value: "9223372036854775808", Detail: "must be an integer from 0"}}},
		{asking("binary", `{"n":1,"converted":1,"control":true}`, `{"n":1,"converted":1,"control":true}`), []faults.Fault{
			{Name: "variations[1].control", Value: "true", Detail: "must be false: variations[0] is control already"},
		}},
		{inVariation(`,"share":50`), []faults.Fault{{Name: "variations[0].share", Value: "", Detail: "either all variations must have a share, or none"}}},
		{inVariation(`,"share":101`), []faults.Fault{
			{Name: "variations[1].share", Value: "101", Detail: "must be a number from 0 to 100 per cent"}, {Name: "variations[0].share", Value: "", Detail: "all variations must have a share"},
		}},
		{asking("binary", `{"n":1,"converted":1,"share":0}`, `{"n":1,"converted":1,"share":0}`), []faults.Fault{{Name: "variations", Value: "", Detail: "at least one share must be above 0"}}},
		{`{"nonnegative":true,` + asking("mean", `{"n":5,"mean":-1,"variance":1}`, `{"n":5,"mean":1,"variance":1}`)[1:], []faults.Fault{
			{Name: "variations[0].mean", Value: "-1", Detail: "must be at least 0"},
		}},
		{more(`,"` + strings.Repeat("x", 200) + `":"` + strings.Repeat("y", 200) + `"`), []faults.Fault{
			{Name: strings.Repeat("x", maxShown) + "…", Value: `"` + strings.Repeat("y", maxShown-1) + "…", Detail: "unknown field"},
		}},
		{more(many.String()), append(manyFaults, faults.Fault{Name: "line", Value: "", Detail: "and 100 more errors"})},
	} {
		_, err := ParseInput([]byte(test.line))
		var invalid *query.InvalidError
		if !errors.As(err, &invalid) || len(invalid.Faults) != len(test.want) {
			t.Errorf("ParseQuestion(%.200s) error = %v, want %+v", test.line, err, test.want)
			continue
		}
		for i, want := range test.want {
			if f := invalid.Faults[i]; f.Name != want.Name || f.Value != want.Value || !strings.Contains(f.Detail, want.Detail) {
				t.Errorf("ParseQuestion(%.200s) fault = %+v, want %+v", test.line, f, want)
			}
		}
	}
}

func TestCalculatorTakesTheLongestLine(t *testing.T) {
	line := `{"metric":"binary","variations":[{"n":1,"converted":1},{"n":1,"converted":1}]}`
	line += strings.Repeat(" ", MaxInput-len(line))
	if _, err := ParseInput([]byte(line)); err != nil {
		t.Error(err)
	}
}

// answerTo returns the answer to a valid input.
func answerTo(tb testing.TB, line string) *Answer {
	tb.Helper()
	input, err := ParseInput([]byte(line))
	if err != nil {
		tb.Fatalf("%s: %v", line, err)
	}
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
	if a.Conclusion.Text != sentence {
		t.Errorf("it says %q, want %q", a.Conclusion.Text, sentence)
	}
}

// TestCalculatorSaysWhatStatsSays has control in the middle, and compares the
// answer, in the order of the input, with package stats.
func TestCalculatorSaysWhatStatsSays(t *testing.T) {
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
			stats.Options{SignificanceLevel: 80, Methodology: stats.MethodologyBayesian, Shares: []float64{2, 1, 1}, Prior: stats.DefaultPrior(0.2)},
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
			if want := estimateOf(test.samples[place], test.o); !reflect.DeepEqual(v.Estimate, want) {
				t.Errorf("variations[%d]: estimate %+v, want %+v", i, v.Estimate, want)
			}
			var want *result.Comparison
			if place > 0 {
				want = result.NewComparison(comparisons[place-1])
				want.Conclusive = new(bool)
			}
			if !reflect.DeepEqual(v.Comparison, want) {
				t.Errorf("variations[%d]: comparison %+v, want %+v", i, v.Comparison, want)
			}
		}
		split := stats.Split{Control: 50, Variations: []float64{1, 1}}
		check := stats.SampleRatioMismatch([]stats.SharePeriod{{Split: split, Observed: []int64{6100, 3000, 2950}}})
		wantCheck := result.SampleRatio{
			PValue: check.PValue, Expected: []float64{check.Expected[1], check.Expected[0], check.Expected[2]}, Observed: []int64{3000, 6100, 2950},
		}
		if got := a.Checks.SampleRatio; !reflect.DeepEqual(got, wantCheck) {
			t.Errorf("sample ratio %+v, want %+v", got, wantCheck)
		}
		if *a.Power.RequiredVisitors != *power.RequiredVisitors || *a.Power.MinimumDetectableEffect != *power.MinimumDetectableEffect || a.Power.Reason != "" {
			t.Errorf("power %+v, want %+v", a.Power, power)
		}
		if a.Looks != nil || a.Conclusion.Status != stats.StatusInconclusive || a.Conclusion.VariationID != nil {
			t.Errorf("conclusion %+v", a.Conclusion)
		}
	}
}

// notNumbers matches values that no answer may contain.
var notNumbers = regexp.MustCompile(`NaN|Inf`)

// FuzzCalculator checks that no line panics, and that answers are JSON without
// NaN and infinities.
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
			if !errors.As(err, &invalid) || len(invalid.Faults) == 0 {
				t.Fatalf("ParseQuestion(%q) = %v, want faults", line, err)
			}
			must.Get(json.Marshal(RefuseLine(1, invalid)))(t)
			return
		}
		text, err := json.Marshal(input.ComputeAnswer())
		if err != nil || !json.Valid(text) || notNumbers.Match(text) {
			t.Fatalf("%s\nis answered %s, %v", line, text, err)
		}
	})
}
