package engine

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// devices stores a day of 500 visitors a variation, of which the first ones are mobile. The numbers are of mobile
// visitors, converted mobile ones and converted others, by variation.
func (x *trial) devices(day int, mobile [2]int, converted, others [2]int) {
	x.t.Helper()
	var events []schema.Event
	at := x.first.AddDate(0, 0, day).Add(time.Hour)
	for variation := range 2 {
		for visitor := range dailyVisitors {
			x.ids++
			e := schema.Event{
				EventID: 2 * x.ids, Time: at, WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: x.ids,
				VariationID: int64(variation), Kind: schema.KindView, Attributes: schema.Attributes{Device: "desktop"},
			}
			converts := visitor >= mobile[variation] && visitor < mobile[variation]+others[variation]
			if visitor < mobile[variation] {
				e.Device, converts = "mobile", visitor < converted[variation]
			}
			events = append(events, e)
			if converts {
				e.EventID, e.Kind, e.GoalID = e.EventID+1, schema.KindGoal, 1
				events = append(events, e)
			}
		}
	}
	if err := x.writer.WriteEvents(x.t.Context(), events); err != nil {
		x.t.Fatal(err)
	}
}

func byDevice(r *query.Request) { r.Dimension = query.ByDevice }

// sliceOf returns the slice of a value.
func sliceOf(t *testing.T, r *result.Report, value string) *result.BreakdownSlice {
	t.Helper()
	at := slices.IndexFunc(r.Breakdown, func(c result.BreakdownSlice) bool { return c.Value == value })
	if at < 0 {
		t.Fatalf("no part %s", value)
	}
	return &r.Breakdown[at]
}

// analyzeNext returns the result of the next look, and its p-value.
func analyzeNext(d stats.LookDesign, points *[]stats.LookPoint, tau float64, strata ...stats.Stratum) (stats.LookResult, *float64) {
	*points = append(*points, stats.LookPoint{Tau: tau, Information: stats.LookInformation(strata, true)})
	sequence, last := d.NewSequence(*points, nil), len(*points)-1
	found := sequence.AnalyzeLook(last, strata, true)
	return found, sequence.PValue(last, found)
}

// TestLooksAtSlices checks that the j-th slice with enough visitors has alpha / (j (j + 1)), from the look on at which
// it has them, and that later looks do not withdraw a conclusion.
func TestLooksAtSlices(t *testing.T) {
	x := newTrial(t, firstDay)
	x.devices(0, [2]int{10, 10}, [2]int{}, [2]int{})
	const few = 10 // mobile visitors a day in the first week
	design := stats.NewLookDesign(0.05, []float64{0.5, 0.5})
	var desktops, mobiles []stats.LookPoint
	rate := func(n, converted int) stats.Rate {
		return stats.Rate{Visitors: int64(n), Converted: int64(converted)}
	}
	var d, m [3]int // visitors, converted of control and treatment
	for week := range 3 {
		mobile, converted := few, [2]int{1, 1}
		if week > 0 {
			mobile, converted = 200, [2]int{20, 45}
		}
		for day := range 7 {
			x.devices(1+7*week+day, [2]int{mobile, mobile}, converted, [2]int{30, 31})
		}
		d = [3]int{d[0] + 7*(dailyVisitors-mobile), d[1] + 7*30, d[2] + 7*31}
		m = [3]int{m[0] + 7*mobile, m[1] + 7*converted[0], m[2] + 7*converted[1]}
		x.refresh()
		r := x.report(byDevice)
		tau := float64(week+1) / 4
		want, p := analyzeNext(design.ForSlice(1), &desktops, tau, stats.Stratum{Control: rate(d[0], d[1]), Treatment: rate(d[0], d[2]), SmallerShare: .5})
		part := sliceOf(t, r, "desktop")
		if got := part.Variations[1].Comparison.Sequential; *got.Look != week+1 || *got.PValue != *p || got.Significant != want.Significant {
			t.Errorf("week %d, desktop: %s, want %+v", week+1, inJSON(t, got), want)
		}
		part = sliceOf(t, r, "mobile")
		if week == 0 {
			if got := part.Variations[1].Comparison.Sequential; got.Look != nil {
				t.Errorf("70 mobile visitors have a look: %s", inJSON(t, got))
			}
			continue
		}
		want, _ = analyzeNext(design.ForSlice(2), &mobiles, tau, stats.Stratum{Control: rate(m[0], m[1]), Treatment: rate(m[0], m[2]), SmallerShare: .5})
		if got := part.Variations[1].Comparison.Sequential; *got.Improvement[0] != *want.Lift.Interval[0] ||
			got.Significant != want.Significant {
			t.Errorf("week %d, mobile: %s, want %+v", week+1, inJSON(t, got), want)
		}
		if got, want := x.concluded(part.Conclusion), "winner at look 2"; got != want {
			t.Errorf("week %d, mobile: %q, want %q", week+1, got, want)
		}
	}
	filtered := x.report(func(r *query.Request) {
		byDevice(r)
		r.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
	})
	if got, want := x.concluded(sliceOf(t, filtered, "mobile").Conclusion), "inconclusive NOT_DECLARED"; got != want {
		t.Errorf("filtered: %q, want %q", got, want)
	}
	whole := x.report(byDevice)
	for name, c := range map[string]*result.Comparison{
		"in the breakdown": sliceOf(t, whole, "mobile").Variations[1].Comparison, "when filtered": filtered.Variations[1].Comparison,
	} {
		if got := c.VerdictInWords(); got != "ahead" || c.Conclusive != nil {
			t.Errorf("%s, mobile is %q, conclusive %v; want ahead, and no conclusive", name, got, c.Conclusive)
		}
	}
	if c := whole.Variations[1].Comparison; c.Conclusive == nil {
		t.Error("the verdict about all visitors is not said to be conclusive or not")
	}
}

