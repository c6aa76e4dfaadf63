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

//go:embed sql/stored_events.sql
var storedEvents string

// Writer is the one way into the events table. It removes what is stored
// already, so that an event counts once however often it arrives.
//
// An event is known by its id, website, subject and experiment among its
// visitor's events: only there is a stored id found by key.
type Writer struct {
	conn          driver.Conn
	writeLock     chan struct{} // held from look-up to insert
	wrote         func(context.Context)
	name          string // in the rows it writes to a store that others write to too; else empty
	idFilter      idFilter
	exclusive     bool           // nobody else writes to the store
	stamped       time.Time      // the last acceptance given; held by who has the turn
	through       atomic.Int64   // the acceptance of the last insert that is done, in milliseconds
	countersDirty bool           // an insert failed: it may have stored events and not counted them; held by who has the turn
	unattributed  map[int64]bool // websites that are known to have goals without exposures, or none; kept where it is alone

	manifest   *schema.Manifest // of an embedded store
	refreshes  *refreshes
	unfinished atomic.Bool // a removal failed, and the store may still carry out a part of it
}

// NewWriter returns the writer of a store. A process has one for each store.
func NewWriter(conn driver.Conn) *Writer {
	return &Writer{conn: conn, writeLock: make(chan struct{}, 1), wrote: func(context.Context) {}, refreshes: newRefreshes()}
}

// ListParts has the manifest list the parts that the writer makes, before
// their events are acknowledged. It is set before the first write.
func (w *Writer) ListParts(m *schema.Manifest) { w.manifest = m }

// AfterWrite has wrote called whenever events were stored, before their writer
// is told so. It is set before the first write.
func (w *Writer) AfterWrite(wrote func(context.Context)) { w.wrote = wrote }

