package engine

import (
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/stats"
)

// TestDescribingReportsAnalyzeNoLooks checks that a report with filters does not pay for looks that it does not show.
func TestDescribingReportsAnalyzeNoLooks(t *testing.T) {
	x := newTrial(t, firstDay)
	x.weeks([]int{50, 62})
	x.report(func(r *query.Request) {
		r.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
	})
	n, _, _ := x.engine.cache.Usage()
	check.That(t, n == 0, "%d results of looks after a report with a filter", n)
	x.report(nil)
	n, _, _ = x.engine.cache.Usage()
	check.That(t, n != 0, "%d results of looks after a report of the declared question", n)
}

// TestAutomatedVisitorsAreNamed checks that programs on a variation do not change the report of the people, that the
// report names them, and warns if one variation has more of them.
func TestAutomatedVisitorsAreNamed(t *testing.T) {
	const most = 20
	x := newTrial(t, firstDay)
	x.refresher.MaxVisitorEvents, x.other.facts.Shards[0].MaxVisitorEvents = most, most
	x.weeks([]int{50, 62})
	people := x.report(nil)
	programs := func(variation int64, n int) *result.Report {
		var events []schema.Event
		for range n {
			x.ids++
			visitor := x.ids
			for i := range most + 1 {
				x.ids++
				e := schema.Event{
					EventID: 2 * x.ids, Time: firstDay.Add(time.Duration(i) * time.Second), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1,
					VisitorID: visitor, VariationID: variation, Kind: schema.KindView,
				}
				if i > 0 {
					e.Kind, e.GoalID, e.Value = schema.KindGoal, 1, 1_000_000
				}
				events = append(events, e)
			}
		}
		must.OK(t, x.writer.WriteEvents(t.Context(), events))
		x.refresh()
		return x.report(nil)
	}
	few := programs(1, 5)
	a := few.Checks.Automated
	check.That(t, a != nil && a.Visitors == 5 && !a.Warning && a.PValue == nil && a.Reason == stats.ReasonTooFewVisitors, "few programs: %+v", a)
	many := programs(1, 35)
	a = many.Checks.Automated
	check.That(t, a != nil && a.Warning && a.Visitors == 40 && a.Variations[1] == (result.AutomatedVariation{ID: 1, Visitors: 40}) && a.Variations[0].Visitors == 0, "many programs of a variation: %+v", a)
	check.Equal(t, len(many.Checks.Warnings), len(people.Checks.Warnings)+1, "warnings %+v", many.Checks.Warnings)
	both := programs(0, 40)
	check.That(t, !both.Checks.Automated.Warning && inJSON(t, both.Totals) == inJSON(t, people.Totals) && inJSON(t, both.Variations) == inJSON(t, people.Variations),
		"programs of both variations: %+v\n%+v\nwant %+v", both.Checks.Automated, both.Totals, people.Totals)
}
