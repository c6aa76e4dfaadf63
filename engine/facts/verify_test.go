package facts_test

import (
	"testing"

	"lifthouse/engine/facts"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestWrongFactsAreFound spoils the facts in one way after another. The comparison names what is wrong, and a rebuild
// puts it right.
func TestWrongFactsAreFound(t *testing.T) {
	const day = "INSERT INTO facts SELECT * REPLACE(-sign AS sign) FROM facts WHERE grain = "
	for name, spoil := range map[string]struct {
		statement              string
		rowsDiffer, cellsWrong bool
	}{
		"nothing":                   {statement: "SELECT 1"},
		"all cells gone":            {statement: "ALTER TABLE facts DELETE WHERE grain = 'all'", cellsWrong: true},
		"cells by day gone":         {statement: "ALTER TABLE facts DELETE WHERE grain = 'day'", cellsWrong: true},
		"a cell of a day cancelled": {statement: day + "'day' ORDER BY visitor_id LIMIT 1", cellsWrong: true},
		"a sum changed": {
			statement: "ALTER TABLE facts UPDATE sums = arrayMap((x, i) -> if(i = 15, x + 1, x), sums, " +
				"arrayEnumerate(sums)) WHERE grain = 'all'", cellsWrong: true,
		},
		"goals gone": {
			statement: "ALTER TABLE facts DELETE WHERE grain = 'goal'", rowsDiffer: true, cellsWrong: true,
		},
		"a visitor twice": {
			statement: "INSERT INTO facts SELECT * FROM facts WHERE grain = 'visitor' AND variation != '' " +
				"ORDER BY visitor_id LIMIT 1", rowsDiffer: true, cellsWrong: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for name, store := range openStores(t) {
				t.Run(name, func(t *testing.T) {
					w := newWorldOn(t, 31, store.Conn)
					r := facts.NewRefresher(store.Conn, store.alone)
					r.LeastVisitorsByDay = 1
					r.VisitorsInOrder = 10
					_, through := w.send(t, 300)
					refresh(t, r, through)
					merge(t, store.Conn)
					execute(t, store.Conn, spoil.statement+" SETTINGS mutations_sync = 1")
					last := 0.0
					found, err := r.VerifyFacts(t.Context(), func(share float64) {
						check.That(t, share >= last && share <= 1, "progress from %g to %g", last, share)
						last = share
					})
					must.OK(t, err)
					check.Equal(t, last, 1, "progress at the end")
					check.Equal(t, found.Wrong > 0, spoil.rowsDiffer, "%d visitors with wrong rows", found.Wrong)
					check.Equal(t, len(found.Cells) > 0, spoil.cellsWrong, "subjects with wrong cells: %v", found.Cells)
					check.Equal(t, len(found.Lost), 0, "visitors who lost events")
					scrubbed := must.Get(r.ScrubCells(t.Context(), 0, 1))(t)
					check.Equal(t, len(scrubbed), len(found.Cells), "subjects with wrong cells that the scrub finds")

					must.Get(r.RebuildFacts(t.Context()))(t)
					must.OK(t, r.DropOldFacts(t.Context()))
					rebuilt := must.Get(r.VerifyFacts(t.Context(), func(float64) {}))(t)
					check.Equal(t, rebuilt.Wrong, 0, "visitors with wrong rows after a rebuild")
					check.Equal(t, len(rebuilt.Cells), 0, "subjects with wrong cells after a rebuild")
					check.Equal(t, len(rebuilt.Lost), 0, "visitors who lost events after a rebuild")
				})
			}
		})
	}
}
