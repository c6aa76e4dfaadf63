package calculator

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"lifthouse/engine/query"
	"lifthouse/schema/faults"
	"lifthouse/stats"
)

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
	return fmt.Sprintf(`{"metric":"binary","significanceLevel":95,%s"looks":[%s],%s}`, options, strings.Join(looks, ","), sums[len(sums)-1])
}

func TestLooksConclude(t *testing.T) {
	for _, test := range []struct {
		name, line string
		status     stats.Status
		variation  int64 // 0: none
		look       int
		conclusive []bool // today
		text       string
	}{
		{
			"a winner", weekly("", rateSums(4000, 200, 240), rateSums(8000, 400, 500)),
			stats.StatusWinner, 1, 2,
			[]bool{true},
			"Variation 1 is better than control at look 2: a lift of +25.0 % (95 % interval +3.9 % to +50.3 %).",
		},
		{
			"later looks do not withdraw it", weekly("", rateSums(4000, 200, 240), rateSums(8000, 400, 500), rateSums(12000, 600, 610)),
			stats.StatusWinner, 1, 2,
			[]bool{false},
			"Variation 1 is better than control at look 2: a lift of +25.0 % (95 % interval +3.9 % to +50.3 %).",
		},
		{
			"a winner follows a loser", weekly("", rateSums(4000, 400, 270, 410), rateSums(8000, 800, 600, 1100)),
			stats.StatusWinner, 2, 2,
			[]bool{true, true},
			"Variation 2 is better than control at look 2: a lift of +37.5 % (95 % interval +20.5 % to +57.0 %).",
		},
		{
			"too early for the same lift", weekly("", rateSums(8000, 400, 480)),
			stats.StatusInconclusive, 0, 0,
			[]bool{false},
			"No variation differs significantly from control by look 1 (95 % level).",
		},
		{
			"the end of the plan", weekly("", rateSums(4000, 400, 400), rateSums(8000, 800, 800), rateSums(12000, 1200, 1200), rateSums(16000, 1600, 1600)),
			stats.StatusInconclusive, 0, 0,
			[]bool{false},
			"No variation differs significantly from control by look 4 (95 % level).",
		},
		{
			"no new visitors", weekly("", rateSums(8000, 400, 480), rateSums(8000, 400, 480)),
			stats.StatusInconclusive, 0, 0,
			[]bool{false},
			"No conclusion at look 2: no new visitors have come since the look before.",
		},
		{
			"Bayesian", weekly(`"methodology":"bayesian",`, rateSums(8000, 400, 520)),
			stats.StatusWinner, 1, 1,
			[]bool{true},
			"Variation 1 is better than control at look 1: a lift of +30.0 % (95 % interval +6.0 % to +59.5 %).",
		},
		{
			"too few visitors", weekly("", rateSums(90, 5, 6)),
			stats.StatusInsufficientData, 0, 0,
			[]bool{false},
			"Not enough data for a verdict: there are too few visitors (a verdict needs 100 in each variation).",
		},
	} {
		a := answerTo(t, test.line)
		c := a.Conclusion
		if c.Status != test.status || c.Text != test.text {
			t.Errorf("%s: %s: %s\nwant %s: %s", test.name, c.Status, c.Text, test.status, test.text)
		}
		if (c.VariationID == nil) != (test.variation == 0) || c.VariationID != nil && (*c.VariationID != test.variation || *c.Look != test.look) {
			t.Errorf("%s: %+v", test.name, c)
		}
		for i, want := range test.conclusive {
			if got := a.Variations[i+1].Comparison; *got.Conclusive != want || *got.Sequential.Look != len(a.Looks)-strings.Count(test.name, "no new visitors") {
				t.Errorf("%s: variation %d: conclusive %v, %+v", test.name, i+1, *got.Conclusive, got.Sequential)
			}
		}
	}
}