// Stop waits until no write is under way and lets no other begin. It is false
// where the context ends first: a write may then be cut off.
func (w *Writer) Stop(ctx context.Context) bool {
	select {
	case w.writeLock <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Pause calls work while nothing is written.
func (w *Writer) Pause(ctx context.Context, work func() error) error {
	select {
	case w.writeLock <- struct{}{}:
		defer func() { <-w.writeLock }()
		return work()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Outcome is what became of the events of one call, or of many.
type Outcome struct {
	Inserted   int // rows stored
	Duplicates int // rows that were stored already, or stood earlier in the same call
	Conflicts  int // duplicates with other content; the first to arrive stands
	Attributed int // further rows stored, of goals without exposures, one for each subject that their visitors saw
}

// Add counts another outcome in.
func (o *Outcome) Add(other Outcome) {
	o.Inserted += other.Inserted
	o.Duplicates += other.Duplicates
	o.Conflicts += other.Conflicts
	o.Attributed += other.Attributed
}

type subject struct {
	websiteID               int64
	subject                 schema.Subject
	subjectID, experimentID int64
}

type identity struct {
	subject
	visitorID, eventID uint64
}

func subjectOf(e *schema.Event) subject {
	return subject{e.WebsiteID, e.Subject, e.SubjectID, e.ExperimentID}
}

func identityOf(e *schema.Event) identity { return identity{subjectOf(e), e.VisitorID, e.EventID} }

// Verdict is what became of one event.
type Verdict int

// The verdicts.
const (
	Stored    Verdict = iota
	Duplicate         // of a stored event, or of an earlier one of the same call
	Conflict          // a duplicate with other content; the first to arrive stands
)

// Write stores the events that are not stored yet and returns when they are.
// After an error it is unknown which were; writing them again is safe.
func (w *Writer) Write(ctx context.Context, events []schema.Event) (Outcome, error) {
	_, outcome, err := w.WriteEach(ctx, events)
	return outcome, err
}

// WriteEach is Write, and tells what became of each event.
func (w *Writer) WriteEach(ctx context.Context, events []schema.Event) ([]Verdict, Outcome, error) {
	verdicts := judgeRepeats(events)
	outcome, err := w.write(ctx, events, verdicts)
	if err != nil {
		return nil, Outcome{}, err
	}
	return verdicts, outcome, nil
}

// write is WriteEach of events whose repeats among themselves are judged; it
// judges them all.
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
	if err := w.repairCounters(ctx); err != nil {
		return Outcome{}, err
	}
	stored, err := w.judgeStored(ctx, events, verdicts)
	if err != nil {
		return Outcome{}, err
	}
	derived, err := w.derived(ctx, events, verdicts, stored)
	if err != nil {
		return Outcome{}, err
	}
	fresh := chosen(events, verdicts)
	outcome := outcomeOf(verdicts)
	if len(fresh)+len(derived) == 0 {
		return outcome, nil
	}
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	if w.name == "" {
		outcome.Attributed = len(derived)
		err = w.insertExclusive(ctx, slices.Concat(fresh, derived))
	} else {
		outcome, err = w.writeShared(ctx, events, verdicts, stored, fresh, derived)
	}
	if err != nil {
		return Outcome{}, err
	}
	w.through.Store(w.stamped.UnixMilli())
	w.wrote(ctx)
	return outcome, nil
}

// insertKnown inserts rows of a store that nobody else writes to.
func (w *Writer) insertExclusive(ctx context.Context, rows []schema.Event) error {
	w.noteUnattributed(rows)
	w.idFilter.addAll(rows) // before: of an insert that fails it is unknown what is stored
	// ClickHouse commits the events' parts before the rows of the views on them: an insert that is cancelled in
	// between leaves subject_stats short, since a repetition finds the events stored.
	ctx = context.WithoutCancel(ctx)
	_, err := w.insert(ctx, rows)
	w.countersDirty = w.exclusive && err != nil
	w.manifest.Update(ctx, "events", "subject_stats")
	return err
}

// recount makes the counters right after an insert that failed, of a store that
// nobody else writes to, before anybody is told that its events are stored.
func (w *Writer) repairCounters(ctx context.Context) error {
	if !w.countersDirty {
		return nil
	}
	if _, err := schema.RepairStats(ctx, w.conn); err != nil {
		return err
	}
	w.countersDirty = false
	w.through.Store(w.stamped.UnixMilli())
	w.wrote(ctx)
	return nil
}

// Through is the acceptance of the last insert of this writer that is done: of
// a store that nobody else writes to, all rows accepted until then are there,
// and none will come. Before the first insert it is that of the last stored.
func (w *Writer) Through() time.Time { return time.UnixMilli(w.through.Load()).UTC() }

// accept returns the acceptance of the next insert: the time, and later than
// the last one's, so that it tells which rows came in which order.
func (w *Writer) accept() time.Time {
	now := time.Now().UTC().Truncate(time.Millisecond)
	if !now.After(w.stamped) {
		now = w.stamped.Add(time.Millisecond)
	}
	w.stamped = now
	return now
}

// chosen returns the events to store, which may be the given slice.
func chosen(events []schema.Event, verdicts []Verdict) []schema.Event {
	if !slices.ContainsFunc(verdicts, func(v Verdict) bool { return v != Stored }) {
		return events
	}
	some := make([]schema.Event, 0, len(events))
	for i := range events {
		if verdicts[i] == Stored {
			some = append(some, events[i])
		}
	}
	return some
}

func outcomeOf(verdicts []Verdict) Outcome {
	var o Outcome
	for _, v := range verdicts {
		switch v {
		case Stored:
			o.Inserted++
		case Conflict:
			o.Conflicts++
			o.Duplicates++
		case Duplicate:
			o.Duplicates++
		}
	}
	return o
}

// repeated judges an event whose identity another one has already.
func repeated(earlier, later *schema.Event) Verdict {
	same := *later
	same.Derived = earlier.Derived // how a row came about is not its content
	if *earlier != same {
		return Conflict
	}
	return Duplicate
}

// judgeRepeats lets the first event of each identity stand.
func judgeRepeats(events []schema.Event) []Verdict {
	verdicts := make([]Verdict, len(events))
	first := make(map[identity]*schema.Event, len(events))
	for i := range events {
		e := &events[i]
		if earlier, known := first[identityOf(e)]; known {
			verdicts[i] = repeated(earlier, e)
			continue
		}
		first[identityOf(e)] = e
	}
	return verdicts
}

// judgeStored lets those events stand that are not stored, and returns the
// stored content of the others.
func (w *Writer) judgeStored(ctx context.Context, events []schema.Event, verdicts []Verdict) (map[identity]schema.Event, error) {
	stored, err := w.stored(ctx, events, verdicts)
	if err != nil || len(stored) == 0 {
		return stored, err
	}
	for i := range events {
		e := &events[i]
		if earlier, known := stored[identityOf(e)]; known {
			verdicts[i] = repeated(&earlier, e)
		}
	}
	return stored, nil
}

// derived returns the derived rows that neither the batch nor the store has. An
// event of the batch whose identity a derived row had before it arrived is
// judged as that row's repeat.
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
			verdicts[i] = repeated(&d.row, &events[i])
		}
	}
	var rows []schema.Event
	for i := range derived {
		if d := &derived[i]; first[identityOf(&d.row)] == d {
			rows = append(rows, d.row)
		}
	}
	fresh := make([]Verdict, len(rows))
	if _, err := w.judgeStored(ctx, rows, fresh); err != nil {
		return nil, err
	}
	return chosen(rows, fresh), nil
}

