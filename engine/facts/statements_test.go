package facts_test

import (
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/metric"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/worlds"
)

var update = flag.Bool("update", false, "write the statements of testdata/statements")

// recorded is a store with facts, whose statements are recorded.
type recorded struct {
	*schematest.RecordingConn
	leastByDay int64
}

// take returns the statements of reports since the last call, sorted: those of a report are executed at the same time.
func (r recorded) take() string {
	of := slices.DeleteFunc(r.TakeQueries(), func(sql string) bool {
		return !strings.Contains(sql, "SETTINGS compile_expressions")
	})
	slices.Sort(of)
	return strings.Join(of, "\n\n") + "\n"
}

// reader returns a reader of the facts that remembers no report.
func (r recorded) reader() *facts.Refresher {
	of := facts.NewRefresher(r, true)
	of.LeastVisitorsByDay = r.leastByDay
	return of
}

// newRecorded returns a store whose subjects have cells by day from a number of visitors on.
func newRecorded(t *testing.T, leastByDay int64) recorded {
	t.Helper()
	w := newWorld(t, 77)
	w.Customers = 0 // their refreshes read more
	w.send(t, 300)
	r := recorded{&schematest.RecordingConn{Conn: w.conn}, leastByDay}
	must.Get(r.reader().RefreshFacts(t.Context()))(t)
	return r
}

// TestStatements executes a report of each kind, and compares its statements with those of testdata/statements, where a
// person can read them.
func TestStatements(t *testing.T) {
	few, many := newRecorded(t, 1_000), newRecorded(t, 1)
	for name, ask := range statementsOf {
		t.Run(name, func(t *testing.T) {
			on := few
			if strings.HasPrefix(name, "days") {
				on = many
			}
			report := requested(t, on.RecordingConn, on.reader(), query.Request{
				Operation: query.CampaignResults, AccountID: 1, SubjectID: 1, GoalID: 3,
				Metric: query.GoalConversionRate,
			})
			report.GoalID = 1
			on.take()
			must.OK(t, ask(t, report))
			file := filepath.Join("testdata", "statements", name+".sql")
			if *update {
				must.OK(t, os.WriteFile(file, []byte(on.take()), 0o600))
				return
			}
			check.Equal(t, on.take(), string(must.Get(os.ReadFile(file))(t)), "%s; go test ./engine/facts -update writes it",
				file)
		})
	}
}

// askRows returns a question about the rows of a report.
func askRows(change func(*plan.Question)) func(*testing.T, reported) error {
	return func(t *testing.T, x reported) error {
		t.Helper()
		change(&x.Question)
		_, err := x.ReadRows(t.Context(), x.Question)
		return err
	}
}

func mobile(q *plan.Question) {
	q.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
}

func expressed(t *testing.T, text string) *metric.Metric {
	t.Helper()
	return must.Get(metric.Parse(text, namesOfWorlds))(t)
}

var withinADay = schema.ConversionWindow{To: 24 * time.Hour}

