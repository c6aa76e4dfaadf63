package engine

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
	"lifthouse/stats"
)

// arrival is a visitor of a report.
type arrival struct {
	first  schema.Event      // view
	day    string            // of it
	values map[string]string // of attributes, and the day
}

func newArrival(first schema.Event) arrival {
	day := first.Time.UTC().Format(time.DateOnly)
	values := map[string]string{"day": day}
	for _, name := range result.SplitAttributes {
		values[string(name)] = result.ShownValue(attribute(string(name), &first))
	}
	return arrival{first, day, values}
}

// arrivalsOf returns the visitors of a report, and the goal events of visitors without a view by the variation that
// they carry, with plain loops over the events.
func arrivalsOf(p *plan.Plan, events []schema.Event) (arrivals []arrival, lost map[int64]moments.LostViews) {
	lost = map[int64]moments.LostViews{}
	for _, own := range eventsByVisitor(p.Subject, events) {
		views := viewsOf(own)
		if len(views) == 0 {
			carried := map[int64]bool{}
			for _, e := range own {
				if e.Kind == schema.KindGoal {
					n := lost[e.VariationID]
					n.Goals++
					if !carried[e.VariationID] {
						n.Visitors++
					}
					carried[e.VariationID], lost[e.VariationID] = true, n
				}
			}
			continue
		}
		first := views[0]
		if matches(p, &first) && !first.Time.Before(p.WindowStart()) && first.Time.Before(p.WindowEnd()) {
			arrivals = append(arrivals, newArrival(first))
		}
	}
	return arrivals, lost
}

// splitOf tests the split of some visitors.
func splitOf(p *plan.Plan, arrivals []arrival, is func(arrival) bool) (check stats.SampleRatioCheck, visitors int64) {
	var periods []stats.SharePeriod
	for i, period := range p.SharePeriods {
		periods = append(periods, p.ObservedSplit(i, func(variation int64) (n int64) {
			for _, a := range arrivals {
				until := schema.EndOfTime
				if i+1 < len(p.SharePeriods) {
					until = p.SharePeriods[i+1].Since
				}
				from := i == 0 || !a.first.Time.Before(period.Since)
				if from && a.first.Time.Before(until) && a.first.VariationID == variation && is(a) {
					n++
				}
			}
			return n
		}))
	}
	for _, a := range arrivals {
		if is(a) && slices.ContainsFunc(p.Variations,
			func(v plan.Variation) bool { return v.ID == a.first.VariationID }) {
			visitors++
		}
	}
	return stats.SampleRatioMismatch(periods), visitors
}

// checkCause compares a cause with the visitors of the plain loops.
func checkCause(t worlds.TB, p *plan.Plan, cause *result.SplitCause, arrivals []arrival,
	lost map[int64]moments.LostViews,
) {
	t.Helper()
	d := division{p: p, arrivals: arrivals}
	values := d.valuesOfAttributes()
	d.checkParts(t, cause.Parts, values)
	d.checkRegion(t, cause.Without, values)
	var got, want []string
	for _, l := range cause.LostViews {
		got = append(got, fmt.Sprint(l))
	}
	for _, v := range p.Variations {
		if n := lost[v.ID]; n.Goals > 0 {
			want = append(want, fmt.Sprint(result.LostOfSplit{VariationID: v.ID, LostViews: n}))
		}
	}
	check.That(t, slices.Equal(got, want), "lost views %v, want %v\n%+v", got, want, p)
}

// division divides the visitors of a report into parts.
type division struct {
	p        *plan.Plan
	arrivals []arrival
}

// factor returns the evidence against the shares of some visitors.
func (d *division) factor(is func(arrival) bool) float64 {
	check, _ := splitOf(d.p, d.arrivals, is)
	return check.LogFactor
}

// withValue returns a condition for the visitors with a value of an attribute; empty: all visitors.
func withValue(attribute, value string) func(arrival) bool {
	return func(a arrival) bool { return attribute == "" || a.values[attribute] == value }
}

