package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/stats"
)

// group is the number of visitors in each variation with a device, and the converted ones
// of control and treatment.
type group struct {
	device    string
	visitors  int
	converted [2]int
}

// devices stores a day of visitors by device, and refreshes the rollup.
func (x *trial) devices(day int, groups ...group) {
	x.t.Helper()
	var events []schema.Event
	at := x.first.AddDate(0, 0, day).Add(time.Hour)
	for _, g := range groups {
		for variation, converted := range g.converted {
			for visitor := range g.visitors {
				x.ids++
				e := schema.Event{
					EventID: 2 * x.ids, Time: at.Add(time.Duration(visitor) * time.Second), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1,
					VisitorID: schema.Hash(visitorName(x.ids)), VariationID: int64(variation), Kind: schema.KindView, Attributes: schema.Attributes{Device: g.device},
				}
				events = append(events, e)
				if visitor < converted {
					e.EventID, e.Kind, e.GoalID, e.Time = e.EventID+1, schema.KindGoal, 1, e.Time.Add(time.Minute)
					events = append(events, e)
				}
			}
		}
	}
	if _, err := x.writer.Write(x.t.Context(), events); err != nil {
		x.t.Fatal(err)
	}
	x.refresh()
	x.rolled.decisions.cells.Purge() // large subjects reuse them for a minute
}

func visitorName(id uint64) string { return fmt.Sprint("visitor ", id) }

// byDevice returns the conclusions of the cells of a report by device, as text.
func (x *trial) byDevice(change func(*query.Request)) map[string]string {
	x.t.Helper()
	return x.cellsOf(x.report(func(r *query.Request) {
		r.Dimension = query.ByDevice
		if change != nil {
			change(r)
		}
	}))
}

func (x *trial) cellsOf(r *result.Report) map[string]string {
	found := map[string]string{}
	for _, cell := range r.Breakdown {
		found[cell.Value] = x.concluded(cell.Conclusion)
	}
	return found
}

func (x *trial) wantCells(name string, got map[string]string, want map[string]string) {
	x.t.Helper()
	if !maps.Equal(got, want) {
		x.t.Errorf("%s: %v, want %v", name, got, want)
	}
}

const (
	even      = "inconclusive  NOT_SIGNIFICANT"
	early     = "inconclusive  TOO_EARLY"
	fourthDay = "winner plannedLook 72h0m0s"
	everyLook = "winner alwaysValid"
)

// decidedMobile stores the four days of the planned look. Mobile visitors have p = .008
// then, which is enough for one of two cells.
func (x *trial) decidedMobile() {
	x.t.Helper()
	for day := range 4 {
		x.devices(day, group{"mobile", 250, [2]int{25, 35}}, group{"desktop", 250, [2]int{25, 25}})
	}
}

