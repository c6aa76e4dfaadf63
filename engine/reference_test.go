package engine

import (
	"cmp"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"
	"unicode"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/facts"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
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
	"lifthouse/stats"
)

// The reference: statements that count a report from the events, by lists of the events of each visitor. They are slow,
// and share nothing with the engine.
var reference = template.New("").Funcs(template.FuncMap{
	"pair": func(value, profit string) map[string]string { return map[string]string{"V": value, "P": profit} },
})

func init() {
	template.Must(reference.ParseGlob("testdata/reference/*.sql"))
}

// referenceSlots are the variable parts of the statements in testdata/reference.
type referenceSlots struct {
	Widget, Cap bool
	Dimension   string // of a view: the value of the dimension
	Filters     string // of a view: whether its visitor is in the report
	Counts      string // of an event other than a view: whether it counts
	ViewTimes   string // of a visitor: times of the views
}

// columnOf returns the column of an attribute.
func columnOf(attribute string) string {
	column := ""
	for _, letter := range strings.ReplaceAll(attribute, "utm", "utm_") {
		if unicode.IsUpper(letter) && !strings.HasSuffix(column, "_") {
			column += "_"
		}
		column += strings.ToLower(string(letter))
	}
	return column
}

// instantFormat is the format of bound times.
const instantFormat = "2006-01-02 15:04:05.000"

// eachCounted runs a statement of testdata/reference.
func eachCounted(t *testing.T, x *reportQuery, file string, scan func(driver.Rows) error) {
	t.Helper()
	p := x.Plan
	recentFrom, recentTo := plan.RecentPeriod(x.Stored.Ingested)
	width, shift := p.Interval.BucketGrid()
	changes := []int64{}
	for i := 1; i < len(p.SharePeriods); i++ {
		changes = append(changes, p.SharePeriods[i].Since.UnixMilli())
	}
	var compared []int64
	for _, v := range p.Variations {
		compared = append(compared, v.ID)
	}
	params := []driver.NamedValue{
		{Name: "website_id", Value: p.Subject.WebsiteID},
		{Name: "subject", Value: string(p.Subject.Kind)},
		{Name: "subject_id", Value: p.Subject.ID},
		{Name: "experiment_id", Value: p.Subject.ExperimentID},
		{Name: "from", Value: p.WindowStart().Format(instantFormat)},
		{Name: "to", Value: p.WindowEnd().Format(instantFormat)},
		{Name: "share_changes", Value: changes},
		{Name: "recent_from", Value: recentFrom.UnixMilli()},
		{Name: "recent_to", Value: recentTo.UnixMilli()},
		{Name: "width", Value: width.Milliseconds()},
		{Name: "shift", Value: shift.Milliseconds()},
		{Name: "with_multi_exposed", Value: p.MultipleExposures == catalogue.FirstVariation},
		{Name: "variation_ids", Value: compared},
	}
	param := func(name string, value any) { params = append(params, driver.NamedValue{Name: name, Value: value}) }
	s := referenceSlots{
		Widget: p.Subject.Kind == schema.SubjectWidget, Dimension: "''", Filters: "true", Counts: "event = 'goal'",
		ViewTimes: "groupArrayIf(time, event = 'view' AND time < toDateTime64({to:String}, 3, 'UTC'))",
	}
	if p.Dimension != "" {
		s.Dimension = "toString(" + columnOf(string(p.Dimension)) + ")"
	}
	for i, filter := range p.Filters.Lists {
		s.Filters += fmt.Sprintf(" AND has({values%d:Array(String)}, %s)", i, columnOf(filter.Attribute))
		param(fmt.Sprint("values", i), filter.Values)
	}
	for i, filter := range p.Filters.Texts {
		var parts []string
		for part := range strings.SplitSeq(filter.Pattern, "*") {
			parts = append(parts, regexp.QuoteMeta(part))
		}
		s.Filters += fmt.Sprintf(" AND match(%s, {pattern%d:String})", columnOf(filter.Attribute), i)
		param(fmt.Sprint("pattern", i), "(?s)^"+strings.Join(parts, ".*")+"$")
	}
	if p.GoalID != 0 {
		s.Counts += " AND goal_id = {goal_id:Int64}"
		param("goal_id", p.GoalID)
	}
	if least := p.Filters.GoalValue; least != nil {
		s.Counts += " AND toInt256(value) * toInt256({denominator:String}) >= toInt256({numerator:String})"
		param("denominator", least.Denom().String())
		param("numerator", new(big.Int).Mul(least.Num(), big.NewInt(schema.MoneyScale)).String())
	}
	if o := x.Outliers; o != nil && !o.Open {
		s.Counts += " AND value BETWEEN {outlier_least:Int64} AND {outlier_most:Int64}"
		param("outlier_least", o.Least)
		param("outlier_most", o.Most)
	}
	if s.Cap = x.CapLimit != nil && x.CapLimit.Limit > 0; s.Cap {
		param("cap", x.CapLimit.Limit)
	}
	if s.Widget {
		s.Counts += " OR event IN ('click', 'submit', 'completion', 'conversion', 'contact')"
	}
	var sql strings.Builder
	must.OK(t, reference.ExecuteTemplate(&sql, file, s))
	must.OK(t, x.Store.EachRow(t.Context(), sql.String(), params, scan), "%s", &sql)
}