// valuesOfAttributes returns the values of each attribute that has several, the worst first.
func (d *division) valuesOfAttributes() map[string][]string {
	attributes := []string{"day"}
	for _, a := range result.SplitAttributes {
		attributes = append(attributes, string(a))
	}
	values := map[string][]string{}
	for _, attribute := range attributes {
		factors := map[string]float64{}
		for _, a := range d.arrivals {
			value := a.values[attribute]
			factors[value] = 0
		}
		if len(factors) < 2 {
			continue
		}
		for value := range factors {
			factors[value] = d.factor(withValue(attribute, value))
		}
		values[attribute] = slices.SortedFunc(maps.Keys(factors), func(a, b string) int {
			return cmp.Or(cmp.Compare(factors[b], factors[a]), cmp.Compare(a, b))
		})
	}
	return values
}

// checkParts compares the parts of a cause, of which it has the worst ones.
func (d *division) checkParts(t worlds.TB, parts []result.SplitPart, values map[string][]string) {
	t.Helper()
	wanted := map[string]int{}
	for attribute, all := range values {
		for _, value := range all {
			check, visitors := splitOf(d.p, d.arrivals, withValue(attribute, value))
			last := check.Observed[len(check.Observed)-len(d.p.Variations):]
			isMismatch := *check.PValue < .001/float64(len(values)*len(all))
			wanted[fmt.Sprintf("%s %q %d %d %v", attribute, value, visitors, last, isMismatch)]++
		}
	}
	for _, part := range parts {
		text := fmt.Sprintf("%s %q %d %d %v", part.Attribute, part.Value, part.Visitors, part.Observed, part.Mismatch)
		wanted[text]--
		check.That(t, wanted[text] >= 0, "part %s, want one of %v\n%+v", text, wanted, d.p)
	}
	isSorted := slices.IsSortedFunc(parts, func(a, b result.SplitPart) int { return cmp.Compare(*a.PValue, *b.PValue) })
	check.That(t, isSorted, "the parts are not sorted: %+v", parts)
}

// region is a part of the visitors that may carry a mismatch.
type region struct {
	attribute, value, from string
	is                     func(arrival) bool
	factor                 float64
}

// regionsFromDays returns the regions of the visitors with a value from each day on that some of them have. The first
// one of a value has all its visitors, and all visitors are no region.
func (d *division) regionsFromDays(attribute, value string) (regions []region) {
	has := withValue(attribute, value)
	days := map[string]bool{}
	for _, a := range d.arrivals {
		if has(a) {
			days[a.day] = true
		}
	}
	for i, day := range slices.Sorted(maps.Keys(days)) {
		r := region{attribute: cmp.Or(attribute, "day"), value: value, from: day}
		if i == 0 {
			r.from = ""
		}
		if i == 0 && attribute == "" {
			continue
		}
		r.is = func(a arrival) bool { return a.day >= day && has(a) }
		regions = append(regions, r)
	}
	return regions
}

// regions returns the regions that are tested, and the number of all from which these were chosen.
func (d *division) regions(values map[string][]string) (regions []region, of int) {
	regions = d.regionsFromDays("", "")
	others := 0 // values that are not the worst of their attribute
	for attribute, all := range values {
		others += len(all) - 1
		if attribute == "day" {
			regions = append(regions, region{attribute: "day", value: all[0], is: withValue("day", all[0])})
			continue
		}
		regions = append(regions, d.regionsFromDays(attribute, all[0])...)
	}
	for i := range regions {
		regions[i].factor = d.factor(regions[i].is)
	}
	return regions, len(regions) + others
}

// checkRegion compares the region that carries the mismatch; nil: none does.
func (d *division) checkRegion(t worlds.TB, found *result.SplitRegion, values map[string][]string) {
	t.Helper()
	regions, n := d.regions(values)
	best := math.Inf(-1)
	for _, r := range regions {
		best = max(best, r.factor)
	}
	bound := d.factor(func(arrival) bool { return true }) + math.Log(float64(n))
	if found == nil {
		check.That(t, best <= bound+1e-9, "no region, want one of %v with %v > %v\n%+v", regions, best, bound, d.p)
		return
	}
	at := slices.IndexFunc(regions, func(r region) bool { // of equal ones, any
		return r.attribute == found.Attribute && r.value == found.Value && r.from == found.From
	})
	must.That(t, at >= 0, "region %+v, want one of %v\n%+v", found, regions, d.p)
	named := regions[at]
	must.That(t, math.Abs(named.factor-best) <= 1e-9, "region %+v has %v, want %v\n%+v", found, named.factor, best, d.p)
	must.That(t, best >= bound-1e-9, "region %+v has %v, want %v\n%+v", found, best, bound, d.p)
	others, _ := splitOf(d.p, d.arrivals, func(a arrival) bool { return !named.is(a) })
	_, visitors := splitOf(d.p, d.arrivals, named.is)
	check.Equal(t, found.Visitors, visitors, "visitors of region %+v", found)
	check.That(t, math.Abs(*others.PValue-*found.PValue) <= 1e-9, "region %+v, want %+v of the others", found, others)
	check.That(t, !found.Matches || !others.Mismatch, "region %+v, want %+v of the others", found, others)
}

