// Package outbox stores what people and programs outside are notified of, and the attempts to deliver it to webhooks. A
// message is written in the same step as the conclusion or change that it reports, and is delivered later. So a message
// is not lost if the process ends in between.
package outbox

import (
	"context"
	sqldriver "database/sql/driver"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// statements are the files of sql/.
var statements = schema.ReadStatements(statementFiles)

// Message reports a decision, a failed check, or a start or stop.
type Message struct {
	ID         string         `json:"message"` // the same on all servers that find the same fact
	AccountID  int64          `json:"-"`
	Event      string         `json:"event"` // one of catalogue.WebhookEvents
	Subject    schema.Subject `json:"-"`
	State      string         `json:"-"` // the decision, the check, or empty
	RecordedAt time.Time      `json:"recordedAt"`
	Data       Data           `json:"data"` // none in messages from ReadMessages
}

// NewIdentity returns what identifies a message of an account about a fact of a kind. The caller adds what identifies
// the fact. All servers that find the same fact must add the same.
func NewIdentity(account int64, of string) *schema.Identity {
	i := schema.NewIdentity("message", 1)
	i.AddInteger("account", account)
	i.Add("of", of)
	return i
}

// MessageID returns the id of the message about the fact with an identity, see NewIdentity.
func MessageID(i *schema.Identity) string { return "msg_" + i.Hex() }

// Outbox is the tables messages and deliveries of a store.
type Outbox struct {
	conn  driver.Conn
	added chan struct{}
}

// New returns the outbox of a store.
func New(conn driver.Conn) *Outbox { return &Outbox{conn, make(chan struct{}, 1)} }

// Added returns a channel that has an element after this process added something to deliver.
func (o *Outbox) Added() <-chan struct{} { return o.added }

func (o *Outbox) signalAdded() {
	select {
	case o.added <- struct{}{}:
	default:
	}
}

// ReadMessages returns the stored messages about a subject of an account, and those with some ids, in the order in
// which they were recorded, without their data. No message is about the zero subject.
func (o *Outbox) ReadMessages(ctx context.Context, account int64, of schema.Subject, ids ...string) ([]Message, error) {
	found, err := schema.QueryRows(ctx, o.conn, statements["known"],
		func(row driver.Rows, m *Message) error { return m.scanRow(row) },
		clickhouse.Named("account", account), clickhouse.Named("subject", string(of.Kind)),
		clickhouse.Named("id", of.ID), clickhouse.Named("experiment", of.ExperimentID), clickhouse.Named("ids", ids))
	return found, schema.WrapError(err, "read messages")
}

func (m *Message) scanRow(row driver.Rows, more ...any) error {
	s := &m.Subject
	columns := []any{
		&m.AccountID, &m.ID, &m.Event, &s.WebsiteID, (*string)(&s.Kind), &s.ID, &s.ExperimentID, &m.State,
		&m.RecordedAt, &m.Data,
	}
	err := row.Scan(append(columns, more...)...)
	m.RecordedAt = m.RecordedAt.UTC()
	return err
}

// WriteMessages writes the messages that are not stored yet, and returns their number.
func (o *Outbox) WriteMessages(ctx context.Context, messages []Message) (int, error) {
	stored, err := o.readIDs(ctx, messages)
	if err != nil {
		return 0, err
	}
	missing := slices.DeleteFunc(slices.Clone(messages), func(m Message) bool { return stored[m.ID] })
	if len(missing) == 0 {
		return 0, nil
	}
	err = schema.InsertRows(ctx, o.conn, statements["insert_message"], missing, func(m *Message) []any {
		s := &m.Subject
		return []any{
			m.AccountID, m.ID, m.Event, s.WebsiteID, string(s.Kind), s.ID, s.ExperimentID, m.State,
			m.RecordedAt, m.Data,
		}
	})
	if err != nil {
		return 0, fmt.Errorf("write messages: %w", err)
	}
	o.signalAdded()
	return len(missing), nil
}

// readIDs returns the ids of those messages that are stored.
func (o *Outbox) readIDs(ctx context.Context, messages []Message) (map[string]bool, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	ids := make([]string, len(messages))
	stored := map[string]bool{}
	for i := range messages {
		ids[i] = messages[i].ID
	}
	found, err := o.ReadMessages(ctx, 0, schema.Subject{}, ids...)
	for i := range found {
		stored[found[i].ID] = true
	}
	return stored, err
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

// RecordDeliveries stores attempts or requests.
func (o *Outbox) RecordDeliveries(ctx context.Context, deliveries ...Delivery) error {
	err := schema.InsertRows(ctx, o.conn, statements["insert_delivery"], deliveries, func(d *Delivery) []any {
		return []any{d.AccountID, d.WebhookID, d.MessageID, d.At, string(d.Outcome), d.Status, d.Detail}
	})
	if err != nil {
		return fmt.Errorf("record delivery: %w", err)
	}
	if slices.ContainsFunc(deliveries, func(d Delivery) bool { return d.Outcome == Requested }) {
		o.signalAdded()
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
func (o *Outbox) PendingMessages(
	ctx context.Context, account, webhook int64, events []string, since time.Time, limit int,
) ([]Pending, error) {
	found, err := schema.QueryRows(ctx, o.conn, statements["pending"], func(row driver.Rows, p *Pending) error {
		return p.scanRow(row, &p.Retries, &p.LastAt, &p.DueSince)
	}, clickhouse.Named("account", account), clickhouse.Named("webhook", webhook), clickhouse.Named("events", events),
		clickhouse.DateNamed("since", since, clickhouse.MilliSeconds), clickhouse.Named("limit", uint32(limit))) //nolint:gosec // a constant
	return found, schema.WrapError(err, "read pending messages")
}

// Sent is a message with its deliveries.
type Sent struct {
	Message
	Deliveries []Delivery `json:"deliveries"` // by webhook; none: no webhook takes the event
}

// RecentMessages returns the latest messages of an account, the latest first, with the state of their deliveries. If
// website is not 0, it returns the messages of this website.
func (o *Outbox) RecentMessages(ctx context.Context, account, website int64, limit int) ([]Sent, error) {
	var all []Sent
	err := schema.EachRow(ctx, o.conn, statements["recent"], func(row driver.Rows) error {
		var m Message
		var d Delivery
		if err := m.scanRow(row, &d.WebhookID, (*string)(&d.Outcome), &d.Attempts, &d.At, &d.Status,
			&d.Detail); err != nil {
			return err
		}
		if last := len(all) - 1; last < 0 || all[last].ID != m.ID {
			all = append(all, Sent{Message: m, Deliveries: []Delivery{}})
		}
		if d.WebhookID != 0 {
			d.At = d.At.UTC()
			d.MessageID = m.ID
			d.AccountID = account
			last := &all[len(all)-1]
			last.Deliveries = append(last.Deliveries, d)
		}
		return nil
	}, clickhouse.Named("account", account), clickhouse.Named("website", website), clickhouse.Named("limit", uint32(limit))) //nolint:gosec // bounded
	return all, schema.WrapError(err, "read messages")
}

// LeaseTime is how long a process may deliver after TakeLease. If it ends, messages wait for at most this time.
const LeaseTime = 30 * time.Second

// TakeLease lets one process of a store at a time deliver messages. It reports whether this process may, for LeaseTime.
// Holder is its name, which no other process has. Of several processes that have a lease, none may deliver until all
// but the one with the least name gave theirs up, at their next call.
func (o *Outbox) TakeLease(ctx context.Context, holder string) (bool, error) {
	err := o.conn.Exec(ctx, statements["take_lease"], clickhouse.Named("holder", holder),
		clickhouse.Named("seconds", uint32(LeaseTime/time.Second)))
	var holders []string
	if err == nil {
		err = o.conn.QueryRow(ctx, statements["lease"]).Scan(&holders)
	}
	return slices.Equal(holders, []string{holder}), schema.WrapError(err, "take the lease of deliveries")
}

// CopyFrom adds the messages of accounts in another store that this store lacks, with the state of their deliveries,
// and returns their number.
func (o *Outbox) CopyFrom(ctx context.Context, from driver.Conn, accounts []int64) (int, error) {
	copied := 0
	for _, account := range accounts {
		sent, err := New(from).RecentMessages(ctx, account, 0, math.MaxUint32)
		if err != nil {
			return copied, err
		}
		messages := make([]Message, len(sent))
		for i := range sent {
			messages[i] = sent[i].Message
		}
		stored, err := o.readIDs(ctx, messages)
		if err != nil {
			return copied, err
		}
		var deliveries []Delivery
		for i := range sent {
			if !stored[sent[i].ID] {
				deliveries = append(deliveries, sent[i].Deliveries...)
			}
		}
		// first, so a server of this store does not deliver again
		if err := o.RecordDeliveries(ctx, deliveries...); err != nil {
			return copied, err
		}
		n, err := o.WriteMessages(ctx, messages)
		copied += n
		if err != nil {
			return copied, err
		}
	}
	return copied, nil
}

// Data is the body of a message. Text is one sentence that needs no other field.
type Data struct {
	AccountID int64 `json:"accountId"`
	WebsiteID int64 `json:"websiteId,omitzero"`
	schema.SubjectIDs
	Name string `json:"name,omitempty"` // of the campaign, or of the widget and its experiment
	Text string `json:"text"`

	Decision json.RawMessage `json:"decision,omitempty"` // as in reports: status, variationId, decidedAt, reasons, text
	Sentence string          `json:"sentence,omitempty"` // the conclusion, with the interval that carries it
	Metric   string          `json:"metric,omitempty"`
	Lift     json.RawMessage `json:"lift,omitempty"`  // value and interval of the variation of the decision
	Worth    json.RawMessage `json:"worth,omitempty"` // of the variation of the decision, as in reports

	FollowUp json.RawMessage `json:"followUp,omitempty"` // as in reports

	ReadoutID string `json:"readoutId,omitempty"` // of the readout that was made of the decision

	Check string `json:"check,omitempty"` // sampleRatio, multipleExposures, interactions, returns or silence
	By    string `json:"by,omitempty"`    // who started or stopped the campaign

	// of the page, and of that of the readout; set when the message is sent
	URL        string `json:"url,omitempty"`
	ReadoutURL string `json:"readoutUrl,omitempty"`
}

// Value returns the data as JSON.
func (d Data) Value() (sqldriver.Value, error) {
	text, err := json.Marshal(d)
	return string(text), err
}

// Scan decodes the output of Value.
func (d *Data) Scan(text any) error { return json.Unmarshal(fmt.Append(nil, text), d) }

// NewMessage returns a message about a subject. It sets the ids of the data.
func NewMessage(
	id string, account int64, event string, of schema.Subject, state string, now time.Time, data Data,
) Message {
	data.AccountID = account
	data.WebsiteID = of.WebsiteID
	data.SubjectIDs = of.IDs()
	return Message{
		ID: id, AccountID: account, Event: event, Subject: of, State: state,
		RecordedAt: now.UTC().Truncate(time.Millisecond), Data: data,
	}
}
