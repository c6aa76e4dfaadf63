package e2e

import (
	"fmt"
	"testing"
)

// TestTheDashboardComparesTwoSegments compares the numbers of two segments, and of a
// report without its filters, with the API.
func TestTheDashboardComparesTwoSegments(t *testing.T) {
	v := newViewer(t)
	v.open("/?campaign=12&filters[device][]=mobile")
	v.signIn(v.token)
	v.until(allThere)
	v.click("#versus")
	v.until(`document.querySelectorAll("[data-segment]").length === 2`)
	v.until(`document.querySelector("[aria-labelledby=compare] .filter [name=value] [value=desktop]")`)
	v.choose("[aria-labelledby=compare] .filter [name=value]", "desktop")
	v.click("[aria-labelledby=compare] .filter button")
	v.until(`document.querySelector("[data-segment='device desktop']")`)
	v.until(`new URLSearchParams(location.search).get("versus") === "filters[device][]=desktop"`)
	for segment, filter := range map[string]string{"device mobile": "mobile", "device desktop": "desktop"} {
		r := v.report("/v1/campaigns/12/results?filters[device][]=" + filter)
		own := r.Variations[1]
		want := []float64{float64(own.Visitors), float64(r.Variations[0].Visitors), *r.Variations[0].Metrics.GoalConversionRate.Value, *own.Metrics.GoalConversionRate.Value, *own.Comparison.Improvement.Value}
		v.until(fmt.Sprintf(`document.querySelector("[data-segment='%s'] data")?.value === "%d"`, segment, own.Visitors))
		values, _ := v.row(fmt.Sprintf(`[data-segment="%s"]`, segment))
		for i := range want {
			if len(values) != len(want) || !same(values[i], want[i]) {
				t.Fatalf("%s shows %q, want %v", segment, values, want)
			}
		}
	}
	v.look("compare")

	whole, mobile := v.report("/v1/campaigns/12/results"), v.report("/v1/campaigns/12/results?filters[device][]=mobile")
	v.click("[aria-labelledby=changed] summary")
	v.until(`document.querySelectorAll("[data-change=Filters] data").length === 2`)
	values, _ := v.row("[data-change=Filters]")
	if len(values) != 2 || !same(values[0], *mobile.Variations[1].Comparison.Improvement.Value) || !same(values[1], *whole.Variations[1].Comparison.Improvement.Value) {
		t.Errorf("filters change the uplift as %q, want from %v to %v", values, *whole.Variations[1].Comparison.Improvement.Value, *mobile.Variations[1].Comparison.Improvement.Value)
	}
	if len(v.problems) > 0 {
		t.Errorf("the browser complains: %q", v.problems)
	}
}

// TestTheDashboardShowsWhatASettingChanges compares the uplifts without a cap and without
// the limit of outliers with the API.
func TestTheDashboardShowsWhatASettingChanges(t *testing.T) {
	v := newViewer(t)
	const home, metric, capped, limited = "/v1/campaigns/12/results", "compareMetric=valuePerVisitor", "&cap=p95", "&filters[zScore]=2"
	v.open("/?campaign=12&" + metric + capped + limited)
	v.signIn(v.token)
	v.until(allThere)
	v.click("[aria-labelledby=changed] summary")
	both := *v.report(home + "?" + metric + capped + limited).Variations[1].Comparison.Improvement.Value
	for name, others := range map[string]string{"Cap": limited, "Outliers": capped} {
		v.until(fmt.Sprintf(`document.querySelectorAll("[data-change=%s] data").length === 2`, name))
		values, _ := v.row(fmt.Sprintf("[data-change=%s]", name))
		without := *v.report(home + "?" + metric + others).Variations[1].Comparison.Improvement.Value
		if without == both || !same(values[0], both) || !same(values[1], without) {
			t.Errorf("%s changes the uplift as %q, want from %v to %v", name, values, without, both)
		}
	}
	v.look("changed")
	if len(v.problems) > 0 {
		t.Errorf("the browser complains: %q", v.problems)
	}
}
