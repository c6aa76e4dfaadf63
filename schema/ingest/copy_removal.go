package ingest

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
)

var (
	//go:embed sql/remove_copies.sql
	removeCopies string
	//go:embed sql/remove_recorded.sql
	removeRecorded string
	//go:embed sql/recorded_left.sql
	recordedLeft string
	//go:embed sql/copies_left.sql
	copiesLeft string
)

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
	if err := w.recordRemoval(ctx, copies, false); err != nil {
		return err
	}
	return w.finishRemoval(ctx, copies)
}

// finishRemoval removes copies whose removal is recorded.
func (w *Writer) finishRemoval(ctx context.Context, copies []storedCopy) error {
	if len(copies) == 0 {
		return nil
	}
	remove := w.removeListed
	if w.readsTables {
		remove = w.removeRecorded
	}
	left, err := remove(ctx, copies)
	if err != nil {
		return fmt.Errorf("remove copies of events: %w", err)
	}
	if err := w.awaitRemoval(ctx, left); err != nil {
		return err
	}
	// The counters change last, when the copies are no longer found.
	return w.recordRemoval(ctx, copies, true)
}

// countLeft counts the copies that are still stored.
type countLeft func() (uint64, error)

// insertsPerStatement is the maximum number of inserts of which a statement
// removes the recorded copies.
const insertsPerStatement = 1_000

// removeRecorded removes all recorded copies of the inserts that stored the
// copies. The mutations of a part are executed one after the other, and each
// rewrites the part, so there is one for all copies.
func (w *Writer) removeRecorded(ctx context.Context, copies []storedCopy) (countLeft, error) {
	statements := recordedParams(copies)
	for _, params := range statements {
		if err := w.conn.Exec(ctx, removeRecorded, params...); err != nil {
			return nil, err
		}
	}
	return func() (left uint64, err error) {
		for _, params := range statements {
			var n uint64
			if err := w.conn.QueryRow(ctx, recordedLeft, params...).Scan(&n); err != nil {
				return 0, err
			}
			left += n
		}
		return left, nil
	}, nil
}

// recordedParams returns the parameters of the statements that select the
// recorded copies of the inserts that stored the copies.
func recordedParams(copies []storedCopy) [][]any {
	inserts := slices.SortedFunc(maps.Keys(byInsertion(copies)), func(a, b insertion) int { return cmp.Compare(a.ingestedAt, b.ingestedAt) })
	var statements [][]any
	for chunk := range slices.Chunk(inserts, insertsPerStatement) {
		statements = append(statements, []any{
			clickhouse.Named("from", chunk[0].ingestedAt), clickhouse.Named("through", chunk[len(chunk)-1].ingestedAt),
			clickhouse.Named("writers", each(chunk, func(i *insertion) string { return i.writer })),
			clickhouse.Named("times", each(chunk, func(i *insertion) int64 { return i.ingestedAt })),
		})
	}
	return statements
}

// removeListed removes copies by statements that list them. Replicas may execute
// a statement at different times, so it may not read a table.
func (w *Writer) removeListed(ctx context.Context, copies []storedCopy) (countLeft, error) {
	for of, all := range byInsertion(copies) {
		for _, chunk := range statements(all) {
			if err := w.conn.Exec(ctx, removeCopies, of.params(chunk)...); err != nil {
				return nil, err
			}
		}
	}
	lookup, err := copiesTable(copies)
	return func() (left uint64, err error) {
		err = w.conn.QueryRow(clickhouse.Context(ctx, clickhouse.WithExternalTable(lookup)), copiesLeft).Scan(&left)
		return left, err
	}, err
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

// The copies are in new and small parts, so their removal takes milliseconds if
// the server is idle. removalStuck is the time without progress after which the
// removal is an error.
const (
	removalFirstWait = 2 * time.Millisecond
	removalMaxWait   = time.Second
	removalStuck     = 30 * time.Second
)

// awaitRemoval waits until no copies are stored. Waiting for the mutation would
// include merges of old parts.
func (w *Writer) awaitRemoval(ctx context.Context, count countLeft) error {
	progress := removalProgress{at: time.Now()}
	for wait := removalFirstWait; ; wait = min(2*wait, removalMaxWait) {
		left, err := count()
		if err != nil {
			return fmt.Errorf("look for removed copies: %w", err)
		}
		if left == 0 {
			return nil
		}
		parts := progress.parts
		if time.Since(progress.at) > removalMaxWait {
			parts = w.partsToRewrite(ctx)
		}
		if progress.without(left, parts) > removalStuck {
			return fmt.Errorf("remove copies of events: %d are still stored, and no mutation has made progress for %v; mutations: %s", left, removalStuck, w.unfinishedMutations(ctx))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// removalProgress is the progress of a removal of copies. It includes the parts
// that mutations have rewritten, because a mutation may wait for others.
type removalProgress struct {
	left  uint64 // number of copies
	parts int64  // number of parts that remain to be rewritten
	at    time.Time
}

// without updates the progress, and returns the time since the last progress.
func (p *removalProgress) without(left uint64, parts int64) time.Duration {
	if left < p.left || parts < p.parts {
		p.at = time.Now()
	}
	p.left, p.parts = left, parts
	return time.Since(p.at)
}

// partsToRewrite returns the number of parts that mutations have not rewritten yet,
// or 0 if it cannot be read: the copies that are still stored show progress as well.
func (w *Writer) partsToRewrite(ctx context.Context) int64 {
	mutations, err := schema.UnfinishedDeletions(ctx, w.conn)
	if err != nil {
		return 0
	}
	return mutations.Parts
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

// byInsertion groups copies by the insert that stored them.
func byInsertion(copies []storedCopy) map[insertion][]storedCopy {
	groups := map[insertion][]storedCopy{}
	for i := range copies {
		of := insertion{copies[i].writer, copies[i].ingestedAt.UnixMilli()}
		groups[of] = append(groups[of], copies[i])
	}
	return groups
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
