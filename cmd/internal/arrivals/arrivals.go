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
	"text/tabwriter"
	"time"

	"lifthouse/engine/render"
	"lifthouse/engine/story"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
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
	Currency     string          `json:"currency,omitempty"` // as sent; empty: that of the website
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

// jsonAmount returns money as a JSON number, or nothing if it is 0.
func jsonAmount(units int64) json.RawMessage {
	if units == 0 {
		return nil
	}
	return json.RawMessage(strconv.FormatFloat(float64(units)/schema.MoneyScale, 'f', -1, 64))
}

// amountInWords returns an amount with its currency; empty: there is no amount.
func amountInWords(amount json.RawMessage, currency string) string {
	if len(amount) == 0 {
		return ""
	}
	return strings.TrimSpace(string(amount) + " " + currency)
}

func nameOf(id int64, key string) string { return cmp.Or(key, strconv.FormatInt(id, 10)) }

func kindOf(kind schema.Kind, goal int64, key string) string {
	if goal == 0 {
		return string(kind)
	}
	return string(kind) + " " + nameOf(goal, key)
}

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
		text := ""
		switch at := a.At.UTC().Format("2006-01-02 15:04:05.000"); {
		case a.Event != nil:
			text = fmt.Sprintf("%s  website %-3d %s", at, a.WebsiteID, a.Event.inWords())
		case a.Rejected != nil:
			website := cmp.Or(strings.TrimPrefix(strconv.FormatInt(a.WebsiteID, 10), "0"), "?")
			text = fmt.Sprintf("%s  website %-3s REJECTED  %s: %s", at, website,
				lineOrigin(a.Rejected.Channel, a.Rejected.File, a.Rejected.Line), a.Rejected.Reason)
			if a.Rejected.Text != "" {
				text += "\n" + strings.Repeat(" ", len(at)) + "  " + a.Rejected.Text
			}
		}
		if _, err := fmt.Fprintln(w, render.PrintableText(text)); err != nil {
			return err
		}
	}
	return nil
}

// inWords returns what happened, what the visitor saw, and what else the event has.
func (e *event) inWords() string {
	text := fmt.Sprintf("%-10s %s  visitor %s  of %s", kindOf(e.Event, e.GoalID, e.Goal), e.sawInWords(), e.Visitor,
		e.Time.UTC().Format(time.DateTime))
	if e.Revision > 0 {
		text += fmt.Sprint("  revision ", e.Revision)
	}
	if e.Cancelled {
		text += "  cancelled"
	}
	for _, more := range []string{amountInWords(e.Value, e.Currency), e.Device, e.Country} {
		if more != "" {
			text += "  " + more
		}
	}
	return text
}

// sawInWords returns the subject and the variation that the visitor saw.
func (e *event) sawInWords() string {
	if e.VariationID == nil {
		return "unattributed"
	}
	saw := "campaign " + nameOf(e.CampaignID, e.Campaign)
	if e.WidgetID != 0 {
		saw = fmt.Sprintf("widget %d", e.WidgetID)
	}
	if e.ExperimentID != 0 {
		saw += fmt.Sprintf(" experiment %d", e.ExperimentID)
	}
	return saw + " variation " + nameOf(*e.VariationID, e.Variation)
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
			key := func(kind schema.NameKind, campaign, id int64) string {
				return keyOf(schema.NamedID{WebsiteID: e.WebsiteID, Kind: kind, CampaignID: campaign, ID: id})
			}
			t := &event{
				EventID: fmt.Sprintf("%016x", e.EventID), Visitor: fmt.Sprintf("%016x", e.VisitorID), Time: e.Time,
				Event: e.Kind, ExperimentID: e.ExperimentID, GoalID: e.GoalID, Device: e.Device, Country: e.Country,
				Revision: e.Revision, Cancelled: e.Cancelled, Value: jsonAmount(e.Value), Currency: e.Currency,
				Goal: key(schema.NameGoal, 0, e.GoalID),
			}
			switch e.Subject {
			case schema.SubjectCampaign:
				t.CampaignID = e.SubjectID
				t.VariationID = &e.VariationID
				t.Campaign = key(schema.NameCampaign, 0, e.SubjectID)
				t.Variation = key(schema.NameVariation, e.SubjectID, e.VariationID)
			case schema.SubjectWidget:
				t.WidgetID = e.SubjectID
				t.VariationID = &e.VariationID
			case schema.SubjectNone:
			}
			all = append(all, Arrival{At: e.At, WebsiteID: e.WebsiteID, Event: t})
		}
	}
	rejects, err := ingest.LastRejects(ctx, conn, q.Website, q.Last)
	for _, r := range slices.Backward(rejects) {
		all = append(all, Arrival{
			At: r.Time, WebsiteID: r.WebsiteID, Rejected: &rejected{r.Channel, r.File, r.Line, r.Reason, r.Text},
		})
	}
	return all, err
}

