package ingest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/inbox_parts.sql
var inboxParts string

//go:embed sql/inbox_rows.sql
var inboxRows string

// Inbox moves the rows of events_inbox on: it writes what is right of some
// parts of that table and then drops the parts. Whatever happens in between,
// the rows are still there, and moving them again stores nothing twice.
type Inbox struct {
	conn   driver.Conn
	writer *Writer
	// Times are those that events may have.
	Times Times
	// Owns says which websites' events may come in, as of now; nil takes all.
	Owns func(ctx context.Context) (func(websiteID int64) bool, error)
	// Reject, if set, is called for every row that is not taken. After a crash
	// it may be called for the row again.
	Reject func(InboxReject)
	// Moved, if set, is called with what became of some rows.
	Moved func(Moved)
}

// InboxReject is a row that is not taken.
type InboxReject struct {
	RowID, WebsiteID, EventID string // as they stand in the row
	Reason                    string
}

// Moved is what became of rows of the inbox.
type Moved struct {
	Stored     int64
	Duplicates int64
	Rejected   int64
}

func (m *Moved) add(o Moved) {
	m.Stored += o.Stored
	m.Duplicates += o.Duplicates
	m.Rejected += o.Rejected
}

// NewInbox returns the inbox of a store, whose rows the writer writes.
func NewInbox(conn driver.Conn, w *Writer) *Inbox { return &Inbox{conn: conn, writer: w} }

// Follow moves rows until the context ends. It looks for them at intervals of
// about the given length, which differ, so that several servers of a store
// seldom take the same rows.
func (i *Inbox) Follow(ctx context.Context, every time.Duration) {
	for {
		if _, err := i.Move(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "events_inbox is not moved", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every/2 + rand.N(every)):
		}
	}
}

// Move moves the rows that are there.
func (i *Inbox) Move(ctx context.Context) (Moved, error) {
	var moved Moved
	parts, err := i.parts(ctx)
	if err != nil || len(parts) == 0 {
		return moved, err
	}
	owns := func(int64) bool { return true }
	if i.Owns != nil {
		if owns, err = i.Owns(ctx); err != nil {
			return moved, err
		}
	}
	for len(parts) > 0 {
		next := portion(parts)
		some, err := i.movePortion(ctx, parts[:next], owns)
		moved.add(some)
		if err != nil {
			return moved, err
		}
		parts = parts[next:]
	}
	return moved, nil
}

// inboxPart is a part of the table. It does not change: it is replaced, when it
// is merged, by one of another name.
type inboxPart struct {
	name        string
	rows, bytes uint64
}

