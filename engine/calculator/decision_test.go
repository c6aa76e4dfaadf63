package calculator

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// rateLook returns the sums of rates, of n visitors per variation.
func rateLook(n int64, converted ...int64) string {
	texts := make([]string, len(converted))
	for i, x := range converted {
		texts[i] = fmt.Sprintf(`{"n":%d,"converted":%d}`, n, x)
	}
	return `"variations":[` + strings.Join(texts, ",") + `]`
}

func TestPlannedLookDecides(t *testing.T) {
	for _, test := range []struct {
		name, options, planned, today string
		status                        stats.Status
		basis                         result.Basis
		conclusive                    []bool // today
		text                          string
	}{
		{
			"at the planned look", `"significanceLevel":95`, rateLook(2000, 200, 249), rateLook(2000, 200, 249),
			stats.StatusWinner, result.BasisPlannedLook,
			[]bool{true},
			"Variation 1 is better than control: a lift of +24.5 % (95 % interval +4.1 % to +49.0 %) at the planned look.",
		},
		{
			"later looks do not take it back", `"significanceLevel":95,"plannedVisitors":4000`, rateLook(2000, 200, 249), rateLook(3000, 300, 320),
			stats.StatusWinner, result.BasisPlannedLook,
			[]bool{false},
			"Variation 1 is better than control: a lift of +24.5 % (95 % interval +4.1 % to +49.0 %) at the planned look.",
		},
		{
			"a verdict that lasts", `"significanceLevel":95`, rateLook(2000, 200, 249), rateLook(3000, 300, 365),
			stats.StatusWinner, result.BasisPlannedLook,
			[]bool{true},
			"Variation 1 is better than control: a lift of +24.5 % (95 % interval +4.1 % to +49.0 %) at the planned look.",
		},
		{
			"ahead", `"significanceLevel":95`, rateLook(2000, 200, 239), rateLook(2000, 200, 239),
			stats.StatusInconclusive, "",
			[]bool{false},
			"Ahead at the planned look (p = 0.0485), not conclusive: that look has 4.5 % of the 5 %.",
		},
		{
			"behind, of several", `"significanceLevel":90`, rateLook(2000, 200, 199, 161), rateLook(2000, 200, 199, 161),
			stats.StatusLoser, result.BasisPlannedLook,
			[]bool{false, true},
			"Variation 2 is worse than control: a lift of -19.5 % (90 % interval -34.0 % to -1.9 %) at the planned look.",
		},
		{
			"behind, of several, not conclusive", `"significanceLevel":90`, rateLook(2000, 200, 199, 165), rateLook(2000, 200, 199, 165),
			stats.StatusInconclusive, "",
			[]bool{false, false},
			"Variation 2 is behind at the planned look (p = 0.0988), not conclusive: that look has 9 % of the 10 %.",
		},
		{
			"later by the sequence", `"significanceLevel":95`, rateLook(2000, 200, 203), rateLook(4000, 400, 560),
			stats.StatusWinner, result.BasisAlwaysValid,
			[]bool{true},
			"Variation 1 is better than control: a lift of +40.0 % (95 % always-valid interval +11.0 % to +76.7 %), which is valid at every look.",
		},
		{
			"only ahead later", `"significanceLevel":95`, rateLook(2000, 200, 203), rateLook(4000, 400, 460),
			stats.StatusInconclusive, "",
			[]bool{false},
			"No conclusion: the planned look was not conclusive, and the effect is not significant at repeated looks.",
		},
		{
			"a winner follows a loser", `"significanceLevel":95`, rateLook(2000, 200, 140, 210), rateLook(4000, 400, 300, 600),
			stats.StatusWinner, result.BasisAlwaysValid,
			[]bool{true, true},
			"Variation 2 is better than control: a lift of +50.0 % (95 % always-valid interval +18.0 % to +90.8 %), which is valid at every look.",
		},
	} {
		a := answerTo(t, fmt.Sprintf(`{"metric":"binary",%s,"plannedLook":{%s},%s}`, test.options, test.planned, test.today))
		if a.Conclusion.Status != test.status || a.Conclusion.Basis != test.basis || a.Conclusion.Text != test.text {
			t.Errorf("%s: %s by %q: %s\nwant %s by %q: %s", test.name, a.Conclusion.Status, a.Conclusion.Basis, a.Conclusion.Text, test.status, test.basis, test.text)
		}
		var conclusive []bool
		for i, v := range a.Variations[1:] {
			conclusive = append(conclusive, *v.Comparison.Conclusive)
			if v.Comparison.Sequential.PlannedLook != (test.planned == test.today) || !a.PlannedLook.Variations[i+1].Comparison.Sequential.PlannedLook {
				t.Errorf("%s: variations[%d] is wrong about the planned look", test.name, i+1)
			}
		}
		if !reflect.DeepEqual(conclusive, test.conclusive) {
			t.Errorf("%s: conclusive %v, want %v", test.name, conclusive, test.conclusive)
		}
	}
}

// TestPlannedLookWithAMismatch checks that a sample ratio mismatch of today overrides
// the winner of the planned look.
func TestPlannedLookWithAMismatch(t *testing.T) {
	a := answerTo(t, `{"metric":"binary","plannedLook":{"variations":[{"n":2000,"converted":200},{"n":2000,"converted":260}]},
		"variations":[{"n":3000,"converted":300,"share":50},{"n":4000,"converted":500,"share":50}]}`)
	if c := a.Conclusion; c.Status != stats.StatusInvalid || c.Basis != "" || c.VariationID != nil || *a.PlannedLook.Variations[1].Comparison.Conclusive {
		t.Errorf("conclusion %+v", c)
	}
}

