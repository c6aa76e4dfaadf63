package ingest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// cancelling is a connection that cancels the writer's context during an insert.
type cancelling struct {
	driver.Conn
	cancel context.CancelFunc
}

// PrepareBatch implements driver.Conn. It is the first call of an insert.
func (c cancelling) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	c.cancel()
	return c.Conn.PrepareBatch(ctx, query, opts...)
}

func view(eventID string, campaign int64) schema.Event {
	return schema.Event{
		EventID: schema.Hash(eventID), VisitorID: schema.Hash("v"), Time: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
		WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: campaign, Kind: schema.KindView,
	}
}

func TestWriterCompletesCanceledInsert(t *testing.T) {
	conn := schematest.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	w := ingest.NewWriter(cancelling{Conn: conn, cancel: cancel})
	if outcome, err := w.Write(ctx, []schema.Event{view("e", 12)}); err != nil || outcome.Inserted != 1 {
		t.Fatalf("cancelled while inserting: %+v, %v; want 1 row stored", outcome, err)
	}
	var stored, counted int64
	if err := conn.QueryRow(t.Context(), "SELECT toInt64((SELECT count() FROM events)), toInt64((SELECT sum(rows) FROM subject_stats))").Scan(&stored, &counted); err != nil {
		t.Fatal(err)
	}
	if stored != 1 || counted != 1 {
		t.Errorf("%d stored, %d counted; want 1 and 1", stored, counted)
	}
	if _, err := w.Write(ctx, []schema.Event{view("e2", 12)}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

// TestWriterLooksUpManySubjects uses one visitor for many subjects, so that a
// look-up that confuses subjects returns too many rows.
func TestWriterLooksUpManySubjects(t *testing.T) {
	const campaigns = 2_000
	w := ingest.NewWriter(schematest.Open(t))
	var events []schema.Event
	for i := range campaigns {
		events = append(events, view("e", int64(i+1)))
	}
	half := make([]schema.Event, 0, campaigns)
	for i := 0; i < campaigns; i += 2 {
		half = append(half, events[i])
	}
	for _, round := range []struct {
		events []schema.Event
		want   ingest.Outcome
	}{
		{half, ingest.Outcome{Inserted: campaigns / 2}},
		{events, ingest.Outcome{Inserted: campaigns / 2, Duplicates: campaigns / 2}},
		{events, ingest.Outcome{Duplicates: campaigns}},
	} {
		started := time.Now()
		outcome, err := w.Write(t.Context(), slices.Clone(round.events))
		if err != nil || outcome != round.want {
			t.Errorf("%+v, %v; want %+v", outcome, err, round.want)
		}
		if took := time.Since(started); took > 5*time.Second { // one query per subject takes 15 s, one query for all 0.1 s
			t.Errorf("%d events took %v", len(round.events), took)
		}
	}
}

func TestStoppedWriterWritesNoMore(t *testing.T) {
	w := ingest.NewWriter(schematest.Open(t))
	if !w.Stop(t.Context()) {
		t.Fatal("an idle writer cannot be stopped")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w.Stop(ctx) {
		t.Error("a stopped writer can be stopped again")
	}
	if _, err := w.Write(ctx, []schema.Event{{EventID: 1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped writer writes: %v", err)
	}
}
