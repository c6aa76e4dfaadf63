package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestTheDashboardOverTime compares each view of the chart with the API: the readout at points that the keyboard and
// the pointer choose, and the data table.
func TestTheDashboardOverTime(t *testing.T) {
	v := newSignedIn(t, "/?campaign=13")
	r := v.report("/v1/campaigns/13/results?interval=day")
	series := r.Series
	for _, view := range []string{"metric", "visitors", "conversions", "lift"} {
		v.click(fmt.Sprintf("[name=view][value=%s]", view))
		v.until(fmt.Sprintf(`document.querySelector("[name=view]:checked").value === %q`, view))
		v.readoutIs(view, series, len(series)-1)
		v.do(chromedp.Focus(chromedp.CSS(".overtime .chart")), chromedp.KeyEvent(kb.Home),
			chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
		v.readoutIs(view, series, 2)
		v.do(chromedp.KeyEvent(kb.ArrowLeft))
		v.readoutIs(view, series, 1)
		v.do(chromedp.KeyEvent("\x1b"))
		v.readoutIs(view, series, len(series)-1)
		v.pointsAt(view, &r, 5)
		v.tableIs(view, series)
	}
	check.Equal(t, evaluated[string](v, "location.search"), "?campaign=13", "the URL of the default view")
	v.viewsInTheAddress(series)
	for _, request := range v.requests() {
		check.That(t, !strings.Contains(request.URL, "view=") || !strings.Contains(request.URL, "/v1/"),
			"the API request %s contains the view", request.URL)
	}
}

// viewsInTheAddress checks the keyboard on the radio buttons, a reload, the granularity of the labels, and the views of
// a widget, which has no lift.
func (v *viewer) viewsInTheAddress(series []result.Point) {
	v.Helper()
	v.do(chromedp.Focus(chromedp.CSS("[name=view]:checked")), chromedp.KeyEvent(kb.ArrowRight),
		chromedp.KeyEvent(kb.ArrowRight))
	v.until(`location.search === "?campaign=13&view=visitors"`)
	v.do(chromedp.Reload())
	v.until(allThere)
	v.readoutIs("visitors", series, len(series)-1)
	v.choose("[name=interval]", "week")
	v.until(allThere + ` && document.querySelector("[name=view]:checked + span").innerText === "Visitors per week"`)
	weeks := v.report("/v1/campaigns/13/results?interval=week").Series
	v.readoutIs("visitors", weeks, len(weeks)-1)
	v.open("/?widget=7&view=lift")
	v.until(curvesThere)
	views := evaluated[[]string](v, `[...document.querySelectorAll("[name=view]")].map((e) => e.value)`)
	want := []string{"metric", "visitors", "conversions"}
	check.That(v, slices.Equal(views, want), "a widget has the views %q, want %q", views, want)
}

// entry is a value of a curve with its interval, as the page has it.
type entry struct{ Value, Interval string }

// entriesAt returns what the view shows at a point.
func entriesAt(view string, series []result.Point, at int) []entry {
	var entries []entry
	exact := func(x any) string { text, _ := json.Marshal(x); return string(text) }
	for i, variation := range series[at].Variations {
		var before result.Counts
		if at > 0 {
			before = series[at-1].Variations[i].Counts
		}
		switch c := variation.Comparison; {
		case view == "visitors":
			entries = append(entries, entry{Value: exact(variation.Visitors - before.Visitors)})
		case view == "conversions":
			entries = append(entries, entry{Value: exact(variation.ConvertedVisitors - before.ConvertedVisitors)})
		case view == "metric":
			m := variation.Metrics.GoalConversionRate
			entries = append(entries, entry{exact(m.Value), exact(m.Interval)})
		case c != nil:
			entries = append(entries, entry{exact(c.Improvement.Value), exact(c.Improvement.Interval)})
		}
	}
	return entries
}

// numbersEqual reports whether two JSON texts have the same numbers.
func numbersEqual(a, b string) bool {
	var x, y any
	if a == "" || b == "" {
		return a == b
	}
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil &&
		fmt.Sprint(x) == fmt.Sprint(y)
}

// readoutIs waits until the readout shows a point, and compares it with the API.
func (v *viewer) readoutIs(view string, series []result.Point, at int) {
	v.Helper()
	v.until(fmt.Sprintf(`document.querySelector(".readout")?.dataset.at === %q`, series[at].Time.Format(time.RFC3339)))
	shown := evaluated[[]entry](v, `[...document.querySelectorAll(".readout li")].map((e) => ({ Value: e.querySelector("data")?.value ?? "", Interval: e.querySelector(".span").dataset.interval ?? "" }))`)
	want := entriesAt(view, series, at)
	check.That(v,
		slices.EqualFunc(shown, want,
			func(a, b entry) bool { return numbersEqual(a.Value, b.Value) && numbersEqual(a.Interval, b.Interval) }),
		"%s at point %d: the page reads %v, the API %v", view, at, shown, want)
}

// placeOf returns the place of a point on the time axis, as a fraction. The axis ends at the last point, or at the next
// look if it is not further away than the first point.
func placeOf(view string, r *result.Report, at int) float64 {
	var shift time.Duration
	if view == "visitors" || view == "conversions" {
		shift = -12 * time.Hour // at the middle of the day
	}
	first, last := r.Series[0].Time, r.Series[len(r.Series)-1].Time
	end := last.Add(shift)
	for _, look := range r.Looks {
		if look.End.After(end) && !look.End.After(last) {
			end = look.End
		}
	}
	if r.NextLook != nil && r.NextLook.End.After(end) && !r.NextLook.End.After(last.Add(last.Sub(first))) {
		end = r.NextLook.End
	}
	return float64(r.Series[at].Time.Sub(first)) / float64(end.Sub(first.Add(shift)))
}

// pointsAt moves the pointer to a point and away. Nothing on the page may move.
func (v *viewer) pointsAt(view string, r *result.Report, at int) {
	v.Helper()
	series := r.Series
	const place = `JSON.stringify((({ x, y, width, height }) => [x, y, width, height])(document.querySelector(".overtime .u-over").getBoundingClientRect()))`
	evaluated[bool](v, `document.activeElement.blur(); document.querySelector(".overtime .chart").scrollIntoView({ block: "center" }); true`)
	var box [4]float64
	before := evaluated[string](v, place)
	must.OK(v, json.Unmarshal([]byte(before), &box))
	x := box[0] + box[2]*placeOf(view, r, at)
	v.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x-3, box[1]+20),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, box[1]+40))
	v.readoutIs(view, series, at)
	line := evaluated[bool](v, `document.querySelector(".u-cursor-x").getClientRects().length === 1`)
	check.That(v, line, "%s: no crosshair", view)
	after := evaluated[string](v, place)
	check.That(v, after == before, "%s: the chart moved from %s to %s", view, before, after)
	v.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, box[1]-200))
	v.readoutIs(view, series, len(series)-1)
}