// TestCellsAreDecidedAtThePlannedLook checks that later data do not withdraw the winner of
// a cell.
func TestCellsAreDecidedAtThePlannedLook(t *testing.T) {
	x := newTrial(t, firstDay)
	x.decidedMobile()
	look := firstDay.AddDate(0, 0, 4)
	want := map[string]string{"mobile": fourthDay, "desktop": even}
	x.wantCells("at the planned look", x.byDevice(nil), want)
	for day := 4; day < 6; day++ {
		x.devices(day, group{"mobile", 250, [2]int{35, 15}}, group{"desktop", 250, [2]int{25, 30}})
		x.wantCells("later", x.byDevice(nil), want)
	}
	x.devices(6, group{"tablet", 400, [2]int{40, 70}}) // p = .002, after the planned look
	want["tablet"] = early
	r := x.report(func(r *query.Request) { r.Dimension = query.ByDevice })
	x.wantCells("with a new cell", x.cellsOf(r), want)
	mobile := r.Breakdown[slices.IndexFunc(r.Breakdown, func(c result.BreakdownCell) bool { return c.Value == "mobile" })]
	if text := "Green is better than Control: the goal conversion rate has a lift of +40.0 % (95 % interval +9.5 % to +79.1 %) at the planned look on 2026-03-05 with 2,000 visitors."; mobile.Conclusion.Text != text {
		t.Errorf("%q, want %q", mobile.Conclusion.Text, text)
	}
	o := stats.Options{SignificanceLevel: 95, Shares: []float64{.5, .5}, PlannedVisitors: 4000, PlannedLook: true}
	then := result.NewComparison(stats.Compare(stats.Rate{Visitors: 1000, Converted: 100}, []stats.Sample{stats.Rate{Visitors: 1000, Converted: 140}}, o)[0])
	if got, want := inJSON(t, mobile.Conclusion.Decided), inJSON(t, then); got != want {
		t.Errorf("decided by %s\nwant %s", got, want)
	}
	if c := mobile.Variations[1].Comparison; *c.Conclusive || c.Verdict != stats.VerdictInconclusive {
		t.Errorf("today's verdict %s, conclusive %v", c.Verdict, *c.Conclusive)
	}
	if csv, err := render.CSV(r); err != nil || strings.Count(string(csv), "winner,1,plannedLook,2026-03-06T00:00:00Z") != 4 { // of the whole report and of mobile
		t.Errorf("%v; CSV %s", err, csv)
	}
	delete(want, "tablet")
	x.wantCells("up to the planned look", x.byDevice(func(r *query.Request) { r.Filters.To = look }), want)
	x.wantCells("up to the day before", x.byDevice(func(r *query.Request) { r.Filters.To = look.AddDate(0, 0, -1) }), map[string]string{"mobile": early, "desktop": even})
}

// TestCellsOfFilteredReports checks that each report is a family of its own.
func TestCellsOfFilteredReports(t *testing.T) {
	x := newTrial(t, firstDay)
	for day := range 4 { // p = .028 of mobile is enough for one cell
		mobile := 25
		if day == 0 {
			mobile = 57
		}
		x.devices(day, group{"mobile", 250, [2]int{25, mobile}}, group{"desktop", 250, [2]int{25, 25}})
	}
	x.devices(4, group{"mobile", 250, [2]int{25, 15}})
	mobile := func(r *query.Request) {
		r.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
	}
	x.wantCells("all visitors", x.byDevice(nil), map[string]string{"mobile": even, "desktop": even})
	x.wantCells("mobile only", x.byDevice(mobile), map[string]string{"mobile": fourthDay})
	x.wantCells("mobile since the second day", x.byDevice(func(r *query.Request) { mobile(r); r.Filters.From = firstDay.AddDate(0, 0, 1) }), map[string]string{"mobile": even})
	x.wantCells("since the planned look", x.byDevice(func(r *query.Request) { r.Filters.From = firstDay.AddDate(0, 0, 4) }), map[string]string{"mobile": even})
	x.wantCells("another metric", x.byDevice(func(r *query.Request) { mobile(r); r.Metric = query.ValuePerVisitor }), map[string]string{"mobile": "insufficientData  ZERO_VARIANCE TOO_FEW_NONZERO"})
}

