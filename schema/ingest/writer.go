// Package ingest validates events and stores them in the events table.
//
//  1. A reader (NDJSON, CSV or Parquet; gzip or zstd) returns lines with their numbers.
//  2. A Mapping converts lines that do not have Lifthouse's field names into the
//     fields of one or more events.
//  3. rules.validate checks the fields and returns one row per exposure.
//  4. Writer inserts the rows. It does not look up stored events: an event that is stored
//     several times counts once, because the fold removes copies.
//
// ImportFile applies all steps to a file. Inbox applies the last two to the rows that other clients inserted into
// events_inbox.
package ingest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Writer writes events as they were sent, without looking up stored events. The fold of a visitor's events removes
// copies, so an event counts once, however often it arrives.
type Writer struct {
	conn         driver.Conn
	facts        Facts
	writeLock    chan struct{}            // held by an insert or a deletion
	written      func(accepted time.Time) // called after each insert
	lastAccepted time.Time                // guarded by writeLock
	ahead        time.Duration            // how far the clock of the store is ahead of that of the process
	openingNames chan struct{}            // held while the names are read
	names        atomic.Pointer[Names]    // nil: not read yet
	nameOptions  NameOptions
}

// Facts are the data computed from the events.
type Facts interface {
	// HoldScrubs holds off comparisons of facts with events, while these are deleted, until release is called.
	HoldScrubs() (release func())
	// EraseVisitors deletes the facts of visitors whose events are deleted.
	EraseVisitors(ctx context.Context, visitors []schema.Visitor) error
	// DropSubjects deletes the facts of subjects whose events are deleted.
	DropSubjects(ctx context.Context, subjects []schema.Subject) error
	// RefoldVisitors computes the facts of visitors again, some of whose events are deleted.
	RefoldVisitors(ctx context.Context, visitors []schema.Visitor) error
}

// NewWriter returns the writer of a store. A process must have only one writer per store. The facts may be nil if no
// events are deleted.
func NewWriter(conn driver.Conn, facts Facts) *Writer {
	return &Writer{
		conn: conn, facts: facts, writeLock: make(chan struct{}, 1), openingNames: make(chan struct{}, 1),
		written: func(time.Time) {},
	}
}

