package engine

import (
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestPointsHaveTheVisitorsOfTheirReports compares each point of a daily series with the report that ends there, for a
// conversion window with a time in which orders settle: a visitor counts from the end of both.
func TestPointsHaveTheVisitorsOfTheirReports(t *testing.T) {
	for _, text := range []string{"1d", "1d+1d", "2d+5d", "none+3d"} {
		t.Run(text, func(t *testing.T) {
			window := must.Get(schema.ParseConversionWindow(text))(t)
			x := newTrial(t, firstDay)
			for day := range 10 {
				x.devices(day, [2]int{200, 200}, [2]int{20, 45}, [2]int{30, 31})
			}
			x.refresh()
			series := x.report(func(r *query.Request) { r.ConversionWindow, r.Interval = &window, query.Daily })
			must.That(t, len(series.Series) >= 3, "%d points", len(series.Series))
			for _, point := range series.Series {
				report := x.report(func(r *query.Request) { r.ConversionWindow, r.Filters.To = &window, point.Time })
				name := point.Time.Format(time.DateOnly)
				check.Equal(t, countsOf(t, point.Variations), countsOf(t, report.Variations), "until %s", name)
			}
		})
	}
}

// TestReportsEndWithSettledOrders compares a report of a goal whose orders settle for three days, without a conversion
// window, with the report until three days before.
func TestReportsEndWithSettledOrders(t *testing.T) {
	window := must.Get(schema.ParseConversionWindow("none+3d"))(t)
	x := newTrial(t, firstDay)
	for day := range 10 {
		x.devices(day, [2]int{200, 200}, [2]int{20, 45}, [2]int{30, 31})
	}
	x.refresh()
	settled := x.report(func(r *query.Request) { r.ConversionWindow = &window })
	until := x.report(func(r *query.Request) {
		r.Filters.To = settled.NewestEvent.Add(-3 * 24 * time.Hour).Truncate(24 * time.Hour)
	})
	check.Equal(t, countsOf(t, settled.Variations), countsOf(t, until.Variations), "until three days before")
	open := x.report(nil)
	check.That(t, countsOf(t, settled.Variations) != countsOf(t, open.Variations), "the last three days count")
	check.Equal(t, settled.ConversionWindow.Text, "settled after 3 days", "in words")
	check.Equal(t, settled.ConversionWindow.To, "", "no limit of ages")
}

// countsOf returns the counts of the variations.
func countsOf(t *testing.T, variations []result.VariationResults) string {
	t.Helper()
	var counts []result.Counts
	for i := range variations {
		counts = append(counts, variations[i].Counts)
	}
	return written(t, counts)
}

// TestSlicesRankByTheVisitorsThatTheyShow has more desktop visitors than mobile ones, but most of them came in the last
// days, so a conversion window of three days shows more mobile visitors. An unknown variation whose visitors are not shown
// is not listed.
func TestSlicesRankByTheVisitorsThatTheyShow(t *testing.T) {
	window := must.Get(schema.ParseConversionWindow("3d"))(t)
	x := newTrial(t, firstDay)
	for day := range 10 {
		mobile := [2]int{300, 300}
		if day >= 7 {
			mobile = [2]int{}
		}
		x.devices(day, mobile, [2]int{20, 45}, [2]int{30, 31})
	}
	unknown := x.view(x.first.AddDate(0, 0, 9).Add(2*time.Hour), 9)
	must.OK(t, x.writer.WriteEvents(t.Context(), []schema.Event{unknown}))
	x.refresh()
	report := x.report(func(r *query.Request) { r.ConversionWindow, r.Dimension = &window, query.ByDevice })
	check.Equal(t, report.Breakdown[0].Value, "mobile", "within three days: the first slice")
	check.Equal(t, len(report.Checks.UnknownVariations), 0, "within three days: unknown variations")
	report = x.report(byDevice)
	check.Equal(t, report.Breakdown[0].Value, "desktop", "without a window: the first slice")
	check.Equal(t, len(report.Checks.UnknownVariations), 1, "without a window: unknown variations")
}
