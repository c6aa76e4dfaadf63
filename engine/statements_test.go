package engine

import (
	"slices"
	"strings"
	"testing"

	"lifthouse/engine/query"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
	"lifthouse/schema/schematest/worlds"
)

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
		got, want := statementsOf(other), statementsOf(q)
		must.That(t, slices.Equal(got, want), "statements %q, want %q", got, want)
	}
}
