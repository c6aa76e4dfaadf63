// Package arrivals shows what a store receives: accepted events and rejected lines.
package arrivals

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
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

func ofEvent(e ingest.Accepted, keyOfID func(schema.NamedID) string) Arrival {
	keyOf := func(kind schema.NameKind, campaign, id int64) string {
		return keyOfID(schema.NamedID{WebsiteID: e.WebsiteID, Kind: kind, CampaignID: campaign, ID: id})
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

// Query selects arrivals.
type Query struct {
	Website      int64 // 0: all websites
	Last         int   // maximum number of events, and of rejected lines
	OnlyRejected bool
}

// LastArrivals returns the last arrivals. keyOf returns the key of an id in events, or an empty string.
func LastArrivals(
	ctx context.Context, conn driver.Conn, q Query, keyOf func(schema.NamedID) string,
) (all []Arrival, err error) {
	if !q.OnlyRejected {
		events, err := ingest.LastEvents(ctx, conn, q.Website, q.Last)
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(events) {
			all = append(all, ofEvent(e, keyOf))
		}
	}
	rejects, err := ingest.LastRejects(ctx, conn, q.Website, q.Last)
	for _, r := range slices.Backward(rejects) {
		all = append(all, ofReject(r))
	}
	return all, err
}
