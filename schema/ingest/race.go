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
)

// Of two processes that are given one event in the same moment, neither may
// find it stored, and both insert it. So a writer of a shared store looks for
// copies of its rows once they are in, and removes its own where another one
// is first: the store numbers inserts. Of all copies that ever are there, the
// first one is never removed.
//
// One server numbers inserts in the order in which they become visible, so that
// whoever comes later sees the earlier copy. Replicas number them before that,
// and a process may stop between its insert and the look: what remains then,
// a sweep removes.
//
// The same holds for a goal and the view that it counts for, which neither
// writer may have seen of the other: whoever came later sees both.

// shareTables has rows keep the number of their insert, and the last inserts
// be known by their tokens, so that one whose answer was lost is sent again.
var shareTables = []string{
	"ALTER TABLE subject_stats MODIFY SETTING non_replicated_deduplication_window = 1000",
	"ALTER TABLE events MODIFY SETTING enable_block_number_column = 1, non_replicated_deduplication_window = 1000",
}

// sharedTables is one row: whether they are so. A cluster's are made so.
const sharedTables = `SELECT countIf(name = {local:String} OR position(engine_full, 'enable_block_number_column = 1') > 0
		AND position(engine_full, 'non_replicated_deduplication_window = 1000') > 0) > 0
	FROM system.tables
	WHERE database = currentDatabase() AND name IN ('events', {local:String})`

// Share says that other processes write to the store too. It is called before
// the first write.
//
// From then on rows keep the number of their insert through merges. A store of
// one process goes without: it is 9 % of what an event takes on the disk.
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
	return nil
}

// writeShared inserts the fresh events into a store that others write to too,
// takes back those that came second, and changes the verdicts on them. Only
// then does it insert derived rows: those that were due when the events were
// looked up, unless an event they follow from is taken back, and those that
// are due since, with what other writers stored.
func (w *Writer) writeShared(ctx context.Context, events []schema.Event, verdicts []Verdict, stored map[identity]schema.Event, fresh, due []schema.Event) (Outcome, error) {
	ctx = context.WithoutCancel(ctx) // what is inserted twice has to go
	stayed, err := w.insertShared(ctx, fresh, func(lost map[identity]bool) error { return w.judgeLost(ctx, events, verdicts, stored, lost) })
	if err != nil {
		return Outcome{}, err
	}
	if stayed < len(fresh) {
		due = nil
	}
	outcome := outcomeOf(verdicts)
	late, err := w.derived(ctx, events, slices.Clone(verdicts), stored) // events that are stored stay so
	if err != nil {
		return Outcome{}, err
	}
	due = slices.Concat(due, late)
	due = chosen(due, judgeRepeats(due))
	outcome.Attributed, err = w.insertShared(ctx, due, func(map[identity]bool) error { return nil })
	return outcome, err
}

// insertShared inserts rows, takes back those that came second, hands over
// their identities, and returns how many stayed.
func (w *Writer) insertShared(ctx context.Context, rows []schema.Event, judge func(lost map[identity]bool) error) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	accepted, err := w.insert(ctx, rows)
	if err != nil {
		return 0, err
	}
	lost, err := w.takeBack(ctx, rows, accepted)
	if err != nil {
		return 0, err
	}
	return len(rows) - len(lost), judge(lost)
}

// insert stores events and returns when they were accepted.
func (w *Writer) insert(ctx context.Context, events []schema.Event) (accepted time.Time, err error) {
	accepted = w.accept()
	return accepted, schema.InsertEventsByWriter(ctx, w.conn, w.name, events, accepted)
}

// judgeLost says of the events that came second what they are duplicates of,
// and adds that to the stored ones.
func (w *Writer) judgeLost(ctx context.Context, events []schema.Event, verdicts []Verdict, stored map[identity]schema.Event, lost map[identity]bool) error {
	if len(lost) == 0 {
		return nil
	}
	var second []schema.Event
	for i := range events {
		if verdicts[i] == Stored && lost[identityOf(&events[i])] {
			second = append(second, events[i])
		}
	}
	first, err := w.stored(ctx, second, make([]Verdict, len(second)))
	if err != nil {
		return err
	}
	for i := range events {
		if e := &events[i]; lost[identityOf(e)] {
			verdicts[i] = Duplicate
			if earlier, known := first[identityOf(e)]; known {
				verdicts[i] = repeated(&earlier, e)
				stored[identityOf(e)] = earlier
			}
		}
	}
	return nil
}

// soughtSize is how many events are looked up at once.
const soughtSize = 8_192

// takeBack removes those of the rows, which this writer inserted, of which
// another copy is first, and returns them.
func (w *Writer) takeBack(ctx context.Context, rows []schema.Event, accepted time.Time) (map[identity]bool, error) {
	lost := map[identity]bool{}
	var copies []storedCopy
	for some := range slices.Chunk(rows, soughtSize) {
		second, err := w.second(ctx, some, accepted)
		if err != nil {
			return nil, err
		}
		for i := range second {
			copies = append(copies, storedCopy{second[i], w.name, accepted})
			lost[identityOf(&second[i])] = true
		}
	}
	return lost, w.removeCopies(ctx, copies)
}

// second returns those of the rows of which another copy is first.
func (w *Writer) second(ctx context.Context, rows []schema.Event, accepted time.Time) ([]schema.Event, error) {
	sought, err := soughtTable(rows)
	if err != nil {
		return nil, err
	}
	found, err := w.conn.Query(clickhouse.Context(ctx, clickhouse.WithExternalTable(sought)), raced,
		clickhouse.Named("writer", w.name), clickhouse.DateNamed("ingested_at", accepted, clickhouse.MilliSeconds))
	if err != nil {
		return nil, fmt.Errorf("look for copies of other servers: %w", err)
	}
	defer func() { _ = found.Close() }()
	raced := map[identity]bool{}
	for found.Next() {
		var id identity
		var of string
		if err := found.Scan(&id.websiteID, &of, &id.subjectID, &id.experimentID, &id.visitorID, &id.eventID); err != nil {
			return nil, fmt.Errorf("look for copies of other servers: %w", err)
		}
		id.subject.subject = schema.Subject(of)
		raced[id] = true
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("look for copies of other servers: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(rows), func(e schema.Event) bool { return !raced[identityOf(&e)] }), nil
}
