package ingest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// cancelling ends the writer's context while it inserts.
type cancelling struct {
	driver.Conn
	cancel context.CancelFunc
}

// PrepareBatch is the first thing that an insert asks for.
func (c cancelling) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	c.cancel()
	return c.Conn.PrepareBatch(ctx, query, opts...)
}

func view(eventID, visitor string, campaign int64) schema.Event {
	return schema.Event{
		EventID: schema.Hash(eventID), VisitorID: schema.Hash(visitor), Time: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
		WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: campaign, Kind: schema.KindView,
	}
}

func TestWriterEndsAnInsertThatItBegan(t *testing.T) {
	conn := schematest.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	w := ingest.NewWriter(cancelling{conn, cancel})
	if outcome, err := w.Write(ctx, []schema.Event{view("e", "v", 12)}); err != nil || outcome.Inserted != 1 {
		t.Fatalf("cancelled while inserting: %+v, %v; want 1 row stored", outcome, err)
	}
	var stored, counted int64
	if err := conn.QueryRow(t.Context(), "SELECT toInt64((SELECT count() FROM events)), toInt64((SELECT sum(rows) FROM subject_stats))").Scan(&stored, &counted); err != nil {
		t.Fatal(err)
	}
	if stored != 1 || counted != 1 {
		t.Errorf("%d stored, %d counted; want 1 and 1", stored, counted)
	}
	if _, err := w.Write(ctx, []schema.Event{view("e2", "v", 12)}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}
