package ingest

import (
	"context"
	"embed"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

//go:embed sql/*.sql
var statementFiles embed.FS

// statements are the files of sql/.
var statements = schema.ReadStatements(statementFiles)

// Accepted is an event with its acceptance time.
type Accepted struct {
	At      time.Time
	Version uint64 // of events accepted at the same time, the one with the highest version arrived first
	schema.Event
}

// LastEvents returns the limit most recently accepted events of a website, or of all websites if website is 0, in
// descending order. Only some fields of the events are set.
func LastEvents(ctx context.Context, conn driver.Conn, website int64, limit int) (events []Accepted, err error) {
	var newest time.Time
	of := clickhouse.Named("website_id", website)
	err = conn.QueryRow(ctx, statements["newest_event"], of).Scan(&newest)
	// Search windows before the newest event, one after the other. The first one usually suffices.
	for _, since := range []time.Time{
		newest.Add(-time.Second), newest.Add(-time.Minute), newest.Add(-time.Hour), newest.AddDate(0, 0, -1),
		newest.AddDate(0, 0, -30), time.UnixMilli(0),
	} {
		if err == nil {
			events, err = schema.QueryRows(ctx, conn, statements["accepted_columns"]+statements["last_events"],
				scanAccepted, of, clickhouse.DateNamed("since", since, clickhouse.MilliSeconds),
				clickhouse.Named("limit", limit))
		}
		if err != nil || len(events) == limit {
			break
		}
	}
	return events, schema.WrapError(err, "read the last events")
}

func scanAccepted(rows driver.Rows, e *Accepted) error {
	var details string
	err := rows.Scan(&e.At, &e.Version, &e.WebsiteID, (*string)(&e.Subject), &e.SubjectID, &e.ExperimentID,
		&e.VariationID,
		&e.VisitorID, &e.EventID, (*string)(&e.Kind), &e.GoalID, &e.Value, &e.Profit, &e.ExtraValue, &details,
		&e.Time, &e.Device, &e.Country, &e.Revision, &e.Cancelled)
	if err == nil {
		e.Details, err = schema.DecodeDetails(details)
	}
	return err
}

// LastRejects returns the limit most recently rejected lines of a website, or of all websites if website is 0, in
// descending order. Lines of unknown websites are always included.
func LastRejects(ctx context.Context, conn driver.Conn, website int64, limit int) ([]Reject, error) {
	rejects, err := schema.QueryRows(ctx, conn, statements["rejected_columns"]+statements["last_rejects"], scanReject,
		clickhouse.Named("website_id", website), clickhouse.Named("limit", limit))
	return rejects, schema.WrapError(err, "read the last rejects")
}

func scanReject(rows driver.Rows, r *Reject) error {
	return rows.Scan(&r.Time, &r.WebsiteID, (*string)(&r.Channel), &r.File, &r.Line, &r.Reason, &r.Text)
}

// Windows are counts for the last hour, day and week. Each window includes the shorter ones.
type Windows struct {
	Hour uint64 `json:"hour"`
	Day  uint64 `json:"day"`
	Week uint64 `json:"week"`
}

// AddCounts adds the other counts.
func (w *Windows) AddCounts(o Windows) {
	w.Hour, w.Day, w.Week = w.Hour+o.Hour, w.Day+o.Day, w.Week+o.Week
}

// StoredRows counts the accepted rows of the same website, subject, experiment, variation and goal.
type StoredRows struct {
	schema.Event // the website, subject, experiment, variation and goal
	Accepted     Windows
	Late         Windows // accepted more than an hour after they happened
}

// CountReceived counts the arrivals of the week before now, on one website, or on all websites if website is 0.
func CountReceived(ctx context.Context, conn driver.Conn, website int64,
	now time.Time,
) (stored []StoredRows, err error) {
	ago := func(name string, hours int) driver.NamedDateValue {
		return clickhouse.DateNamed(name, now.Add(-time.Duration(hours)*time.Hour), clickhouse.MilliSeconds)
	}
	params := []any{clickhouse.Named("website_id", website), ago("hour", 1), ago("day", 24), ago("week", 7*24)}
	read := func(rows driver.Rows, s *StoredRows) error {
		return rows.Scan(&s.WebsiteID, (*string)(&s.Subject), &s.SubjectID, &s.ExperimentID, &s.VariationID, &s.GoalID,
			&s.Accepted.Hour, &s.Accepted.Day, &s.Accepted.Week, &s.Late.Hour, &s.Late.Day, &s.Late.Week)
	}
	stored, err = schema.QueryRows(ctx, conn, statements["received_stored"], read, params...)
	return stored, schema.WrapError(err, "count received events")
}

// OfVisitor holds everything that arrived about a visitor.
type OfVisitor struct {
	Events  []Accepted // in the order of their arrival, with copies; only some fields are set
	Orders  []Accepted // rows of the customers that the events name; those of others have another visitor, or none: 0
	Rejects []Reject   // rejected lines of the last week with the visitor's id; not all of a large body
	Limited bool       // there may be more events or rejected lines

	names map[schema.NamedID]schema.Name
}

// KeyOf returns the key of an id in events; empty: none was sent.
func (v *OfVisitor) KeyOf(id schema.NamedID) string { return v.names[id].Key }

// mostOrders is the maximum number of rows of customers that are read: more than one who is not shared has.
const mostOrders = 20_000

// customersOf returns the customers that events name.
func customersOf(events []Accepted) (customers []schema.Customer) {
	for i := range events {
		of := schema.Customer{WebsiteID: events[i].WebsiteID, ID: events[i].CustomerID()}
		if of.ID != 0 && !slices.Contains(customers, of) {
			customers = append(customers, of)
		}
	}
	return customers
}

// readOrders reads the rows of customers, in the order of their arrival, and at most a number of them.
func readOrders(
	ctx context.Context, conn driver.Conn, customers []schema.Customer, most int,
) (orders []Accepted, err error) {
	if len(customers) == 0 {
		return nil, nil
	}
	return schema.QueryRows(ctx, conn, statements["orders_of_customers"], func(row driver.Rows, e *Accepted) error {
		var details string
		err := row.Scan(&e.At, &e.Version, &e.WebsiteID, &e.GoalID, &e.EventID, &e.VisitorID, &e.Revision, &e.Time,
			&e.Cancelled, &e.Value, &e.Profit, &e.ExtraValue, &details)
		if err == nil {
			e.Details, err = schema.DecodeDetails(details)
		}
		e.Subject = schema.SubjectNone
		e.Kind = schema.KindGoal
		if e.GoalID == 0 {
			e.Kind = schema.KindCustomer
		}
		return err
	}, append(namedCustomers(customers), clickhouse.Named("limit", most))...)
}

// ReadVisitor reads what arrived about a visitor on the websites, or on all websites if none is given. visitor is the
// id as it was sent. It returns at most a number of events and of rejected lines.
func (r *Journal) ReadVisitor(ctx context.Context, visitor string, websites []int64, most int) (*OfVisitor, error) {
	if !utf8.ValidString(visitor) {
		return nil, fmt.Errorf("visitor %q: must be UTF-8", visitor)
	}
	ids := visitorSpellings([]string{visitor})
	params := []any{
		clickhouse.Named("visitor_id", schema.HashID(visitor)), clickhouse.Named("website_ids", websites),
		clickhouse.Named("limit", most), clickhouse.Named("spellings", ids),
	}
	v := &OfVisitor{}
	var err error
	v.names, err = schema.ReadNames(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	accepted := statements["accepted_columns"] + statements["visitor_stored"]
	v.Events, err = schema.QueryRows(ctx, r.conn, accepted, scanAccepted, params...)
	if err == nil {
		v.Orders, err = readOrders(ctx, r.conn, customersOf(v.Events), mostOrders)
	}
	if err == nil {
		rejected := statements["rejected_columns"] + statements["visitor_rejects"]
		v.Rejects, err = schema.QueryRows(ctx, r.conn, rejected, scanReject, params...)
	}
	if err != nil {
		return nil, fmt.Errorf("read the events of a visitor: %w", err)
	}
	v.Limited = max(len(v.Events), len(v.Rejects)) >= most
	// Keep the lines that have an id as a word, and not as a part of a longer word.
	for i, id := range ids {
		ids[i] = regexp.QuoteMeta(id)
	}
	const around = `[^\pL\p{Nd}_-]`
	word := regexp.MustCompile(`(^|` + around + `)(` + strings.Join(ids, "|") + `)($|` + around + `)`)
	v.Rejects = slices.DeleteFunc(v.Rejects, func(r Reject) bool { return !word.MatchString(r.Text) })
	return v, nil
}