// TestLooksAgreeWithStats has control in the middle, shares and three treatments.
func TestLooksAgreeWithStats(t *testing.T) {
	a := answerTo(t, `{"metric":"mean","significanceLevel":95,"plannedVisitors":40000,
		"variations":[{"id":5,"share":10,"n":2000,"mean":5,"variance":90},{"id":9,"control":true,"share":70,"n":14000,"mean":4,"variance":81},
		  {"id":2,"share":10,"n":2000,"mean":4.1,"variance":80},{"id":3,"share":10,"n":2000,"mean":3.9,"variance":80}],
		"looks":[{"variations":[{"n":1000,"mean":5,"variance":90},{"n":7000,"mean":4,"variance":81},{"n":1000,"mean":4.1,"variance":80},{"n":1000,"mean":3.9,"variance":80}]},
		  {"variations":[{"n":2000,"mean":5,"variance":90},{"n":14000,"mean":4,"variance":81},{"n":2000,"mean":4.1,"variance":80},{"n":2000,"mean":3.9,"variance":80}]}]}`)
	var points []stats.LookPoint
	for k, n := range []int64{1000, 2000} {
		look := a.Looks[k]
		strata := []stats.Stratum{{
			Control: stats.Mean{Visitors: 7 * n, Mean: 4, Variance: 81, Nonzero: -1}, Treatment: stats.Mean{Visitors: n, Mean: 5, Variance: 90, Nonzero: -1}, SmallerShare: 0.125,
		}}
		points = append(points, stats.LookPoint{Tau: float64(k+1) / 4, Information: stats.LookInformation(strata, false)})
		sequence := stats.NewLookDesign(0.05, []float64{70, 10, 10, 10}).NewSequence(points, nil)
		want := sequence.AnalyzeLook(k, strata, false)
		got, p := look.Variations[0], *sequence.PValue(k, want)
		if look.Number != k+1 || look.Visitors != 10*n || look.Tau != float64(k+1)/4 || got.ID != 5 || len(look.Variations) != 3 {
			t.Errorf("look %+v", look)
		}
		if *got.CriticalValue != *want.Critical || *got.Z != *want.Z || got.Significant != want.Significant || *got.PValue != p || *got.Improvement.Interval[0] != *want.Lift.Interval.Lower {
			t.Errorf("look %d: %+v, want %+v", k+1, got, want)
		}
	}
	last := a.Variations[0].Comparison.Sequential
	if *last.Look != 2 || *last.PValue != *a.Looks[1].Variations[0].PValue || a.Variations[1].Comparison != nil {
		t.Errorf("%+v", last)
	}
}

// TestMismatchAtALookRemains checks that shares that match again do not clear the alarm.
func TestMismatchAtALookRemains(t *testing.T) {
	a := answerTo(t, `{"metric":"binary","looks":[{"tau":0.5,"variations":[{"n":2000,"converted":200},{"n":2600,"converted":500}]}],
		"variations":[{"n":9000,"converted":900,"share":50},{"n":9000,"converted":1800,"share":50}]}`)
	if c := a.Conclusion; c.Status != stats.StatusInvalid || c.VariationID != nil || *a.Variations[1].Comparison.Conclusive || a.Checks.SampleRatio.Observed[0] != 2000 {
		t.Errorf("conclusion %+v, checks %+v", c, a.Checks)
	}
}

// TestOracleOfLooks has the critical values of decision 12.
func TestOracleOfLooks(t *testing.T) {
	a := answerTo(t, weekly("", rateSums(1000, 50, 50), rateSums(2000, 100, 100), rateSums(3000, 150, 150), rateSums(4000, 200, 200)))
	for k, want := range []float64{3.170, 2.835, 2.458, 2.036} {
		if got := *a.Looks[k].Variations[0].CriticalValue; math.Abs(got-want) > 1e-3 {
			t.Errorf("look %d: %v, want %v", k+1, got, want)
		}
	}
}

