package population

import (
	"context"
	"io"

	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

// Progress counts what has been generated and handed over so far.
type Progress struct {
	Visitors int
	Events   int // including late and duplicate events
}

// WriteNDJSON writes all events as JSON lines. It calls report repeatedly; calls do not overlap.
func WriteNDJSON(ctx context.Context, s *Scenario, w io.Writer, report func(Progress)) (Progress, error) {
	var p Progress
	err := GenerateEvents(ctx, s, encodeNDJSON, func(batch Batch[[]byte]) error {
		p = Progress{p.Visitors + batch.Visitors, p.Events + batch.Events}
		report(p)
		_, err := w.Write(batch.Data)
		return err
	})
	return p, err
}

// insertRows is the maximum number of rows per insert.
const insertRows = 200_000

// InsertScenario writes all events to a store. It calls report repeatedly; calls do not overlap.
func InsertScenario(ctx context.Context, s *Scenario, w *ingest.Writer, report func(Progress)) (Progress, error) {
	var p Progress
	rows := make([]schema.Event, 0, insertRows)
	write := func() error {
		err := w.WriteEvents(ctx, rows)
		rows = rows[:0]
		report(p)
		return err
	}
	err := GenerateEvents(ctx, s, storedEvents, func(batch Batch[[]schema.Event]) error {
		if len(rows)+len(batch.Data) > insertRows {
			if err := write(); err != nil {
				return err
			}
		}
		rows = append(rows, batch.Data...)
		p = Progress{p.Visitors + batch.Visitors, p.Events + batch.Events}
		return nil
	})
	if err != nil {
		return p, err
	}
	return p, write()
}

func storedEvents(events []Event) []schema.Event {
	rows := make([]schema.Event, len(events))
	for i := range events {
		rows[i] = events[i].Event
	}
	return rows
}