// TestRanksOfCells checks that cells get their ranks at the ends of days 1, 2, 4, …, and
// that the level of a cell depends on its rank.
func TestRanksOfCells(t *testing.T) {
	x := newTrial(t, firstDay)
	x.devices(0, group{"mobile", 250, [2]int{25, 65}}, group{"desktop", 60, [2]int{6, 8}}) // p = .020 of mobile
	x.wantCells("the first cell", x.byDevice(nil), map[string]string{"mobile": everyLook, "desktop": "insufficientData  TOO_FEW_VISITORS"})
	x.devices(1, group{"desktop", 250, [2]int{25, 66}}) // p = .015, enough for the first cell only
	x.wantCells("the second cell", x.byDevice(nil), map[string]string{"mobile": everyLook, "desktop": early})
	x.devices(1, group{"desktop", 250, [2]int{25, 43}}) // p = .0011
	x.wantCells("the second cell, smaller p", x.byDevice(nil), map[string]string{"mobile": everyLook, "desktop": everyLook})
	x.devices(2, group{"tablet", 250, [2]int{25, 75}}, group{"tv", 260, [2]int{26, 26}}) // p = .0010: enough for rank 6, if it has one
	third := func(r *query.Request) { r.Filters.To = firstDay.AddDate(0, 0, 3) }
	x.wantCells("between checkpoints", x.byDevice(third), map[string]string{"mobile": everyLook, "desktop": everyLook, "tablet": early, "tv": even})
	x.wantCells("at the checkpoint of day 4", x.byDevice(nil), map[string]string{"mobile": everyLook, "desktop": everyLook, "tablet": everyLook, "tv": even})
	for i, want := range []string{"mobile", "desktop", "tv", "tablet"} { // tv has more visitors than tablet
		if got := x.order(x.engine); i >= len(got) || got[i] != want {
			t.Errorf("order %v, want %s at %d", got, want, i)
		}
	}
}

// order returns the order of the cells that an engine keeps last.
func (x *trial) order(e *Engine) []string {
	_, kept, _ := e.decisions.cells.GetOldest()
	for _, key := range e.decisions.cells.Keys() {
		kept, _ = e.decisions.cells.Peek(key)
	}
	return kept.cells.Order()
}

// TestOtherValues checks that "(other)" is decided at the planned look only: its values
// change, so it has no rank.
func TestOtherValues(t *testing.T) {
	x := newTrial(t, firstDay)
	report := func() map[string]string {
		p := planOf(t, x.engine, query.Request{AccountID: 1, SubjectID: 1, Metric: query.GoalConversionRate, Dimension: query.ByDevice})
		p.Top = 1
		return x.cellsOf(x.reportOf(p))
	}
	x.devices(0, group{"mobile", 300, [2]int{30, 30}}, group{"desktop", 250, [2]int{25, 80}})
	x.wantCells("before the planned look", report(), map[string]string{"mobile": even, "(other)": early})
	for day := 1; day < 4; day++ {
		x.devices(day, group{"mobile", 300, [2]int{30, 30}}, group{"desktop", 200, [2]int{20, 20}})
	}
	x.devices(4, group{"mobile", 300, [2]int{30, 30}}, group{"tablet", 200, [2]int{60, 20}})
	x.wantCells("after the planned look", report(), map[string]string{"mobile": even, "(other)": fourthDay})
}

// TestEarlierLooksAtCellsAreKept counts the statements of reports of an unchanged subject,
// and changes decided days by late and by erased events.
func TestEarlierLooksAtCellsAreKept(t *testing.T) {
	x := newTrial(t, firstDay)
	x.writer.SetRollups(x.rolled.Rollups)
	x.decidedMobile()
	x.devices(4, group{"mobile", 250, [2]int{25, 25}}, group{"desktop", 250, [2]int{25, 120}})
	statements := 0
	ask := func(e *Engine, r query.Request) int {
		e.Observe(func(time.Duration, error) { statements++ }, func(string) {})
		before := statements
		if _, err := e.Report(t.Context(), planOf(t, e, r)); err != nil {
			fatal(t, err)
		}
		return statements - before
	}
	whole := query.Request{AccountID: 1, SubjectID: 1, Metric: query.GoalConversionRate}
	byDevice := whole
	byDevice.Dimension = query.ByDevice
	for name, e := range map[string]*Engine{"in process": x.engine, "rollups": x.rolled} {
		ask(e, whole)
		first, kept, plain := ask(e, byDevice), ask(e, byDevice), ask(e, whole)
		// The planned look, and for desktop the checkpoint of day 1.
		if first != 3*kept || kept > plain {
			t.Errorf("%s: %d statements, then %d; %d without cells", name, first, kept, plain)
		}
	}
	x.wantCells("decided", x.byDevice(nil), map[string]string{"mobile": fourthDay, "desktop": everyLook})
	x.devices(3, group{"mobile", 10, [2]int{10, 0}}) // p = .037, not enough for two cells
	x.wantCells("after late events", x.byDevice(nil), map[string]string{"mobile": even, "desktop": everyLook})
	var erased []string
	for id := uint64(251); id <= 270; id++ { // converted visitors of the treatment on mobile
		erased = append(erased, visitorName(id))
	}
	before := x.report(nil).Totals.Visitors
	if _, err := x.writer.Forget(t.Context(), erased, nil); err != nil {
		t.Fatal(err)
	}
	x.devices(5, group{"mobile", 1, [2]int{}})
	x.wantCells("after an erasure", x.byDevice(nil), map[string]string{"mobile": even, "desktop": everyLook})
	if after := x.report(nil).Totals.Visitors; after != before-int64(len(erased))+2 {
		t.Errorf("%d visitors, then %d", before, after)
	}
}

