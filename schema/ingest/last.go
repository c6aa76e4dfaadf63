package ingest

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/last_events.sql
var lastEvents string

//go:embed sql/last_rejects.sql
var lastRejects string

//go:embed sql/newest_event.sql
var newestEvent string

// Accepted is an event with its acceptance time.
type Accepted struct {
	At time.Time
	schema.Event
}

// lookBack are the windows before the newest event that are searched for the last
// events, one after the other. The first window usually suffices.
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
	rows, err := conn.Query(ctx, lastEvents, lastOf(website, since, limit)...)
	if err != nil {
		return nil, fmt.Errorf("read the last events: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var events []Accepted
	for rows.Next() {
		var e Accepted
		var subject, kind string
		if err := rows.Scan(&e.At, &e.WebsiteID, &subject, &e.SubjectID, &e.ExperimentID, &e.VariationID, &e.VisitorID, &e.EventID,
			&kind, &e.GoalID, &e.Value, &e.Time, &e.Device, &e.Country); err != nil {
			return nil, fmt.Errorf("read the last events: %w", err)
		}
		e.Subject, e.Kind = schema.Subject(subject), schema.Kind(kind)
		events = append(events, e)
	}
	return events, rows.Err()
}

// LastRejects returns the limit most recently rejected lines of a website, or of
// all websites if website is 0, in descending order. Lines of unknown websites
// are always included.
func LastRejects(ctx context.Context, conn driver.Conn, website int64, limit int) ([]Reject, error) {
	return RejectsSince(ctx, conn, website, beforeAll, limit)
}

// RejectsSince is like LastRejects, for lines rejected at or after a time.
func RejectsSince(ctx context.Context, conn driver.Conn, website int64, since time.Time, limit int) ([]Reject, error) {
	rows, err := conn.Query(ctx, lastRejects, lastOf(website, since, limit)...)
	if err != nil {
		return nil, fmt.Errorf("read the last rejects: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var rejects []Reject
	for rows.Next() {
		var r Reject
		var way string
		if err := rows.Scan(&r.Time, &r.WebsiteID, &way, &r.File, &r.Line, &r.Reason, &r.Text); err != nil {
			return nil, fmt.Errorf("read the last rejects: %w", err)
		}
		r.Way = Way(way)
		rejects = append(rejects, r)
	}
	return rejects, rows.Err()
}

func lastOf(website int64, since time.Time, limit int) []any {
	return []any{
		clickhouse.Named("website_id", website),
		clickhouse.DateNamed("since", since, clickhouse.MilliSeconds),
		clickhouse.Named("limit", limit),
	}
}