// countRows counts the rows of a report from the events. Outliers are removed first; a cap is a percentile of what
// remains.
func countRows(t *testing.T, x *reportQuery) *moments.Rows {
	t.Helper()
	counted := *x
	x = &counted
	if x.Filters.ZScore != 0 {
		var n int64
		var sum, squares big.Int
		eachCounted(t, x.about(x.Plan), "outliers.sql",
			func(row driver.Rows) error { return row.Scan(&n, &sum, &squares) })
		x.Outliers = moments.NewOutliers(n, &sum, &squares, x.Filters.ZScore)
	}
	if x.Cap != nil && x.CapLimit == nil {
		var totals []int64
		eachCounted(t, x.ofAll(), "totals.sql", func(row driver.Rows) error { return row.Scan(&totals) })
		x.CapLimit = moments.NewCap(*x.Cap, totals)
	}
	found := &moments.Rows{
		Outliers: x.Outliers, Cap: x.CapLimit, First: x.Stored.First, Through: x.Stored.Ingested,
		Newest: x.Stored.Newest,
	}
	eachCounted(t, x, "moments.sql", func(row driver.Rows) error {
		r, err := scanCounted(row)
		found.Whole = append(found.Whole, r)
		return err
	})
	found.Slices = found.Whole
	if x.Interval != "" && x.Filters.ZScore == 0 {
		eachCounted(t, x, "series.sql", func(row driver.Rows) (err error) {
			var step moments.Step
			step.GroupMoments, err = scanCounted(row, &step.Bucket)
			found.Steps = append(found.Steps, step)
			return err
		})
	}
	return found
}

