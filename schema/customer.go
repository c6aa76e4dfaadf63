package schema

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Customer identifies a customer of a website.
type Customer struct {
	WebsiteID int64
	ID        uint64 // see HashCustomer
}

// HashCustomer returns what is stored of a customer: a hash of the id or e-mail as it was sent, with the secret of the
// account. An e-mail counts as HashEmail returns it. The hash is never 0.
func HashCustomer(salt []byte, text string) uint64 {
	if strings.Contains(text, "@") {
		text = HashEmail(text)
	}
	mac := hmac.New(sha256.New, salt)
	_, _ = mac.Write([]byte(text)) // never fails
	return max(binary.BigEndian.Uint64(mac.Sum(nil)), 1)
}

// HashEmail returns the SHA-256 of an e-mail in hex digits, without white space around it and in lower case, as senders
// hash it, too. A text of 64 hex digits is such a hash.
func HashEmail(email string) string {
	plain := strings.ToLower(strings.TrimSpace(email))
	if _, err := hex.DecodeString(plain); err == nil && len(plain) == 2*sha256.Size {
		return plain
	}
	hash := sha256.Sum256([]byte(plain))
	return hex.EncodeToString(hash[:])
}

// FormatCustomer returns the id of a customer as details have it.
func FormatCustomer(id uint64) string { return fmt.Sprintf("%016x", id) }

// CustomerID returns the customer of the event; 0: none.
func (d *Details) CustomerID() uint64 {
	id, _ := strconv.ParseUint(d.Customer, 16, 64) // FormatCustomer wrote it
	return id
}

// customerKey identifies a row of the table customers.
type customerKey struct {
	website        int64
	customer       uint64
	goal           int64
	event, visitor uint64
	revision       uint64
}

// isOfNobody reports whether an event has a customer and no visitor: it is in the table customers only.
func (e *Event) isOfNobody() bool { return e.VisitorID == 0 && e.Customer != "" }

// EventKey identifies a revision of an event: events with the same key are copies.
type EventKey struct {
	Subject
	Visitor, Event, Revision uint64
}

// Key returns the key of an event.
func (e *Event) Key() EventKey { return EventKey{e.SubjectOf(), e.VisitorID, e.EventID, e.Revision} }

// ofVisitors returns the events that the table events has: those that are not of nobody. Of events that differ in their
// customer only, it returns the first. orders are those with a customer.
func ofVisitors(events []Event, orders []*Event) []Event {
	if len(orders) == 0 {
		return events
	}
	seen := make(map[EventKey]bool, len(events))
	of := make([]Event, 0, len(events))
	for i := range events {
		e := &events[i]
		if key := e.Key(); !e.isOfNobody() && !seen[key] {
			seen[key] = true
			of = append(of, *e)
		}
	}
	return of
}

// customerRows returns the first row of each order, as the table customers has them, of events that were accepted at
// the same time.
func customerRows(events []Event) (rows []*Event) {
	var seen map[customerKey]bool
	for i := range events {
		e := &events[i]
		if e.Customer == "" {
			continue
		}
		key := customerKey{e.WebsiteID, e.CustomerID(), e.GoalID, e.EventID, e.VisitorID, e.Revision}
		if seen[key] {
			continue
		}
		if seen == nil {
			seen = map[customerKey]bool{}
		}
		seen[key] = true
		rows = append(rows, e)
	}
	return rows
}

const insertCustomers = `INSERT INTO customers (website_id, customer_id, goal_id, event_id, visitor_id, revision, time,
	cancelled, value, profit, extra_value, details, ingested_at)`

// insertOrders inserts orders of customers with one acceptance time.
func insertOrders(ctx context.Context, conn driver.Conn, rows []*Event, acceptedAt time.Time) error {
	if len(rows) == 0 {
		return nil
	}
	columns := []func() any{
		ColumnValues(rows, func(e **Event) int64 { return (*e).WebsiteID }),
		ColumnValues(rows, func(e **Event) uint64 { return (*e).CustomerID() }),
		ColumnValues(rows, func(e **Event) int64 { return (*e).GoalID }),
		ColumnValues(rows, func(e **Event) uint64 { return (*e).EventID }),
		ColumnValues(rows, func(e **Event) uint64 { return (*e).VisitorID }),
		ColumnValues(rows, func(e **Event) uint64 { return (*e).Revision }),
		ColumnValues(rows, func(e **Event) time.Time { return (*e).Time }),
		ColumnValues(rows, func(e **Event) bool { return (*e).Cancelled }),
		ColumnValues(rows, func(e **Event) int64 { return (*e).Value }),
		ColumnValues(rows, func(e **Event) int64 { return (*e).Profit }),
		ColumnValues(rows, func(e **Event) int64 { return (*e).ExtraValue }),
		ColumnValues(rows, func(e **Event) string { return (*e).EncodeDetails() }),
		ColumnValues(rows, func(**Event) time.Time { return acceptedAt }),
	}
	err := InsertColumns(ctx, conn, distinctRowSettings, insertCustomers, columns)
	if IsUnreachable(err) && !errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
		err = InsertColumns(ctx, conn, distinctRowSettings, insertCustomers, columns)
	}
	return WrapError(err, "insert orders of customers")
}