// causeOf returns the cause of a report, as if its split did not match.
func causeOf(t worlds.TB, e *Engine, p *plan.Plan) *result.SplitCause {
	t.Helper()
	return must.Get(e.readSplitCause(t.Context(), p, Version{}))(t)
}

func TestSplitCauseEqualsTheFold(t *testing.T) {
	w := worlds.New(61)
	w.Days, w.Visitors = 4, 500
	var events []schema.Event
	var ids []int64
	for id := int64(1); id <= 6; id++ {
		ids = append(ids, id)
		events = append(events, w.Events(id, 1_000)...)
	}
	in := newStored(t, schematest.OpenMigrated(t), events)
	owned := drawResources(w, ids...)
	worlds.Check(t, tier.Of(15, 2_000), func(t *rapid.T, r worlds.Rand) {
		request := drawRequest(worlds.Of(r), 1+r.Int64N(6))
		if request.Operation == query.WidgetResults {
			request.Operation = query.CampaignResults
		}
		p := must.Get(plan.New(request, owned))(t)
		if len(p.Variations) < 2 {
			return
		}
		arrivals, lost := arrivalsOf(p, in.events)
		if whole, _ := splitOf(p, arrivals, func(arrival) bool { return true }); whole.PValue == nil {
			return // nothing is tested
		}
		checkCause(t, p, causeOf(t, in.engine, p), arrivals, lost)
	})
}

// TestSplitRegions loses visitors of a random region of many, and compares the region with a search by plain loops.
func TestSplitRegions(t *testing.T) {
	owned := drawResources(worlds.New(1))
	owned.Campaigns[1] = catalogue.LiveCampaign{Campaign: catalogue.Campaign{
		ID: 1, WebsiteID: 1, ControlShare: 50, Variations: []catalogue.Variation{{ID: 1, Name: "v", Share: 50}},
	}}
	p := must.Get(plan.New(query.Request{Operation: query.CampaignResults, AccountID: 1, SubjectID: 1}, owned))(t)
	found := map[string]int{}
	worlds.Check(t, tier.Of(8, 1_000), func(t *rapid.T, r worlds.Rand) {
		w, start := worlds.Of(r), worlds.Start.Truncate(24*time.Hour)
		name, value := worlds.Pick(w, "day", "browser", "device", "channel", "country"), worlds.Pick(w, "a", "b", "c")
		since, until := start.AddDate(0, 0, w.IntN(5)), start.AddDate(0, 0, worlds.Pick(w, 5, 9))
		loss := worlds.Pick(w, 0, 6, 10)                             // tenths
		random := rand.New(rand.NewPCG(uint64(w.Int64N(1<<40)), 61)) //nolint:gosec // a seed
		pick := func(values ...string) string { return values[min(random.IntN(len(values)), random.IntN(len(values)))] }
		var arrivals []arrival
		for range 3_000 {
			e := schema.Event{
				Time:        start.Add(time.Duration(random.IntN(7*24)) * time.Hour),
				VariationID: random.Int64N(2),
			}
			e.Browser, e.Device, e.Channel, e.UTMSource = pick("a", "b", "c", "d"), pick("a", "b", "c"), pick("a",
				"b"), "only"
			e.Country = pick("a", "b", "c")
			in := !e.Time.Before(since) && e.Time.Before(until) && (name == "day" || attribute(name, &e) == value)
			if !in || e.VariationID == 0 || random.IntN(10) >= loss {
				arrivals = append(arrivals, newArrival(e))
			}
		}
		by := map[query.Dimension][]moments.Step{}
		for _, a := range arrivals {
			for _, dimension := range result.SplitAttributes {
				row := moments.GroupMoments{GroupKey: moments.GroupKey{
					VariationID: a.first.VariationID,
					Dimension:   attribute(string(dimension), &a.first),
				}, Moments: moments.Moments{Visitors: 1}}
				bucket := a.first.Time.Unix() / 86_400
				by[dimension] = append(by[dimension], moments.Step{Bucket: bucket, GroupMoments: row})
			}
		}
		cause := result.NewSplitCause(p, by, nil)
		checkCause(t, p, cause, arrivals, nil)
		if c := cause.Without; c != nil {
			found[c.Attribute]++
		}
	})
	check.That(t, len(found) >= 2, "regions of few attributes: %v", found)
}

