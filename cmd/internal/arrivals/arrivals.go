// Package arrivals shows what a store receives: accepted events and rejected lines.
package arrivals

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/render"
	"lifthouse/schema"
	"lifthouse/schema/ingest"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Arrival is an accepted event or a rejected line.
type Arrival struct {
	At        time.Time `json:"at"`
	WebsiteID int64     `json:"websiteId"`
	Event     *event    `json:"event,omitempty"`
	Rejected  *rejected `json:"rejected,omitempty"`
}

type event struct {
	EventID      string          `json:"eventId"` // hash, in hexadecimal
	Visitor      string          `json:"visitor"` // hash, in hexadecimal
	Time         time.Time       `json:"time"`
	Event        schema.Kind     `json:"event"`
	CampaignID   int64           `json:"campaignId,omitempty"`
	Campaign     string          `json:"campaignKey,omitempty"` // keys from which the ids are computed
	Variation    string          `json:"variationKey,omitempty"`
	Goal         string          `json:"goalKey,omitempty"`
	WidgetID     int64           `json:"widgetId,omitempty"`
	ExperimentID int64           `json:"experimentId,omitempty"`
	VariationID  *int64          `json:"variationId,omitempty"`
	GoalID       int64           `json:"goalId,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"`
	Revision     uint64          `json:"revision,omitempty"`
	Cancelled    bool            `json:"cancelled,omitempty"`
	Device       string          `json:"device,omitempty"`
	Country      string          `json:"country,omitempty"`
}

type rejected struct {
	Channel ingest.Channel `json:"channel"`
	File    string         `json:"file,omitempty"`
	Line    int64          `json:"line,omitempty"`
	Reason  string         `json:"reason"`
	Text    string         `json:"text,omitempty"`
}

func (f *Follower) ofEvent(e ingest.Accepted) Arrival {
	keyOf := func(kind schema.NameKind, campaign, id int64) string {
		return f.keyOf(schema.NamedID{WebsiteID: e.WebsiteID, Kind: kind, CampaignID: campaign, ID: id})
	}
	t := &event{
		EventID: fmt.Sprintf("%016x", e.EventID), Visitor: fmt.Sprintf("%016x", e.VisitorID), Time: e.Time,
		Event:        e.Kind,
		ExperimentID: e.ExperimentID, GoalID: e.GoalID, Device: e.Device, Country: e.Country,
		Revision: e.Revision, Cancelled: e.Cancelled,
	}
	switch e.Subject {
	case schema.SubjectCampaign:
		t.CampaignID, t.VariationID = e.SubjectID, &e.VariationID
		t.Campaign = keyOf(schema.NameCampaign, 0, e.SubjectID)
		t.Variation = keyOf(schema.NameVariation, e.SubjectID, e.VariationID)
	case schema.SubjectWidget:
		t.WidgetID, t.VariationID = e.SubjectID, &e.VariationID
	case schema.SubjectNone:
	}
	t.Value, t.Goal = jsonAmount(e.Value), keyOf(schema.NameGoal, 0, e.GoalID)
	return Arrival{At: e.At, WebsiteID: e.WebsiteID, Event: t}
}

func ofReject(r ingest.Reject) Arrival {
	return Arrival{At: r.Time, WebsiteID: r.WebsiteID, Rejected: &rejected{r.Channel, r.File, r.Line, r.Reason, r.Text}}
}

// textLine returns the arrival as text.
func (a Arrival) textLine() string {
	at := a.At.UTC().Format("2006-01-02 15:04:05.000")
	if r := a.Rejected; r != nil {
		website := cmp.Or(strings.TrimPrefix(strconv.FormatInt(a.WebsiteID, 10), "0"), "?")
		text := fmt.Sprintf("%s  website %-3s REJECTED  %s: %s", at, website, lineOrigin(r.Channel, r.File, r.Line),
			r.Reason)
		if r.Text != "" {
			text += "\n" + strings.Repeat(" ", len(at)) + "  " + r.Text
		}
		return render.PrintableText(text)
	}
	e, saw := a.Event, "unattributed"
	if e.VariationID != nil {
		saw = "campaign " + nameOf(e.CampaignID, e.Campaign)
		if e.WidgetID != 0 {
			saw = fmt.Sprintf("widget %d", e.WidgetID)
		}
		if e.ExperimentID != 0 {
			saw += fmt.Sprintf(" experiment %d", e.ExperimentID)
		}
		saw += " variation " + nameOf(*e.VariationID, e.Variation)
	}
	text := fmt.Sprintf("%s  website %-3d %-10s %s  visitor %s  of %s", at, a.WebsiteID,
		kindOf(e.Event, e.GoalID, e.Goal), saw, e.Visitor, e.Time.UTC().Format(time.DateTime))
	if e.Revision > 0 {
		text += fmt.Sprint("  revision ", e.Revision)
	}
	if e.Cancelled {
		text += "  cancelled"
	}
	for _, more := range []string{string(e.Value), e.Device, e.Country} {
		if more != "" {
			text += "  " + more
		}
	}
	return render.PrintableText(text)
}

// jsonAmount returns money as a JSON number, or nothing if it is 0.
func jsonAmount(units int64) json.RawMessage {
	if units == 0 {
		return nil
	}
	return json.RawMessage(strconv.FormatFloat(float64(units)/schema.MoneyScale, 'f', -1, 64))
}

