package ingest

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// If two processes receive the same event at the same time, neither may find it
// stored, and both insert it. A writer of a shared store therefore looks for
// copies of its rows after the insert. It removes its own row if another copy has
// a smaller block number. The first copy of an event is never removed.
//
// A single server numbers inserts in the order in which they become visible, so
// the later writer always sees the earlier copy. Replicas number inserts before
// they become visible, and a process may stop between its insert and the check.
// Sweep removes the copies that remain in these cases.
//
// The same applies to an unattributed goal and the view that it is attributed
// to, if two processes store them at the same time: the later writer sees both.

// shareTables are the statements that prepare the tables of a single server for
// several writers. Rows keep their block number through merges. The recent
// inserts are deduplicated by their tokens, so that an insert without a response
// can be sent again, and of several processes that refresh a rollup only one does.
var shareTables = []string{
	"ALTER TABLE subject_stats MODIFY SETTING non_replicated_deduplication_window = 1000",
	"ALTER TABLE rollups MODIFY SETTING non_replicated_deduplication_window = 1000",
	"ALTER TABLE events MODIFY SETTING enable_block_number_column = 1, non_replicated_deduplication_window = 1000",
}

// sharedTables selects whether the tables are prepared for several writers. The
// tables of a cluster always are.
const sharedTables = `SELECT countIf(name = {local:String}) > 0
		OR countIf(position(engine_full, 'non_replicated_deduplication_window = 1000') > 0) = 2
			AND countIf(position(engine_full, 'enable_block_number_column = 1') > 0) > 0
	FROM system.tables
	WHERE database = currentDatabase() AND name IN ('events', 'rollups', {local:String})`

// Share prepares the store and the writer for several writing processes. It must
// be called before the first write.
//
// The block numbers that rows keep take 9 % of the disk space of an event, so a
// store with one writer does not have them.
func (w *Writer) Share(ctx context.Context) error {
	var kept bool
	if err := w.conn.QueryRow(ctx, sharedTables, clickhouse.Named("local", schema.LocalTable("events"))).Scan(&kept); err != nil {
		return fmt.Errorf("share the store: %w", err)
	}
	if !kept {
		for _, statement := range shareTables {
			if err := w.conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("share the store: %w", err)
			}
		}
	}
	w.name = rand.Text()
	w.blocks.least, w.blocks.few = manyEvents, fewEvents
	return w.readEngine(ctx)
}

// writeShared inserts the new events into a shared store, removes those of which
// another process inserted a copy first, and changes their verdicts. Then it
// inserts the derived rows: those that were derived before the insert, unless an
// event was removed, and those that follow from the events that other writers
// have stored since.
func (w *Writer) writeShared(ctx context.Context, events []schema.Event, verdicts []Verdict, stored map[identity]schema.Event, due []schema.Event) (Outcome, error) {
	fresh := selectStored(events, verdicts)
	ctx = context.WithoutCancel(ctx) // later copies must be removed
	kept, err := w.insertShared(ctx, fresh, func(lost map[identity]bool) error { return w.markLost(ctx, events, verdicts, stored, lost) })
	if err != nil {
		return Outcome{}, err
	}
	if kept < len(fresh) {
		due = nil
	}
	outcome := outcomeOf(verdicts)
	late, err := w.derived(ctx, events, slices.Clone(verdicts), stored) // the clone keeps the verdicts of stored events
	if err != nil {
		return Outcome{}, err
	}
	due = slices.Concat(due, late)
	due = selectStored(due, batchVerdicts(due))
	outcome.Attributed, err = w.insertShared(ctx, due, func(map[identity]bool) error { return nil })
	return outcome, err
}

// insertShared inserts rows, removes those that are later copies, calls judge
// with their identities, and returns the number of the remaining rows.
func (w *Writer) insertShared(ctx context.Context, rows []schema.Event, judge func(lost map[identity]bool) error) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	w.idFilter.addAll(rows) // before the insert, because a failed insert may have stored rows
	accepted, err := w.insert(ctx, rows)
	if err != nil {
		return 0, err
	}
	copied, err := w.possiblyCopied(ctx, rows)
	if err != nil {
		return 0, err
	}
	lost, err := w.removeLater(ctx, copied, accepted)
	if err != nil {
		return 0, err
	}
	return len(rows) - len(lost), judge(lost)
}