// TestSplitCauseFindsLostViews loses views of one browser from a day on.
func TestSplitCauseFindsLostViews(t *testing.T) {
	x := newTrial(t, time.Date(2025, 11, 10, 0, 0, 0, 0, time.UTC))
	var events []schema.Event
	var statements atomic.Int64
	x.engine.ObserveQueries(func(time.Duration, error) { statements.Add(1) })
	send := func(day int) {
		var sent []schema.Event
		at := x.first.AddDate(0, 0, day).Add(time.Hour)
		for i := range 2 * dailyVisitors {
			e := x.view(at.Add(time.Duration(i)*time.Second), i%2)
			e.Device, e.Browser = []string{"desktop", "mobile"}[i/2%2], []string{
				"chrome", "safari 17", "firefox",
				"edge",
			}[i/4%4]
			goal := goalAfter(e, 0)
			goal.Attributes = schema.Attributes{}
			if lost := day >= 9 && e.Browser == "safari 17" && e.VariationID == 1; !lost {
				sent = append(sent, e)
			}
			if i%16 == 5 { // a treatment visitor of safari 17
				sent = append(sent, goal)
			}
		}
		events = append(events, sent...)
		must.OK(t, schema.InsertEvents(t.Context(), x.conn, sent, at.AddDate(0, 0, 1)))
		x.refresh()
	}
	for day := range 9 {
		send(day)
	}
	if r := x.report(func(*query.Request) {}); r.Checks.SplitCause != nil {
		t.Fatalf("cause without a mismatch: %+v", r.Checks.SplitCause)
	}
	for day := 9; day < 14; day++ {
		send(day)
	}
	statements.Store(0)
	r := x.report(func(*query.Request) {})
	first := statements.Swap(0)
	byDevice := x.report(byDevice)
	check.That(t, byDevice.Checks.SplitCause != nil, "%d statements, then %d for another report about the same visitors", first, statements.Load())
	check.That(t, statements.Load() < 2*int64(len(result.SplitAttributes)), "%d statements, then %d for another report about the same visitors", first, statements.Load())
	cause := r.Checks.SplitCause
	must.That(t, cause != nil, "no cause: %+v", r.Checks.SampleRatio)
	const want = "Without the 630 visitors with the browser safari 17, first exposed from 2025-11-19 on, the split matches the shares: p over 0.99. " +
		"Goals of visitors without a view, by the variation that they carry: Green 315."
	check.That(t, cause.Text == want, "%s\n%s", cause.Text, want)
	worst := cause.Parts[0]
	check.Equal(t, worst.Attribute, "browser", "parts %+v", cause.Parts)
	check.Equal(t, worst.Value, "safari 17", "parts %+v", cause.Parts)
	check.That(t, worst.Mismatch, "parts %+v", cause.Parts)
	check.That(t, !cause.Parts[len(cause.Parts)-1].Mismatch, "parts %+v", cause.Parts)
	p := x.engine.AsOfFirstView(planOf(t, x.engine,
		query.Request{Operation: query.CampaignResults, AccountID: 1, SubjectID: 1}))
	arrivals, lost := arrivalsOf(p, events)
	checkCause(t, p, cause, arrivals, lost)
	check.That(t, strings.Contains(inJSON(t, r), `"splitCause":{"text":"Without`), "the report has no cause")
}

