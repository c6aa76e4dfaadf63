package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cespare/xxhash/v2"
)

// MoneyScale is the number of stored units per currency unit: value, profit and extra value have four decimals.
const MoneyScale = 10_000

// MaxMoney is the maximum absolute amount of one event, in currency units.
const MaxMoney = 1_000_000_000

// SubjectKind is the kind of a subject.
type SubjectKind string

// The kinds of subjects. SubjectNone marks an unattributed goal.
const (
	SubjectNone     SubjectKind = "none"
	SubjectCampaign SubjectKind = "campaign"
	SubjectWidget   SubjectKind = "widget"
)

// Visitor identifies a visitor of a website.
type Visitor struct {
	WebsiteID int64
	ID        uint64
}

// Compare compares visitors in the order of the key of the events.
func (v Visitor) Compare(o Visitor) int {
	return cmp.Or(cmp.Compare(v.WebsiteID, o.WebsiteID), cmp.Compare(v.ID, o.ID))
}

// Kind is the type of an event.
type Kind string

// The types of events.
const (
	KindView       Kind = "view"
	KindClick      Kind = "click"
	KindSubmit     Kind = "submit"
	KindCompletion Kind = "completion"
	KindConversion Kind = "conversion"
	KindContact    Kind = "contact"
	KindGoal       Kind = "goal"
	// KindCustomer says that a customer had bought at a time. It counts nowhere, and is in the table customers only.
	KindCustomer Kind = "customer"
)

// Kinds are all types of events of visitors.
var Kinds = []Kind{KindView, KindClick, KindSubmit, KindCompletion, KindConversion, KindContact, KindGoal}

// Event is one row of the events table.
type Event struct {
	EventID      uint64
	Revision     uint64    // of a goal: of several with one id, the state of the highest one counts
	Cancelled    bool      // of a goal: it does not count
	Time         time.Time // UTC, whole milliseconds
	WebsiteID    int64
	Subject      SubjectKind
	SubjectID    int64
	ExperimentID int64  // experiment of a widget; 0: none
	VariationID  int64  // 0: control
	VisitorID    uint64 // 0: none, of an order of a customer
	Kind         Kind
	GoalID       int64 // 0 unless Kind is KindGoal
	Value        int64 // in 1/MoneyScale
	Profit       int64 // in 1/MoneyScale
	ExtraValue   int64 // in 1/MoneyScale
	Details
	Attributes
}

// Attributes describe the visit in which an event happened, in the order of joined attributes. The tags are the columns
// of a file of visitors.
type Attributes struct {
	Device         string `parquet:"device,dict"`
	Country        string `parquet:"country,dict"`
	Channel        string `parquet:"channel,dict"`
	Browser        string `parquet:"browser,dict"`
	OS             string `parquet:"os,dict"`
	VisitorType    string `parquet:"visitorType,dict"` // new, returning or empty
	Referrer       string `parquet:"referrer,dict"`
	UTMSource      string `parquet:"utmSource,dict"`
	UTMMedium      string `parquet:"utmMedium,dict"`
	UTMCampaign    string `parquet:"utmCampaign,dict"`
	City           string `parquet:"city,dict"`
	Region         string `parquet:"region,dict"`
	UTMContent     string `parquet:"utmContent,dict"`
	UTMTerm        string `parquet:"utmTerm,dict"`
	FirstVisitPage string `parquet:"firstVisitPage,dict"`
}

// AttributeColumns are the names of the attributes in SQL, in the order of joined attributes.
var AttributeColumns = []string{
	"device", "country", "channel", "browser", "os", "visitor_type", "referrer", "utm_source", "utm_medium",
	"utm_campaign", "city", "region", "utm_content", "utm_term", "first_visit_page",
}

// fields returns the attributes in the order of AttributeColumns.
func (a *Attributes) fields() []*string {
	return []*string{
		&a.Device, &a.Country, &a.Channel, &a.Browser, &a.OS, &a.VisitorType, &a.Referrer, &a.UTMSource, &a.UTMMedium,
		&a.UTMCampaign, &a.City, &a.Region, &a.UTMContent, &a.UTMTerm, &a.FirstVisitPage,
	}
}

// AttributeSeparator separates joined attributes, which contain no control characters.
const AttributeSeparator = "\x00"

// Join returns the attributes as one text: each after the first one after an AttributeSeparator. It is empty if all
// attributes are.
func (a *Attributes) Join() string {
	values := make([]string, 0, len(AttributeColumns))
	for _, value := range a.fields() {
		values = append(values, *value)
	}
	joined := strings.Join(values, AttributeSeparator)
	if len(joined) == len(AttributeColumns)-1 {
		return ""
	}
	return joined
}

// SplitAttributes returns the attributes of a text that Join returned.
func SplitAttributes(joined string) (a Attributes) {
	fields := a.fields()
	for i, value := range strings.Split(joined, AttributeSeparator) {
		*fields[i] = value
	}
	return a
}

// HashID returns the 64-bit hash of a visitor id or an event id, which is what the tables store. It equals ClickHouse's
// xxHash64.
func HashID(id string) uint64 { return xxhash.Sum64String(id) }

const insertEvents = `INSERT INTO events (website_id, subject, subject_id, experiment_id, visitor_id, time, event_id,
	revision, cancelled, variation_id, event, goal_id, value, profit, extra_value, attributes, details, ingested_at)`

// distinctRowSettings disable the search for equal keys within an insert: the caller has already removed duplicates.
var distinctRowSettings = clickhouse.Settings{"optimize_on_insert": 0, "insert_deduplicate": 0}