// scanCounted scans a row of moments.sql or series.sql. Its first columns are scanned into first.
func scanCounted(row driver.Rows, first ...any) (r moments.GroupMoments, err error) {
	var exposedBefore, multiExposed, period uint8
	var goals, goalsSquares int64
	m := moments.NoMoments()
	to := slices.Concat(first,
		[]any{
			&r.VariationID, &r.Dimension, &exposedBefore, &multiExposed, &m.Visitors, &period, &m.Recent, &m.Views,
			&m.Converted, &goals, &goalsSquares,
		})
	amount := func(a *moments.Amounts) { to = append(to, a.Sum, a.Squares, &a.Nonzero, &a.Negative) }
	amount(&m.Value)
	to = append(to, m.ValueGoals)
	amount(&m.Profit)
	amount(&m.ExtraValue)
	if slices.Contains(row.Columns(), "clicks") {
		to = append(to, &m.Clicks, &m.Submits, &m.Completions, &m.Completed, &m.Conversions, &m.Conversion, &m.Contacts)
	}
	if slices.Contains(row.Columns(), "capped_visitors") {
		capped, value, profit := &m.CappedRemainder, &m.CappedRemainder.Value, &m.CappedRemainder.Profit
		value.Sum, value.Squares, profit.Squares = new(big.Int), new(big.Int), new(big.Int)
		profit.Sum = value.Sum
		to = append(to, &capped.Visitors, value.Sum, value.Squares, profit.Squares, &profit.Nonzero, &profit.Negative)
	}
	err = row.Scan(to...)
	m.Goals = stats.Sums{Sum: big.NewInt(goals), Squares: big.NewInt(goalsSquares)}
	r.Period = int(period)
	r.ExposedBefore, r.MultiExposed, r.Moments = exposedBefore == 1, multiExposed == 1, m
	return r, err
}

// TestReportsEqualTheReference compares reports of all kinds with those that are counted from the events, while events
// arrive (late, repeated, conflicting and without exposures) and visitors are erased. In the end all facts are those of
// the events.
func TestReportsEqualTheReference(t *testing.T) {
	requests := tier.Of(5, 625)
	for seed := range uint64(tier.Of(3, 8)) { // every other one has two shards, every third one has 70 variations
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			in := newReferenceWorld(t, worlds.New(seed), schematest.OpenMigrated(t), seed%3 == 2)
			for range 1 + seed%2 {
				in.addShard(t)
			}
			in.compareReports(t, requests)
			in.verify(t)
		})
	}
}

// TestReportsOfAServerEqualTheReference does so on a real server.
func TestReportsOfAServerEqualTheReference(t *testing.T) {
	conn := schematest.SharedServer(t).OpenMigrated(t)
	in := newReferenceWorld(t, worlds.New(11), conn, false)
	in.engine.facts.Shards = facts.Shards{facts.NewRefresher(conn, false)}
	in.compareReports(t, tier.Of(2, 100))
	in.verify(t)
}

// TestReportsOfAClusterEqualTheReference does so on two shards with two replicas each.
func TestReportsOfAClusterEqualTheReference(t *testing.T) {
	c := schematest.NewCluster(t)
	address := must.Get(schema.ParseAddress(c.Address, func(string) string { return "" }))(t)
	conn := must.Get(schema.OpenMigrated(t.Context(), address))(t)
	t.Cleanup(func() { _ = conn.Close() })
	in := newReferenceWorld(t, worlds.New(12), conn, false)
	shards := must.Get(schema.OpenReplicas(t.Context(), in.conn, address))(t)
	t.Cleanup(func() { _ = schema.CloseReplicas(shards) })
	for _, replicas := range shards {
		in.engine.facts.Shards = append(in.engine.facts.Shards, facts.NewShardRefresher(replicas))
	}
	in.compareReports(t, 50)
	in.verify(t)
}

// referenceWorld is a store whose reports are compared with the reference.
type referenceWorld struct {
	worlds.World
	conn      driver.Conn
	writer    *ingest.Writer
	engine    *Engine
	databases []string // of the shards that share an embedded engine; none: the store divides the events
	sent      []schema.Event
	many      bool // variations
}

func newReferenceWorld(t *testing.T, w worlds.World, conn driver.Conn, many bool) *referenceWorld {
	t.Helper()
	c := must.Get(catalogue.Open(t.Context(), conn))(t)
	file := w.File(1, 2)
	if many {
		w.Visitors = 400
		for i := range file.Accounts[0].Websites[0].Campaigns {
			campaign := &file.Accounts[0].Websites[0].Campaigns[i]
			campaign.ControlShare, campaign.Variations = 30, nil
			for v := int64(1); v <= 70; v++ {
				campaign.Variations = append(campaign.Variations, catalogue.Variation{ID: v, Name: "v", Share: 1})
			}
		}
	}
	must.Get(c.ApplyFile(t.Context(), file, false))(t)
	return &referenceWorld{
		World: w, conn: conn, writer: ingest.NewWriter(conn, nil),
		engine: New(conn, c, source.DefaultLimits, nil), many: many,
	}
}

