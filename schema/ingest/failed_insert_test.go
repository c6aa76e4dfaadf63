package ingest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// failing is a connection whose inserts are executed and return an error.
type failing struct {
	driver.Conn
	fails bool
}

// PrepareBatch implements driver.Conn.
func (c *failing) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	batch, err := c.Conn.PrepareBatch(ctx, query, opts...)
	return failingBatch{Batch: batch, fails: c.fails}, err
}

type failingBatch struct {
	driver.Batch
	fails bool
}

var errFull = errors.New("no room for the counters")

// Send implements driver.Batch.
func (b failingBatch) Send() error {
	if err := b.Batch.Send(); err != nil || !b.fails {
		return err
	}
	return errFull
}

// TestEventsOfAFailedInsertAreCounted fails after the events are stored and before
// they are counted. The counters must be correct before a retry is acknowledged.
func TestEventsOfAFailedInsertAreCounted(t *testing.T) {
	conn := &failing{Conn: schematest.Open(t)}
	var view string
	if err := conn.QueryRow(t.Context(), "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = 'subject_stats_view'").Scan(&view); err != nil {
		t.Fatal(err)
	}
	do := func(statement string) {
		t.Helper()
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	w := ingest.NewWriter(conn)
	w.SetExclusive()
	event := schema.Event{EventID: 1, Time: time.UnixMilli(1_800_000_000_000).UTC(), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 1, VisitorID: 7, Kind: schema.KindView}

	do("DROP VIEW subject_stats_view")
	conn.fails = true
	if _, err := w.Write(t.Context(), []schema.Event{event}); !errors.Is(err, errFull) {
		t.Fatal(err)
	}
	do(view)
	conn.fails = false
	before := w.Through()
	outcome, err := w.Write(t.Context(), []schema.Event{event})
	if want := (ingest.Outcome{Duplicates: 1}); err != nil || outcome != want {
		t.Fatalf("%+v, %v", outcome, err)
	}
	var events, counted uint64
	if err := conn.QueryRow(t.Context(), "SELECT (SELECT count() FROM events), (SELECT sum(rows) FROM subject_stats)").Scan(&events, &counted); err != nil {
		t.Fatal(err)
	}
	if events != 1 || counted != 1 || !w.Through().After(before) {
		t.Errorf("%d events, %d counted, through %v, before %v", events, counted, w.Through(), before)
	}
}
