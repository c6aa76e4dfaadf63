package ingest

import (
	"context"
	_ "embed" // the statement
	"fmt"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/event_columns.sql
var eventColumns string

const copyBatch = 50_000 // events of an insert when a store is copied

// CopyEvents writes the events of another store, in the order in which they were accepted. An interrupted copy can be
// repeated. progress is called after each insert.
func CopyEvents(ctx context.Context, w *Writer, from driver.Conn, progress func(done, total uint64)) (copied uint64, err error) {
	var total uint64
	if err := from.QueryRow(ctx, "SELECT count() FROM events").Scan(&total); err != nil {
		return 0, fmt.Errorf("count the events to copy: %w", err)
	}
	batch := make([]schema.Event, 0, copyBatch)
	flush := func() error {
		err := w.WriteEvents(ctx, batch)
		if err == nil {
			copied += uint64(len(batch))
		}
		batch = batch[:0]
		progress(copied, total)
		return err
	}
	err = schema.EachRow(ctx, from, eventColumns+"ORDER BY version DESC, website_id, visitor_id", func(row driver.Rows) error {
		var e schema.Event
		if err := scanEvent(row, &e); err != nil {
			return err
		}
		if batch = append(batch, e); len(batch) < copyBatch {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return copied, fmt.Errorf("copy events: %w", err)
	}
	return copied, nil
}

// scanEvent reads a row of eventColumns.
func scanEvent(row driver.Rows, e *schema.Event) error {
	err := row.Scan(&e.WebsiteID, (*string)(&e.Subject), &e.SubjectID, &e.ExperimentID, &e.VisitorID, &e.EventID, &e.Time, &e.VariationID, (*string)(&e.Kind), &e.GoalID,
		&e.Value, &e.Profit, &e.ExtraValue, &e.Device, &e.Browser, &e.OS, &e.Country, &e.Region, &e.City,
		&e.Channel, &e.Referrer, &e.UTMSource, &e.UTMMedium, &e.UTMCampaign, &e.UTMContent, &e.UTMTerm,
		&e.FirstVisitPage, &e.VisitorType)
	e.Time = e.Time.UTC()
	return err
}