// addShard adds a shard, which is a database of its own.
func (in *referenceWorld) addShard(t *testing.T) {
	t.Helper()
	conn := schematest.OpenMigrated(t)
	must.OK(t, conn.Exec(t.Context(), "RENAME TABLE facts TO facts_local, events TO events_local"))
	var database string
	must.OK(t, conn.QueryRow(t.Context(), "SELECT currentDatabase()").Scan(&database))
	in.databases = append(in.databases, database)
	r := facts.NewShardRefresher([]driver.Conn{conn})
	r.LeastVisitorsByDay = 20
	in.engine.facts.Shards = append(in.engine.facts.Shards, r)
}

// compareReports compares some reports while events arrive.
func (in *referenceWorld) compareReports(t *testing.T, requests int) {
	t.Helper()
	for i := range requests {
		if i%10 == 0 {
			in.send(t, 1+in.IntN(300))
		}
		if i%20 == 19 && len(in.databases) > 0 {
			in.erase(t)
		}
		in.compare(t, in.recentRequest())
		must.That(t, !t.Failed(), "case %d", i)
	}
}

// send stores events of the last days, and folds them.
func (in *referenceWorld) send(t *testing.T, n int) {
	t.Helper()
	var events []schema.Event
	for range n {
		e := in.NextEvent(1+in.Int64N(2), in.sent)
		if e.Time.Before(today().AddDate(0, 0, -30)) { // not sent again
			e.Time = today().AddDate(0, 0, -1-in.IntN(9)).Add(e.Time.Sub(worlds.Start))
			if in.many && e.Subject != schema.SubjectNone {
				e.VariationID = in.Int64N(71)
			}
		}
		events, in.sent = append(events, e), append(in.sent, e)
	}
	must.OK(t, in.writer.WriteEvents(t.Context(), events))
	for i, database := range in.databases {
		table := database + ".events_local"
		must.OK(t, in.conn.Exec(t.Context(), fmt.Sprintf("INSERT INTO %s SELECT * FROM events WHERE visitor_id %% %d = %d AND ingested_at > (SELECT max(ingested_at) FROM %[1]s)", table, len(in.databases), i)))
	}
	for _, r := range in.engine.facts.Shards {
		must.Get(r.RefreshFacts(t.Context()))(t)
	}
}

// erase erases a visitor.
func (in *referenceWorld) erase(t *testing.T) {
	t.Helper()
	visitor := in.sent[in.IntN(len(in.sent))].VisitorID
	tables := []string{"events{{.Local}}{{.On}}"}
	for _, database := range in.databases {
		tables = append(tables, database+".events_local")
	}
	for _, table := range tables {
		deletion := fmt.Sprintf("ALTER TABLE %s DELETE WHERE visitor_id = %d SETTINGS mutations_sync = {{if .Cluster}}1{{else}}2{{end}}", table, visitor)
		must.OK(t, schema.DeleteEvents(t.Context(), in.conn, deletion))
	}
	for _, r := range in.engine.facts.Shards {
		must.OK(t, r.EraseVisitors(t.Context(), []schema.Visitor{{WebsiteID: 1, ID: visitor}}))
	}
}

func today() time.Time { return time.Now().UTC().Truncate(24 * time.Hour) }

