package engine

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// drawRequest draws a report of a campaign, a widget or an experiment.
func drawRequest(w worlds.World, subject int64) query.Request {
	r := query.Request{
		Operation: worlds.Pick(w, query.CampaignResults, query.CampaignResults, query.WidgetResults,
			query.ExperimentResults),
		AccountID: 1, SubjectID: subject, GoalID: w.Int64N(3),
	}
	if metrics := query.Comparable[r.Operation]; len(metrics) > 0 {
		r.Metric = query.Metric(worlds.Pick(w, metrics...))
	}
	switch r.Operation {
	case query.CampaignResults:
		r.Dimension = query.Dimension(worlds.Pick(w, "", "device", "city", worlds.Pick(w, query.Dimensions...)))
	case query.ExperimentResults:
		r.ExperimentID = 4
	case query.WidgetResults:
	}
	if w.IntN(10) == 0 {
		r.Interval = query.Interval(worlds.Pick(w, query.Intervals...))
	}
	if w.IntN(3) == 0 {
		limit, err := schema.ParseCap(worlds.Pick(w, "p50", "p75.5", "p90", "p99", "0.0001", "3", "12.5", "900000"))
		if err != nil {
			panic(err)
		}
		r.Cap = &limit
	}
	if w.IntN(3) == 0 {
		r.ConversionWindow = drawWindow(w)
	}
	if w.IntN(5) == 0 {
		r.Filters.GoalValue = big.NewRat(w.Int64N(400_000)-100_000, 10_000)
	}
	if w.IntN(6) == 0 {
		r.Filters.ZScore = worlds.Pick(w, 0.0001, 0.5, 1, 2, 5)
	}
	if w.IntN(2) == 0 {
		r.Filters.From = w.Instant()
	}
	if w.IntN(2) == 0 {
		r.Filters.To = w.Instant()
		if !r.Filters.From.Before(r.Filters.To) {
			r.Filters.From = time.Time{}
		}
	}
	list := func(name string, values ...string) {
		if w.IntN(5) == 0 {
			r.Filters.Lists = append(r.Filters.Lists, query.ListFilter{Attribute: name, Values: values})
		}
	}
	list("device", worlds.Pick(w, "mobile", ""))
	list("country", "FR", worlds.Pick(w, "DE", ""))
	list("browser", worlds.OddText(w), worlds.OddText(w), worlds.OddText(w))
	list("city", worlds.OddText(w), worlds.OddText(w), worlds.OddText(w), worlds.OddText(w))
	text := func(name, pattern string) {
		if w.IntN(6) == 0 {
			r.Filters.Texts = append(r.Filters.Texts, query.TextFilter{Attribute: name, Pattern: pattern})
		}
	}
	text("referrer", worlds.Pick(w, worlds.OddText(w), "*", "a*", "*b", "*a*", `*\*`, "*%*", "*_*"))
	text("utmSource", worlds.OddText(w))
	text("visitorType", worlds.Pick(w, "new", "returning"))
	return r
}

// drawWindow draws a conversion window, most of which some visitors of a random world have passed.
func drawWindow(w worlds.World) *schema.ConversionWindow {
	window, err := schema.ParseConversionWindow(worlds.Pick(w, "none", "1h", "2h", "1h..3h", "5h", "4h..12h", "1d",
		"90d", "2h+3h", "1h+0h", "1h..4h+10h"))
	if err != nil {
		panic(err)
	}
	return &window
}

// subjectsOfWorld is the number of campaigns, and of widgets, in one store.
const subjectsOfWorld = 12

// drawResources draws the resources of an account with the given campaigns and widgets.
func drawResources(w worlds.World, ids ...int64) *catalogue.AccountResources {
	o := &catalogue.AccountResources{
		Websites: map[int64]catalogue.Website{1: {ID: 1}},
		Goals: map[int64]catalogue.Goal{
			1: {ID: 1, WebsiteID: 1, Name: "one"},
			2: {ID: 2, WebsiteID: 1, Name: "two"},
		},
		Campaigns: map[int64]catalogue.LiveCampaign{}, Widgets: map[int64]catalogue.LiveWidget{},
	}
	for _, id := range ids {
		campaign := catalogue.LiveCampaign{Campaign: w.Campaign(id)}
		if w.IntN(3) == 0 { // the shares changed since then, and control had one
			campaign.ShareHistory = map[int64][]catalogue.SharesSince{0: {
				{Shares: catalogue.Shares{0: 50}}, {Since: w.Instant(), Shares: campaign.DeclaredShares()},
			}}
		}
		o.Campaigns[id], o.Widgets[id] = campaign, catalogue.LiveWidget{Widget: w.Widget(id)}
	}
	return o
}