// stored returns the stored events that have an identity of the given ones
// that stand.
func (w *Writer) stored(ctx context.Context, events []schema.Event, verdicts []Verdict) (map[identity]schema.Event, error) {
	stored := map[identity]schema.Event{}
	if events = w.idFilter.maybe(events, verdicts); len(events) == 0 {
		return stored, nil
	}
	sought, err := soughtTable(events)
	if err != nil {
		return nil, err
	}
	return stored, w.find(clickhouse.Context(ctx, clickhouse.WithExternalTable(sought)), stored, storedEvents)
}

// soughtTable holds the identities of events, for a look-up: many more than a
// server takes as parameters.
func soughtTable(events []schema.Event) (*ext.Table, error) {
	return soughtWith(events, func(e *schema.Event) *schema.Event { return e })
}

// soughtColumn is a column beside the identity of what is looked up.
type soughtColumn struct {
	name   string
	of     column.Type
	values any // a slice of a value for each row
}

// soughtWith holds the identities of the events of rows, and more columns.
func soughtWith[T any](rows []T, event func(*T) *schema.Event, more ...soughtColumn) (*ext.Table, error) {
	columns := append([]soughtColumn{
		{"website_id", "Int64", each(rows, func(r *T) int64 { return event(r).WebsiteID })},
		{"subject", "Enum8('none' = 0, 'campaign' = 1, 'widget' = 2)", each(rows, func(r *T) string { return string(event(r).Subject) })},
		{"subject_id", "Int64", each(rows, func(r *T) int64 { return event(r).SubjectID })},
		{"experiment_id", "Int64", each(rows, func(r *T) int64 { return event(r).ExperimentID })},
		{"visitor_id", "UInt64", each(rows, func(r *T) uint64 { return event(r).VisitorID })},
		{"event_id", "UInt64", each(rows, func(r *T) uint64 { return event(r).EventID })},
	}, more...)
	table, err := ext.NewTable("sought", each(columns, func(c *soughtColumn) func(*ext.Table) error { return ext.Column(c.name, c.of) })...)
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

// find adds the events that a look-up finds.
func (w *Writer) find(ctx context.Context, stored map[identity]schema.Event, query string, params ...any) error {
	rows, err := w.conn.Query(ctx, query, params...)
	if err != nil {
		return fmt.Errorf("look up stored events: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var e schema.Event
		var of, kind string
		if err := rows.Scan(&e.WebsiteID, &of, &e.SubjectID, &e.ExperimentID, &e.VisitorID, &e.EventID, &e.Time, &e.VariationID, &kind, &e.GoalID,
			&e.Value, &e.Profit, &e.ExtraValue, &e.Device, &e.Browser, &e.OS, &e.Country, &e.Region, &e.City,
			&e.Channel, &e.Referrer, &e.UTMSource, &e.UTMMedium, &e.UTMCampaign, &e.UTMContent, &e.UTMTerm,
			&e.FirstVisitPage, &e.VisitorType); err != nil {
			return fmt.Errorf("look up stored events: %w", err)
		}
		e.Subject, e.Kind, e.Time = schema.Subject(of), schema.Kind(kind), e.Time.UTC()
		stored[identityOf(&e)] = e
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("look up stored events: %w", err)
	}
	return nil
}
