package ingest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Inbox moves rows of events_inbox to events: it validates and writes the rows of some parts of the table, and then
// drops the parts. If it is interrupted, the rows remain in events_inbox, and moving them again is harmless.
type Inbox struct {
	conn   driver.Conn
	writer *Writer
	// Times are the accepted times.
	Times Times
	// Owns returns a function that reports whether events of a website are accepted. If nil, all are.
	Owns func(ctx context.Context) (func(websiteID int64) bool, error)
	// Reject, if not nil, is called for every rejected row. After a crash, it may be called for the same row again.
	Reject func(...Reject)
	// Moved, if not nil, is called after each page of rows.
	Moved func(Moved)
}

// Moved counts the rows of events_inbox by outcome.
type Moved struct {
	Accepted int64
	Rejected int64
}

// NewInbox returns the inbox of a store. Its rows are written by w.
func NewInbox(conn driver.Conn, w *Writer) *Inbox { return &Inbox{conn: conn, writer: w} }

// MovePeriodically calls MoveRows until the context ends, at random intervals whose mean is about every. Random
// intervals make it rare that several servers of a store read the same rows.
func (i *Inbox) MovePeriodically(ctx context.Context, every time.Duration) {
	for {
		if _, err := i.MoveRows(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "move rows of events_inbox failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every/2 + rand.N(every)):
		}
	}
}

// MoveRows moves the current rows of events_inbox.
func (i *Inbox) MoveRows(ctx context.Context) (Moved, error) {
	var moved Moved
	parts, err := schema.QueryRows(ctx, i.conn, statements["inbox_parts"], func(rows driver.Rows, p *inboxPart) error {
		return rows.Scan(&p.name, &p.rows, &p.bytes)
	})
	if err != nil {
		return moved, fmt.Errorf("list parts of events_inbox: %w", err)
	}
	if len(parts) == 0 {
		return moved, nil
	}
	var owns func(websiteID int64) bool
	if i.Owns != nil {
		owns, err = i.Owns(ctx)
		if err != nil {
			return moved, err
		}
	}
	for from := 0; from < len(parts); {
		// as many parts as are moved together, at least one
		next := from + 1
		rows := parts[from].rows
		bytes := parts[from].bytes
		for ; next < len(parts); next++ {
			rows, bytes = rows+parts[next].rows, bytes+parts[next].bytes
			if rows > maxReadRows || bytes > maxReadBytes {
				break
			}
		}
		result, err := i.moveParts(ctx, parts[from:next], owns)
		moved.Accepted, moved.Rejected = moved.Accepted+result.Accepted, moved.Rejected+result.Rejected
		if err != nil {
			return moved, err
		}
		from = next
	}
	return moved, nil
}

// inboxPart is a part of the table. Parts are immutable: a merge creates a part with another name.
type inboxPart struct {
	name        string
	rows, bytes uint64
}

// The maximum size of one read. Other clients may insert strings of any length.
const (
	maxReadRows  = 50_000
	maxReadBytes = 32 << 20
)

// moveParts moves several parts together, or one large part page by page.
func (i *Inbox) moveParts(ctx context.Context, parts []inboxPart, owns func(int64) bool) (Moved, error) {
	var moved Moved
	names := make([]string, len(parts))
	most := uint64(0)
	all := int64(0)
	for n, p := range parts {
		names[n] = p.name
		most = max(most, p.rows)
		all += int64(p.rows) //nolint:gosec // rows of a part
	}
	page := most
	if len(parts) == 1 {
		page = min(most, maxReadRows, max(1, most*maxReadBytes/max(1, parts[0].bytes)))
	}
	for from := uint64(0); from < most; from += page {
		var result Moved
		err := i.writer.PauseWrites(ctx, func() (err error) {
			result, err = i.movePageLocked(ctx, names, from, from+page, owns)
			return err
		})
		if err != nil {
			return moved, err
		}
		moved.Accepted, moved.Rejected = moved.Accepted+result.Accepted, moved.Rejected+result.Rejected
		if i.Moved != nil {
			i.Moved(result)
		}
	}
	// A replica may lack parts that another replica has listed. If not all rows were read, the parts are not dropped.
	if moved.Accepted+moved.Rejected < all {
		return moved, nil
	}
	for some := range slices.Chunk(names, 100) {
		if err := i.dropExistingParts(ctx, some); err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// movePageLocked validates and writes the rows of some parts with offsets from first to until-1. The caller must hold
// the lock of the writer: a row must not be written after the erasure of its visitor.
func (i *Inbox) movePageLocked(ctx context.Context, parts []string, first, until uint64,
	owns func(int64) bool,
) (moved Moved, err error) {
	names, err := i.writer.Names(ctx)
	if err != nil {
		return moved, err
	}
	accepted := rules{times: i.Times, owns: owns, names: names, source: string(ChannelInbox)}
	var events []schema.Event
	var id, reason string
	var row fields
	targets := []any{&id}
	for f := range row.values {
		targets = append(targets, &row.values[f])
	}
	err = schema.EachRow(ctx, i.conn, statements["inbox_rows"], func(found driver.Rows) error {
		if err := found.Scan(targets...); err != nil {
			return err
		}
		if at := &row.values[fieldTime]; *at != "" {
			*at = strings.Replace(*at, " ", "T", 1) + "Z"
		}
		var fault error
		events, fault = accepted.validate(events, &row, "inbox:"+id)
		if fault == nil {
			return nil
		}
		moved.Rejected++
		if reason == "" {
			reason = hideEmails(fault.Error())
		}
		if i.Reject != nil {
			r := Reject{
				Channel: ChannelInbox, Reason: hideEmails(fault.Error()),
				Text: "event_id=" + row.values[fieldEventID] + " row_id=" + id,
			}
			r.WebsiteID, _ = strconv.ParseInt(row.values[fieldWebsiteID], 10, 64) // 0: the row has no valid website id
			i.Reject(r)
		}
		return nil
	}, clickhouse.Named("parts", parts), clickhouse.Named("from", first), clickhouse.Named("until", until))
	if err != nil {
		return Moved{}, fmt.Errorf("read events_inbox: %w", err)
	}
	if len(events) > 0 {
		if err := i.writer.insertEventsLocked(ctx, distinctEvents(events)); err != nil {
			return Moved{}, err
		}
	}
	moved.Accepted = int64(len(events))
	if moved.Rejected > 0 {
		slog.WarnContext(ctx, "rows of events_inbox rejected", "rejected", moved.Rejected, "rows",
			moved.Rejected+moved.Accepted, "firstReason", reason)
	}
	return moved, nil
}

// dropExistingParts drops parts. It ignores parts that do not exist: another server has dropped them, or they were
// merged and their rows are moved again.
func (i *Inbox) dropExistingParts(ctx context.Context, parts []string) error {
	drops, values := make([]string, len(parts)), make([]any, len(parts))
	for n, part := range parts {
		name := fmt.Sprintf("part%d", n)
		drops[n] = fmt.Sprintf("DROP PART {%s:String}", name)
		values[n] = clickhouse.Named(name, part)
	}
	err := i.conn.Exec(ctx, "ALTER TABLE events_inbox "+strings.Join(drops, ", "), values...)
	if missing, is := errors.AsType[*clickhouse.Exception](err); !is || missing.Code != 232 { // NO_SUCH_DATA_PART
		return schema.WrapError(err, "drop moved rows of events_inbox")
	}
	err = nil
	for n := 0; len(parts) > 1 && n < len(parts) && err == nil; n++ { // one by one: others may exist
		err = i.dropExistingParts(ctx, parts[n:n+1])
	}
	return err
}
