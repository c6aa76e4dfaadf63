package ingest

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/event_columns.sql
var eventColumns string

//go:embed sql/stored_events.sql
var storedEvents string

// Writer writes events to the events table. It skips events that are already
// stored, so that an event counts once however often it arrives.
//
// The identity of an event is its id with its website, subject, experiment and
// visitor. Only an identity with all of these can be looked up by key.
type Writer struct {
	conn          driver.Conn
	writeLock     chan struct{} // held from the look-up to the insert
	afterInsert   func(rows []schema.Event, accepted time.Time)
	afterWrite    func([]Subject)
	name          string // identifies the rows of this writer in a shared store; empty if the store is not shared
	idFilter      idFilter
	leastSaved    uint64       // events from which their ids are saved
	savedIDs      string       // a file with the ids of the stored events; empty: none; guarded by writeLock
	exclusive     bool         // no other process writes to the store
	readsTables   bool         // a mutation may read another table
	lastAccepted  time.Time    // the latest acceptance time; guarded by writeLock
	through       atomic.Int64 // the acceptance time of the last completed insert, in Unix milliseconds
	countersDirty bool         // a failed insert may have stored events without counting them; guarded by writeLock
	blocks        blocks
	unattributed  map[int64]bool // whether a website has unattributed goals, if known; only used if exclusive

	manifest   *schema.Manifest // nil for a store on servers
	rollups    Rollups
	refreshes  *refreshes
	unfinished atomic.Bool // a deletion failed, and the store may still execute a part of it
}

// NewWriter returns the writer of a store. A process must have only one writer
// per store.
func NewWriter(conn driver.Conn) *Writer {
	return &Writer{conn: conn, writeLock: make(chan struct{}, 1), afterWrite: func([]Subject) {}, afterInsert: func([]schema.Event, time.Time) {}, refreshes: newRefreshes(), leastSaved: leastSavedIDs}
}

// SetManifest sets the manifest that is updated after each insert, before the
// events are acknowledged. It must be called before the first write.
func (w *Writer) SetManifest(m *schema.Manifest) { w.manifest = m }

// Rollups are sums over the events of a subject that are stored beside them.
type Rollups interface {
	// Retire drops the rollups of the subjects for which of returns true, and
	// reports whether there were any. It is called before events are deleted,
	// because rollups include the deleted events.
	Retire(ctx context.Context, of func(Subject) bool) (dropped bool, err error)

	// BeginRemoval prevents other processes from refreshing rollups until end is called,
	// which is when the events are deleted.
	BeginRemoval(ctx context.Context) (end func(context.Context) error, err error)
}

// SetRollups sets the rollups of the store. Without them, the writer refuses to
// delete events.
func (w *Writer) SetRollups(r Rollups) { w.rollups = r }

// AfterWrite sets a function that is called after each insert, before the events
// are acknowledged, and after each deletion. It gets the subjects whose events
// changed, or nil for all subjects. It must be called before the first write.
func (w *Writer) AfterWrite(f func([]Subject)) { w.afterWrite = f }

// AfterInsert sets a function that is called after each insert into a store that no other
// process writes to, with the rows and the time at which they were accepted, in the order
// of the inserts and before the function of AfterWrite. The function must not keep the
// slice. It must be set before the first write.
func (w *Writer) AfterInsert(f func(rows []schema.Event, accepted time.Time)) { w.afterInsert = f }