// nameOf returns a key, or the id without one.
func nameOf(id int64, key string) string { return cmp.Or(key, strconv.FormatInt(id, 10)) }

// kindOf returns the kind of an event with its goal.
func kindOf(kind schema.Kind, goal int64, key string) string {
	if goal == 0 {
		return string(kind)
	}
	return string(kind) + " " + nameOf(goal, key)
}

// lineOrigin returns where a line came from.
func lineOrigin(channel ingest.Channel, file string, line int64) string {
	from := cmp.Or(file, string(channel))
	if line > 0 {
		from += " line " + strconv.FormatInt(line, 10)
	}
	return from
}

// WriteAll prints arrivals in the order of their time, each as a line of text or as a JSON object on a line. The error
// is the error of the writer.
func WriteAll(w io.Writer, all []Arrival, asJSON bool) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	slices.SortStableFunc(all, func(a, b Arrival) int { return a.At.Compare(b.At) })
	for _, a := range all {
		if asJSON {
			if err := encoder.Encode(a); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintln(w, a.textLine()); err != nil {
			return err
		}
	}
	return nil
}

const (
	// Interval is the recommended time between calls of NewArrivals.
	Interval = 500 * time.Millisecond
	// maxNew is the maximum number of events, and of rejected lines, that NewArrivals returns. A person cannot read
	// more.
	maxNew = 200
	// insertTime is the maximum time from the acceptance of an event until it is stored.
	insertTime = 10 * time.Second
)

// Query selects arrivals.
type Query struct {
	Website      int64 // 0: all websites
	Last         int   // maximum number of events, and of rejected lines, that LastArrivals returns
	OnlyRejected bool
}

// Follower reads arrivals from a store.
type Follower struct {
	conn            driver.Conn
	query           Query
	keyOf           func(schema.NamedID) string
	events, rejects stream
}

// NewFollower returns a follower that starts now. keyOf returns the key of an id in events, or an empty string.
func NewFollower(conn driver.Conn, q Query, keyOf func(schema.NamedID) string) *Follower {
	now := time.Now()
	return &Follower{conn: conn, query: q, keyOf: keyOf, events: stream{since: now}, rejects: stream{since: now}}
}

// LastArrivals returns the last arrivals before the follower was created.
func (f *Follower) LastArrivals(ctx context.Context) ([]Arrival, error) {
	if f.query.Last == 0 {
		return nil, nil
	}
	events := func() ([]ingest.Accepted, error) {
		return ingest.LastEvents(ctx, f.conn, f.query.Website, f.query.Last)
	}
	return f.readArrivals(ctx, f.query.Last, events, time.UnixMilli(0))
}

// NewArrivals returns the arrivals since the last call.
func (f *Follower) NewArrivals(ctx context.Context) ([]Arrival, error) {
	events := func() ([]ingest.Accepted, error) {
		return ingest.EventsSince(ctx, f.conn, f.query.Website, f.events.since, maxNew)
	}
	return f.readArrivals(ctx, maxNew, events, f.rejects.since)
}

// readArrivals returns the events that a function reads, and the lines that were rejected since a time.
func (f *Follower) readArrivals(
	ctx context.Context, most int, read func() ([]ingest.Accepted, error), since time.Time,
) (all []Arrival, err error) {
	if !f.query.OnlyRejected {
		events, err := read()
		if err != nil {
			return nil, err
		}
		all = f.events.unseenArrivals(toArrivals(events, f.ofEvent), most)
	}
	rejects, err := ingest.RejectsSince(ctx, f.conn, f.query.Website, since, most)
	if err != nil {
		return nil, err
	}
	return append(all, f.rejects.unseenArrivals(toArrivals(rejects, ofReject), most)...), nil
}

// stream keeps track of the events, or of the rejected lines, that were shown. It reads recently accepted arrivals
// again, because they may have been stored late, and skips those that were shown.
type stream struct {
	since time.Time            // arrivals accepted from then on may be new
	shown map[string]time.Time // acceptance times by key
}

// unseenArrivals returns the arrivals that were not shown yet, in the order of arrival. Its input is in reverse order.
// If the input has the maximum length, older arrivals are skipped.
func (s *stream) unseenArrivals(read []Arrival, most int) []Arrival {
	if s.shown == nil {
		s.shown = map[string]time.Time{}
	}
	var fresh []Arrival
	for _, a := range slices.Backward(read) {
		text, _ := json.Marshal(a) // texts and numbers can be encoded
		if key := string(text); s.shown[key].IsZero() {
			s.shown[key] = a.At
			fresh = append(fresh, a)
		}
	}
	if len(read) == 0 {
		return nil
	}
	next := read[0].At.Add(-insertTime)
	if len(read) == most {
		next = read[0].At
	}
	if next.After(s.since) {
		s.since = next
		maps.DeleteFunc(s.shown, func(_ string, accepted time.Time) bool { return accepted.Before(next) })
	}
	return fresh
}

func toArrivals[T any](found []T, convert func(T) Arrival) []Arrival {
	all := make([]Arrival, len(found))
	for i := range found {
		all[i] = convert(found[i])
	}
	return all
}