// statementsOf has a report of each kind of statement. Those whose name begins with days are read from cells by day.
var statementsOf = map[string]func(*testing.T, reported) error{
	"filtered": askRows(mobile),
	"breakdown": askRows(func(q *plan.Question) {
		q.Dimension = "device,plan"
		q.Top = plan.MaxPairs
	}),
	"window": askRows(func(q *plan.Question) {
		q.Filters.From = worlds.Start.Add(12 * time.Hour)
		q.Filters.To = worlds.Start.Add(36 * time.Hour)
	}),
	"goal value": askRows(func(q *plan.Question) { q.Filters.GoalValue = big.NewRat(5, 1) }),
	"z-score":    askRows(func(q *plan.Question) { q.Filters.ZScore = 3 }),
	"all goals":  askRows(func(q *plan.Question) { q.GoalID = 0; q.Cap = &schema.Cap{Units: 1} }),
	"percentile": askRows(func(q *plan.Question) { q.Cap = &schema.Cap{Percentile: 50} }),
	"mature":     askRows(func(q *plan.Question) { q.ConversionWindow = withinADay }),
	"metric": func(t *testing.T, x reported) error {
		t.Helper()
		x.Expression = expressed(t, "sum(one.items.revenue where items.category = 'Shoes') / count(two) within 2d")
		x.Cap = nil
		return askRows(func(q *plan.Question) { q.Dimension = "device" })(t, x)
	},
	"funnel": func(t *testing.T, x reported) error {
		t.Helper()
		x.Expression = expressed(t, "funnel(one, two)")
		return askRows(func(*plan.Question) {})(t, x)
	},
	"split": func(t *testing.T, x reported) error {
		t.Helper()
		x.Expression = expressed(t, "sum(one.items.revenue)")
		x.Split = must.Get(metric.ParseSplit("items.product", namesOfWorlds))(t)
		x.SplitTop = 1
		_, err := x.ReadSplit(t.Context(), x.Question)
		return err
	},
	"several goals": func(t *testing.T, x reported) error {
		t.Helper()
		mobile(&x.Question)
		_, err := x.ReadMeasures(t.Context(), x.Question, []facts.Measure{
			{Measure: plan.Measure{GoalID: 1}}, {Measure: plan.Measure{GoalID: 2}},
		})
		return err
	},
	"series": askRows(func(q *plan.Question) {
		q.Interval = query.Hourly
		q.GoalID = 0
		q.Crossings = true
	}),
	"series of ages": func(t *testing.T, x reported) error {
		t.Helper()
		x.Interval = query.Daily
		x.Timing = plan.ByAge
		x.ConversionWindow = withinADay
		_, err := x.ReadSteps(t.Context(), x.Question, []facts.Measure{{Measure: x.Measure()}})
		return err
	},
	"series of a metric": func(t *testing.T, x reported) error {
		t.Helper()
		x.Expression = expressed(t, "sum(one.items.revenue where items.category = 'Shoes')")
		return askRows(func(q *plan.Question) { q.Interval = query.Daily })(t, x)
	},
	"series of a widget": func(t *testing.T, x reported) error {
		t.Helper()
		x.Subject.Kind = schema.SubjectWidget
		x.Interval = query.Daily
		x.ConversionWindow = withinADay
		return askRows(func(*plan.Question) {})(t, x)
	},
	"days": askRows(func(q *plan.Question) {
		q.Filters.From = worlds.Start
		q.Filters.To = worlds.Start.AddDate(0, 0, 3)
		q.Interval = query.Daily
		q.Crossings = true
		q.Cap = &schema.Cap{Units: 10_000}
	}),
	"days of a series": askRows(func(q *plan.Question) {
		q.Interval = query.Daily
		q.Crossings = true
	}),
	"first views": func(t *testing.T, x reported) error {
		t.Helper()
		_, err := x.ReadFirstViews(t.Context(), x.Question, "device")
		return err
	},
	"distribution": func(t *testing.T, x reported) error {
		t.Helper()
		_, err := x.ReadDistribution(t.Context(), x.Question, []int64{-1 << 60, 0, 100})
		return err
	},
	"each visitor": func(t *testing.T, x reported) error {
		t.Helper()
		x.Filters.To = worlds.Start.Add(36 * time.Hour)
		x.Cap = &schema.Cap{Units: 10_000}
		return x.EachVisitor(t.Context(), x.Question, func(*facts.Visitor) error { return nil })
	},
	"lost views": func(t *testing.T, x reported) error {
		t.Helper()
		_, err := x.ReadLostViews(t.Context(), x.Question)
		return err
	},
	"values": func(t *testing.T, x reported) error {
		t.Helper()
		_, err := x.ReadValues(t.Context(), x.Question, "plan")
		return err
	},
	"appearances": func(t *testing.T, x reported) error {
		t.Helper()
		of := facts.Appearing{Text: *must.Get(metric.ParseSplit("payment", namesOfWorlds))(t)}
		_, err := x.ReadAppearances(t.Context(), x.Question, of, worlds.Start.AddDate(0, 0, 9))
		return err
	},
}
