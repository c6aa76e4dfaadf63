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
	if n, _, _ := x.engine.cache.Usage(); n != 0 {
		t.Errorf("%d results of looks after a report with a filter", n)
	}
	x.report(nil)
	if n, _, _ := x.engine.cache.Usage(); n == 0 {
		t.Errorf("%d results of looks after a report of the declared question", n)
	}
}
