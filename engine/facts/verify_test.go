package facts_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// TestWrongFactsAreFound spoils the facts in one way after another. The comparison names what is wrong, and a rebuild
// puts it right.
func TestWrongFactsAreFound(t *testing.T) {
	const day = "INSERT INTO facts SELECT * REPLACE(-sign AS sign) FROM facts WHERE grain = "
	for name, spoil := range map[string]struct {
		statement              string
		rowsDiffer, cellsWrong bool
		isShort                bool // in the short tier, too
	}{
		"nothing":                   {statement: "SELECT 1", isShort: true},
		"all cells gone":            {statement: "ALTER TABLE facts DELETE WHERE grain = 'all'", cellsWrong: true},
		"cells by day gone":         {statement: "ALTER TABLE facts DELETE WHERE grain = 'day'", cellsWrong: true},
		"a cell of a day cancelled": {statement: day + "'day' ORDER BY visitor_id LIMIT 1", cellsWrong: true},
		"a sum changed": {
			statement: "ALTER TABLE facts UPDATE sums = arrayMap((x, i) -> if(i = 15, x + 1, x), sums, " +
				"arrayEnumerate(sums)) WHERE grain = 'all'", cellsWrong: true, isShort: true,
		},
		"goals gone": {
			statement: "ALTER TABLE facts DELETE WHERE grain = 'goal'", rowsDiffer: true, cellsWrong: true,
			isShort: true,
		},
		"a visitor twice": {
			statement: "INSERT INTO facts SELECT * FROM facts WHERE grain = 'visitor' AND variation != '' " +
				"ORDER BY visitor_id LIMIT 1", rowsDiffer: true, cellsWrong: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !spoil.isShort {
				tier.OnlyLong(t)
			}
			stores := openStores(t)
			if !tier.IsLong() && name != "goals gone" {
				delete(stores, "server")
			}
			for name, store := range stores {
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

// damagedConn is a connection to a store in which a visitor's events cannot be read.
type damagedConn struct {
	driver.Conn
	victim *uint64 // nil: all events can be read
}

func (c *damagedConn) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	isOfEvents := strings.HasPrefix(query, "-- one row per stored event,")
	if c.victim != nil && isOfEvents && selects(args, *c.victim) {
		return nil, &clickhouse.Exception{Code: 40, Message: "Checksum doesn't match: corrupted data"}
	}
	return c.Conn.Query(ctx, query, args...)
}

// selects reports whether the parameters of a statement select a visitor, or a range of visitors.
func selects(args []any, victim uint64) bool {
	for _, arg := range args {
		named, _ := arg.(driver.NamedValue)
		ids, isList := named.Value.([]uint64)
		if named.Name == "last_visitor" || isList && slices.Contains(ids, victim) {
			return true
		}
	}
	return false
}

// TestUnreadableEventsHoldUpNobodyElse damages the events of one visitor, before the first fold and after it. The facts
// of all others follow their events, and the damage is said. A rebuild is refused. When the events can be read again,
// the scrub folds them.
func TestUnreadableEventsHoldUpNobodyElse(t *testing.T) {
	for _, isFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("first fold %t", isFirst), func(t *testing.T) {
			w := newWorld(t, 23)
			visitors, through := w.send(t, 200)
			conn := &damagedConn{Conn: w.conn}
			r := facts.NewRefresher(conn, true)
			r.VisitorsInOrder = 40
			if !isFirst {
				refresh(t, r, through)
			}
			victim := visitors[7].ID
			conn.victim = &victim
			_, through = w.send(t, 100)
			refresh(t, r, through)
			all := facts.Shards{r}
			unreadable := 0
			for _, website := range []int64{1, 2} {
				unreadable += all.DamageOf(schema.Subject{WebsiteID: website}).Unreadable
			}
			check.That(t, unreadable > 0, "nobody's events are unreadable")
			check.Equal(t, len(all.DescribeDamage()), 1, "sentences: %q", all.DescribeDamage())
			wanted := w.wanted()
			isVictims := func(row fold.FactRow) bool { return row.Visitor == victim }
			stored := slices.DeleteFunc(must.Get(facts.ReadAll(t.Context(), w.conn))(t), isVictims)
			changes := fold.AppendChanges(nil, stored, slices.DeleteFunc(wanted, isVictims))
			check.Equal(t, len(changes), 0, "rows of the others that differ from their events")
			_, err := r.RebuildFacts(t.Context())
			check.That(t, source.IsDamaged(err), "a rebuild without some of the events: %v", err)

			conn.victim = nil
			must.Get(r.ScrubFacts(t.Context(), 0, math.MaxUint64))(t)
			check.Equal(t, len(all.DescribeDamage()), 0, "sentences: %q", all.DescribeDamage())
			must.OK(t, r.DropOldFacts(t.Context()))
			w.check(t)
		})
	}
}
