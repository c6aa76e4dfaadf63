package ingest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// countingConn counts the events that a writer looks up, and may report another start of
// the server.
type countingConn struct {
	driver.Conn
	lookups atomic.Int64 // queries with a look-up table
	restart atomic.Bool  // the next query for the last block reports another start
}

func (c *countingConn) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if strings.Contains(query, "lookup") {
		c.lookups.Add(1)
	}
	return c.Conn.Query(ctx, query, args...)
}

func (c *countingConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if strings.Contains(query, "uptime()") && c.restart.Swap(false) {
		query = strings.Replace(query, "uptime()", "uptime() + 3600", 1)
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

// TestLargeBatchesLookUpOnlyWhatOthersMayHave checks that a writer that follows the blocks
// of a server looks up nothing while all events are new, finds its own duplicates and
// those of another writer, and looks up everything after the server was started again.
func TestLargeBatchesLookUpOnlyWhatOthersMayHave(t *testing.T) {
	conn := &countingConn{Conn: schematest.Server(t).Open(t)}
	w, other := ingest.NewWriter(conn), ingest.NewWriter(conn.Conn)
	share(t, w)
	share(t, other)
	ingest.FollowBlocksFrom(w, 1, 1_000)
	batch := func(from, until int) []schema.Event {
		var events []schema.Event
		for n := from; n < until; n++ {
			e := view(fmt.Sprint("event ", n), 12)
			e.VisitorID = uint64(n)
			events = append(events, e)
		}
		return events
	}
	write := func(w *ingest.Writer, from, until, inserted int, looked bool) {
		t.Helper()
		before := conn.lookups.Load()
		outcome, err := w.Write(t.Context(), batch(from, until))
		if err != nil || outcome.Inserted != inserted || outcome.Duplicates != until-from-inserted {
			t.Errorf("%d to %d: %+v, %v; want %d inserted", from, until, outcome, err, inserted)
		}
		if made := conn.lookups.Load() - before; (made > 0) != looked {
			t.Errorf("%d to %d: %d look-ups, want some: %v", from, until, made, looked)
		}
	}
	write(other, 0, 10, 10, false) // another connection
	write(w, 20, 40, 20, false)    // learns the ids of the first ten
	write(w, 5, 10, 0, true)       // the other writer's
	write(w, 30, 50, 10, true)     // its own
	write(other, 60, 70, 10, false)
	write(w, 65, 75, 5, true) // what came since
	write(w, 80, 90, 10, false)
	conn.restart.Store(true)
	write(w, 90, 100, 10, true)
	write(w, 100, 110, 10, false) // the ids are known again
	write(w, 0, 110, 25, true)
	if rows := number(t, conn, "SELECT count() FROM events"); rows != 110 {
		t.Errorf("%d rows, want 110", rows)
	}
}
