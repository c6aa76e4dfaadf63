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

// Accepted is an event with the time at which it was taken.
type Accepted struct {
	At time.Time
	schema.Event
}

// lookBack is how far before the newest event the last ones are looked for:
// each step reads little more than the one before, and mostly the first will do.
var lookBack = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour}

// beforeAll is before anything was accepted.
var beforeAll = time.UnixMilli(0).UTC()

// LastEvents returns the last so many events that were taken, of a website or,
// with 0, of all; the last one first. Of those, not all fields are read.
func LastEvents(ctx context.Context, conn driver.Conn, website int64, most int) ([]Accepted, error) {
	var newest time.Time
	if err := conn.QueryRow(ctx, newestEvent, clickhouse.Named("website_id", website)).Scan(&newest); err != nil {
		return nil, fmt.Errorf("find the last events: %w", err)
	}
	for _, back := range lookBack {
		events, err := EventsSince(ctx, conn, website, newest.Add(-back), most)
		if err != nil || len(events) == most {
			return events, err
		}
	}
	return EventsSince(ctx, conn, website, beforeAll, most)
}

// EventsSince returns the last so many of the events that were taken at the
// time or later.
func EventsSince(ctx context.Context, conn driver.Conn, website int64, since time.Time, most int) ([]Accepted, error) {
	rows, err := conn.Query(ctx, lastEvents, lastOf(website, since, most)...)
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

// LastRejects returns the last so many lines that were rejected, of a website
// or, with 0, of all; the last one first. Those of unknown websites are among
// them.
func LastRejects(ctx context.Context, conn driver.Conn, website int64, most int) ([]Reject, error) {
	return RejectsSince(ctx, conn, website, beforeAll, most)
}

// RejectsSince returns the last so many of the lines that were rejected at the
// time or later.
func RejectsSince(ctx context.Context, conn driver.Conn, website int64, since time.Time, most int) ([]Reject, error) {
	rows, err := conn.Query(ctx, lastRejects, lastOf(website, since, most)...)
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

func lastOf(website int64, since time.Time, most int) []any {
	return []any{
		clickhouse.Named("website_id", website),
		clickhouse.DateNamed("since", since, clickhouse.MilliSeconds),
		clickhouse.Named("most", most),
	}
}
