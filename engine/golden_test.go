package engine

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/generation"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// scenarios are requests with a directory in testdata for every stage:
// request.txt, plan.txt, moments.sql, single_pass.sql, in_process.sql,
// rollup.sql, rows.txt, results.json.
var scenarios = []struct {
	name      string
	operation query.Operation
	query     string
}{
	{"plain", query.CampaignResults, ""},
	{"all_goals", query.CampaignResults, "goal=2"},
	{"value_by_device", query.CampaignResults, "compareMetric=valuePerVisitor&dimension=device"},
	{"profit_in_a_window", query.CampaignResults, "compareMetric=profitPerVisitor&filters[dateFrom]=2026-05-01T04:00:00Z&filters[dateTo]=2026-05-01T12:00:00Z"},
	{"lists", query.CampaignResults, "filters[country][]=fr&filters[country][]=&filters[device][]=Mobile"},
	{"texts", query.CampaignResults, "filters[referrer]=a*&filters[utmSource]=&filters[visitorType]=new"},
	{"goal_value", query.CampaignResults, "filters[goalValue]=1.5&compareMetric=valuePerVisitor"},
	{"z_score", query.CampaignResults, "filters[zScore]=1&compareMetric=valuePerVisitor"},
	{"hourly", query.CampaignResults, "interval=hour"},
	{"nobody", query.CampaignResults, "filters[city][]=Nowhere"},
	{"widget", query.WidgetResults, ""},
	{"experiment", query.ExperimentResults, ""},
	{"experiment_value_daily", query.ExperimentResults, "compareMetric=extraValuePerVisitor&interval=day"},
}

func TestGolden(t *testing.T) {
	w := world{rand.New(rand.NewPCG(4, 4))}
	conn := schematest.Open(t)
	c, err := catalogue.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	var events []schema.Event
	for range 600 {
		events = append(events, w.event(1))
	}
	insert(t, conn, events)
	campaign := catalogue.Campaign{
		ID: 1, WebsiteID: 1, Name: "Banner", Type: "experiment", TargetMode: "live", Methodology: catalogue.Frequentist, PrimaryGoalID: 1,
		ControlShare: 34, SignificanceLevel: 95, Power: 80, MDE: 20, MultipleExposures: catalogue.FirstVariation,
		Variations: []catalogue.Variation{{ID: 1, Name: "Green", Share: 33, Order: 1}, {ID: 2, Name: "Red", Share: 33, Order: 2}},
	}
	widget := catalogue.Widget{
		ID: 1, WebsiteID: 1, Name: "Popup", Type: "popup", PrimaryGoalID: 2, Variations: []catalogue.WidgetVariation{{ID: 1, Name: "Long", Share: 100}},
		Experiments: []catalogue.Experiment{{ID: 4, Name: "Words", PrimaryMetric: "completions", ControlShare: 50, Variations: []catalogue.WidgetVariation{{ID: 1, Name: "Few", Share: 50}}}},
	}
	site := catalogue.Website{
		ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "Purchase"}, {ID: 2, WebsiteID: 1, Name: "Signup"}},
		Campaigns: []catalogue.Campaign{campaign}, Widgets: []catalogue.Widget{widget},
	}
	if _, err := c.Apply(t.Context(), catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}, false); err != nil {
		t.Fatal(err)
	}
	e := New(conn, c, source.DefaultLimits)
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			r, err := query.ParseReport(s.operation, s.query)
			if err != nil {
				t.Fatal(err)
			}
			r.AccountID, r.SubjectID = 1, 1
			if s.operation == query.ExperimentResults {
				r.ExperimentID = 4
			}
			goldenStages(t, e, r, filepath.Join("testdata", s.name), s.query)
		})
	}
}

func goldenStages(t *testing.T, e *Engine, r query.Request, dir, query string) {
	t.Helper()
	x := executionOf(t, e, r)
	reference, err := x.MomentsQuery()
	if err != nil {
		t.Fatal(err)
	}
	singlePass, err := source.SinglePass{Execution: x}.Query()
	if err != nil {
		t.Fatal(err)
	}
	inProcess, err := x.InProcessQuery(nil)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := source.ScanRows(t.Context(), e.store, reference)
	if err != nil {
		fatal(t, err)
	}
	results, err := e.Report(t.Context(), x.Plan)
	if err != nil {
		fatal(t, err)
	}
	results.GeneratedAt = time.Time{}
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, dir, "request.txt", fmt.Sprintf("%s\n", query))
	golden(t, dir, "plan.txt", x.String())
	golden(t, dir, "moments.sql", parameters(reference)+reference.SQL)
	golden(t, dir, "single_pass.sql", parameters(singlePass)+singlePass.SQL)
	golden(t, dir, "in_process.sql", parameters(inProcess)+inProcess.SQL)
	golden(t, dir, "rollup.sql", rollupText(t, x))
	golden(t, dir, "rows.txt", rowsText(rows))
	golden(t, dir, "results.json", string(text)+"\n")
}