func TestReportEqualsTheFold(t *testing.T) {
	w := worlds.New(1)
	var events []schema.Event
	var ids []int64
	for id := int64(1); id <= subjectsOfWorld; id++ {
		ids = append(ids, id)
		events = append(events, w.Events(id, w.IntN(800))...)
	}
	w.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	in := newStored(t, schematest.OpenMigrated(t), events)
	owned := drawResources(w, ids...)
	worlds.Check(t, tier.Of(15, 5_000), func(t *rapid.T, r worlds.Rand) {
		compareWithFold(t, in, owned, drawRequest(worlds.Of(r), 1+r.Int64N(subjectsOfWorld)))
	})
}

// FuzzReport makes a world from a seed, and compares some of its reports with the fold.
func FuzzReport(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(seed)
	}
	conn := schematest.OpenMigrated(f)
	var subjects atomic.Int64
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := worlds.New(seed)
		id := subjects.Add(1)
		in := newStored(t, conn, w.Events(id, 1+w.IntN(150)))
		owned := drawResources(w, id)
		for range 3 {
			compareWithFold(t, in, owned, drawRequest(w, id))
		}
	})
}

// accepted is the acceptance time of the events of random worlds. The days before it have some of them.
var accepted = worlds.Start.AddDate(0, 0, 1).Add(time.Hour)

// stored has the events of visitors who are not automated, and the engine that reads the facts of all.
type stored struct {
	engine *Engine
	events []schema.Event
}

// openEngine returns an engine of a store, to which no other process writes.
func openEngine(conn driver.Conn, c *catalogue.Catalogue) (*Engine, *facts.Refresher) {
	r := facts.NewRefresher(conn, true)
	r.LeastVisitorsByDay = 40
	return New(conn, c, source.DefaultLimits, facts.Shards{r}), r
}

// inserts numbers the inserts of newStored, whose acceptance times must rise.
var inserts atomic.Int64

// eventsOfVisitors returns the number of events of each visitor of a website.
func eventsOfVisitors(events []schema.Event) map[schema.Visitor]int {
	n := map[schema.Visitor]int{}
	for i := range events {
		n[schema.Visitor{WebsiteID: events[i].WebsiteID, ID: events[i].VisitorID}]++
	}
	return n
}

// withoutAutomated returns the events of the visitors with at most most events of a website.
func withoutAutomated(events []schema.Event, most int) (kept []schema.Event) {
	n := eventsOfVisitors(events)
	for _, e := range events {
		if n[schema.Visitor{WebsiteID: e.WebsiteID, ID: e.VisitorID}] <= most {
			kept = append(kept, e)
		}
	}
	return kept
}

// newStored stores the events in several parts, and folds them after each part, so that the rows of a visitor change.
// At least a fifth of the events of large worlds are of automated visitors.
func newStored(t *testing.T, conn driver.Conn, events []schema.Event) stored {
	t.Helper()
	e, r := openEngine(conn, nil)
	kept := events
	if len(events) > 500 {
		r.MaxVisitorEvents = slices.Max(slices.Collect(maps.Values(eventsOfVisitors(events))))
		for len(kept) > len(events)*4/5 {
			r.MaxVisitorEvents--
			kept = withoutAutomated(events, r.MaxVisitorEvents)
		}
		must.That(t, len(kept) > len(events)/2, "%d of %d events are of automated visitors", len(events)-len(kept), len(events))
	}
	for part := range slices.Chunk(events, 1+len(events)/3) {
		must.OK(t,
			schema.InsertEvents(t.Context(), conn, part, accepted.Add(time.Duration(inserts.Add(1))*time.Millisecond)))
		must.Get(r.RefreshFacts(t.Context()))(t)
	}
	return stored{e, kept}
}

