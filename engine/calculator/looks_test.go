package calculator

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"lifthouse/schema/schematest/check"
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
		check.That(t, look.Number == k+1 && look.Visitors == 10*n && look.Tau == float64(k+1)/4 && got.ID == 5 && len(look.Variations) == 3, "look %+v", look)
		check.That(t, *got.CriticalValue == *want.Critical && *got.Z == *want.Z && got.Significant == want.Significant && *got.PValue == p && *got.Improvement.Interval[0] == *want.Lift.Interval[0],
			"look %d: %+v, want %+v", k+1, got, want)
	}
	last := a.Variations[0].Comparison.Sequential
	check.That(t, *last.Look == 2 && *last.PValue == *a.Looks[1].Variations[0].PValue && a.Variations[1].Comparison == nil, "%+v", last)
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
		got := *a.Looks[k].Variations[0].CriticalValue
		check.That(t, math.Abs(got-want) <= 1e-3, "look %d: %v, want %v", k+1, got, want)
	}
}
