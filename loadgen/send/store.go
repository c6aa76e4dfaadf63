package send

import (
	"context"

	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

// insertRows is the maximum number of rows per insert.
const insertRows = 200_000

// InsertScenario writes all events to a store.
func InsertScenario(ctx context.Context, s *population.Scenario, w *ingest.Writer, report Report) (Progress, error) {
	var p Progress
	rows := make([]schema.Event, 0, insertRows)
	write := func() error {
		err := w.WriteEvents(ctx, rows)
		rows = rows[:0]
		report(p)
		return err
	}
	err := population.GenerateEvents(ctx, s, storedEvents, func(batch population.Batch[[]schema.Event]) error {
		if len(rows)+len(batch.Data) > insertRows {
			if err := write(); err != nil {
				return err
			}
		}
		rows = append(rows, batch.Data...)
		p.addCounts(batch.Visitors, batch.Events, 0)
		return nil
	})
	if err != nil {
		return p, err
	}
	return p, write()
}

func storedEvents(events []population.Event) []schema.Event {
	rows := make([]schema.Event, len(events))
	for i := range events {
		rows[i] = events[i].Event
	}
	return rows
}
