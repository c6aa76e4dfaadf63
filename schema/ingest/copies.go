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

var (
	//go:embed sql/own_later_copies.sql
	ownLaterCopies string
	//go:embed sql/own_recent_copies.sql
	ownRecentCopies string
	//go:embed sql/recent_writers.sql
	recentWriters string
	//go:embed sql/later_copies.sql
	laterCopies string
	//go:embed sql/unfinished_copies.sql
	unfinishedCopies string
)

// storedCopy is one of several rows of the same event. The writer and the
// acceptance time distinguish the copies.
type storedCopy struct {
	schema.Event // only the fields of the key and of the counters are set
	writer       string
	ingestedAt   time.Time
}

// Sweep removes the copies of events that several processes inserted at the same
// time and that none of them removed. A copy remains if a process stopped or did
// not see the other copy. Sweep examines the events accepted since a time and
// finishes removals that other processes began. It returns the number of removed
// copies.
//
// Several processes may sweep at the same time. A store with one writer has no
// copies.
func (w *Writer) Sweep(ctx context.Context, since time.Time) (removed int, err error) {
	if w.name == "" {
		return 0, nil
	}
	var rows, writers uint64
	if err := w.conn.QueryRow(ctx, recentWriters, sinceNamed(since)).Scan(&rows, &writers); err != nil {
		return 0, fmt.Errorf("look for copies of events: %w", err)
	}
	slices := 1 + rows/rowsPerSlice
	if writers < 2 {
		slices = 0 // a single writer inserts no event twice
	}
	for slice := range slices {
		copies, err := w.copiesOf(ctx, laterCopies, sinceNamed(since), clickhouse.Named("slices", slices), clickhouse.Named("slice", slice))
		if err == nil {
			err = w.removeCopies(ctx, copies)
		}
		if err != nil {
			return removed, err
		}
		removed += len(copies)
	}
	unfinished, err := w.finishRemovals(ctx, since)
	if removed += unfinished; removed > 0 {
		w.afterWrite(nil)
	}
	return removed, err
}

// finishRemovals removes the copies whose removal was recorded as begun and not
// as done, of events accepted since a time.
func (w *Writer) finishRemovals(ctx context.Context, since time.Time) (removed int, err error) {
	copies, err := w.copiesOf(ctx, unfinishedCopies, sinceNamed(since))
	if err != nil {
		return 0, err
	}
	return len(copies), w.finishRemoval(ctx, copies)
}

// rowsPerSlice is the number of events that a sweep groups at a time, with about
// 2 GB of memory.
const rowsPerSlice = 20_000_000

func sinceNamed(since time.Time) any {
	return clickhouse.DateNamed("since", since, clickhouse.MilliSeconds)
}

// copiesOf returns the copies that a query selects.
func (w *Writer) copiesOf(ctx context.Context, query string, params ...any) ([]storedCopy, error) {
	copies, err := schema.QueryRows(ctx, w.conn, query, func(rows driver.Rows, c *storedCopy) error {
		return rows.Scan(&c.WebsiteID, (*string)(&c.Subject), &c.SubjectID, &c.ExperimentID, &c.VisitorID, &c.EventID, &c.writer, &c.ingestedAt,
			(*string)(&c.Kind), &c.GoalID, &c.Value, &c.ExtraValue)
	}, params...)
	if err != nil {
		return nil, fmt.Errorf("look for copies of events: %w", err)
	}
	return copies, nil
}