// read returns the rows of a plan, and its query with the bounds and the limit that the store has found.
func (in stored) read(t worlds.TB, x *reportQuery) (*reportQuery, *moments.Rows) {
	t.Helper()
	found := must.Get(in.engine.facts.ReadRows(t.Context(), x.Question))(t)
	bounded := *x
	bounded.Stored.Ingested, bounded.Stored.Newest = found.Through, found.Newest
	bounded.Outliers = found.Outliers
	bounded.CapLimit = found.Cap
	return &bounded, found
}

// compareWithFold compares the answer with the fold.
func compareWithFold(t worlds.TB, in stored, owned *catalogue.AccountResources, r query.Request) {
	t.Helper()
	plan := must.Get(plan.New(r, owned))(t)
	x, found := in.read(t,
		&reportQuery{Plan: plan, Store: in.engine.facts.Store, Stored: facts.Stored{Ingested: accepted}})
	if x.Outliers != nil {
		compareOutliers(t, x, in.events)
	}
	if x.Cap != nil {
		check.Equal(t, x.CapLimit.Limit, limitOf(x, in.events), "limit: %+v", plan)
	}
	compareRows(t, x, found, in.events)
	compareTop(t, in, x, found)
	compareDistribution(t, in, x)
	compareGoals(t, in, x.Plan)
	results := result.New(plan, found, nil)
	compareStatistics(t, plan, results, foldPlainly(x, in.events))
	results.Series = must.Get(in.engine.computeSeries(t.Context(), x.Plan, found))(t)
	_, err := json.Marshal(results)
	check.That(t, err == nil, "results are no JSON: %v\n%+v", err, plan)
	checkForms(t, plan, results)
	if plan.Interval != "" &&
		(plan.Cap == nil || plan.Cap.Percentile == 0) { // points have the percentile of the whole report
		compareSeries(t, in, x, results)
	}
}

// compareGoals compares the rows of several goals, with several conversion windows, with those of each goal.
func compareGoals(t worlds.TB, in stored, p *plan.Plan) {
	t.Helper()
	if p.Dimension != "" || p.Interval != "" || p.GoalID != 1 {
		return
	}
	goals := []plan.Measure{p.Measure(), {GoalID: 2, Window: p.ConversionWindow}, {GoalID: 1}, {GoalID: 0}}
	for _, text := range []string{"2h", "2h..9h"} {
		window := must.Get(schema.ParseConversionWindow(text))(t)
		goals = append(goals, plan.Measure{GoalID: 1, Window: window}, plan.Measure{GoalID: 2, Window: window})
	}
	found := must.Get(in.engine.facts.ReadMeasures(t.Context(), p.AboutMeasure(p.Measure()).Question,
		measuresOf(p, goals)))(t)
	for i, goal := range goals {
		alone := must.Get(in.engine.facts.ReadRows(t.Context(), p.AboutMeasure(goal).Question))(t)
		got, want := written(t, found[i].Whole), written(t, alone.Whole)
		check.That(t, got == want, "goal %v of several\n%s\nalone\n%s\n%+v", goal, got, want, p)
	}
}

// compareDistribution compares the numbers of goal events by their value with the values that the fold counted.
func compareDistribution(t worlds.TB, in stored, x *reportQuery) {
	t.Helper()
	steps := must.Get(in.engine.facts.ReadDistribution(t.Context(), x.Question, result.ValueBins()))(t)
	values, left := foldPlainly(x, in.events)[all].goals, 0
	for _, v := range x.Variations {
		left += len(values[v.ID])
	}
	below := int64(-schema.MaxMoney*schema.MoneyScale - 1)
	for i, bin := range result.NewDistribution(x.Plan, steps).Bins {
		from, to := below, int64(math.MaxInt64)
		if bin.From != nil {
			from = bin.From.Units.Int64()
		}
		if bin.To != nil {
			to = bin.To.Units.Int64()
		}
		check.That(t, from >= below, "bin %d is from %d to %d, after %d", i, from, to, below)
		check.That(t, to > from, "bin %d is from %d to %d, after %d", i, from, to, below)
		below = to
		for k, v := range x.Variations {
			var want int64
			for _, value := range values[v.ID] {
				if from <= value && value < to {
					want++
				}
			}
			left -= int(want)
			check.Equal(t, bin.Goals[k], want, "goal events from %d to %d: %+v", from, to, x.Plan)
		}
	}
	check.Equal(t, left, 0, "goal events in no bin\n%+v", x.Plan)
}

