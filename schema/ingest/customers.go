package ingest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A goal may name its customer: the shop's id or the e-mail of the buyer. Neither is stored, nor written anywhere: not
// in the reason of a rejected line either.

// hashCustomer returns the customer of an event, as details have it. Without a store, as in a test, the hash has no
// secret.
func (n *Names) hashCustomer(website int64, text string) (string, error) {
	var salt []byte
	if n != nil {
		if n.SaltOf == nil {
			return "", errors.New("customer: this store has no catalogue, whose account has the secret of its hash")
		}
		var err error
		salt, err = n.SaltOf(website)
		if err != nil {
			return "", fmt.Errorf("customer: %w", err)
		}
	}
	return schema.FormatCustomer(schema.HashCustomer(salt, text)), nil
}

// CountMissingOrders returns the number of goals with a customer of which the table customers has no row: it was lost.
func CountMissingOrders(ctx context.Context, conn driver.Conn) (missing int64, err error) {
	err = conn.QueryRow(ctx, statements["missing_orders"]).Scan(&missing)
	return missing, schema.WrapError(err, "compare orders of customers with events")
}

// visitorField returns the hash of the visitor; 0: a goal has a customer instead.
func (b *builder) visitorField() uint64 {
	visitor := b.textField(fieldVisitor)
	switch {
	case visitor != "":
		return schema.HashID(visitor)
	case b.given.values[fieldEvent] != string(schema.KindGoal):
		b.addFault("visitor", "", "must be the id of the visitor")
	case b.given.values[fieldCustomer] == "":
		b.addFault("visitor", "", "must be the id of the visitor, unless a goal without exposures has a customer")
	case b.hasExposures():
		b.addFault("visitor", "", "must be the id of the visitor who had the exposures")
	}
	return 0
}

// hasExposures reports whether the event says what the visitor saw.
func (b *builder) hasExposures() bool {
	v := &b.given.values
	single := exposure{v[fieldCampaignID], v[fieldWidgetID], v[fieldExperimentID], v[fieldVariationID]}
	return b.given.exposures != nil || single != exposure{}
}

// checkCustomer adds the faults of the customer, without its value.
func (b *builder) checkCustomer() {
	text := b.given.values[fieldCustomer]
	if text == "" {
		return
	}
	name := fieldNames[fieldCustomer]
	kind := b.given.values[fieldEvent]
	if kind != string(schema.KindGoal) && kind != string(schema.KindCustomer) {
		b.AddField(name, "is only allowed for the events goal and customer")
	}
	if len(text) > maxText {
		b.AddField(name, "must have at most %d bytes, has %d", maxText, len(text))
	}
	if !utf8.ValidString(text) {
		b.AddField(name, "must be UTF-8")
	}
}

// buildPast returns the row that says that a customer had bought at a time. Nothing but the customer, the time and the
// website may be given.
func (b *builder) buildPast() schema.Event {
	v := &b.given.values
	b.websiteID = b.parseID("websiteId", v[fieldWebsiteID], 1)
	e := schema.Event{
		WebsiteID: b.websiteID, Kind: schema.KindCustomer, Subject: schema.SubjectNone, Time: b.timeField(),
	}
	e.Revision = uint64(max(e.Time.UnixMilli(), 0)) //nolint:gosec // not negative
	if v[fieldCustomer] == "" {
		b.AddField(fieldNames[fieldCustomer], "missing: must be the shop's id or the e-mail of the buyer")
	}
	b.checkCustomer()
	const detail = "is not allowed for the event customer, which has websiteId, customer and time only"
	for f, value := range v {
		isOwn := f == int(fieldWebsiteID) || f == int(fieldCustomer)
		isOther := f != int(fieldTime) && f != int(fieldEvent) && !isOwn
		if isOther && value != "" {
			b.Add(fieldNames[f], clipText(value), detail)
		}
	}
	if b.given.exposures != nil {
		b.AddField(exposuresName, detail)
	}
	if b.given.details != nil {
		b.AddField("attributes, properties and items", detail)
	}
	return e
}

// withoutCustomers returns the text of a rejected line without the customers of its events.
func withoutCustomers(text string, events []fields) string {
	for i := range events {
		for _, value := range visitorSpellings([]string{events[i].values[fieldCustomer]}) {
			text = strings.ReplaceAll(text, value, "…")
		}
	}
	return text
}

// customerColumns returns the columns of a mapping that name customers.
func (m *Mapping) customerColumns() map[string]bool {
	hidden := map[string]bool{}
	if m == nil {
		return hidden
	}
	for i := range m.Events {
		for _, column := range m.fieldsOf(&m.Events[i])[fieldNames[fieldCustomer]].Column {
			hidden[string(column)] = true
		}
	}
	return hidden
}

// hideKeys returns a text of JSON without the values of the keys at which hidden columns end.
func hideKeys(text string, hidden map[string]bool) string {
	for column := range hidden {
		key := regexp.QuoteMeta(column[strings.LastIndexByte(column, '.')+1:])
		value := regexp.MustCompile(`("` + key + `"\s*:\s*)(?:` + quoted + `|` + unquoted + `)`)
		text = value.ReplaceAllString(text, "${1}…")
	}
	return text
}