// TestDecisionAgreesWithStats compares the conclusion with stats.Decide, which finds
// the planned look by plannedVisitors, for random looks.
func TestDecisionAgreesWithStats(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	found := map[string]int{}
	for range 600 {
		const n = 2000
		q := &Input{
			Metric: MetricBinary, SignificanceLevel: []int{80, 90, 95}[r.IntN(3)], Power: 80, MDE: 20,
			Methodology:     []stats.Methodology{stats.MethodologyFrequentist, stats.MethodologyBayesian}[r.IntN(2)],
			PlannedVisitors: 3 * n,
		}
		looks := []stats.Look{{Visitors: 3 * n, NonNegative: true}, {Visitors: 6 * n, NonNegative: true}}
		equal := 1.0
		for i := range 3 {
			was, more := int64(200+r.IntN(90)-45), int64(200+r.IntN(200)-100)
			q.PlannedLook = append(q.PlannedLook, Variation{ID: int64(i), Control: i == 0, Share: &equal, Visitors: n, Converted: was})
			q.Variations = append(q.Variations, Variation{ID: int64(i), Control: i == 0, Share: &equal, Visitors: 2 * n, Converted: was + more})
			for j, x := range []int64{was, was + more} {
				looks[j].Samples = append(looks[j].Samples, stats.Rate{Visitors: int64(j+1) * n, Converted: x})
			}
		}
		want := stats.Decide(looks, stats.DecisionPlan{}, q.options(q.Variations, []int{0, 1, 2})).Decided
		got := q.Answer().Conclusion
		switch {
		case want == nil:
			if got.VariationID != nil {
				t.Fatalf("%+v: %+v, want no decision", q, got)
			}
			found["none"]++
		case got.Status != want.Conclusion.Status || *got.VariationID != int64(want.Conclusion.Index+1) || (got.Basis == result.BasisPlannedLook) != want.PlannedLook:
			t.Fatalf("%+v: %+v, want %+v", q, got, want)
		default:
			found[fmt.Sprint(got.Basis, got.Status)]++
		}
	}
	if len(found) != 5 {
		t.Errorf("found %v, want every outcome", found)
	}
}

// TestPlannedLookOfMeans needs no plannedVisitors: the input states the planned look.
func TestPlannedLookOfMeans(t *testing.T) {
	sums := `"variations":[{"n":3000,"mean":4.2,"variance":81},{"n":3000,"mean":4.85,"variance":90}]`
	a := answerTo(t, `{"metric":"mean","significanceLevel":95,"plannedLook":{`+sums+`},`+sums+`}`)
	if a.Conclusion.Status != stats.StatusWinner || a.Conclusion.Basis != result.BasisPlannedLook || !reflect.DeepEqual(a.PlannedLook.Variations, a.Variations) || a.PlannedLook.Visitors != 6000 {
		t.Errorf("%+v", a)
	}
	text, err := json.Marshal(answerTo(t, `{"metric":"mean",`+sums+`}`))
	if err != nil || strings.Contains(string(text), `"basis"`) || strings.Contains(string(text), `"plannedLook":{`) || !strings.Contains(string(text), `"plannedLook":false`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestPlannedLookFaults(t *testing.T) {
	const sums = `"variations":[{"id":7,"n":100,"converted":5},{"id":3,"n":90,"converted":6}]`
	for _, test := range []struct {
		look string
		want []query.Fault
	}{
		{`true`, []query.Fault{{Name: "plannedLook", Value: "true", Detail: `must be an object: {"variations": …}`}}},
		{`{}`, []query.Fault{{Name: "plannedLook.variations", Detail: "is missing: must be an array of 2 variations, in the order of variations"}}},
		{`{"variations":7,"day":1}`, []query.Fault{
			{Name: "plannedLook.day", Value: "1", Detail: "unknown field; did you mean variations?"}, {Name: "plannedLook.variations", Value: "7", Detail: "an array of 2"},
		}},
		{`{"variations":[{"n":1,"converted":1}]}`, []query.Fault{{Name: "plannedLook.variations", Value: `[{"n":1,"converted":1}]`, Detail: "have 1"}}},
		{`{"variations":[5,{"n":101,"converted":7}]}`, []query.Fault{
			{Name: "plannedLook.variations[0]", Value: "5", Detail: "must be an object"},
			{Name: "plannedLook.variations[1].n", Value: "101", Detail: "must be at most 90, which is n of variations[1]"},
			{Name: "plannedLook.variations[1].converted", Value: "7", Detail: "must be at most 6, which is converted of variations[1]"},
		}},
		{`{"variations":[{"id":3,"n":"5","converted":5,"mean":1},{"id":7,"n":4,"converted":5,"share":50}]}`, []query.Fault{
			{Name: "plannedLook.variations[0].id", Value: "3", Detail: "must be 7, the id of variations[0]"},
			{Name: "plannedLook.variations[0].n", Value: "5", Detail: "without quotes"},
			{Name: "plannedLook.variations[0].mean", Value: "1", Detail: `is only valid for the metric "mean"`},
			{Name: "plannedLook.variations[1].share", Value: "50", Detail: "unknown field"},
			{Name: "plannedLook.variations[1].id", Value: "7", Detail: "must be 3"},
			{Name: "plannedLook.variations[1].converted", Value: "5", Detail: "must be at most n, which is 4"},
		}},
		{`{"variations":[{"n":90,"converted":5},{"n":59,"converted":5}]},"plannedVisitors":150`, []query.Fault{
			{Name: "plannedLook.variations", Value: "149", Detail: "must have at least 150 visitors in all, which is plannedVisitors, have 149"},
		}},
	} {
		line := `{"metric":"binary",` + sums + `,"plannedLook":` + test.look + `}`
		_, err := Parse([]byte(line))
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
