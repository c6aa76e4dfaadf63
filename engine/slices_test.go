package engine

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
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
			view := x.view(at, variation)
			view.Device = "desktop"
			converts := visitor >= mobile[variation] && visitor < mobile[variation]+others[variation]
			if visitor < mobile[variation] {
				view.Device, converts = "mobile", visitor < converted[variation]
			}
			events = append(events, view)
			if converts {
				events = append(events, goalAfter(view, 0))
			}
		}
	}
	must.OK(x.t, x.writer.WriteEvents(x.t.Context(), events))
}

func byDevice(r *query.Request) { r.Dimension = query.ByDevice }

// sliceOf returns the slice of a value.
func sliceOf(t *testing.T, r *result.Report, value string) *result.BreakdownSlice {
	t.Helper()
	at := slices.IndexFunc(r.Breakdown, func(c result.BreakdownSlice) bool { return c.Value == value })
	must.That(t, at >= 0, "no part %s", value)
	return &r.Breakdown[at]
}

// TestSegmentsDescribe has a treatment that helps mobile visitors only, so much that the answer about them holds. A
// segment has the same comparison in a breakdown, as a filter and beside its complement, and concludes nothing. That the
// segments differ is tested.
func TestSegmentsDescribe(t *testing.T) {
	x := newTrial(t, firstDay)
	for day := range 29 {
		x.devices(day, [2]int{200, 200}, [2]int{20, 45}, [2]int{30, 31})
	}
	x.refresh()
	whole := x.report(byDevice)
	report := func(device string) *result.Report {
		return x.report(func(r *query.Request) {
			r.Filters.Lists, r.Complement = []query.ListFilter{{Attribute: "device", Values: []string{device}}}, true
		})
	}
	for device, word := range map[string]string{"mobile": "better, holds", "desktop": "inconclusive"} {
		filtered, slice := report(device), sliceOf(t, whole, device)
		own := filtered.Variations[1].Comparison
		check.Equal(t, inJSON(t, slice.Variations[1].Comparison), inJSON(t, own),
			"%s in the breakdown, and as a filter", device)
		check.Equal(t, own.VerdictInWords(), word, "%s is %q, conclusive %v; want %q", device, own.VerdictInWords(),
			own.Conclusive, word)
		check.That(t, own.Conclusive == nil, "%s is %q, conclusive %v; want %q", device, own.VerdictInWords(),
			own.Conclusive, word)
		check.Equal(t, own.Evidence.Holds, device == "mobile", "%s holds", device)
		for place, c := range map[string]*result.Conclusion{
			"breakdown": slice.Conclusion,
			"filter":    filtered.Conclusion,
		} {
			check.Equal(t, x.concluded(c), "inconclusive NOT_DECLARED", "%s: %s is", place, device)
		}
		other := report(map[string]string{"mobile": "desktop", "desktop": "mobile"}[device]).Variations
		c := own.Complement
		if got, want := inJSON(t, c.Improvement), inJSON(t, other[1].Comparison.Improvement); got != want ||
			c.Visitors != other[1].Visitors || c.ControlVisitors != other[0].Visitors {
			t.Errorf("the complement of %s is %s, and the other device %s", device, got, want)
		}
		a, b, d := own.Improvement, c.Improvement, c.ImprovementDifference
		below, above := math.Hypot(*a.Value-*a.Interval[0],
			*b.Interval[1]-*b.Value), math.Hypot(*a.Interval[1]-*a.Value, *b.Value-*b.Interval[0])
		for _, pair := range [][2]float64{
			{*d.Value, *a.Value - *b.Value},
			{*d.Interval[0], *a.Value - *b.Value - below},
			{*d.Interval[1], *a.Value - *b.Value + above},
		} {
			check.That(t, math.Abs(pair[0]-pair[1]) <= 1e-9, "%s: the difference of the lifts is %s", device,
				inJSON(t, d))
		}
	}
	if c := whole.Variations[1].Comparison; c.Conclusive == nil || c.Complement != nil {
		t.Errorf("the comparison of all visitors is %s", inJSON(t, c))
	}
	// Two segments: the difference of their effects is normal.
	effect := func(n, control, treatment float64) (y, v float64) {
		p := (control + treatment) / 2 / n
		return (treatment - control) / n / p, (1 - p) / p * 2 / n
	}
	y1, v1 := effect(29*200, 29*20, 29*45)
	y2, v2 := effect(29*300, 29*30, 29*31)
	const spread = .1 // half of the minimum effect
	want := distuv.Normal{Sigma: math.Sqrt(v1 + v2 + 2*spread*spread)}.Prob(y1-y2) / distuv.Normal{Sigma: math.Sqrt(v1 +
		v2)}.Prob(y1-y2)
	got := whole.Heterogeneity
	check.Equal(t, got.Segments, 2, "heterogeneity is %s, want %v", inJSON(t, got), want)
	check.That(t, math.Abs(*got.BayesFactor-want) <= 1e-9*want, "heterogeneity is %s, want %v", inJSON(t, got), want)
	check.Equal(t, *got.PValue, 1 / *got.BayesFactor, "heterogeneity is %s, want %v", inJSON(t, got), want)
	for factor, want := range map[float64]string{.02: "50 times likelier if the lift is the same", 1: "do not say whether the lift differs between the segments (Bayes factor 1.0)", 4: "4.0 times likelier if the lift differs", 1e9: "more than 1,000 times likelier if the lift differs"} {
		p := planOf(t, x.engine, query.Request{AccountID: 1, SubjectID: 1, Dimension: query.ByDevice})
		p.Rules.Methodology = catalogue.Bayesian
		h := result.NewHeterogeneity(p, stats.Heterogeneity{BayesFactor: &factor, PValue: &factor})
		check.Contains(t, h.Text, want, "a factor of %v reads %s", factor, inJSON(t, h))
		check.That(t, h.PValue == nil, "a factor of %v reads %s", factor, inJSON(t, h))
	}
}