func TestFaultsOfLooks(t *testing.T) {
	const sums = `"variations":[{"id":7,"n":100,"converted":5},{"id":3,"n":90,"converted":6}]`
	const valid = `"variations":[{"n":50,"converted":5},{"n":50,"converted":6}]`
	for _, test := range []struct {
		looks string
		want  []faults.Fault
	}{
		{`true`, []faults.Fault{{Name: "looks", Value: "true", Detail: "must be an array of 1 to 200 looks"}}},
		{`[]`, []faults.Fault{{Name: "looks", Value: "[]", Detail: "must be an array of 1 to 200 looks, have 0"}}},
		{`[5]`, []faults.Fault{{Name: "looks[0]", Value: "5", Detail: `must be an object: {"tau": …}`}}},
		{`[{"tua":1}]`, []faults.Fault{
			{Name: "looks[0].tua", Value: "1", Detail: "did you mean tau?"},
			{Name: "looks[0].variations", Detail: "is missing: must be an array of 2 variations"},
			{Name: "looks[0].days", Detail: "is missing: must be an integer from 1 to 3650"},
		}},
		{`[{"tau":0,` + valid + `},{"tau":1,"days":7,` + valid + `},{"days":-1,` + valid + `}]`, []faults.Fault{
			{Name: "looks[0].tau", Value: "0", Detail: "must be above 0"},
			{Name: "looks[1].tau", Value: "1", Detail: "must be omitted, because days is given"},
			{Name: "looks[2].days", Value: "-1", Detail: "must be an integer from 1"},
		}},
		{`[{"days":14,` + valid + `},{"days":14,` + valid + `},{"tau":0.4,` + valid + `}]`, []faults.Fault{
			{Name: "looks[1].days", Value: "14", Detail: "must be later than the look before"}, {Name: "looks[2].tau", Value: "0.4", Detail: "must be later"},
		}},
		{`[{"days":7,` + valid + `}],"plannedVisitors":100`, []faults.Fault{{Name: "looks[0].days", Value: "7", Detail: "must be omitted, because plannedVisitors measures the time"}}},
		{`[{"days":7,"variations":[{"n":1,"converted":1}]}]`, []faults.Fault{{Name: "looks[0].variations", Value: `[{"n":1,"converted":1}]`, Detail: "have 1"}}},
		{`[{"days":7,"variations":[{"n":60,"converted":5},{"n":50,"converted":6}]},{"days":14,"variations":[{"n":50,"converted":4},{"n":91,"converted":7}]}]`, []faults.Fault{
			{Name: "looks[1].variations[0].n", Value: "50", Detail: "must be at least 60, which is n of looks[0].variations[0]"},
			{Name: "looks[1].variations[0].converted", Value: "4", Detail: "must be at least 5, which is converted of looks[0]"},
			{Name: "looks[1].variations[1].n", Value: "91", Detail: "must be at most 90, which is n of variations[1]"},
			{Name: "looks[1].variations[1].converted", Value: "7", Detail: "must be at most 6, which is converted of variations[1]"},
		}},
		{`[{"days":7,"variations":[{"id":3,"n":"5","converted":5,"mean":1},{"id":7,"n":4,"converted":5,"share":50}]}]`, []faults.Fault{
			{Name: "looks[0].variations[0].id", Value: "3", Detail: "must be 7, the id of variations[0]"},
			{Name: "looks[0].variations[0].n", Value: "5", Detail: "without quotes"},
			{Name: "looks[0].variations[0].mean", Value: "1", Detail: `is only valid for the metric "mean"`},
			{Name: "looks[0].variations[1].share", Value: "50", Detail: "unknown field"},
			{Name: "looks[0].variations[1].id", Value: "7", Detail: "must be 3"},
			{Name: "looks[0].variations[1].converted", Value: "5", Detail: "must be at most n, which is 4"},
		}},
	} {
		line := `{"metric":"binary",` + sums + `,"looks":` + test.looks + `}`
		_, err := ParseInput([]byte(line))
		var invalid *query.InvalidError
		if !errors.As(err, &invalid) || len(invalid.Faults) != len(test.want) {
			t.Errorf("Parse(%s) error = %v, want %+v", line, err, test.want)
			continue
		}
		for i, want := range test.want {
			if f := invalid.Faults[i]; f.Name != want.Name || f.Value != want.Value || !strings.Contains(f.Detail, want.Detail) {
				t.Errorf("Parse(%s) fault = %+v, want %+v", line, f, want)
			}
		}
	}
}
