package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func view(eventID string) schema.Event {
	return schema.Event{
		EventID: schema.HashID(eventID), VisitorID: schema.HashID("v"), Time: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
		WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: 12, Kind: schema.KindView,
	}
}

// TestWriterCompletesCanceledInsert cancels the context of an insert when it starts.
func TestWriterCompletesCanceledInsert(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	ctx, cancel := context.WithCancel(t.Context())
	w := ingest.NewWriter(schematest.HookedConn{Conn: conn, Before: func(context.Context, string) error { cancel(); return nil }}, nil)
	must.OK(t, w.WriteEvents(ctx, []schema.Event{view("e")}))
	check.Equal(t, number(t, conn, "SELECT count() FROM events"), 1, "stored")
	err := w.WriteEvents(ctx, []schema.Event{view("e2")})
	check.That(t, errors.Is(err, context.Canceled), "cancelled before: %v", err)
}

// TestAcceptanceTimesRise checks that acceptance times rise from insert to insert, also after those of another process
// whose clock is ahead.
func TestAcceptanceTimesRise(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	ahead := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	must.OK(t, schema.InsertEvents(t.Context(), conn, []schema.Event{view("ahead")}, ahead))
	w := ingest.NewWriter(conn, nil)
	must.OK(t, w.SetClock(t.Context(), time.Time{}))
	last := ahead
	w.AfterInsert(func(accepted time.Time) {
		check.That(t, accepted.After(last), "accepted at %s, after %s", accepted, last)
		last = accepted
	})
	for i := range 3 {
		must.OK(t, w.WriteEvents(t.Context(), []schema.Event{view(fmt.Sprint(i))}))
	}
	check.Equal(t, last, ahead.Add(3*time.Millisecond), "last acceptance")
}

func TestStoppedWriterWritesNoMore(t *testing.T) {
	w := ingest.NewWriter(schematest.OpenMigrated(t), nil)
	must.That(t, w.StopWrites(t.Context()), "an idle writer cannot be stopped")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.That(t, !w.StopWrites(ctx), "a stopped writer can be stopped again")
	err := w.WriteEvents(ctx, []schema.Event{{EventID: 1}})
	check.That(t, errors.Is(err, context.Canceled), "a stopped writer writes: %v", err)
}
