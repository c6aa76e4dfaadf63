package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestCollectorStoresAll has concurrent senders of overlapping events. Each event must be stored before its sender
// continues.
func TestCollectorStoresAll(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	c := ingest.NewCollector(t.Context(), ingest.NewWriter(conn, nil), 1000)
	const senders, calls, own, shared = 16, 10, 5, 5
	var all sync.WaitGroup
	for sender := range senders {
		all.Go(func() {
			for call := range calls {
				var events []schema.Event
				var ids []uint64
				for i := range own {
					events = append(events, view(fmt.Sprint(sender, " ", call, " ", i)))
				}
				for i := range shared {
					events = append(events, view(fmt.Sprint("shared ", call, " ", i)))
				}
				for i := range events {
					ids = append(ids, events[i].EventID)
				}
				if !check.OK(t, c.WriteEvents(t.Context(), events)) {
					return
				}
				var stored uint64
				err := conn.QueryRow(t.Context(), "SELECT uniqExact(event_id) FROM events WHERE event_id IN {ids:Array(UInt64)}", clickhouse.Named("ids", ids)).Scan(&stored)
				must.That(t, err == nil, "%d of %d events are stored, %v", stored, own+shared, err)
				check.Equal(t, stored, own+shared, "%d of %d events are stored, %v", stored, own+shared, err)
			}
		})
	}
	all.Wait()
	check.Equal(t, number(t, conn, "SELECT count() FROM events FINAL"), senders*calls*own+calls*shared, "events")
}

func TestCollectorFull(t *testing.T) {
	w := ingest.NewWriter(schematest.OpenMigrated(t), nil)
	if !w.StopWrites(t.Context()) { // block writes
		t.Fatal("a write is running")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := ingest.NewCollector(ctx, w, 2)
	for range 2 {
		go func() {
			for err := ingest.ErrFull; errors.Is(err, ingest.ErrFull); runtime.Gosched() {
				err = c.WriteEvents(ctx, []schema.Event{view("e")})
			}
		}()
	}
	for {
		short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
		err := c.WriteEvents(short, []schema.Event{view("e")})
		stop()
		if errors.Is(err, ingest.ErrFull) {
			return // both other senders wait
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

func TestCollectorStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := ingest.NewCollector(ctx, ingest.NewWriter(schematest.OpenMigrated(t), nil), 10)
	cancel()
	for {
		if err := c.WriteEvents(t.Context(), []schema.Event{view("e")}); errors.Is(err, ingest.ErrFull) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPatientSendersShareInserts has many senders of single events that do not wait for the answer. They share inserts,
// and one who is alone gets the answer at once.
func TestPatientSendersShareInserts(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	var inserts atomic.Int64
	counted := schematest.HookedConn{Conn: conn, Before: func(_ context.Context, statement string) error {
		if strings.Contains(statement, "INTO events ") {
			inserts.Add(1)
		}
		return nil
	}}
	c := ingest.NewCollector(t.Context(), ingest.NewWriter(counted, nil), 1000)
	const senders, calls = 40, 4
	var all sync.WaitGroup
	for sender := range senders {
		all.Go(func() {
			for call := range calls {
				check.OK(t, c.WriteSoon(t.Context(), []schema.Event{view(fmt.Sprint(sender, " ", call))}))
			}
		})
	}
	all.Wait()
	check.Equal(t, number(t, conn, "SELECT count() FROM events FINAL"), senders*calls, "events")
	n := inserts.Load()
	check.That(t, n <= senders*calls/4, "%d inserts of %d events", n, senders*calls)
}