// recentRequest returns a request, whose window is in the last days.
func (in *referenceWorld) recentRequest() query.Request {
	r := drawRequest(in.World, 1+in.Int64N(2))
	for _, at := range []*time.Time{&r.Filters.From, &r.Filters.To} {
		if !at.IsZero() {
			*at = at.Add(today().AddDate(0, 0, -5).Sub(worlds.Start))
		}
	}
	if in.IntN(2) == 0 { // all visitors: from cells
		r.Filters, r.Dimension, r.Cap = query.Filters{}, "", nil
		if in.IntN(2) == 0 {
			if in.IntN(2) == 0 {
				r.Filters.From = today().AddDate(0, 0, -8-in.IntN(3))
			}
			r.Filters.To = today().AddDate(0, 0, -in.IntN(8))
		}
		if in.IntN(3) == 0 {
			r.Interval = query.Daily
		}
	}
	return r
}

// compare compares the body of a report, its series, the values of its subject, and the reports of a scorecard with the
// reference.
func (in *referenceWorld) compare(t *testing.T, r query.Request) {
	t.Helper()
	r.ConversionWindow = nil // the fold is the oracle of windows
	x := prepareQuery(t, in.engine, r)
	found := must.Get(in.engine.facts.ReadRows(t.Context(), x.Question))(t)
	in.compareBodies(t, x, found)
	compareVisitors(t, in.engine, x, found)
	in.compareParts(t, x, found)
	in.compareValues(t,
		prepareQuery(t, in.engine,
			query.Request{Operation: r.Operation, AccountID: 1, SubjectID: r.SubjectID, ExperimentID: r.ExperimentID}))
	if in.IntN(6) > 0 {
		return
	}
	x.Plan = x.AboutMeasure(x.Measure())
	goals := []plan.Measure{{}, {GoalID: 1}, {GoalID: 2}}
	several := must.Get(in.engine.facts.ReadMeasures(t.Context(), x.Question, measuresOf(x.Plan, goals)))(t)
	for i, goal := range goals {
		in.compareBodies(t, x.about(x.AboutMeasure(goal)), several[i])
	}

	// The series of several goals are those of each goal.
	daily := *x.Plan
	daily.Interval, daily.Crossings, daily.Filters.ZScore = query.Daily, true, 0
	steps := must.Get(in.engine.facts.ReadSteps(t.Context(), daily.Question, measuresOf(&daily, goals)))(t)
	for i, goal := range goals {
		q := daily.AboutMeasure(goal).Question
		q.Interval = query.Daily
		alone := must.Get(in.engine.facts.ReadRows(t.Context(), q))(t)
		got, want := sortedLines(steps[i]), sortedLines(alone.Steps)
		check.That(t, got == want, "goal %v of several\n%s\nalone\n%s\n%+v", goal, got, want, x.Plan)
	}
}

