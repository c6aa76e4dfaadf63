package ingest

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var (
	//go:embed sql/own_later_copies.sql
	ownLaterCopies string
	//go:embed sql/recent_writers.sql
	recentWriters string
	//go:embed sql/later_copies.sql
	laterCopies string
	//go:embed sql/unfinished_copies.sql
	unfinishedCopies string
	//go:embed sql/remove_copies.sql
	removeCopies string
	//go:embed sql/copies_left.sql
	copiesLeft string
)

// storedCopy is one of several rows of the same event. The writer and the
// acceptance time distinguish the copies.
type storedCopy struct {
	schema.Event // only the fields of the key and of the counters are set
	writer       string
	ingestedAt   time.Time
}

// statementSize is the maximum size of the lists of a statement that removes
// copies, in bytes. The servers of a cluster accept at most 256 KiB of a
// forwarded statement (max_query_size).
const statementSize = 200 << 10

// size returns the size of a copy in a statement, in bytes.
func (c *storedCopy) size() int {
	return len(fmt.Sprint(c.WebsiteID, c.SubjectID, c.ExperimentID, c.VisitorID, c.EventID)) + len(c.Subject) + len(",,,,,''")
}

// statements splits copies into chunks that fit into a statement.
func statements(copies []storedCopy) [][]storedCopy {
	var parts [][]storedCopy
	size := statementSize
	for i := range copies {
		if size += copies[i].size(); size > statementSize {
			parts = append(parts, nil)
			size = copies[i].size()
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], copies[i])
	}
	return parts
}

// removeCopies removes copies from the events and from the counters. It is
// idempotent: it may be repeated, after a failure or by several processes at the
// same time.
func (w *Writer) removeCopies(ctx context.Context, copies []storedCopy) error {
	if len(copies) == 0 {
		return nil
	}
	if err := w.recordRemoval(ctx, copies, false); err != nil {
		return err
	}
	byInsert := map[insertion][]storedCopy{}
	for _, c := range copies {
		of := insertion{c.writer, c.ingestedAt.UnixMilli()}
		byInsert[of] = append(byInsert[of], c)
	}
	for of, all := range byInsert {
		for _, chunk := range statements(all) {
			if err := w.conn.Exec(ctx, removeCopies, of.params(chunk)...); err != nil {
				return fmt.Errorf("remove copies of events: %w", err)
			}
		}
	}
	if err := w.awaitRemoval(ctx, copies); err != nil {
		return err
	}
	// The counters change last, when the copies are no longer found.
	return w.recordRemoval(ctx, copies, true)
}

// recordRemoval records that the copies are about to be removed, or, if done,
// that they are removed.
func (w *Writer) recordRemoval(ctx context.Context, copies []storedCopy, done bool) error {
	const statement = `INSERT INTO removed_copies (website_id, subject, subject_id, experiment_id, visitor_id, event_id, writer, ingested_at,
		done, event, goal_id, value, extra_value)`
	err := schema.InsertRows(ctx, w.conn, statement, copies, func(c *storedCopy) []any {
		return []any{
			c.WebsiteID, string(c.Subject), c.SubjectID, c.ExperimentID, c.VisitorID, c.EventID, c.writer, c.ingestedAt,
			done, string(c.Kind), c.GoalID, c.Value, c.ExtraValue,
		}
	})
	if err != nil {
		return fmt.Errorf("record removed copies: %w", err)
	}
	return nil
}

// The copies are in new and small parts, so their removal takes milliseconds.
const (
	removalFirstWait = 2 * time.Millisecond
	removalMaxWait   = time.Second
	removalTimeout   = 30 * time.Second
)

// awaitRemoval waits until the copies are not found any more. Waiting for the
// mutation would include merges of old parts.
func (w *Writer) awaitRemoval(ctx context.Context, copies []storedCopy) error {
	lookup, err := copiesTable(copies)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(removalTimeout)
	for wait := removalFirstWait; ; wait = min(2*wait, removalMaxWait) {
		var left uint64
		err := w.conn.QueryRow(clickhouse.Context(ctx, clickhouse.WithExternalTable(lookup)), copiesLeft).Scan(&left)
		switch {
		case err != nil:
			return fmt.Errorf("look for removed copies: %w", err)
		case left == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("remove copies of events: %d are still stored after %v; mutations: %s", left, removalTimeout, w.unfinishedMutations(ctx))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unfinishedMutations describes the oldest mutations of the connected server that delete
// events and are not done, or the error of the query.
func (w *Writer) unfinishedMutations(ctx context.Context) string {
	mutations, err := schema.QueryNames(ctx, w.conn, `SELECT format('{} of {}: {} parts to do {}', mutation_id, toString(create_time), toString(parts_to_do), latest_fail_reason)
		FROM system.mutations WHERE database = currentDatabase() AND table IN ('events', {local:String}) AND NOT is_done
		ORDER BY create_time LIMIT 3`, clickhouse.Named("local", schema.LocalTable("events")))
	if err != nil {
		return err.Error()
	}
	return strings.Join(mutations, ", ")
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
	return len(copies), w.removeCopies(ctx, copies)
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

func copiesTable(copies []storedCopy) (*ext.Table, error) {
	return newLookupTable(copies, func(c *storedCopy) *schema.Event { return &c.Event },
		lookupColumn{"writer", "String", each(copies, func(c *storedCopy) string { return c.writer })},
		lookupColumn{"ingested_at", "DateTime64(3, 'UTC')", each(copies, func(c *storedCopy) time.Time { return c.ingestedAt })})
}

// insertion identifies one insert into events.
type insertion struct {
	writer     string
	ingestedAt int64 // Unix milliseconds
}

// params returns the parameters of the statement that removes copies of the
// insert.
func (i insertion) params(copies []storedCopy) []any {
	return []any{
		clickhouse.Named("writer", i.writer), clickhouse.Named("ingested_at", i.ingestedAt),
		clickhouse.Named("website_ids", each(copies, func(c *storedCopy) int64 { return c.WebsiteID })),
		clickhouse.Named("subjects", each(copies, func(c *storedCopy) string { return string(c.Subject) })),
		clickhouse.Named("subject_ids", each(copies, func(c *storedCopy) int64 { return c.SubjectID })),
		clickhouse.Named("experiment_ids", each(copies, func(c *storedCopy) int64 { return c.ExperimentID })),
		clickhouse.Named("visitor_ids", each(copies, func(c *storedCopy) uint64 { return c.VisitorID })),
		clickhouse.Named("event_ids", each(copies, func(c *storedCopy) uint64 { return c.EventID })),
	}
}
