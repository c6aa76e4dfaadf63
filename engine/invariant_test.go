package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
)

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
		must.That(t, first == second && second == third, "the answers differ:\n%s\n%s\n%s", first, second, third)
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
	for range tier.Of(8, 60) {
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