// InsertEvents inserts events as they were sent, with one acceptance time, and returns when they are stored: orders of
// customers, and then the events of visitors. If the connection breaks, it sends an insert once more, because copies of
// stored events are harmless. One insert must not contain two copies of an event that differ.
func InsertEvents(ctx context.Context, conn driver.Conn, events []Event, acceptedAt time.Time) error {
	orders := customerRows(events)
	if err := insertOrders(ctx, conn, orders, acceptedAt); err != nil {
		return err
	}
	events = ofVisitors(events, orders)
	if len(events) == 0 {
		return nil
	}
	columns := []func() any{
		ColumnValues(events, func(e *Event) int64 { return e.WebsiteID }),
		ColumnValues(events, func(e *Event) string { return string(e.Subject) }),
		ColumnValues(events, func(e *Event) int64 { return e.SubjectID }),
		ColumnValues(events, func(e *Event) int64 { return e.ExperimentID }),
		ColumnValues(events, func(e *Event) uint64 { return e.VisitorID }),
		ColumnValues(events, func(e *Event) time.Time { return e.Time }),
		ColumnValues(events, func(e *Event) uint64 { return e.EventID }),
		ColumnValues(events, func(e *Event) uint64 { return e.Revision }),
		ColumnValues(events, func(e *Event) bool { return e.Cancelled }),
		ColumnValues(events, func(e *Event) int64 { return e.VariationID }),
		ColumnValues(events, func(e *Event) string { return string(e.Kind) }),
		ColumnValues(events, func(e *Event) int64 { return e.GoalID }),
		ColumnValues(events, func(e *Event) int64 { return e.Value }),
		ColumnValues(events, func(e *Event) int64 { return e.Profit }),
		ColumnValues(events, func(e *Event) int64 { return e.ExtraValue }),
		ColumnValues(events, func(e *Event) string { return e.Join() }),
		ColumnValues(events, func(e *Event) string { return e.EncodeDetails() }),
		ColumnValues(events, func(*Event) time.Time { return acceptedAt }),
	}
	err := InsertColumns(ctx, conn, distinctRowSettings, insertEvents, columns)
	if IsUnreachable(err) && !errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
		err = InsertColumns(ctx, conn, distinctRowSettings, insertEvents, columns)
	}
	return WrapError(err, "insert events")
}

// Subject identifies what events are about: a campaign, a widget, or an experiment of a widget. Goals without exposures
// are about the kind SubjectNone.
type Subject struct {
	WebsiteID    int64
	Kind         SubjectKind
	ID           int64
	ExperimentID int64 // 0: a campaign, or the widget's own variations
}

// SubjectOf returns the subject of an event.
func (e *Event) SubjectOf() Subject {
	return Subject{e.WebsiteID, e.Subject, e.SubjectID, e.ExperimentID}
}

// SubjectIDs are the ids of a campaign, of a widget, or of an experiment of a widget. The others are 0.
type SubjectIDs struct {
	CampaignID   int64 `yaml:"campaignId" json:"campaignId,omitempty"`
	WidgetID     int64 `yaml:"widgetId" json:"widgetId,omitempty"`
	ExperimentID int64 `yaml:"experimentId" json:"experimentId,omitempty"`
}

// Conflict returns the field that contradicts the others, its value, and what must hold; an empty field: none does.
func (s SubjectIDs) Conflict() (field string, id int64, detail string) {
	switch {
	case s.CampaignID != 0 && s.WidgetID != 0:
		return "widgetId", s.WidgetID, "must not be given with campaignId"
	case s.ExperimentID != 0 && s.WidgetID == 0:
		return "experimentId", s.ExperimentID, "must be given with widgetId"
	}
	return "", 0, ""
}

// IDs returns the ids of the subject.
func (s Subject) IDs() SubjectIDs {
	if s.Kind == SubjectCampaign {
		return SubjectIDs{CampaignID: s.ID}
	}
	return SubjectIDs{WidgetID: s.ID, ExperimentID: s.ExperimentID}
}

// Arguments returns the subject as in the arguments of a command.
func (s *SubjectIDs) Arguments() string {
	switch {
	case s.CampaignID != 0:
		return fmt.Sprintf("campaign %d", s.CampaignID)
	case s.ExperimentID != 0:
		return fmt.Sprintf("experiment %d/%d", s.WidgetID, s.ExperimentID)
	}
	return fmt.Sprintf("widget %d", s.WidgetID)
}

// WithoutExperiment returns the widget of an experiment, and otherwise the subject.
func (s Subject) WithoutExperiment() Subject {
	s.ExperimentID = 0
	return s
}

// Compare orders subjects by website, kind, id and experiment.
func (s Subject) Compare(o Subject) int {
	byID := cmp.Or(cmp.Compare(s.ID, o.ID), cmp.Compare(s.ExperimentID, o.ExperimentID))
	return cmp.Or(cmp.Compare(s.WebsiteID, o.WebsiteID), cmp.Compare(s.Kind, o.Kind), byID)
}

// String returns the subject as text.
func (s Subject) String() string {
	if s.ExperimentID != 0 {
		return fmt.Sprintf("experiment %d of %s %d of website %d", s.ExperimentID, s.Kind, s.ID, s.WebsiteID)
	}
	return fmt.Sprintf("%s %d of website %d", s.Kind, s.ID, s.WebsiteID)
}

// ShortName returns the subject as text without its website.
func (s Subject) ShortName() string {
	if s.ExperimentID != 0 {
		return fmt.Sprintf("%s %d, experiment %d", s.Kind, s.ID, s.ExperimentID)
	}
	return fmt.Sprintf("%s %d", s.Kind, s.ID)
}
