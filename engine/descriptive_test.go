package engine

import (
	"testing"

	"lifthouse/engine/query"
)

// TestDescribingReportsAnalyzeNoLooks checks that a report with filters does not pay for looks that it does not show.
func TestDescribingReportsAnalyzeNoLooks(t *testing.T) {
	x := newTrial(t, firstDay)
	x.weeks([]int{50, 62})
	x.report(func(r *query.Request) {
		r.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
	})
	if n := x.engine.decisions.analyses.Len(); n != 0 {
		t.Errorf("%d analyses of looks after a report with a filter", n)
	}
	x.report(nil)
	if n := x.engine.decisions.analyses.Len(); n != 1 {
		t.Errorf("%d analyses of looks after a report of the declared question", n)
	}
}
