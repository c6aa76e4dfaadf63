package e2e

import (
	"fmt"
	"testing"

	"lifthouse/schema/schematest/check"
)

// TestTheDashboardExploresASegment compares a filtered view and its complement with the API. The segment has the same
// verdict in the title, beside its complement and in the breakdown, and the decision stands beside it.
func TestTheDashboardExploresASegment(t *testing.T) {
	v := newViewer(t)
	v.openSignedIn("/?campaign=12&filters[device][]=mobile", allThere)
	v.until(`document.querySelectorAll("[data-segment]").length === 2`)
	r := v.report("/v1/campaigns/12/results?filters[device][]=mobile&complement=true")
	control, own := r.Variations[0], r.Variations[1]
	c, other := own.Comparison, own.Comparison.Complement
	word := c.VerdictInWords()
	v.rowIs("[data-segment='device mobile']", float64(own.Visitors), float64(control.Visitors), *c.Improvement.Value, *other.ImprovementDifference.Value)
	v.rowIs("[data-segment='all other visitors']", float64(other.Visitors), float64(other.ControlVisitors), *other.Improvement.Value)
	v.shows("EXPLORATION")
	decision := v.report("/v1/campaigns/12/results?scorecard=true").Decision
	v.until(fmt.Sprintf(`document.querySelector("#decision")?.innerText.includes(%q)`, decision.Text))
	v.until(fmt.Sprintf(`document.querySelector("#conclusion").innerText.startsWith(%q)`, own.Name+": "+word+","))
	v.until(fmt.Sprintf(`document.querySelector("[data-segment] .verdict").innerText.endsWith(%q)`, word))
	v.look("compare")
	v.choose("[name=dimension]", "device")
	v.until(fmt.Sprintf(`document.querySelector(".segments [data-value=mobile] .verdict")?.innerText.endsWith(%q)`, word))

	whole, mobile := v.report("/v1/campaigns/12/results"), v.report("/v1/campaigns/12/results?filters[device][]=mobile")
	v.click("[aria-labelledby=changed] summary")
	v.until(`document.querySelectorAll("[data-change=Filters] data").length === 2`)
	v.rowIs("[data-change=Filters]", *mobile.Variations[1].Comparison.Improvement.Value, *whole.Variations[1].Comparison.Improvement.Value)
}

// TestTheDashboardShowsWhatASettingChanges compares the lifts without a cap and without the limit of outliers with
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
		check.That(t, without != both, "%s does not change the lift %v", name, both)
	}
	v.look("changed")
}
