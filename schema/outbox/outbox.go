package outbox

import (
	"context"
	_ "embed" // statements
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cespare/xxhash/v2"
)

var (
	//go:embed sql/known.sql
	knownSQL string
	//go:embed sql/insert_message.sql
	insertMessageSQL string
	//go:embed sql/insert_delivery.sql
	insertDeliverySQL string
	//go:embed sql/pending.sql
	pendingSQL string
	//go:embed sql/recent.sql
	recentSQL string
)

// Message reports a decision, a failed check, or a start or stop.
type Message struct {
	ID         string // the same on all servers that find the same fact
	AccountID  int64
	Event      string // one of catalogue.WebhookEvents
	Subject    Subject
	State      string // the decision, the check, or empty
	RecordedAt time.Time
	Body       json.RawMessage // as it is sent; empty in messages that were loaded
}

// Subject is what a message is about.
type Subject struct {
	WebsiteID    int64
	Kind         schema.Subject
	ID           int64
	ExperimentID int64 // 0: a campaign
}

// MessageID returns the id of a message about a fact. Parts identify the fact within the account: equal parts give equal
// ids.
func MessageID(account int64, parts ...any) string {
	text := fmt.Sprint(append([]any{account, " "}, parts...)...)
	first, second := xxhash.Sum64String(text), xxhash.Sum64String("lifthouse "+text)
	var digest [16]byte
	for i := range 8 {
		digest[i], digest[8+i] = byte(first>>(8*i)), byte(second>>(8*i))
	}
	return "msg_" + hex.EncodeToString(digest[:])
}

// Outbox is the tables messages and deliveries of a store.
type Outbox struct {
	conn driver.Conn

	mu     sync.Mutex // protects the following, and is held while messages are read and written
	loaded bool
	known  map[string]*Message // stored messages by id, without their bodies
	last   map[topic]*Message  // the last of them about a topic
	added  chan struct{}       // closed after messages were written, or a delivery was requested
}

// topic is what a message says something new about: a decision or a check of a subject.
type topic struct {
	account int64
	subject Subject
	state   string
}

// New returns the outbox of a store.
func New(conn driver.Conn) *Outbox {
	return &Outbox{conn: conn, known: map[string]*Message{}, last: map[topic]*Message{}, added: make(chan struct{})}
}

// Added returns a channel that is closed when this process next adds something to deliver.
func (o *Outbox) Added() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.added
}

// signalAdded wakes the callers that wait. The caller holds the lock.
func (o *Outbox) signalAdded() {
	close(o.added)
	o.added = make(chan struct{})
}

// LoadMessages reads the stored messages, if this process has not read them yet.
func (o *Outbox) LoadMessages(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.loaded {
		return nil
	}
	return o.readKnown(ctx, nil)
}

// ReloadMessages reads the stored messages again, because other servers may have written some.
func (o *Outbox) ReloadMessages(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.readKnown(ctx, nil)
}

// FindMessage returns the message with an id, without its body, or nil. The messages must be loaded.
func (o *Outbox) FindMessage(id string) *Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[id]
}

// LastAbout returns the last message of an account about a subject with a state, or nil. The messages must be loaded.
func (o *Outbox) LastAbout(account int64, of Subject, state string) *Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last[topic{account, of, state}]
}

// readKnown reads the messages with some ids; none: all messages. The caller holds the lock.
func (o *Outbox) readKnown(ctx context.Context, ids []string) error {
	all, err := schema.QueryRows(ctx, o.conn, knownSQL, func(row driver.Rows, m *Message) error { return m.scanRow(row) },
		clickhouse.Named("all", len(ids) == 0), clickhouse.Named("ids", ids))
	if err != nil {
		return fmt.Errorf("read messages: %w", err)
	}
	for i := range all { // in the order in which they were recorded
		o.addKnown(&all[i])
	}
	o.loaded = o.loaded || len(ids) == 0
	return nil
}

func (o *Outbox) addKnown(m *Message) {
	o.known[m.ID] = m
	if at := (topic{m.AccountID, m.Subject, m.State}); o.last[at] == nil || !m.RecordedAt.Before(o.last[at].RecordedAt) {
		o.last[at] = m
	}
}

func (m *Message) scanRow(row driver.Rows, more ...any) error {
	var kind, body string
	s := &m.Subject
	columns := []any{&m.AccountID, &m.ID, &m.Event, &s.WebsiteID, &kind, &s.ID, &s.ExperimentID, &m.State, &m.RecordedAt, &body}
	err := row.Scan(append(columns, more...)...)
	s.Kind, m.Body, m.RecordedAt = schema.Subject(kind), json.RawMessage(body), m.RecordedAt.UTC()
	return err
}

