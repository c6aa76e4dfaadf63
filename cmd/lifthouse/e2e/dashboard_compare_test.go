package e2e

import (
	"fmt"
	"testing"
)

// TestTheDashboardComparesTwoSegments compares the numbers of two segments, and of a report without its filters, with
// the API.
func TestTheDashboardComparesTwoSegments(t *testing.T) {
	v := newViewer(t)
	v.openSignedIn("/?campaign=12&filters[device][]=mobile", allThere)
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
		rates := []float64{*r.Variations[0].Metrics.GoalConversionRate.Value, *own.Metrics.GoalConversionRate.Value}
		v.until(fmt.Sprintf(`document.querySelector("[data-segment='%s'] data")?.value === "%d"`, segment, own.Visitors))
		v.rowIs(fmt.Sprintf(`[data-segment="%s"]`, segment), float64(own.Visitors), float64(r.Variations[0].Visitors), rates[0], rates[1],
			*own.Comparison.Improvement.Value)
	}
	v.look("compare")

	whole, mobile := v.report("/v1/campaigns/12/results"), v.report("/v1/campaigns/12/results?filters[device][]=mobile")
	v.click("[aria-labelledby=changed] summary")
	v.until(`document.querySelectorAll("[data-change=Filters] data").length === 2`)
	v.rowIs("[data-change=Filters]", *mobile.Variations[1].Comparison.Improvement.Value, *whole.Variations[1].Comparison.Improvement.Value)
}

// TestTheDashboardShowsWhatASettingChanges compares the uplifts without a cap and without the limit of outliers with
// the API.
func TestTheDashboardShowsWhatASettingChanges(t *testing.T) {
	v := newViewer(t)
	const home, metric, capped, limited = "/v1/campaigns/12/results", "compareMetric=valuePerVisitor", "&cap=p95", "&filters[zScore]=2"
	v.openSignedIn("/?campaign=12&"+metric+capped+limited, allThere)
	v.click("[aria-labelledby=changed] summary")
	both := *v.report(home + "?" + metric + capped + limited).Variations[1].Comparison.Improvement.Value
	for name, others := range map[string]string{"Cap": limited, "Outliers": capped} {
		v.until(fmt.Sprintf(`document.querySelectorAll("[data-change=%s] data").length === 2`, name))
		without := *v.report(home + "?" + metric + others).Variations[1].Comparison.Improvement.Value
		v.rowIs(fmt.Sprintf("[data-change=%s]", name), both, without)
		if without == both {
			t.Errorf("%s does not change the uplift %v", name, both)
		}
	}
	v.look("changed")
}