// TestDescribingReportsAnalyzeNoLooks checks that a report with filters does not pay for looks that it does not show.
func TestDescribingReportsAnalyzeNoLooks(t *testing.T) {
	x := newTrial(t, firstDay)
	x.weeks([]int{50, 62})
	x.report(func(r *query.Request) {
		r.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
	})
	const appearances = 2 // the orders of goals and of devices, for the price of the question
	n, _, _ := x.engine.cache.Usage()
	check.Equal(t, n, appearances, "kept values after a report with a filter")
	x.report(nil)
	n, _, _ = x.engine.cache.Usage()
	check.That(t, n > appearances, "%d kept values after a report of the declared question", n)
}

// TestAutomatedVisitorsAreNamed checks that programs on a variation do not change the report of the people, that the
// report names them, and warns if one variation has more of them.
func TestAutomatedVisitorsAreNamed(t *testing.T) {
	const most = 20
	x := newTrial(t, firstDay)
	x.refresher.MaxVisitorEvents, x.other.facts.Shards[0].MaxVisitorEvents = most, most
	x.weeks([]int{50, 62})
	people := x.report(nil)
	programs := func(variation, n int) *result.Report {
		var events []schema.Event
		for range n {
			view := x.view(firstDay, variation)
			events = append(events, view)
			for i := range most {
				goal := goalAfter(x.view(firstDay, variation), time.Duration(i)*time.Second)
				goal.VisitorID, goal.Value = view.VisitorID, 1_000_000
				events = append(events, goal)
			}
		}
		x.write(events...)
		return x.report(nil)
	}
	few := programs(1, 5)
	a := few.Checks.Automated
	must.That(t, a != nil, "few programs: %+v", a)
	check.Equal(t, a.Visitors, 5, "few programs: %+v", a)
	check.That(t, !a.Warning, "few programs: %+v", a)
	check.That(t, a.PValue == nil, "few programs: %+v", a)
	check.Equal(t, a.Reason, stats.ReasonTooFewVisitors, "few programs: %+v", a)
	many := programs(1, 35)
	a = many.Checks.Automated
	must.That(t, a != nil, "many programs of a variation: %+v", a)
	check.That(t, a.Warning, "many programs of a variation: %+v", a)
	check.Equal(t, a.Visitors, 40, "many programs of a variation: %+v", a)
	check.Equal(t, a.Variations[1], (result.AutomatedVariation{ID: 1, Visitors: 40}),
		"many programs of a variation: %+v", a)
	check.Equal(t, a.Variations[0].Visitors, 0, "many programs of a variation: %+v", a)
	check.Equal(t, len(many.Checks.Warnings), len(people.Checks.Warnings)+1, "warnings %+v", many.Checks.Warnings)
	both := programs(0, 40)
	check.That(t, !both.Checks.Automated.Warning, "programs of both variations: %+v\n%+v\nwant %+v",
		both.Checks.Automated, both.Totals, people.Totals)
	check.Equal(t, inJSON(t, both.Totals), inJSON(t, people.Totals), "programs of both variations: %+v\n%+v\nwant %+v",
		both.Checks.Automated, both.Totals, people.Totals)
	check.Equal(t, inJSON(t, both.Variations), inJSON(t, people.Variations),
		"programs of both variations: %+v\n%+v\nwant %+v", both.Checks.Automated, both.Totals, people.Totals)
}

// TestPoolsStayWhenLooksAreEvicted checks that what treatments are worth is kept while the results of looks are not, as
// with more campaigns than there is memory for looks.
func TestPoolsStayWhenLooksAreEvicted(t *testing.T) {
	x := newTrial(t, firstDay)
	x.weeks([]int{50, 62})
	p := must.Get(x.engine.PlanInForce(t.Context(), planOf(t, x.engine, query.Request{AccountID: 1, SubjectID: 1})))(t)
	want := must.Get(x.engine.ReadWorth(t.Context(), p, ""))(t)
	for i := range 8 {
		x.engine.cache.StoreValue(i, nil, nil, looksMemory/5)
	}
	got, isKept, err := x.engine.LastWorth(t.Context(), p, "")
	must.OK(t, err)
	must.That(t, isKept, "the pool was evicted with the looks")
	check.Equal(t, inJSON(t, got), inJSON(t, want), "worth")
}
