package arrivals

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/render"
	"lifthouse/engine/story"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
)

// Story is what arrived about a visitor, and how reports count it.
type Story struct {
	Visitor  string    `json:"visitor"` // id as it was sent
	Hash     string    `json:"hash"`    // of the id, in hexadecimal, as it is stored
	Chapters []chapter `json:"chapters"`
	Rejected []refusal `json:"rejected"` // lines of the last week
	Limited  bool      `json:"limited"`  // there are more events, whose consequences are not included
}

type chapter struct {
	WebsiteID int64 `json:"websiteId"`
	schema.SubjectIDs
	Name        string      `json:"name,omitempty"`
	Counts      bool        `json:"counts"` // the visitor is in the report
	Why         string      `json:"why"`
	FirstView   *time.Time  `json:"firstView"` // null: no view
	VariationID *int64      `json:"variationId"`
	Events      []eventLine `json:"events"`
	title       string
}

// eventLine is an event of a chapter.
type eventLine struct {
	Time       time.Time       `json:"time"`
	AcceptedAt time.Time       `json:"acceptedAt"`
	Event      schema.Kind     `json:"event"`
	GoalID     int64           `json:"goalId,omitempty"`
	Variation  int64           `json:"variationId"`
	Value      json.RawMessage `json:"value,omitempty"`
	Revision   uint64          `json:"revision,omitempty"`
	Counts     bool            `json:"counts"`
	Why        string          `json:"why"`
	Arrival    string          `json:"arrival,omitempty"` // note that the event arrived late, or before its time
}

// refusal is a rejected line.
type refusal struct {
	At      time.Time      `json:"at"`
	Channel ingest.Channel `json:"channel"`
	File    string         `json:"file,omitempty"`
	Line    int64          `json:"line,omitempty"`
	Why     string         `json:"why"`
	Text    string         `json:"text,omitempty"`
}

// StoryOf returns the story of a visitor.
func StoryOf(visitor string, arrived *ingest.OfVisitor, known *catalogue.Snapshot, e *engine.Engine) *Story {
	s := &Story{
		Visitor: visitor, Hash: fmt.Sprintf("%016x", schema.HashID(visitor)), Chapters: []chapter{},
		Rejected: []refusal{}, Limited: arrived.Limited,
	}
	for _, c := range story.ExplainEvents(arrived, e.MaxVisitorEvents(), known, e.AsOfFirstView) {
		s.Chapters = append(s.Chapters, chapterOf(c))
	}
	for _, r := range arrived.Rejects {
		s.Rejected = append(s.Rejected, refusal{
			At: r.Time, Channel: r.Channel, File: r.File, Line: r.Line, Why: r.Reason, Text: r.Text,
		})
	}
	return s
}

func chapterOf(c *story.Chapter) chapter {
	out := chapter{
		WebsiteID: c.Subject.WebsiteID, SubjectIDs: c.Subject.IDs(), Name: c.Name, Counts: c.Counts, Why: c.Why,
	}
	out.title = fmt.Sprintf("Website %d, %s", c.Subject.WebsiteID, c.Subject.ShortName())
	if c.Subject.Kind == schema.SubjectNone {
		out.title = fmt.Sprintf("Website %d, unattributed goals", c.Subject.WebsiteID)
	}
	if c.Name != "" {
		out.title += fmt.Sprintf(" (%s)", c.Name)
	}
	if c.First != nil {
		first := c.First.Time.UTC()
		out.FirstView, out.VariationID = &first, &c.First.VariationID
	}
	for _, l := range c.Lines {
		out.Events = append(out.Events, eventLine{
			Time: l.Time.UTC(), AcceptedAt: l.At.UTC(), Event: l.Kind, GoalID: l.GoalID, Variation: l.VariationID,
			Value: jsonAmount(l.Value), Revision: l.Revision, Counts: l.Counts, Why: l.Why, Arrival: l.Arrival,
		})
	}
	return out
}

// WriteText prints the story as text.
func (s *Story) WriteText(w io.Writer) error {
	var out strings.Builder
	_, _ = fmt.Fprintf(&out, "Visitor %s, stored as %s\n", s.Visitor, s.Hash)
	if len(s.Chapters)+len(s.Rejected) == 0 {
		_, _ = fmt.Fprintln(&out,
			"\nNothing has arrived of this visitor. The id is case-sensitive; rejected lines are kept for a week.")
	}
	if s.Limited {
		_, _ = fmt.Fprintf(&out, "\nOnly the first events are considered: this visitor has more. It may be a bot.\n")
	}
	for _, c := range s.Chapters {
		_, _ = fmt.Fprintf(&out, "\n%s: %s.\n", c.title, c.Why)
		table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "  TIME (UTC)\tEVENT\tVARIATION\tVALUE\tCOUNTS\tWHY\tARRIVED")
		for _, e := range c.Events {
			variation := strconv.FormatInt(e.Variation, 10)
			if c.CampaignID == 0 && c.WidgetID == 0 {
				variation = ""
			}
			counts := map[bool]string{true: "yes", false: "no"}[e.Counts]
			_, _ = fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				e.Time.Format(time.DateTime), kindOf(e.Event, e.GoalID, ""), variation, e.Value, counts, e.Why,
				e.Arrival)
		}
		_ = table.Flush()
	}
	if len(s.Rejected) > 0 {
		_, _ = fmt.Fprintln(&out, "\nRejected in the last week:")
	}
	for _, r := range s.Rejected {
		_, _ = fmt.Fprintf(&out, "  %s  %s: %s\n", r.At.UTC().Format(time.DateTime),
			lineOrigin(r.Channel, r.File, r.Line), r.Why)
	}
	_, err := io.WriteString(w, render.PrintableText(out.String()))
	return err
}
