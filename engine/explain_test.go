package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
)

// tracedWorld returns an engine with the events of a campaign and a widget.
func tracedWorld(t *testing.T, w worlds.World) *Engine {
	t.Helper()
	in := newReferenceWorld(t, w, schematest.OpenMigrated(t), false)
	in.engine.Facts = newStored(t, in.conn, w.Events(1, 300)).engine.Facts
	return in.engine
}

// TestSQLRunsAsItStands runs the statements of Engine.SQL without parameters, and compares what they return with what
// the bound statements of the report return.
func TestSQLRunsAsItStands(t *testing.T) {
	w := worlds.New(5)
	e := tracedWorld(t, w)
	for range tier.Of(8, 60) {
		p := planOf(t, e, drawRequest(w, 1))
		text, err := e.SQL(t.Context(), p)
		if err != nil {
			fatal(t, err)
		}
		var shown, bound []string
		for i, statement := range strings.Split(text, "-- statement ") {
			if i > 0 {
				_, statement, _ = strings.Cut(statement, "\n")
				shown = append(shown, rowsOf(t, e, &source.Statement{SQL: strings.TrimSuffix(strings.TrimSpace(statement), ";")}))
			}
		}
		for _, q := range statementsOf(t, e, p.Request) {
			bound = append(bound, rowsOf(t, e, q))
		}
		slices.Sort(shown)
		slices.Sort(bound)
		if !slices.Equal(shown, bound) {
			t.Fatalf("the shown statements return\n%q, want\n%q\n%s", shown, bound, text)
		}
	}
}

// TestStatementsDoNotDependOnValues checks that requests that differ in the values of filters have the same statements:
// values are only bound.
func TestStatementsDoNotDependOnValues(t *testing.T) {
	w := worlds.New(6)
	e := tracedWorld(t, w)
	const hostile = `'"\{website_id:Int64}; -- /`
	for range tier.Of(8, 60) {
		r := drawRequest(w, 1)
		r.Cap, r.Filters.ZScore, r.Dimension = nil, 0, "" // the statements depend on what was found
		other := r
		other.Filters.Lists, other.Filters.Texts = slices.Clone(r.Filters.Lists), slices.Clone(r.Filters.Texts)
		for i := range other.Filters.Lists {
			other.Filters.Lists[i].Values = []string{hostile, "'", hostile}
		}
		for i, f := range r.Filters.Texts {
			other.Filters.Texts[i].Pattern = hostile
			if strings.Contains(f.Pattern, "*") {
				other.Filters.Texts[i].Pattern = "*" + hostile
			}
		}
		if got, want := textsOf(statementsOf(t, e, other)), textsOf(statementsOf(t, e, r)); !slices.Equal(got, want) {
			t.Fatalf("statements %q, want %q", got, want)
		}
	}
}

// statementsOf computes a report, and returns the statements that it ran.
func statementsOf(t *testing.T, e *Engine, r query.Request) []*source.Statement {
	t.Helper()
	statements, err := e.traceStatements(t.Context(), planOf(t, e, r))
	if err != nil {
		fatal(t, err)
	}
	return statements
}

func textsOf(statements []*source.Statement) []string {
	var texts []string
	for _, q := range statements {
		texts = append(texts, q.SQL)
	}
	slices.Sort(texts)
	return texts
}

// rowsOf returns the rows of a statement as text, sorted.
func rowsOf(t *testing.T, e *Engine, q *source.Statement) string {
	t.Helper()
	var rows []string
	asText := *q
	asText.SQL = "SELECT formatRowNoNewline('JSONCompactEachRow', *) FROM (\n" + q.SQL + "\n)"
	err := e.store.EachRow(t.Context(), &asText, func(row driver.Rows) error {
		var text string
		err := row.Scan(&text)
		rows = append(rows, text)
		return err
	})
	if err != nil {
		t.Log(q.SQL)
		fatal(t, err)
	}
	slices.Sort(rows)
	return fmt.Sprint(rows)
}