// WriteMessages writes the messages that are not stored yet, and returns their number. Then FindMessage finds all of them.
func (o *Outbox) WriteMessages(ctx context.Context, messages []Message) (int, error) {
	if len(messages) == 0 {
		return 0, nil
	}
	ids := make([]string, len(messages))
	for i := range messages {
		ids[i] = messages[i].ID
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.readKnown(ctx, ids); err != nil {
		return 0, err
	}
	missing := slices.DeleteFunc(slices.Clone(messages), func(m Message) bool { return o.known[m.ID] != nil })
	if len(missing) == 0 {
		return 0, nil
	}
	err := schema.InsertRows(ctx, o.conn, insertMessageSQL, missing, func(m *Message) []any {
		s := &m.Subject
		return []any{m.AccountID, m.ID, m.Event, s.WebsiteID, string(s.Kind), s.ID, s.ExperimentID, m.State, m.RecordedAt, string(m.Body)}
	})
	if err != nil {
		return 0, fmt.Errorf("write messages: %w", err)
	}
	o.signalAdded()
	if err := o.readKnown(ctx, ids); err != nil { // another server may have been faster
		return len(missing), err
	}
	for i := range missing {
		if m := &missing[i]; o.known[m.ID] == nil { // another replica was read, which does not have it yet
			m.Body = nil
			o.addKnown(m)
		}
	}
	return len(missing), nil
}

// Outcome is the state of the delivery of a message to a webhook.
type Outcome string

// The outcomes.
const (
	Delivered Outcome = "delivered" // the receiver responded with 2xx
	Retrying  Outcome = "retrying"  // the last attempt failed; another follows
	Failed    Outcome = "failed"    // no further attempt
	Requested Outcome = "requested" // a person asked to deliver the message again
)

// Delivery is an attempt to deliver a message, or a request to deliver it again.
type Delivery struct {
	AccountID int64     `json:"-"`
	WebhookID int64     `json:"webhookId"`
	MessageID string    `json:"-"`
	At        time.Time `json:"at"`
	Outcome   Outcome   `json:"outcome"`
	Status    uint16    `json:"status"`           // of HTTP; 0: no response
	Detail    string    `json:"detail,omitempty"` // why the attempt failed, or who requested it
	Attempts  uint64    `json:"attempts"`         // in all; not stored
}

// RecordDelivery stores an attempt or a request.
func (o *Outbox) RecordDelivery(ctx context.Context, d Delivery) error {
	if err := o.insertDeliveries(ctx, []Delivery{d}); err != nil {
		return err
	}
	if d.Outcome == Requested {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.signalAdded()
	}
	return nil
}

func (o *Outbox) insertDeliveries(ctx context.Context, deliveries []Delivery) error {
	err := schema.InsertRows(ctx, o.conn, insertDeliverySQL, deliveries, func(d *Delivery) []any {
		return []any{d.AccountID, d.WebhookID, d.MessageID, d.At, string(d.Outcome), d.Status, d.Detail}
	})
	if err != nil {
		return fmt.Errorf("record delivery: %w", err)
	}
	return nil
}

// Pending is a message that a webhook has not received.
type Pending struct {
	Message
	Retries  uint64    // failed attempts since DueSince
	LastAt   time.Time // of the last attempt; 1970: there was none
	DueSince time.Time // when it was recorded, or last requested
}

// PendingMessages returns the messages that a webhook has not received, in the order in which they were recorded. It
// returns at most limit messages, of the given events, recorded since a time. Messages that a person requested are
// always included.
func (o *Outbox) PendingMessages(ctx context.Context, account, webhook int64, events []string, since time.Time, limit int) ([]Pending, error) {
	found, err := schema.QueryRows(ctx, o.conn, pendingSQL, func(row driver.Rows, p *Pending) error {
		return p.scanRow(row, &p.Retries, &p.LastAt, &p.DueSince)
	}, clickhouse.Named("account", account), clickhouse.Named("webhook", webhook), clickhouse.Named("events", events),
		clickhouse.DateNamed("since", since, clickhouse.MilliSeconds), clickhouse.Named("limit", uint32(limit))) //nolint:gosec // a constant
	if err != nil {
		return nil, fmt.Errorf("read pending messages: %w", err)
	}
	return found, nil
}

// Sent is a message with its deliveries.
type Sent struct {
	Message
	Deliveries []Delivery // by webhook; none: no webhook takes the event
}

// RecentMessages returns the latest messages of an account, the latest first, with the state of their deliveries. If
// website is not 0, it returns the messages of this website.
func (o *Outbox) RecentMessages(ctx context.Context, account, website int64, limit int) ([]Sent, error) {
	var all []Sent
	err := schema.EachRow(ctx, o.conn, recentSQL, func(row driver.Rows) error {
		var m Message
		var d Delivery
		if err := m.scanRow(row, &d.WebhookID, (*string)(&d.Outcome), &d.Attempts, &d.At, &d.Status, &d.Detail); err != nil {
			return err
		}
		if last := len(all) - 1; last < 0 || all[last].ID != m.ID {
			all = append(all, Sent{Message: m, Deliveries: []Delivery{}})
		}
		if d.WebhookID != 0 {
			d.At, d.MessageID, d.AccountID = d.At.UTC(), m.ID, account
			last := &all[len(all)-1]
			last.Deliveries = append(last.Deliveries, d)
		}
		return nil
	}, clickhouse.Named("account", account), clickhouse.Named("website", website), clickhouse.Named("limit", uint32(limit))) //nolint:gosec // bounded
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	return all, nil
}

// CopyFrom adds the messages of accounts in another store that this store lacks, with the state of their deliveries, and
// returns their number.
func (o *Outbox) CopyFrom(ctx context.Context, from driver.Conn, accounts []int64) (int, error) {
	if err := o.ReloadMessages(ctx); err != nil {
		return 0, err
	}
	copied := 0
	for _, account := range accounts {
		sent, err := New(from).RecentMessages(ctx, account, 0, math.MaxUint32)
		if err != nil {
			return copied, err
		}
		var messages []Message
		var deliveries []Delivery
		for i := range sent {
			if o.FindMessage(sent[i].ID) == nil {
				messages, deliveries = append(messages, sent[i].Message), append(deliveries, sent[i].Deliveries...)
			}
		}
		if err := o.insertDeliveries(ctx, deliveries); err != nil { // first, so a server of this store does not deliver again
			return copied, err
		}
		n, err := o.WriteMessages(ctx, messages)
		if copied += n; err != nil {
			return copied, err
		}
	}
	return copied, nil
}
