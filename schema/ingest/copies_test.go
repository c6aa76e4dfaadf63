package ingest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

func views(from, n int) []schema.Event {
	events := make([]schema.Event, n)
	for i := range events {
		events[i] = view(fmt.Sprint(from+i), 12)
		events[i].Value = int64(i)
	}
	return events
}

// storedOnce checks that each event is stored and counted once, and that no
// further sweep removes copies.
func storedOnce(t *testing.T, conn driver.Conn, events int) {
	t.Helper()
	if n, distinct := number(t, conn, "SELECT count() FROM events"), number(t, conn, "SELECT uniqExact(visitor_id, event_id) FROM events"); int(n) != events || int(distinct) != events {
		t.Errorf("%d rows, %d events; want %d", n, distinct, events)
	}
	if faults, err := schema.CheckRows(t.Context(), conn); err != nil || len(faults) > 0 {
		t.Errorf("faults %q, %v", faults, err)
	}
	if removed := sweep(t, conn); removed != 0 {
		t.Errorf("a second sweep removes %d", removed)
	}
}

func sweep(t *testing.T, conn driver.Conn) int {
	t.Helper()
	w := ingest.NewWriter(conn)
	share(t, w)
	removed, err := w.Sweep(t.Context(), time.Now().Add(-time.Hour))
	if err != nil {
		t.Error(err)
	}
	return removed
}

// TestSweepAfterStoppedWriter stops the later of two writers after each of its
// statements.
func TestSweepAfterStoppedWriter(t *testing.T) {
	conn := schematest.Server(t).Open(t)
	stored, swept := 0, 0
	for statements := 1; ; statements++ {
		left := 1_000
		dying := schematest.KilledConn{Conn: conn, Left: &left}
		events := views(10*statements, 3)
		late := ingest.NewWriter(between{Conn: dying, work: func() {
			w := ingest.NewWriter(conn)
			share(t, w)
			if _, err := w.Write(t.Context(), events); err != nil {
				t.Fatal(err)
			}
			left = statements
		}})
		share(t, late)
		_, err := late.Write(t.Context(), events)
		stored += len(events)
		swept += sweep(t, conn)
		storedOnce(t, conn, stored)
		if err == nil || t.Failed() {
			break
		}
	}
	if swept == 0 {
		t.Error("no stopped writer left copies")
	}
}

// TestConcurrentSweeps has more copies than one statement removes.
func TestConcurrentSweeps(t *testing.T) {
	conn := schematest.Server(t).Open(t)
	events := views(0, 2_500)
	for i, writer := range []string{"a", "b", "c"} {
		if err := schema.InsertEvents(t.Context(), conn, writer, events, time.Now().Add(time.Duration(i)*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	var sweeping sync.WaitGroup
	for range 3 {
		sweeping.Go(func() { sweep(t, conn) })
	}
	sweeping.Wait()
	storedOnce(t, conn, len(events))
	if left := number(t, conn, "SELECT uniqExact(writer) FROM events"); left != 1 {
		t.Errorf("rows of %d writers remain, want those of the first", left)
	}
}

// TestUnfinishedRemovalIsSubtractedOnce repairs the counters after a copy was
// removed and before its removal is recorded as done.
func TestUnfinishedRemovalIsSubtractedOnce(t *testing.T) {
	conn := schematest.Server(t).Open(t)
	events := views(0, 3)
	for i, writer := range []string{"a", "b"} {
		if err := schema.InsertEvents(t.Context(), conn, writer, events, time.Now().Add(time.Duration(i)*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	left := 1_000
	dying := ingest.NewWriter(schematest.KilledConn{Conn: conn, Left: &left})
	share(t, dying)
	left = 3 // the query for copies, the record and the statement that removes them
	if _, err := dying.Sweep(t.Context(), time.Now().Add(-time.Hour)); err == nil {
		t.Fatal("it was not killed")
	}
	for range 500 {
		if number(t, conn, "SELECT count() FROM events") == 3 {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	if got := number(t, conn, "SELECT count() FROM removed_copies WHERE NOT done"); got != 3 {
		t.Fatalf("%d removals are recorded, want 3", got)
	}
	w := newEraser(conn)
	share(t, w)
	if _, err := w.Forget(t.Context(), []string{"nobody"}, nil); err != nil {
		t.Fatal(err)
	}
	storedOnce(t, conn, 3)
}

// blind is a connection on which copies of other writers are not found. A writer
// does not find copies if an insert with a smaller block number becomes visible
// later.
type blind struct{ driver.Conn }

func (c blind) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if strings.Contains(query, "_block_number") {
		query = "SELECT * FROM (\n" + query + "\n) LIMIT 0"
	}
	return c.Conn.Query(ctx, query, args...)
}

// TestSweepRemovesInvisibleCopies has an insert with a smaller block number that
// becomes visible after the other writer has checked for copies.
func TestSweepRemovesInvisibleCopies(t *testing.T) {
	conn := schematest.Server(t).Open(t)
	first, second := view("e", 12), view("e", 12)
	second.VariationID = 1
	late := ingest.NewWriter(between{Conn: blind{Conn: conn}, work: func() {
		w := ingest.NewWriter(conn)
		share(t, w)
		if _, err := w.Write(t.Context(), []schema.Event{first}); err != nil {
			t.Fatal(err)
		}
	}})
	share(t, late)
	if outcome, err := late.Write(t.Context(), []schema.Event{second}); err != nil || outcome.Inserted != 1 {
		t.Fatalf("%+v, %v", outcome, err)
	}
	if removed := sweep(t, conn); removed != 1 {
		t.Errorf("%d removed, want 1", removed)
	}
	storedOnce(t, conn, 1)
	if variation := number(t, conn, "SELECT toUInt64(variation_id) FROM events"); variation != 0 {
		t.Error("the first copy was removed")
	}
}

// TestForgetDeletesRecordsOfCopies checks that the counters remain correct.
func TestForgetDeletesRecordsOfCopies(t *testing.T) {
	conn := schematest.Server(t).Open(t)
	events := views(0, 2)
	for i := range events {
		events[i].VisitorID = schema.Hash(fmt.Sprint("v", i))
	}
	for i, writer := range []string{"a", "b"} {
		if err := schema.InsertEvents(t.Context(), conn, writer, events, time.Now().Add(time.Duration(i)*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	if removed := sweep(t, conn); removed != 2 {
		t.Errorf("%d removed, want 2", removed)
	}
	w := newEraser(conn)
	share(t, w)
	if _, err := w.Forget(t.Context(), []string{"v1"}, nil); err != nil {
		t.Fatal(err)
	}
	storedOnce(t, conn, 1)
	if left := number(t, conn, "SELECT uniqExact(visitor_id) FROM removed_copies"); left != 1 {
		t.Errorf("copies of %d visitors are recorded, want 1", left)
	}
	if err := w.DropSubjects(t.Context(), []ingest.SubjectID{{WebsiteID: 1, Subject: schema.SubjectCampaign, ID: 12}}); err != nil {
		t.Fatal(err)
	}
	storedOnce(t, conn, 0)
}