// tableIs compares the first columns of the data table with the API.
func (v *viewer) tableIs(view string, series []result.Point) {
	v.Helper()
	rows := evaluated[[][]string](v, `[...document.querySelectorAll(".overtime tbody tr")].map((e) => [e.dataset.time, ...[...e.querySelectorAll("data")].map((d) => d.value)])`)
	must.Equal(v, len(rows), len(series), "%s: rows of the data table", view)
	for i, row := range rows {
		check.That(v, row[0] == series[i].Time.Format(time.RFC3339), "%s: row %d is at %s", view, i, row[0])
		for j, want := range entriesAt(view, series, i) {
			check.That(v, want.Value == "null" || (len(row) >= j+2 && numbersEqual(row[j+1], want.Value)), "%s, row %d, column %d: %v, want %s", view, i, j, row, want.Value)
		}
	}
}

// TestTheDashboardsSegments compares the table of segments with the API, in each order, and follows a link to one
// segment.
func TestTheDashboardsSegments(t *testing.T) {
	v := newSignedIn(t, "/?campaign=13")
	v.choose("[name=dimension]", "browser")
	v.until(allThere + ` && document.querySelector(".segments")`)
	report := v.report("/v1/campaigns/13/results?dimension=browser")
	v.until(fmt.Sprintf(`document.querySelector("#differ")?.innerText.startsWith(%q)`, report.Heterogeneity.Text))
	segments := report.Breakdown
	v.segmentsAre(segments)
	visitors := func(c result.BreakdownSlice) int64 { return c.Totals.Visitors }
	slices.SortStableFunc(segments,
		func(a, b result.BreakdownSlice) int { return cmp.Compare(visitors(a), visitors(b)) })
	v.click(".segments th:nth-child(2) button")
	v.sortedBy("Visitors", "ascending", namesOf(segments))
	slices.SortStableFunc(segments, func(a, b result.BreakdownSlice) int { return strings.Compare(a.Value, b.Value) })
	v.click(".segments th:nth-child(1) button")
	v.sortedBy("Browser", "ascending", namesOf(segments))
	v.click(".segments th:nth-child(5) button")
	v.liftsFall()

	v.click(`.segments [data-value=firefox] .narrow`)
	v.until(`decodeURIComponent(location.search) === "?campaign=13&filters[browser][]=firefox"`)
	v.until(allThere + ` && document.querySelector(".segments [data-value=mobile]")`) // by device, as at first
}