// Names returns the names in the stored events. The first call reads them.
func (w *Writer) Names(ctx context.Context) (*Names, error) {
	if names := w.names.Load(); names != nil {
		return names, nil
	}
	select {
	case w.openingNames <- struct{}{}:
		defer func() { <-w.openingNames }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if names := w.names.Load(); names != nil {
		return names, nil
	}
	names, err := openNames(ctx, w.conn, w.nameOptions)
	if err == nil {
		w.names.Store(names)
	}
	return names, err
}

// SetNameOptions sets which names are forgotten. It must be called before Names.
func (w *Writer) SetNameOptions(o NameOptions) { w.nameOptions = o }

// AfterInsert sets a function that is called after each insert, before the events are acknowledged, with their
// acceptance time, in the order of the inserts. It must be set before the first write.
func (w *Writer) AfterInsert(f func(accepted time.Time)) { w.written = f }

// SetClock makes the writer take acceptance times from the clock of the store, which all processes share. The times are
// later than those of the stored events, and later than folded, up to which events were folded, even if the clock was
// set back and the last events were erased.
func (w *Writer) SetClock(ctx context.Context, folded time.Time) error {
	var now time.Time
	if err := w.conn.QueryRow(ctx, statements["last_accepted"]).Scan(&w.lastAccepted, &now); err != nil {
		return fmt.Errorf("read the last acceptance time: %w", err)
	}
	if folded.After(w.lastAccepted) {
		w.lastAccepted = folded
	}
	w.ahead = time.Until(now)
	return nil
}

// StopWrites waits for the current write and prevents further writes. It returns false if the context ends first; a
// write may then be interrupted.
func (w *Writer) StopWrites(ctx context.Context) bool {
	select {
	case w.writeLock <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// PauseWrites calls work while no write is running.
func (w *Writer) PauseWrites(ctx context.Context, work func() error) error {
	select {
	case w.writeLock <- struct{}{}:
		defer func() { <-w.writeLock }()
		return work()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WriteEvents stores events, and returns when they are stored. After an error some may be stored; writing them again is
// safe.
func (w *Writer) WriteEvents(ctx context.Context, events []schema.Event) error {
	if len(events) == 0 {
		return nil
	}
	events = distinctEvents(events)
	return w.PauseWrites(ctx, func() error {
		return w.insertEventsLocked(ctx, events)
	})
}

// insertEventsLocked inserts events that have different identities. The caller must hold writeLock.
func (w *Writer) insertEventsLocked(ctx context.Context, events []schema.Event) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if names := w.names.Load(); names != nil { // otherwise none was noted
		if err := names.storeNames(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	// Acceptance times reflect the order of the inserts: each is the current time, but later than the previous one.
	accepted := time.Now().Add(w.ahead).UTC().Truncate(time.Millisecond)
	if !accepted.After(w.lastAccepted) {
		accepted = w.lastAccepted.Add(time.Millisecond)
	}
	w.lastAccepted = accepted
	if err := schema.InsertEvents(context.WithoutCancel(ctx), w.conn, events, accepted); err != nil {
		return err
	}
	w.written(accepted)
	return nil
}

// distinctEvents returns the first event of each identity, and of orders of each customer. The first event to arrive
// counts, and all events of an insert have the same acceptance time. The result may be the given slice.
func distinctEvents(events []schema.Event) []schema.Event {
	type identity struct {
		schema.EventKey
		goal     int64 // of an order of a customer
		customer string
	}
	identityOf := func(e *schema.Event) identity {
		id := identity{EventKey: e.Key()}
		if e.Customer != "" {
			id.goal = e.GoalID
			id.customer = e.Customer
		}
		return id
	}
	seen := make(map[identity]struct{}, len(events))
	for i := range events {
		seen[identityOf(&events[i])] = struct{}{}
	}
	if len(seen) == len(events) {
		return events
	}
	clear(seen)
	first := make([]schema.Event, 0, len(events))
	for i := range events {
		id := identityOf(&events[i])
		if _, has := seen[id]; !has {
			seen[id] = struct{}{}
			first = append(first, events[i])
		}
	}
	return first
}

const copyBatch = 50_000 // events of an insert when a store is copied

// CopyEvents writes the events of another store, in the order in which they were accepted. An interrupted copy can be
// repeated. progress is called after each insert.
func CopyEvents(ctx context.Context, w *Writer, source driver.Conn,
	progress func(done, total uint64),
) (copied uint64, err error) {
	var total uint64
	if err := source.QueryRow(ctx, "SELECT count() FROM events").Scan(&total); err != nil {
		return 0, fmt.Errorf("count the events to copy: %w", err)
	}
	names, err := w.Names(ctx)
	if err != nil {
		return 0, err
	}
	of, err := schema.ReadNames(ctx, source)
	if err != nil {
		return 0, err
	}
	for id, name := range of {
		if err := names.noteName(id, name.Key, name.Source); err != nil {
			return 0, err
		}
	}
	labels, err := schema.ReadLabels(ctx, source)
	if err != nil {
		return 0, err
	}
	names.addLabels(labels)
	if err := copyOrders(ctx, w, source); err != nil {
		return 0, schema.WrapError(err, "copy orders of customers")
	}
	batch := make([]schema.Event, 0, copyBatch)
	flush := func() error {
		err := w.WriteEvents(ctx, batch)
		if err == nil {
			copied += uint64(len(batch))
		}
		batch = batch[:0]
		progress(copied, total)
		return err
	}
	err = schema.EachRow(ctx, source, statements["event_columns"]+"ORDER BY version DESC, website_id, visitor_id",
		func(row driver.Rows) error {
			var e schema.Event
			var attributes, details string
			if err := row.Scan(&e.WebsiteID, (*string)(&e.Subject), &e.SubjectID, &e.ExperimentID, &e.VisitorID,
				&e.EventID, &e.Time, &e.VariationID, (*string)(&e.Kind), &e.GoalID,
				&e.Value, &e.Profit, &e.ExtraValue, &attributes, &details, &e.Revision, &e.Cancelled); err != nil {
				return err
			}
			var err error
			e.Details, err = schema.DecodeDetails(details)
			if err != nil {
				return err
			}
			e.Time = e.Time.UTC()
			e.Attributes = schema.SplitAttributes(attributes)
			batch = append(batch, e)
			if len(batch) < copyBatch {
				return nil
			}
			return flush()
		})
	if err == nil {
		err = flush()
	}
	return copied, schema.WrapError(err, "copy events")
}

// copyOrders writes the orders of customers that name no visitor of another store. Others are copied with the events.
func copyOrders(ctx context.Context, w *Writer, source driver.Conn) error {
	batch := make([]schema.Event, 0, copyBatch)
	flush := func() error {
		err := w.WriteEvents(ctx, batch)
		batch = batch[:0]
		return err
	}
	err := schema.EachRow(ctx, source, statements["orders_without_visitor"], func(row driver.Rows) error {
		e := schema.Event{Subject: schema.SubjectNone, Kind: schema.KindGoal}
		var details string
		err := row.Scan(&e.WebsiteID, &e.GoalID, &e.EventID, &e.Revision, &e.Time, &e.Cancelled, &e.Value, &e.Profit,
			&e.ExtraValue, &details)
		if err == nil {
			e.Details, err = schema.DecodeDetails(details)
		}
		if e.GoalID == 0 {
			e.Kind = schema.KindCustomer
		}
		e.Time = e.Time.UTC()
		batch = append(batch, e)
		if err != nil || len(batch) < copyBatch {
			return err
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}
