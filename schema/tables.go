package schema

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed tables/*.sql
var tables embed.FS

// CreateFacts creates the tables of sent events and of facts. Nothing but tests uses
// them yet.
func CreateFacts(ctx context.Context, conn driver.Conn) error {
	files, err := fs.Glob(tables, "tables/*.sql")
	if err != nil {
		return err
	}
	for _, file := range files {
		statement, err := fs.ReadFile(tables, file)
		if err != nil {
			return err
		}
		if err := conn.Exec(ctx, string(statement)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

const insertSent = `INSERT INTO sent_events (website_id, subject, subject_id, experiment_id, visitor_id, time, event_id,
	variation_id, event, goal_id, value, profit, extra_value, device, browser, os, country, region, city, channel,
	referrer, utm_source, utm_medium, utm_campaign, utm_content, utm_term, first_visit_page, visitor_type, ingested_at)`

// InsertSent inserts events as they were sent, all accepted at one time, and returns when they are
// stored. Copies of stored events are harmless.
func InsertSent(ctx context.Context, conn driver.Conn, events []Event, acceptedAt time.Time) error {
	columns := eventColumns(events, acceptedAt)
	derived := len(columns) - 2
	return insert(ctx, conn, distinctRowSettings, insertSent, append(columns[:derived:derived], columns[derived+1]))
}