func (i *Inbox) parts(ctx context.Context) ([]inboxPart, error) {
	rows, err := i.conn.Query(ctx, inboxParts)
	if err != nil {
		return nil, fmt.Errorf("look into events_inbox: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var parts []inboxPart
	for rows.Next() {
		var p inboxPart
		if err := rows.Scan(&p.name, &p.rows, &p.bytes); err != nil {
			return nil, fmt.Errorf("look into events_inbox: %w", err)
		}
		parts = append(parts, p)
	}
	return parts, rows.Err()
}

// What is read at once is bounded by rows and by bytes: a foreign client's
// texts may be of any length.
const (
	portionRows  = 50_000
	portionBytes = 32 << 20
)

// portion is how many of the parts are moved together: one at least.
func portion(parts []inboxPart) int {
	var rows, bytes uint64
	for n, p := range parts {
		rows, bytes = rows+p.rows, bytes+p.bytes
		if n > 0 && (rows > portionRows || bytes > portionBytes) {
			return n
		}
	}
	return len(parts)
}

// movePortion moves some parts together, or one page by page.
func (i *Inbox) movePortion(ctx context.Context, parts []inboxPart, owns func(int64) bool) (Moved, error) {
	var moved Moved
	names, most, all := make([]string, len(parts)), uint64(0), int64(0)
	for n, p := range parts {
		names[n], most, all = p.name, max(most, p.rows), all+int64(p.rows) //nolint:gosec // rows of a part
	}
	page := most
	if len(parts) == 1 {
		page = min(most, portionRows, max(1, most*portionBytes/max(1, parts[0].bytes)))
	}
	for from := uint64(0); from < most; from += page {
		some, err := i.movePage(ctx, names, from, from+page, owns)
		if err != nil {
			return moved, err
		}
		moved.add(some)
		if i.Moved != nil {
			i.Moved(some)
		}
	}
	// A server of several may not have a part yet that another one named: nothing
	// is dropped that was not read.
	if moved.Stored+moved.Duplicates+moved.Rejected < all {
		return moved, nil
	}
	return moved, i.drop(ctx, names)
}

// movePage writes what is right of some rows.
func (i *Inbox) movePage(ctx context.Context, parts []string, from, until uint64, owns func(int64) bool) (Moved, error) {
	var moved Moved
	var events []schema.Event
	var reason string
	err := i.read(ctx, parts, from, until, func(id string, row *fields) {
		event, err := i.event(id, row, owns)
		if err == nil {
			events = append(events, event)
			return
		}
		if moved.Rejected++; reason == "" {
			reason = err.Error()
		}
		if i.Reject != nil {
			i.Reject(InboxReject{id, row.values[fieldWebsiteID], row.values[fieldEventID], err.Error()})
		}
	})
	if err != nil {
		return Moved{}, fmt.Errorf("read events_inbox: %w", err)
	}
	verdicts, _, err := i.writer.WriteEach(ctx, events)
	if err != nil {
		return Moved{}, err
	}
	for _, v := range verdicts {
		if v == Stored {
			moved.Stored++
		} else {
			moved.Duplicates++
		}
	}
	if moved.Rejected > 0 {
		slog.WarnContext(ctx, "rows of events_inbox are rejected", "rows", moved.Rejected, "of", moved.Rejected+int64(len(events)), "first", reason)
	}
	return moved, nil
}

// event makes a row of the events table of one of the inbox.
func (i *Inbox) event(id string, row *fields, owns func(int64) bool) (schema.Event, error) {
	rows, err := build(nil, row, "inbox:"+id, i.Times)
	if err != nil {
		return schema.Event{}, err
	}
	if !owns(rows[0].WebsiteID) {
		return schema.Event{}, fmt.Errorf("unknown_website: websiteId %d is in no catalogue; apply one first", rows[0].WebsiteID)
	}
	return rows[0], nil
}

func (i *Inbox) read(ctx context.Context, parts []string, from, until uint64, take func(id string, row *fields)) error {
	rows, err := i.conn.Query(ctx, inboxRows, clickhouse.Named("parts", parts), clickhouse.Named("from", from), clickhouse.Named("until", until))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var id string
	var row fields
	targets := []any{&id}
	for f := range row.values {
		targets = append(targets, &row.values[f])
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if at := &row.values[fieldTime]; *at != "" {
			*at = strings.Replace(*at, " ", "T", 1) + "Z"
		}
		take(id, &row)
	}
	return rows.Err()
}

// noSuchPart is ClickHouse's code for a part that was merged or dropped.
const noSuchPart = 232

// drop removes parts. Those that another server dropped are gone; the rows of
// those that were merged are moved once more.
func (i *Inbox) drop(ctx context.Context, parts []string) error {
	for some := range slices.Chunk(parts, 100) {
		err := i.dropAll(ctx, some)
		if isGone(err) && len(some) > 1 {
			for _, one := range some {
				if err = i.dropAll(ctx, []string{one}); err != nil && !isGone(err) {
					break
				}
			}
		}
		if err != nil && !isGone(err) {
			return fmt.Errorf("drop moved rows of events_inbox: %w", err)
		}
	}
	return nil
}

func isGone(err error) bool {
	var exception *clickhouse.Exception
	return errors.As(err, &exception) && exception.Code == noSuchPart
}

func (i *Inbox) dropAll(ctx context.Context, parts []string) error {
	drops, values := make([]string, len(parts)), make([]any, len(parts))
	for n, part := range parts {
		name := fmt.Sprintf("part%d", n)
		drops[n], values[n] = fmt.Sprintf("DROP PART {%s:String}", name), clickhouse.Named(name, part)
	}
	return i.conn.Exec(ctx, "ALTER TABLE events_inbox "+strings.Join(drops, ", "), values...)
}
