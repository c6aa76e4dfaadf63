package ingest

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var (
	//go:embed sql/accepted_columns.sql
	acceptedColumns string
	//go:embed sql/last_events.sql
	lastEvents string
	//go:embed sql/rejected_columns.sql
	rejectedColumns string
	//go:embed sql/last_rejects.sql
	lastRejects string
	//go:embed sql/newest_event.sql
	newestEvent string
)

// Accepted is an event with its acceptance time.
type Accepted struct {
	At      time.Time
	Version uint64 // of events accepted at the same time, the one with the highest version arrived first
	schema.Event
}

// lookBack lists the windows before the newest event in which the last events are
// searched, one after the other. The first window usually suffices.
var lookBack = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour}

// beforeAll precedes every acceptance time.
var beforeAll = time.UnixMilli(0).UTC()

// LastEvents returns the limit most recently accepted events of a website, or of
// all websites if website is 0, in descending order. Only some fields of the
// events are set.
func LastEvents(ctx context.Context, conn driver.Conn, website int64, limit int) ([]Accepted, error) {
	var newest time.Time
	if err := conn.QueryRow(ctx, newestEvent, clickhouse.Named("website_id", website)).Scan(&newest); err != nil {
		return nil, fmt.Errorf("read the last events: %w", err)
	}
	for _, back := range lookBack {
		events, err := EventsSince(ctx, conn, website, newest.Add(-back), limit)
		if err != nil || len(events) == limit {
			return events, err
		}
	}
	return EventsSince(ctx, conn, website, beforeAll, limit)
}

// EventsSince is like LastEvents, for events accepted at or after a time.
func EventsSince(ctx context.Context, conn driver.Conn, website int64, since time.Time, limit int) ([]Accepted, error) {
	events, err := schema.QueryRows(ctx, conn, acceptedColumns+lastEvents, scanAccepted, lastOf(website, since, limit)...)
	if err != nil {
		return nil, fmt.Errorf("read the last events: %w", err)
	}
	return events, nil
}

func scanAccepted(rows driver.Rows, e *Accepted) error {
	return rows.Scan(slices.Concat([]any{&e.At, &e.Version}, commonColumns(&e.Event), []any{&e.Device, &e.Country})...)
}

// commonColumns returns the targets of the columns of an event.
func commonColumns(e *schema.Event) []any {
	return []any{
		&e.WebsiteID, (*string)(&e.Subject), &e.SubjectID, &e.ExperimentID, &e.VariationID, &e.VisitorID, &e.EventID, (*string)(&e.Kind), &e.GoalID, &e.Value, &e.Time,
	}
}

// LastRejects returns the limit most recently rejected lines of a website, or of
// all websites if website is 0, in descending order. Lines of unknown websites
// are always included.
func LastRejects(ctx context.Context, conn driver.Conn, website int64, limit int) ([]Reject, error) {
	return RejectsSince(ctx, conn, website, beforeAll, limit)
}

// RejectsSince is like LastRejects, for lines rejected at or after a time.
func RejectsSince(ctx context.Context, conn driver.Conn, website int64, since time.Time, limit int) ([]Reject, error) {
	rejects, err := schema.QueryRows(ctx, conn, rejectedColumns+lastRejects, scanReject, lastOf(website, since, limit)...)
	if err != nil {
		return nil, fmt.Errorf("read the last rejects: %w", err)
	}
	return rejects, nil
}

func scanReject(rows driver.Rows, r *Reject) error {
	return rows.Scan(&r.Time, &r.WebsiteID, (*string)(&r.Channel), &r.File, &r.Line, &r.Reason, &r.Text)
}

func lastOf(website int64, since time.Time, limit int) []any {
	return []any{
		clickhouse.Named("website_id", website),
		clickhouse.DateNamed("since", since, clickhouse.MilliSeconds),
		clickhouse.Named("limit", limit),
	}
}