// TestLargeSubjectsReuseEarlierLooksAtCells checks that cells of large subjects are not
// read again for a minute.
func TestLargeSubjectsReuseEarlierLooksAtCells(t *testing.T) {
	x := newTrial(t, firstDay)
	x.decidedMobile()
	p := planOf(t, x.rolled, query.Request{AccountID: 1, SubjectID: 1, Metric: query.GoalConversionRate, Dimension: query.ByDevice})
	ask := func() string {
		r, err := x.rolled.Report(t.Context(), p)
		if err != nil {
			fatal(t, err)
		}
		return x.cellsOf(r)["mobile"]
	}
	p.Filters.To = firstDay.AddDate(0, 0, 6) // the planned look is an earlier one
	x.devices(4, group{"mobile", 100, [2]int{10, 10}})
	if got := ask(); got != fourthDay {
		t.Errorf("at first %q", got)
	}
	keys := x.rolled.decisions.cells.Keys()
	kept, _ := x.rolled.decisions.cells.Peek(keys[0])
	x.devices(3, group{"mobile", 10, [2]int{10, 0}})
	x.rolled.decisions.cells.Add(keys[0], kept) // devices forgets it
	if got := ask(); got != fourthDay {
		t.Errorf("less than a minute later %q", got)
	}
	kept.at = kept.at.Add(-maxDaysAge)
	x.rolled.decisions.cells.Add(keys[0], kept)
	if got := ask(); got != even {
		t.Errorf("a minute later %q", got)
	}
}

// TestCellsAfterChangedShares checks that earlier visitors do not count: the planned look
// of the second period is judged by its visitors.
func TestCellsAfterChangedShares(t *testing.T) {
	x := newTrial(t, firstDay)
	x.devices(0, group{"mobile", 250, [2]int{25, 120}}, group{"desktop", 250, [2]int{25, 25}})
	since := time.Time{}
	report := func() map[string]string {
		p := planOf(t, x.engine, query.Request{AccountID: 1, SubjectID: 1, Metric: query.GoalConversionRate, Dimension: query.ByDevice})
		p.SharesSince, p.Segment, p.Filters.From = firstDay.AddDate(0, 0, 1), 2, since
		return x.cellsOf(x.reportOf(p))
	}
	x.devices(1, group{"desktop", 250, [2]int{25, 75}})
	since = firstDay.AddDate(0, 0, 1)
	x.wantCells("second period", report(), map[string]string{"desktop": everyLook})
	since = time.Time{}
	x.wantCells("before the planned look", report(), map[string]string{"mobile": "inconclusive  SHARES_CHANGED", "desktop": "inconclusive  SHARES_CHANGED"})
	for day := 1; day < 5; day++ {
		x.devices(day, group{"mobile", 250, [2]int{25, 25}}, group{"desktop", 250, [2]int{25, 35}})
	}
	x.wantCells("at the planned look", report(), map[string]string{"mobile": "inconclusive  SHARES_CHANGED", "desktop": "winner plannedLook 96h0m0s"})
}