// WriteStory prints what arrived about a visitor, whose id is given as it was sent, and how reports count it. measured
// has what a metric is of the visitor, by subject; nil: none is asked for.
func WriteStory(
	w io.Writer, visitor string, arrived *ingest.OfVisitor, chapters []*story.Chapter,
	measured map[schema.Subject]string,
) error {
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "Visitor %s, stored as %016x\n", visitor, schema.HashID(visitor))
	if len(chapters)+len(arrived.Rejects) == 0 {
		_, _ = fmt.Fprintln(&out,
			"\nNothing has arrived of this visitor. The id is case-sensitive; rejected lines are kept for a week.")
	}
	if arrived.Limited {
		_, _ = fmt.Fprintf(&out, "\nOnly the first events are considered: this visitor has more. It may be a bot.\n")
	}
	for _, c := range chapters {
		subject := c.SubjectName()
		isAttributed := c.Subject.Kind != schema.SubjectNone
		if !isAttributed {
			subject = "unattributed goals"
		}
		if c.Name != "" {
			subject += fmt.Sprintf(" (%s)", c.Name)
		}
		_, _ = fmt.Fprintf(&out, "\nWebsite %d, %s: %s.\n", c.Subject.WebsiteID, subject, c.Why)
		table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "  TIME (UTC)\tEVENT\tVARIATION\tVALUE\tCOUNTS\tWHY\tARRIVED")
		for _, e := range c.Lines {
			variation := ""
			if isAttributed {
				variation = c.VariationName(e.VariationID)
			}
			kind := string(e.Kind)
			if e.GoalID != 0 {
				kind += " " + c.GoalName(e.GoalID)
			}
			counts := map[bool]string{true: "yes", false: "no"}[e.Counts]
			_, _ = fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				e.Time.UTC().Format(time.DateTime), kind, variation,
				amountInWords(jsonAmount(e.Value), e.Currency), counts, e.Why, e.Arrival)
		}
		_ = table.Flush()
		if text := measured[c.Subject]; text != "" {
			_, _ = fmt.Fprintf(&out, "  %s\n", text)
		}
	}
	if len(arrived.Rejects) > 0 {
		_, _ = fmt.Fprintln(&out, "\nRejected in the last week:")
	}
	for _, r := range arrived.Rejects {
		_, _ = fmt.Fprintf(&out, "  %s  %s: %s\n", r.Time.UTC().Format(time.DateTime),
			lineOrigin(r.Channel, r.File, r.Line), r.Reason)
	}
	_, err := io.WriteString(w, render.PrintableText(out.String()))
	return err
}

// Received counts the events that were accepted for a website in the last hour, day and week, including copies. An
// event with several exposures counts once for each exposure.
type Received struct {
	WebsiteID  int64                  `json:"websiteId"`
	Accepted   ingest.Windows         `json:"accepted"`
	Late       ingest.Windows         `json:"late"`       // accepted more than an hour after they happened
	Undeclared ingest.Windows         `json:"undeclared"` // accepted, but with a name that the catalogue does not declare
	Names      []catalogue.Undeclared `json:"names"`      // undeclared names of the last week
}

// ReceivedOf returns the counts of each website, ordered by id. keyOf returns the key of an id in events.
func ReceivedOf(
	stored []ingest.StoredRows, known *catalogue.Snapshot, keyOf func(schema.NamedID) string,
) []*Received {
	byWebsite, named := map[int64]*Received{}, map[int64]*catalogue.EventNames{}
	for i := range stored {
		s := &stored[i]
		if byWebsite[s.WebsiteID] == nil {
			byWebsite[s.WebsiteID] = &Received{WebsiteID: s.WebsiteID}
			named[s.WebsiteID] = catalogue.NewEventNames(keyOf)
		}
		r := byWebsite[s.WebsiteID]
		r.Accepted.AddCounts(s.Accepted)
		r.Late.AddCounts(s.Late)
		own := catalogue.NewEventNames(keyOf)
		own.AddRows(&s.Event, 1)
		if len(known.UndeclaredNames(own)) > 0 {
			r.Undeclared.AddCounts(s.Accepted)
		}
		named[s.WebsiteID].AddRows(&s.Event, int(s.Accepted.Week)) //nolint:gosec // a number of rows
	}
	for website, of := range named {
		byWebsite[website].Names = known.UndeclaredNames(of)
	}
	return slices.SortedFunc(maps.Values(byWebsite),
		func(a, b *Received) int { return cmp.Compare(a.WebsiteID, b.WebsiteID) })
}

// WriteText prints the counts of a website as text.
func (r *Received) WriteText(out io.Writer) {
	website := fmt.Sprintf("Website %d", r.WebsiteID)
	row := func(name string, w ingest.Windows) {
		_, _ = fmt.Fprintf(out, "  %-50s %10d %10d %10d\n", name, w.Hour, w.Day, w.Week)
	}
	_, _ = fmt.Fprintf(out, "%-52s %10s %10s %10s\n", website, "hour", "day", "week")
	row("accepted", r.Accepted)
	row("  late: more than an hour after they happened", r.Late)
	row("  undeclared: a name is not in the catalogue", r.Undeclared)
	for _, u := range r.Names[:min(len(r.Names), 10)] {
		_, _ = fmt.Fprintf(out, "  %d in the last week: %s\n", u.Events, u.Detail)
	}
}