// Stop waits for the current write and prevents further writes. It returns false
// if the context ends first; a write may then be interrupted.
func (w *Writer) Stop(ctx context.Context) bool {
	select {
	case w.writeLock <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Pause calls work while no write is running.
func (w *Writer) Pause(ctx context.Context, work func() error) error {
	select {
	case w.writeLock <- struct{}{}:
		defer func() { <-w.writeLock }()
		return work()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Write stores the events that are not stored yet and returns when they are
// stored. After an error some events may be stored; writing them again is safe.
func (w *Writer) Write(ctx context.Context, events []schema.Event) (Outcome, error) {
	_, outcome, err := w.WriteEach(ctx, events)
	return outcome, err
}

// WriteEach is like Write and also returns a verdict per event.
func (w *Writer) WriteEach(ctx context.Context, events []schema.Event) ([]Verdict, Outcome, error) {
	verdicts := batchVerdicts(events)
	outcome, err := w.write(ctx, events, verdicts)
	if err != nil {
		return nil, Outcome{}, err
	}
	return verdicts, outcome, nil
}

// write implements WriteEach. verdicts marks the duplicates within events; write
// updates it with the final verdicts.
func (w *Writer) write(ctx context.Context, events []schema.Event, verdicts []Verdict) (Outcome, error) {
	if len(events) == 0 {
		return Outcome{}, nil
	}
	select {
	case w.writeLock <- struct{}{}:
		defer func() { <-w.writeLock }()
	case <-ctx.Done():
		return Outcome{}, context.Cause(ctx)
	}
	if err := w.readSavedIDs(ctx); err != nil {
		return Outcome{}, err
	}
	if err := w.repairCounters(ctx); err != nil {
		return Outcome{}, err
	}
	if err := w.followBlocks(ctx, len(events)); err != nil {
		return Outcome{}, err
	}
	stored, err := w.compareStored(ctx, events, verdicts)
	if err != nil {
		return Outcome{}, err
	}
	derived, err := w.derived(ctx, events, verdicts, stored)
	if err != nil {
		return Outcome{}, err
	}
	fresh := selectStored(events, verdicts)
	outcome := outcomeOf(verdicts)
	if len(fresh)+len(derived) == 0 {
		return outcome, nil
	}
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	rows := slices.Concat(fresh, derived)
	if w.name == "" {
		outcome.Attributed = len(derived)
		err = w.insertExclusive(ctx, rows)
	} else {
		outcome, err = w.writeShared(ctx, events, verdicts, stored, derived)
	}
	if err != nil {
		return Outcome{}, err
	}
	w.through.Store(w.lastAccepted.UnixMilli())
	w.afterWrite(subjectsOf(rows))
	return outcome, nil
}

// insertExclusive inserts rows into a store that no other process writes to.
func (w *Writer) insertExclusive(ctx context.Context, rows []schema.Event) error {
	w.noteUnattributed(rows)
	w.idFilter.addAll(rows) // before the insert, because a failed insert may have stored rows
	// ClickHouse commits the parts of events before those of subject_stats. Cancellation in between would leave the
	// counters too low, because a retry finds the events stored.
	ctx = context.WithoutCancel(ctx)
	accepted, err := w.insert(ctx, rows)
	w.countersDirty = w.exclusive && err != nil
	if w.exclusive && err == nil {
		w.afterInsert(rows, accepted)
	}
	w.manifest.Update(ctx, "events", "subject_stats")
	return err
}

// repairCounters corrects the counters after a failed insert into a store that no
// other process writes to. It runs before the next events are acknowledged.
func (w *Writer) repairCounters(ctx context.Context) error {
	if !w.countersDirty {
		return nil
	}
	if _, err := schema.RepairStats(ctx, w.conn); err != nil {
		return err
	}
	w.countersDirty = false
	w.through.Store(w.lastAccepted.UnixMilli())
	w.afterWrite(nil)
	return nil
}

// Through returns the acceptance time of this writer's last completed insert, or
// of the last stored event before the first insert. If no other process writes to
// the store, all rows accepted until then are stored, and none will be added.
func (w *Writer) Through() time.Time { return time.UnixMilli(w.through.Load()).UTC() }

// accept returns the acceptance time of the next insert: the current time, but
// later than that of the last insert, so that acceptance times reflect the order
// of the inserts.
func (w *Writer) accept() time.Time {
	now := time.Now().UTC().Truncate(time.Millisecond)
	if !now.After(w.lastAccepted) {
		now = w.lastAccepted.Add(time.Millisecond)
	}
	w.lastAccepted = now
	return now
}

// compareStored changes the verdicts of events that are already stored, and
// returns the stored rows.
func (w *Writer) compareStored(ctx context.Context, events []schema.Event, verdicts []Verdict) (map[identity]schema.Event, error) {
	stored, err := w.stored(ctx, events, verdicts)
	if err != nil || len(stored) == 0 {
		return stored, err
	}
	for i := range events {
		e := &events[i]
		if earlier, known := stored[identityOf(e)]; known {
			verdicts[i] = duplicateVerdict(&earlier, e)
		}
	}
	return stored, nil
}

// derived returns the derived rows that are neither in the batch nor stored. If
// an event of the batch has the identity of a derived row that precedes it, its
// verdict is that of a duplicate of the row.
func (w *Writer) derived(ctx context.Context, events []schema.Event, verdicts []Verdict, stored map[identity]schema.Event) ([]schema.Event, error) {
	derived, err := w.attributed(ctx, events, verdicts, stored)
	if err != nil || len(derived) == 0 {
		return nil, err
	}
	first := make(map[identity]*derivation, len(derived))
	for i := range derived {
		d := &derived[i]
		if earlier, known := first[identityOf(&d.row)]; !known || d.cause < earlier.cause {
			first[identityOf(&d.row)] = d
		}
	}
	for i := range events {
		id := identityOf(&events[i])
		d, known := first[id]
		if !known {
			continue
		}
		_, isStored := stored[id]
		switch {
		case isStored, verdicts[i] == Stored && d.cause >= i:
			delete(first, id)
		default:
			verdicts[i] = duplicateVerdict(&d.row, &events[i])
		}
	}
	var rows []schema.Event
	for i := range derived {
		if d := &derived[i]; first[identityOf(&d.row)] == d {
			rows = append(rows, d.row)
		}
	}
	fresh := make([]Verdict, len(rows))
	if _, err := w.compareStored(ctx, rows, fresh); err != nil {
		return nil, err
	}
	return selectStored(rows, fresh), nil
}

// stored returns the stored rows of the events with the verdict Stored.
func (w *Writer) stored(ctx context.Context, events []schema.Event, verdicts []Verdict) (map[identity]schema.Event, error) {
	stored := map[identity]schema.Event{}
	if w.exclusive || w.blocks.current {
		events = w.idFilter.possiblyStored(events, verdicts)
	} else {
		events = selectStored(events, verdicts)
	}
	if len(events) == 0 {
		return stored, nil
	}
	lookup, err := lookupTable(events)
	if err != nil {
		return nil, err
	}
	return stored, w.find(clickhouse.Context(ctx, clickhouse.WithExternalTable(lookup)), stored, storedEvents)
}

// lookupTable returns an external table with the identities of events. A server
// accepts fewer as query parameters.
func lookupTable(events []schema.Event) (*ext.Table, error) {
	return newLookupTable(events, func(e *schema.Event) *schema.Event { return e })
}

// lookupColumn is an additional column of a look-up table.
type lookupColumn struct {
	name   string
	of     column.Type
	values any // a slice with one value per row
}

// newLookupTable returns an external table with the identities of the events of
// rows, and additional columns.
func newLookupTable[T any](rows []T, event func(*T) *schema.Event, more ...lookupColumn) (*ext.Table, error) {
	columns := append([]lookupColumn{
		{"website_id", "Int64", each(rows, func(r *T) int64 { return event(r).WebsiteID })},
		{"subject", "Enum8('none' = 0, 'campaign' = 1, 'widget' = 2)", each(rows, func(r *T) string { return string(event(r).Subject) })},
		{"subject_id", "Int64", each(rows, func(r *T) int64 { return event(r).SubjectID })},
		{"experiment_id", "Int64", each(rows, func(r *T) int64 { return event(r).ExperimentID })},
		{"visitor_id", "UInt64", each(rows, func(r *T) uint64 { return event(r).VisitorID })},
		{"event_id", "UInt64", each(rows, func(r *T) uint64 { return event(r).EventID })},
	}, more...)
	table, err := ext.NewTable("lookup", each(columns, func(c *lookupColumn) func(*ext.Table) error { return ext.Column(c.name, c.of) })...)
	if err != nil {
		return nil, err
	}
	for i, c := range columns {
		if _, err := table.Block().Columns[i].Append(c.values); err != nil {
			return nil, fmt.Errorf("look up stored events: %w", err)
		}
	}
	return table, nil
}

func each[R, T any](rows []R, of func(*R) T) []T {
	values := make([]T, len(rows))
	for i := range rows {
		values[i] = of(&rows[i])
	}
	return values
}

// find adds the events that a WHERE clause selects to stored.
func (w *Writer) find(ctx context.Context, stored map[identity]schema.Event, where string, params ...any) error {
	rows, err := w.conn.Query(ctx, eventColumns+where, params...)
	if err != nil {
		return fmt.Errorf("look up stored events: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var e schema.Event
		if err := scanEvent(rows, &e); err != nil {
			return fmt.Errorf("look up stored events: %w", err)
		}
		stored[identityOf(&e)] = e
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("look up stored events: %w", err)
	}
	return nil
}