// rollupText returns the query of the rollup after running it, or a comment if
// the rollup cannot serve the plan.
func rollupText(t *testing.T, x *source.Execution) string {
	t.Helper()
	current := rollup.NewCurrent(rollup.Shard{State: rollup.State{Generation: generation.ID{Number: 1}, Through: x.Stored.Ingested, Newest: x.Stored.Newest}})
	if noCubes(x.Plan, &state{rollup: current}) != "" {
		return "-- no rollup: counted from the events\n"
	}
	query, err := current.Query(x.Plan, []string{"https://a.example/", ""})
	if err != nil {
		t.Fatal(err)
	}
	if query == nil {
		return "-- no rollup: counted from the events\n"
	}
	if err := x.Store.Each(t.Context(), query, func(driver.Rows) error { return nil }); err != nil {
		fatal(t, err)
	}
	return parameters(query) + query.SQL
}

// planOf resolves a request.
func planOf(tb testing.TB, e *Engine, r query.Request) *plan.Plan {
	tb.Helper()
	plan, err := e.Plan(r)
	if err != nil {
		fatal(tb, err)
	}
	return plan
}

// executionOf returns the execution of a request.
func executionOf(tb testing.TB, e *Engine, r query.Request) *source.Execution {
	tb.Helper()
	x, err := e.execution(tb.Context(), planOf(tb, e, r))
	if err == nil {
		x, err = bounded(tb.Context(), x, source.NameReference)
	}
	if err != nil {
		fatal(tb, err)
	}
	return x
}

func parameters(q *source.Query) string {
	var b strings.Builder
	for _, p := range q.Params {
		fmt.Fprintf(&b, "-- %-20s %v\n", p.Name, p.Value)
	}
	return b.String()
}

func rowsText(rows []visit.Row) string {
	var b strings.Builder
	for _, r := range rows {
		text, err := json.Marshal(r.Moments)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "variation %d, dimension %q, exposed before %v, multi-exposed %v\n    %s\n", r.VariationID, r.Dimension, r.ExposedBefore, r.MultiExposed, text)
	}
	return b.String()
}

// golden compares a stage with its file, or writes the file.
func golden(t *testing.T, dir, name, got string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if *update {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it); it is now\n%.2000s", path, got)
	}
}

// TestSQLRunsAsItStands runs the statements of Engine.SQL without parameters,
// and compares their rows.
func TestSQLRunsAsItStands(t *testing.T) {
	w := world{rand.New(rand.NewPCG(5, 5))}
	conn := schematest.Open(t)
	c, err := catalogue.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	var events []schema.Event
	for range 300 {
		events = append(events, w.event(1))
	}
	insert(t, conn, events)
	site := catalogue.Website{
		ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{{ID: 1, WebsiteID: 1, Name: "one"}, {ID: 2, WebsiteID: 1, Name: "two"}},
		Campaigns: []catalogue.Campaign{w.campaign(1)}, Widgets: []catalogue.Widget{w.widget(1)},
	}
	if _, err := c.Apply(t.Context(), catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{site}}}}, false); err != nil {
		t.Fatal(err)
	}
	e := New(conn, c, source.DefaultLimits)
	for range 60 {
		r := w.request(1)
		x := executionOf(t, e, r)
		text, err := e.SQL(t.Context(), x.Plan)
		if err != nil {
			fatal(t, err)
		}
		text, series, _ := strings.Cut(text, "-- statement 2 ")
		if (series != "") != (r.Interval != "") {
			t.Fatalf("interval %q, but\n%s", r.Interval, series)
		}
		if series != "" {
			err := e.store.Each(t.Context(), &source.Query{SQL: strings.TrimSuffix(strings.TrimSpace("-- statement 2 "+series), ";")}, func(driver.Rows) error { return nil })
			if err != nil {
				t.Log(series)
				fatal(t, err)
			}
		}
		shown, err := source.ScanRows(t.Context(), e.store, &source.Query{SQL: strings.TrimSuffix(strings.TrimSpace(text), ";")})
		if err != nil {
			t.Log(text)
			fatal(t, err)
		}
		bound, err := source.Reference{Execution: x}.Rows(t.Context())
		if err != nil {
			fatal(t, err)
		}
		if rowsText(shown) != rowsText(bound) {
			t.Fatalf("the shown SQL gives other rows:\n%s", text)
		}
	}
}