// splitVisitors sends visitors of a trial from its first day on. of returns the attributes of a visitor, and whether the
// view is lost.
func (x *trial) splitVisitors(days, daily int, of func(i, variation int) (schema.Attributes, bool)) *result.Report {
	x.t.Helper()
	for day := range days {
		var sent []schema.Event
		at := x.first.AddDate(0, 0, day).Add(time.Hour)
		for i := range daily {
			e := x.view(at.Add(time.Duration(i)*time.Second), i%2)
			attributes, isLost := of(i/2, i%2)
			if e.Attributes = attributes; !isLost {
				sent = append(sent, e)
			}
		}
		must.OK(x.t, schema.InsertEvents(x.t.Context(), x.conn, sent, at.AddDate(0, 0, 1)))
	}
	x.refresh()
	return x.report(func(*query.Request) {})
}

// TestSplitCauseNamesACountry adds bots of one country to the treatment.
func TestSplitCauseNamesACountry(t *testing.T) {
	x := newTrial(t, time.Date(2025, 11, 10, 0, 0, 0, 0, time.UTC))
	r := x.splitVisitors(7, 600, func(i, variation int) (schema.Attributes, bool) {
		a := schema.Attributes{
			Device: "desktop", Browser: []string{"chrome", "edge"}[i%2],
			Country: []string{"CH", "DE", "FR", "SG"}[i/2%4],
		}
		return a, a.Country == "SG" && variation == 0 && i%3 > 0
	})
	must.That(t, r.Checks.SplitCause != nil, "no cause: %+v", r.Checks.SampleRatio)
	check.That(t, strings.HasPrefix(r.Checks.SplitCause.Text, "Without the 693 visitors with the country SG, the split matches the shares: p over 0.99"),
		"%s", r.Checks.SplitCause.Text)
}

// TestSplitCauseNamesTwo loses views of a browser in the treatment and of a channel in control.
func TestSplitCauseNamesTwo(t *testing.T) {
	x := newTrial(t, time.Date(2025, 11, 10, 0, 0, 0, 0, time.UTC))
	r := x.splitVisitors(7, 1200, func(i, variation int) (schema.Attributes, bool) {
		a := schema.Attributes{
			Device: "desktop", Browser: []string{"chrome", "safari", "edge"}[i%3],
			Channel: []string{"email", "search", "direct", "paid"}[i/3%4],
		}
		third := i/12%3 == 0
		isLost := a.Browser == "safari" && variation == 1 && i/12%3 > 0 || a.Channel == "paid" && variation == 0 &&
			third
		return a, isLost
	})
	must.That(t, r.Checks.SplitCause != nil, "no cause: %+v", r.Checks.SampleRatio)
	cause := r.Checks.SplitCause
	must.That(t, cause.Without != nil, "%+v", cause)
	must.That(t, cause.Second != nil, "%+v", cause)
	check.Equal(t, cause.Without.Value, "safari")
	check.Equal(t, cause.Second.Value, "paid")
	check.That(t, strings.HasPrefix(cause.Text, "No part alone explains the mismatch. The "), "%s", cause.Text)
	check.That(t, strings.Contains(cause.Text, "Without both, the split matches the shares: p "), "%s", cause.Text)
}

// TestSplitCauseNeedsPower loses views of a browser that most visitors have.
func TestSplitCauseNeedsPower(t *testing.T) {
	x := newTrial(t, time.Date(2025, 11, 10, 0, 0, 0, 0, time.UTC))
	r := x.splitVisitors(7, 1200, func(i, variation int) (schema.Attributes, bool) {
		a := schema.Attributes{Device: "desktop", Browser: "safari"}
		if i%5 == 1 {
			a.Browser = "edge"
		}
		return a, a.Browser == "safari" && variation == 1 && i%5 == 0
	})
	must.That(t, r.Checks.SplitCause != nil, "no cause: %+v", r.Checks.SampleRatio)
	without := r.Checks.SplitCause.Without
	must.That(t, without != nil, "no region is named: %s", r.Checks.SplitCause.Text)
	check.That(t, !without.Matches, "1,680 visitors match: %+v", without)
	check.That(t, strings.Contains(r.Checks.SplitCause.Text, "too few others"), "%s", r.Checks.SplitCause.Text)
}