// compareTop compares a breakdown into few values and others with that of the fold's values.
func compareTop(t worlds.TB, in stored, x *reportQuery, found *moments.Rows) {
	t.Helper()
	if x.Dimension == "" {
		return
	}
	plan := *x.Plan
	plan.Top = 1 + len(found.Slices)%3
	_, limited := in.read(t, x.about(&plan))
	wanted := result.New(&plan, found, nil).Breakdown
	// found lacks values without visitors in the window, whose earlier visitors are among the others
	if len(wanted) > plan.Top {
		others := &wanted[plan.Top].Checks.Window.EarlierVisitors
		*others = foldPlainly(x, in.events)[all].exposedBefore
		for i := range wanted[:plan.Top] {
			*others -= wanted[i].Checks.Window.EarlierVisitors
		}
	}
	if got, want := written(t, result.New(&plan, limited, nil).Breakdown), written(t, wanted); got != want {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Errorf("top %d:\n got …%.300s\nwant …%.300s\n%+v", plan.Top, got[max(at-100, 0):],
			want[max(at-100, 0):], &plan)
	}
}

// compareSeries compares each point of a series with the report of a window that ends there, and that with the fold.
func compareSeries(t worlds.TB, in stored, x *reportQuery, whole *result.Report) {
	t.Helper()
	if len(whole.Series) == 0 {
		check.That(t, whole.Totals.Visitors == 0, "no point of %d visitors\n%+v", whole.Totals.Visitors, x.Plan)
		return
	}
	for _, point := range whole.Series {
		until := *x.Plan
		until.Filters.To, until.Interval = point.Time, ""
		at, found := in.read(t, x.about(&until))
		compareRows(t, at, found, in.events)
		comparePoint(t, fmt.Sprintf("%+v\nat %s", x.Plan, point.Time), point,
			unconcluded(result.New(at.Plan, found, nil).Variations))
	}
	last := whole.Series[len(whole.Series)-1]
	comparePoint(t, fmt.Sprintf("%+v\nlast point", x.Plan), last, unconcluded(whole.Variations))
}

// comparePoint compares a point of a series with a report until its time. A point does not know the visitors whose
// conversion window has not ended, so where a report says that nobody is mature, it says that there is nobody.
func comparePoint(t worlds.TB, where string, point result.Point, want []result.VariationResults) {
	t.Helper()
	known := strings.ReplaceAll(written(t, want), "NOT_MATURE", "NO_VISITORS")
	check.Equal(t, written(t, point.Variations), known, "%s", where)
}

// unconcluded returns the variations in the form of a series, whose points have no conclusion.
func unconcluded(variations []result.VariationResults) []result.VariationResults {
	variations = slices.Clone(variations)
	for i := range variations {
		if c := variations[i].Comparison; c != nil {
			alone := *c
			alone.Conclusive, alone.Sequential = nil, nil
			variations[i].Comparison = &alone
		}
	}
	return variations
}

func written(t worlds.TB, value any) string {
	t.Helper()
	text := must.Get(json.Marshal(value))(t)
	return string(text)
}

// compareOutliers compares the bounds with the definition: a value counts if it is at most z standard deviations from
// the mean, in rational numbers.
func compareOutliers(t worlds.TB, plan *reportQuery, events []schema.Event) {
	t.Helper()
	values := foldPlainly(plan.about(plan.Plan), events)[all].values
	check.That(t, plan.Outliers.Values == int64(len(values)), "%d goal values, want %d\n%+v", plan.Outliers.Values,
		len(values), plan)
	sum, n := new(big.Rat), new(big.Rat).SetInt64(int64(len(values)))
	for _, v := range values {
		sum.Add(sum, new(big.Rat).SetInt64(v))
	}
	if len(values) < 2 {
		return
	}
	mean, variance := sum.Quo(sum, n), new(big.Rat)
	distance := func(v int64) *big.Rat {
		d := new(big.Rat).Sub(new(big.Rat).SetInt64(v), mean)
		return d.Mul(d, d)
	}
	for _, v := range values {
		variance.Add(variance, distance(v))
	}
	variance.Quo(variance, new(big.Rat).SetInt64(int64(len(values)-1)))
	z := new(big.Rat).SetFloat64(plan.Filters.ZScore)
	limit := z.Mul(z, z).Mul(z, variance)
	for _, v := range values {
		counts := distance(v).Cmp(limit) <= 0 || variance.Sign() == 0
		check.That(t, counts != outlying(plan.Outliers, v), "value %d counts: %v, bounds %+v\n%+v", v, counts,
			plan.Outliers, plan)
	}
}

