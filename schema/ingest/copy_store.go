package ingest

import (
	"context"
	_ "embed" // the statement
	"fmt"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/copied_events.sql
var copiedEvents string

const (
	copyBatch  = 50_000 // events of an insert when a store is copied
	copyPasses = 4      // of copied_events.sql
)

// CopyEvents writes the events of another store. Events that are stored already are duplicates,
// so an interrupted copy can be repeated. progress is called after each insert.
//
// Unattributed goals come last, after the views. Then all rows that the writer would derive from
// them are stored already, as the other store has them.
func CopyEvents(ctx context.Context, w *Writer, from driver.Conn, progress func(done, total uint64)) (Outcome, error) {
	return copyEvents(ctx, w, from, copyBatch, progress)
}

func copyEvents(ctx context.Context, w *Writer, from driver.Conn, size int, progress func(done, total uint64)) (Outcome, error) {
	var all Outcome
	var done, total uint64
	if err := from.QueryRow(ctx, "SELECT count() FROM events").Scan(&total); err != nil {
		return all, fmt.Errorf("count the events to copy: %w", err)
	}
	batch := make([]schema.Event, 0, size)
	flush := func() error {
		outcome, err := w.Write(ctx, batch)
		all.Add(outcome)
		done += uint64(len(batch))
		batch = batch[:0]
		progress(done, total)
		return err
	}
	for pass := range uint8(copyPasses) {
		err := schema.EachRow(ctx, from, eventColumns+copiedEvents, func(row driver.Rows) error {
			e := schema.Event{Derived: pass == 0}
			if err := scanEvent(row, &e); err != nil {
				return err
			}
			if batch = append(batch, e); len(batch) < size {
				return nil
			}
			return flush()
		}, clickhouse.Named("pass", pass))
		if err == nil {
			err = flush()
		}
		if err != nil {
			return all, fmt.Errorf("copy events: %w", err)
		}
	}
	return all, nil
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