// insert inserts rows and returns their acceptance time.
func (w *Writer) insert(ctx context.Context, events []schema.Event) (accepted time.Time, err error) {
	accepted = w.accept()
	return accepted, schema.InsertEvents(ctx, w.conn, w.name, events, accepted)
}

// markLost changes the verdicts of events that were later copies to Duplicate or
// Conflict, and adds the first copies to stored.
func (w *Writer) markLost(ctx context.Context, events []schema.Event, verdicts []Verdict, stored map[identity]schema.Event, lost map[identity]bool) error {
	if len(lost) == 0 {
		return nil
	}
	var later []schema.Event
	for i := range events {
		if verdicts[i] == Stored && lost[identityOf(&events[i])] {
			later = append(later, events[i])
		}
	}
	first, err := w.stored(ctx, later, make([]Verdict, len(later)))
	if err != nil {
		return err
	}
	for i := range events {
		if e := &events[i]; lost[identityOf(e)] {
			verdicts[i] = Duplicate
			if earlier, known := first[identityOf(e)]; known {
				verdicts[i] = duplicateVerdict(&earlier, e)
				stored[identityOf(e)] = earlier
			}
		}
	}
	return nil
}

// copyLookupSize is the maximum number of events per look-up.
const copyLookupSize = 8_192

// removeLater removes the rows of this writer's insert that are later copies, and
// returns their identities.
func (w *Writer) removeLater(ctx context.Context, rows []schema.Event, accepted time.Time) (map[identity]bool, error) {
	find := w.findLater
	if w.blocks.current && len(rows) > copyLookupSize {
		find = w.findRecent
	}
	lost, err := find(ctx, rows, accepted)
	if err != nil {
		return nil, fmt.Errorf("look for copies of other servers: %w", err)
	}
	var copies []storedCopy
	for i := range rows {
		if lost[identityOf(&rows[i])] {
			copies = append(copies, storedCopy{rows[i], w.name, accepted})
		}
	}
	return lost, w.removeCopies(ctx, copies)
}

// findLater returns the identities of the rows of this writer's insert that are
// later copies.
func (w *Writer) findLater(ctx context.Context, rows []schema.Event, accepted time.Time) (map[identity]bool, error) {
	later := map[identity]bool{}
	for chunk := range slices.Chunk(rows, copyLookupSize) {
		lookup, err := lookupTable(chunk)
		if err != nil {
			return nil, err
		}
		if err := w.addLater(clickhouse.Context(ctx, clickhouse.WithExternalTable(lookup)), later, accepted, ownLaterCopies); err != nil {
			return nil, err
		}
	}
	return later, nil
}

// findRecent returns the identities of the rows of this writer's insert that are
// later copies, if the ids of all events were known before the insert: the first
// copies are in the blocks that have become visible since.
func (w *Writer) findRecent(ctx context.Context, _ []schema.Event, accepted time.Time) (map[identity]bool, error) {
	later := map[identity]bool{}
	return later, w.addLater(ctx, later, accepted, ownRecentCopies, clickhouse.Named("after", w.blocks.before))
}

// addLater adds the identities that a query for copies of an insert selects.
func (w *Writer) addLater(ctx context.Context, later map[identity]bool, accepted time.Time, query string, params ...any) error {
	params = append(params, clickhouse.Named("writer", w.name), clickhouse.DateNamed("ingested_at", accepted, clickhouse.MilliSeconds))
	return schema.EachRow(ctx, w.conn, query, func(found driver.Rows) error {
		var id identity
		var subjectName string
		err := found.Scan(&id.WebsiteID, &subjectName, &id.ID, &id.ExperimentID, &id.visitorID, &id.eventID)
		id.Kind = schema.Subject(subjectName)
		later[id] = true
		return err
	}, params...)
}