// sumOf adds up rows.
func sumOf(rows []moments.GroupMoments, rule string) folded {
	sum := folded{moments: map[[2]int64]moments.Moments{}}
	for _, r := range rows {
		switch {
		case r.ExposedBefore:
			sum.exposedBefore += r.Visitors
			continue
		case r.MultiExposed:
			sum.multiExposed += r.Visitors
		}
		sum.visitors += r.Visitors
		if r.Immature {
			sum.immature += r.Visitors
			continue
		}
		if !r.MultiExposed || rule != catalogue.ExcludeMultiExposed {
			at := [2]int64{r.VariationID, int64(r.Period)}
			sum.moments[at] = sum.moments[at].Merge(r.Moments)
		}
	}
	return sum
}

func compareRows(t worlds.TB, plan *reportQuery, found *moments.Rows, events []schema.Event) {
	t.Helper()
	byValue := map[string][]moments.GroupMoments{all: found.Whole}
	for _, r := range found.Slices {
		byValue[r.Dimension] = append(byValue[r.Dimension], r)
	}
	want := foldPlainly(plan, events)
	for value, folded := range want {
		got := sumOf(byValue[value], plan.MultipleExposures)
		if value != all { // visitors who were exposed before the window are counted for the whole report only
			got.exposedBefore, folded.exposedBefore = 0, 0
		}
		check.Equal(t, got.immature, folded.immature, "%q: immature visitors: %+v", value, plan)
		check.Equal(t, got.visitors, folded.visitors, "%q: %d visitors, %d multi-exposed, %d exposed before; want %d, %d, %d\n%s", value, got.visitors, got.multiExposed, got.exposedBefore, folded.visitors, folded.multiExposed, folded.exposedBefore, plan)
		check.Equal(t, got.multiExposed, folded.multiExposed, "%q: %d visitors, %d multi-exposed, %d exposed before; want %d, %d, %d\n%s", value, got.visitors, got.multiExposed, got.exposedBefore, folded.visitors, folded.multiExposed, folded.exposedBefore, plan)
		check.Equal(t, got.exposedBefore, folded.exposedBefore, "%q: %d visitors, %d multi-exposed, %d exposed before; want %d, %d, %d\n%s", value, got.visitors, got.multiExposed, got.exposedBefore, folded.visitors, folded.multiExposed, folded.exposedBefore, plan)
		check.Equal(t, fmt.Sprintf("%+v", readable(got.moments)), fmt.Sprintf("%+v", readable(folded.moments)),
			"%q: %+v", value, plan)
	}
	check.That(t, len(byValue) <= len(want), "%d values, want %d", len(byValue), len(want))
}

// readable omits variations without visitors and formats big integers.
func readable(sums map[[2]int64]moments.Moments) map[[2]int64]string {
	texts := map[[2]int64]string{}
	for id, m := range sums {
		if m.CappedRemainder.Visitors == 0 {
			m.CappedRemainder = moments.CappedRemainder{} // no sums, or sums of 0
		}
		if m.Visitors > 0 {
			text, err := json.Marshal(m)
			if err != nil {
				panic(err)
			}
			texts[id] = string(text)
		}
	}
	return texts
}

// planOf resolves a request.
func planOf(tb testing.TB, e *Engine, r query.Request) *plan.Plan {
	tb.Helper()
	return must.Get(e.PlanReport(r))(tb)
}

