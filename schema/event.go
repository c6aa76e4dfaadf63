package schema

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"
)

// MoneyScale is how many stored units make one unit of the sender's money:
// value, profit and extra value keep four decimals.
const MoneyScale = 10_000

// MaxMoney is the largest amount, of either sign, that one event may carry, in
// the sender's unit.
const MaxMoney = 1_000_000_000

// Subject is what an event belongs to.
type Subject string

// The subjects. SubjectNone is a goal that named no exposure.
const (
	SubjectNone     Subject = "none"
	SubjectCampaign Subject = "campaign"
	SubjectWidget   Subject = "widget"
)

// Kind is what happened.
type Kind string

// The kinds of event.
const (
	KindView       Kind = "view"
	KindClick      Kind = "click"
	KindSubmit     Kind = "submit"
	KindCompletion Kind = "completion"
	KindConversion Kind = "conversion"
	KindContact    Kind = "contact"
	KindGoal       Kind = "goal"
)

// Event is one row of the events table.
type Event struct {
	EventID      uint64
	Time         time.Time // UTC, whole milliseconds
	WebsiteID    int64
	Subject      Subject
	SubjectID    int64
	ExperimentID int64 // of a widget; 0: none
	VariationID  int64 // 0: control
	VisitorID    uint64
	Kind         Kind
	GoalID       int64 // 0 unless Kind is goal
	Value        int64 // in 1/MoneyScale
	Profit       int64 // in 1/MoneyScale
	ExtraValue   int64 // in 1/MoneyScale
	Derived      bool  // made of a goal without exposures, for a subject that its visitor saw
	Attributes
}

// Attributes describe the visit in which an event happened.
type Attributes struct {
	Device, Browser, OS, Country, Region, City, Channel, Referrer string
	UTMSource, UTMMedium, UTMCampaign, UTMContent, UTMTerm        string
	FirstVisitPage                                                string
	VisitorType                                                   string // new, returning or empty
}

// Hash is how a visitor or an event id, any string, becomes its column:
// 64 bits, the same that ClickHouse's xxHash64 gives.
func Hash(id string) uint64 { return xxhash.Sum64String(id) }

const insertEvents = `INSERT INTO events (website_id, subject, subject_id, experiment_id, visitor_id, time, event_id,
	variation_id, event, goal_id, value, profit, extra_value, device, browser, os, country, region, city, channel,
	referrer, utm_source, utm_medium, utm_campaign, utm_content, utm_term, first_visit_page, visitor_type, derived, ingested_at`

// distinctRows spares the store the search for equal keys among the rows of an
// insert: they have been looked through.
var distinctRows = clickhouse.Settings{"optimize_on_insert": 0, "insert_deduplicate": 0}

// InsertEvents stores the rows, all accepted at one instant; it returns when
// they are stored. It does not look for duplicates: ingest.Writer does, and is
// the one caller.
func InsertEvents(ctx context.Context, conn driver.Conn, events []Event, acceptedAt time.Time) error {
	return InsertEventsOf(ctx, conn, "", events, acceptedAt)
}

// InsertEventsOf is InsertEvents for a store of several writers, of which this
// is the one with the name.
func InsertEventsOf(ctx context.Context, conn driver.Conn, writer string, events []Event, acceptedAt time.Time) error {
	statement, columns := insertEvents+")", eventColumns(events, acceptedAt)
	if writer != "" {
		statement, columns = insertEvents+", writer)", append(columns, column(events, func(*Event) string { return writer }))
	}
	settings := maps.Clone(distinctRows)
	if writer == "" {
		return insert(ctx, conn, settings, statement, columns)
	}
	settings["insert_deduplicate"] = 1
	settings["insert_deduplication_token"] = rand.Text()
	settings["deduplicate_blocks_in_dependent_materialized_views"] = 1
	err := insert(ctx, conn, settings, statement, columns)
	if Unreachable(err) && !errors.Is(err, ErrAway) && ctx.Err() == nil { // perhaps they are stored: their token tells
		err = insert(ctx, conn, settings, statement, columns)
	}
	return err
}

// insert sends the columns as one block.
func insert(ctx context.Context, conn driver.Conn, settings clickhouse.Settings, statement string, columns []any) error {
	batch, err := conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), statement)
	if err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	defer func() { _ = batch.Close() }()
	var appending errgroup.Group // a column is all that its append touches
	appending.SetLimit(runtime.GOMAXPROCS(0))
	for i, column := range columns {
		appending.Go(func() error {
			if err := batch.Column(i).Append(column); err != nil {
				return fmt.Errorf("insert events: column %d: %w", i, err)
			}
			return nil
		})
	}
	if err := appending.Wait(); err != nil {
		return err
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	return nil
}

func column[T any](events []Event, of func(*Event) T) []T {
	values := make([]T, len(events))
	for i := range events {
		values[i] = of(&events[i])
	}
	return values
}

func eventColumns(events []Event, acceptedAt time.Time) []any {
	return []any{
		column(events, func(e *Event) int64 { return e.WebsiteID }),
		column(events, func(e *Event) string { return string(e.Subject) }),
		column(events, func(e *Event) int64 { return e.SubjectID }),
		column(events, func(e *Event) int64 { return e.ExperimentID }),
		column(events, func(e *Event) uint64 { return e.VisitorID }),
		column(events, func(e *Event) time.Time { return e.Time }),
		column(events, func(e *Event) uint64 { return e.EventID }),
		column(events, func(e *Event) int64 { return e.VariationID }),
		column(events, func(e *Event) string { return string(e.Kind) }),
		column(events, func(e *Event) int64 { return e.GoalID }),
		column(events, func(e *Event) int64 { return e.Value }),
		column(events, func(e *Event) int64 { return e.Profit }),
		column(events, func(e *Event) int64 { return e.ExtraValue }),
		column(events, func(e *Event) string { return e.Device }),
		column(events, func(e *Event) string { return e.Browser }),
		column(events, func(e *Event) string { return e.OS }),
		column(events, func(e *Event) string { return e.Country }),
		column(events, func(e *Event) string { return e.Region }),
		column(events, func(e *Event) string { return e.City }),
		column(events, func(e *Event) string { return e.Channel }),
		column(events, func(e *Event) string { return e.Referrer }),
		column(events, func(e *Event) string { return e.UTMSource }),
		column(events, func(e *Event) string { return e.UTMMedium }),
		column(events, func(e *Event) string { return e.UTMCampaign }),
		column(events, func(e *Event) string { return e.UTMContent }),
		column(events, func(e *Event) string { return e.UTMTerm }),
		column(events, func(e *Event) string { return e.FirstVisitPage }),
		column(events, func(e *Event) string { return e.VisitorType }),
		column(events, func(e *Event) bool { return e.Derived }),
		column(events, func(*Event) time.Time { return acceptedAt }),
	}
}