func sortedLines[T any](values []T) string {
	lines := make([]string, len(values))
	for i, v := range values {
		lines[i] = fmt.Sprintf("%+v", v)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// compareBodies compares the body of a report of the rows with that of the reference.
func (in *referenceWorld) compareBodies(t *testing.T, x *reportQuery, found *moments.Rows) {
	t.Helper()
	wanted := countRows(t, x)
	got, want := result.New(x.Plan, found, nil), result.New(x.Plan, wanted, nil)
	got.GeneratedAt = want.GeneratedAt
	if x.Interval != "" && x.Filters.ZScore == 0 {
		var invalid, err error
		got.Series, invalid = in.engine.computeSeries(t.Context(), x.Plan, found)
		want.Series, err = in.engine.computeSeries(t.Context(), x.Plan, wanted)
		check.That(t, fmt.Sprint(invalid) == fmt.Sprint(err), "series: %v, want %v", invalid, err)
	}
	g, w := written(t, got), written(t, want)
	check.That(t, g == w, "from facts\n%s\nfrom events\n%s\n%+v", g, w, x.Plan)
}

// compareParts compares the sums of first views by day and attribute, and of goal events by value, with the rows of the
// report, of which they are parts.
func (in *referenceWorld) compareParts(t *testing.T, x *reportQuery, found *moments.Rows) {
	t.Helper()
	views := must.Get(in.engine.facts.ReadFirstViews(t.Context(), x.Question,
		worlds.Pick(in.World, result.SplitAttributes...)))(t)
	values := must.Get(in.engine.facts.ReadDistribution(t.Context(), x.Question, result.ValueBins()))(t)
	must.Get(in.engine.facts.ReadLostViews(t.Context(), x.Question))(t)
	type part struct {
		variation int64
		multi     bool
	}
	visitors, goals := map[part]int64{}, map[part]int64{}
	for _, s := range views {
		if !s.ExposedBefore {
			visitors[part{s.VariationID, s.MultiExposed}] += s.Visitors
		}
	}
	for _, s := range values {
		goals[part{s.VariationID, s.MultiExposed}] += s.GoalsReached()
	}
	for _, r := range found.Whole {
		if !r.ExposedBefore {
			visitors[part{r.VariationID, r.MultiExposed}] -= r.Visitors
			goals[part{r.VariationID, r.MultiExposed}] -= r.GoalsReached()
		}
	}
	for of, n := range visitors {
		check.Equal(t, n, 0, "%+v: %d visitors and %d goal events more than in the report\n%+v", of, n, goals[of], x.Plan)
		check.Equal(t, goals[of], 0, "%+v: %d visitors and %d goal events more than in the report\n%+v", of, n, goals[of], x.Plan)
	}
}

// compareValues compares the most frequent values of an attribute of a subject with those of the reference.
func (in *referenceWorld) compareValues(t *testing.T, x *reportQuery) {
	t.Helper()
	by := *x.Plan
	by.Dimension = query.Dimension(worlds.Pick(in.World, query.Dimensions...))
	x.Plan = &by
	visitors, all := map[string]int64{}, int64(0)
	for _, row := range countRows(t, x).Slices {
		visitors[row.Dimension] += row.Visitors
		all += row.Visitors
	}
	var want []facts.Value
	for value, n := range visitors {
		want = append(want, facts.Value{Value: value, Visitors: n})
	}
	slices.SortFunc(want, func(a, b facts.Value) int {
		return cmp.Or(cmp.Compare(b.Visitors, a.Visitors), cmp.Compare(a.Value, b.Value))
	})
	most := in.IntN(len(want) + 2)
	got := must.Get(in.engine.ReadValues(t.Context(), x.Plan, string(by.Dimension), most))(t)
	check.That(t, slices.Equal(got.Values, want[:min(most, len(want))]), "%d values %+v, want %+v\n%+v", most, got,
		want, x.Plan)
	check.Equal(t, got.Visitors, all, "%d values %+v, want %+v\n%+v", most, got, want, x.Plan)
	check.Equal(t, got.DistinctValues, int64(len(want)), "%d values %+v, want %+v\n%+v", most, got, want, x.Plan)
}

// verify checks that the facts are those of the events, and that folding all events again gives the same totals.
func (in *referenceWorld) verify(t *testing.T) {
	t.Helper()
	for _, r := range in.engine.facts.Shards {
		found, err := r.VerifyFacts(t.Context(), func(float64) {})
		must.That(t, err == nil, "%+v, %v", found, err)
		check.Equal(t, found.Wrong, 0, "%+v, %v", found, err)
		check.Equal(t, len(found.Lost), 0, "%+v, %v", found, err)
		before := counts(r)
		must.Get(r.RebuildFacts(t.Context()))(t)
		after := counts(r)
		check.That(t, reflect.DeepEqual(before, after), "cells %+v, after a rebuild %+v", before, after)
	}
}

// counts returns the sums of the cells of all subjects with events.
func counts(r *facts.Refresher) map[schema.Subject]facts.SubjectCounters {
	all := map[schema.Subject]facts.SubjectCounters{}
	for of, totals := range r.AllCounters() {
		if totals.AllEvents() > 0 {
			all[of] = facts.SubjectCounters{
				Visitors: totals.Visitors, Events: totals.Events,
				Goals: totals.Goals,
			} // an extent never shrinks
		}
	}
	return all
}