// segmentsAre compares each row with the API.
func (v *viewer) segmentsAre(segments []result.BreakdownSlice) {
	v.Helper()
	for _, segment := range segments {
		control := segment.Variations[0]
		for _, variation := range segment.Variations[1:] {
			v.rowIs(fmt.Sprintf(`.segments [data-value=%q][data-variation-id="%d"]`, segment.Value, variation.ID),
				float64(variation.Visitors), float64(control.Visitors),
				*control.Metrics.GoalConversionRate.Value, *variation.Metrics.GoalConversionRate.Value,
				*variation.Comparison.Improvement.Value,
				*variation.Comparison.Complement.ImprovementDifference.Value)
		}
	}
}

// namesOf returns the values of the segments, each once for each treatment.
func namesOf(segments []result.BreakdownSlice) []string {
	var names []string
	for _, segment := range segments {
		for range segment.Variations[1:] {
			names = append(names, segment.Value)
		}
	}
	return names
}

// sortedBy checks the order of the rows and which column says so.
func (v *viewer) sortedBy(head, direction string, names []string) {
	v.Helper()
	v.until(fmt.Sprintf(`document.querySelector(".segments th[aria-sort=%s]")?.innerText.startsWith(%q)`, direction, head))
	rows := evaluated[[]string](v, `[...document.querySelectorAll(".segments tbody tr")].map((e) => e.dataset.value)`)
	check.That(v, slices.Equal(rows, names), "sorted by %s: %q, want %q", head, rows, names)
	check.Equal(v, evaluated[int64](v, `document.querySelectorAll(".segments th:is([aria-sort=ascending], [aria-sort=descending])").length`), 1, "columns have an order")
}

// liftsFall checks that the rows have descending lifts.
func (v *viewer) liftsFall() {
	v.Helper()
	v.until(`document.querySelector(".segments th[aria-sort=descending]")?.innerText.startsWith("Lift")`)
	lifts := evaluated[[]float64](v, `[...document.querySelectorAll(".segments tbody td:nth-child(5) b data")].map((e) => Number(e.value))`)
	must.That(v, len(lifts) >= 2, "the lifts are %v, want descending", lifts)
	check.That(v, slices.IsSortedFunc(lifts, func(a, b float64) int { return cmp.Compare(b, a) }),
		"the lifts are %v, want descending", lifts)
}