// TestOrderAndRepetitionChangeNothing writes the same events to two stores: in order and at once, and shuffled in small
// batches with repetitions. Reports must be byte-identical, also when requested twice.
func TestOrderAndRepetitionChangeNothing(t *testing.T) {
	w := worlds.New(8)
	events, file := w.Events(1, 500), w.File(1)
	filled := func(batches [][]schema.Event) *Engine {
		conn := schematest.OpenMigrated(t)
		c := must.Get(catalogue.Open(t.Context(), conn))(t)
		must.Get(c.ApplyFile(t.Context(), file, false))(t)
		writer := ingest.NewWriter(conn, nil)
		for _, batch := range batches {
			must.OK(t, writer.WriteEvents(t.Context(), slices.Clone(batch)))
		}
		e, r := openEngine(conn, c)
		must.Get(r.RefreshFacts(t.Context()))(t)
		return e
	}
	shuffled := append(slices.Clone(events), events[100:300]...)
	w.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	one, other := filled([][]schema.Event{events}), filled(slices.Collect(slices.Chunk(shuffled, 37)))
	answer := func(e *Engine, r query.Request) string {
		t.Helper()
		results := must.Get(e.ComputeReport(t.Context(), planOf(t, e, r)))(t)
		results.GeneratedAt, results.DataThrough = time.Time{}, nil
		text := must.Get(json.Marshal(results))(t)
		return string(text)
	}
	for range 12 {
		r := drawRequest(w, 1)
		first, second, third := answer(one, r), answer(other, r), answer(other, r)
		must.Equal(t, first, second, "the answers differ:\n%s\n%s\n%s", first, second, third)
		must.Equal(t, second, third, "the answers differ:\n%s\n%s\n%s", first, second, third)
	}
}

// TestStatementsDoNotDependOnValues checks that requests that differ in the values of filters have the same statements:
// values are only bound.
func TestStatementsDoNotDependOnValues(t *testing.T) {
	w := worlds.New(6)
	r := &schematest.RecordingConn{Conn: schematest.OpenMigrated(t)}
	e := newReferenceWorld(t, w, r, false).engine
	e.facts.Shards = newStored(t, r, w.Events(1, 300)).engine.facts.Shards
	statementsOf := func(q query.Request) []string {
		_ = r.TakeQueries()
		x := prepareQuery(t, e, q)
		must.Get(e.facts.ReadRows(t.Context(), x.Question))(t)
		return slices.Sorted(slices.Values(r.TakeQueries()))
	}
	const hostile = `'"\{website_id:Int64}; -- /`
	for range tier.Of(3, 60) {
		q := drawRequest(w, 1)
		q.Cap, q.Filters.ZScore, q.Dimension = nil, 0, "" // the statements depend on what was found
		other := q
		other.Filters.Lists, other.Filters.Texts = slices.Clone(q.Filters.Lists), slices.Clone(q.Filters.Texts)
		for i := range other.Filters.Lists {
			other.Filters.Lists[i].Values = []string{hostile, "'", hostile}
		}
		for i, f := range q.Filters.Texts {
			other.Filters.Texts[i].Pattern = hostile
			if strings.Contains(f.Pattern, "*") {
				other.Filters.Texts[i].Pattern = "*" + hostile
			}
		}
		_ = statementsOf(q) // the next reports know the visitors of the recent days
		got, want := statementsOf(other), statementsOf(q)
		must.That(t, slices.Equal(got, want), "statements %q, want %q", got, want)
	}
}

// checkForms checks that the CSV has a row for each variation, and that the SVG is XML with valid numbers.
func checkForms(t worlds.TB, plan *plan.Plan, results *result.Report) {
	t.Helper()
	table := must.Get(render.CSV(results))(t)
	records, err := csv.NewReader(strings.NewReader(string(table))).ReadAll()
	want := 1 + len(plan.Variations)*(1+len(results.Breakdown)+len(results.Series))
	must.That(t, err == nil, "%d lines of CSV, %v; want %d\n%+v", len(records), err, want, plan)
	check.Equal(t, len(records), want, "%d lines of CSV, %v; want %d\n%+v", len(records), err, want, plan)
	svg := must.Get(render.ForestPlot(results))(t)
	decoder := xml.NewDecoder(strings.NewReader(string(svg)))
	for err == nil {
		_, err = decoder.Token()
	}
	check.That(t, errors.Is(err, io.EOF), "the picture: %v\n%s\n%+v", err, svg, plan)
	check.That(t, !strings.Contains(string(svg), "NaN"), "the picture: %v\n%s\n%+v", err, svg, plan)
	check.That(t, !strings.Contains(string(svg), "Inf"), "the picture: %v\n%s\n%+v", err, svg, plan)
}