// TestLooksAtSlicesOfSeveralWindows has a pause, which breaks a week, and a change of shares in the middle of a week.
func TestLooksAtSlicesOfSeveralWindows(t *testing.T) {
	x := newTrial(t, firstDay)
	for day := range 27 {
		x.devices(day, [2]int{100, 100}, [2]int{10, 20}, [2]int{30, 31})
	}
	x.refresh()
	p := planOf(t, x.engine, query.Request{AccountID: 1, SubjectID: 1, Dimension: query.ByDevice})
	at := func(day, hour int) time.Time { return firstDay.AddDate(0, 0, day).Add(time.Duration(hour) * time.Hour) }
	stop := at(10, 12)
	p.Runs = []catalogue.Run{{From: at(0, 0), To: &stop}, {From: at(12, 6)}}
	p.SharePeriods = []plan.SharePeriod{{Since: plan.OpenFrom, Shares: []float64{.5, .5}}, {Since: at(16, 0), Shares: []float64{.8, .2}}}
	r := x.reportOf(p)
	design := stats.NewLookDesign(0.05, []float64{.5, .5})
	for i, part := range []struct {
		name                         string
		visitors, control, treatment int64 // of a day
	}{{"desktop", 400, 30, 31}, {"mobile", 100, 10, 20}} {
		stratum := func(days int64, smaller float64) stats.Stratum {
			return stats.Stratum{
				Control: stats.Rate{Visitors: days * part.visitors, Converted: days * part.control}, Treatment: stats.Rate{Visitors: days * part.visitors, Converted: days * part.treatment}, SmallerShare: smaller,
			}
		}
		var points []stats.LookPoint
		analyzeNext(design.ForSlice(i+1), &points, .25, stratum(7, .5))                 // days 1 to 7
		analyzeNext(design.ForSlice(i+1), &points, .5, stratum(10, .5), stratum(4, .2)) // and 13 to 19
		want, p := analyzeNext(design.ForSlice(i+1), &points, .75, stratum(10, .5), stratum(11, .2))
		got := sliceOf(t, r, part.name).Variations[1].Comparison.Sequential
		if *got.Look != 3 || *got.PValue != *p || *got.Improvement[0] != *want.Lift.Interval[0] ||
			*got.Improvement[1] != *want.Lift.Interval[1] {
			t.Errorf("%s: %s, want %+v", part.name, inJSON(t, got), want)
		}
	}
}

// TestLooksAtSlicesAreKept counts the statements of breakdowns of an unchanged subject.
func TestLooksAtSlicesAreKept(t *testing.T) {
	x := newTrial(t, firstDay)
	x.weeks([]int{50, 60}, []int{50, 60})
	var statements atomic.Int64
	x.engine.ObserveQueries(func(time.Duration, error) { statements.Add(1) })
	ask := func() int64 {
		before := statements.Load()
		if _, err := x.engine.ComputeReport(t.Context(), planOf(t, x.engine, query.Request{AccountID: 1, SubjectID: 1, Dimension: query.ByDevice})); err != nil {
			fatal(t, err)
		}
		return statements.Load() - before
	}
	first, again := ask(), ask()
	if again >= first {
		t.Errorf("%d statements, then %d", first, again)
	}
}
