package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine/render"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

const eventsHelp = `Events shows the last events that were taken, and the last lines that were rejected, each with the
reason and its beginning: is my tracking working? Times are those of arrival, in UTC. A visitor is shown as
it is stored, by the hash of its id. Rejected lines are kept for a week, the first few hundred of those that
came together; what looks like a password or a token is left out.

  lifthouse events --website 1 --follow
  lifthouse events --rejects --last 100 --json`

// eventsQuery is what the flags of the command ask for.
type eventsQuery struct {
	website                  int64
	last                     int
	follow, onlyRejects, raw bool
}

// mostShown is how many events, and how many rejects, are shown at once.
const maxShown = 10_000

func (p *program) eventsCommand() *cobra.Command {
	var q eventsQuery
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show the last events, and rejected lines with their reasons",
		Long:  eventsHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.last < 0 || q.last > maxShown {
				return usageError{fmt.Errorf("--last %d: want a number from 0 to %d", q.last, maxShown)}
			}
			if q.website < 0 {
				return usageError{fmt.Errorf("--website %d: want the id of a website", q.website)}
			}
			err := p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error { return p.events(ctx, s, q) })
			if q.follow && cmd.Context().Err() != nil {
				err = nil // so it is ended
			}
			return err
		},
	}
	cmd.Flags().Int64Var(&q.website, "website", 0, "id of the website; else all")
	cmd.Flags().IntVar(&q.last, "last", 20, "how many events, and how many rejected lines")
	cmd.Flags().BoolVar(&q.follow, "follow", false, "go on with what arrives, until interrupted")
	cmd.Flags().BoolVar(&q.onlyRejects, "rejects", false, "rejected lines only")
	cmd.Flags().BoolVar(&q.raw, "json", false, "a JSON object a line")
	return cmd
}

// arrival is an event that was taken, or a line that was not, as it is shown.
type arrival struct {
	At        time.Time `json:"at"`
	WebsiteID int64     `json:"websiteId"`
	Event     *taken    `json:"event,omitempty"`
	Rejected  *rejected `json:"rejected,omitempty"`
}

type taken struct {
	EventID      string          `json:"eventId"` // hash, in hexadecimal
	Visitor      string          `json:"visitor"` // hash, in hexadecimal
	Time         time.Time       `json:"time"`
	Event        schema.Kind     `json:"event"`
	CampaignID   int64           `json:"campaignId,omitempty"`
	WidgetID     int64           `json:"widgetId,omitempty"`
	ExperimentID int64           `json:"experimentId,omitempty"`
	VariationID  *int64          `json:"variationId,omitempty"`
	GoalID       int64           `json:"goalId,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"`
	Device       string          `json:"device,omitempty"`
	Country      string          `json:"country,omitempty"`
}

type rejected struct {
	Way    ingest.Way `json:"way"`
	File   string     `json:"file,omitempty"`
	Line   int64      `json:"line,omitempty"`
	Reason string     `json:"reason"`
	Text   string     `json:"text,omitempty"`
}

func arrivalOfEvent(e ingest.Accepted) arrival {
	t := &taken{
		EventID: fmt.Sprintf("%016x", e.EventID), Visitor: fmt.Sprintf("%016x", e.VisitorID), Time: e.Time, Event: e.Kind,
		ExperimentID: e.ExperimentID, GoalID: e.GoalID, Device: e.Device, Country: e.Country,
	}
	switch e.Subject {
	case schema.SubjectCampaign:
		t.CampaignID, t.VariationID = e.SubjectID, &e.VariationID
	case schema.SubjectWidget:
		t.WidgetID, t.VariationID = e.SubjectID, &e.VariationID
	case schema.SubjectNone:
	}
	if e.Value != 0 {
		t.Value = json.RawMessage(strconv.FormatFloat(float64(e.Value)/schema.MoneyScale, 'f', -1, 64))
	}
	return arrival{At: e.At, WebsiteID: e.WebsiteID, Event: t}
}

func arrivalOfReject(r ingest.Reject) arrival {
	return arrival{At: r.Time, WebsiteID: r.WebsiteID, Rejected: &rejected{r.Way, r.File, r.Line, r.Reason, r.Text}}
}

// key tells arrivals apart that are read twice.
func (a arrival) key() string {
	text, _ := json.Marshal(a) // of texts and numbers
	return string(text)
}

// line is the arrival as a person reads it.
func (a arrival) line() string {
	at := a.At.UTC().Format("2006-01-02 15:04:05.000")
	if r := a.Rejected; r != nil {
		from := string(r.Way)
		if r.File != "" {
			from = r.File
		}
		if r.Line > 0 {
			from += " line " + strconv.FormatInt(r.Line, 10)
		}
		text := fmt.Sprintf("%s  website %-3s REJECTED  %s: %s", at, knownWebsite(a.WebsiteID), from, r.Reason)
		if r.Text != "" {
			text += "\n" + strings.Repeat(" ", len(at)) + "  " + r.Text
		}
		return render.Printable(text)
	}
	e, saw := a.Event, "whatever its visitor saw"
	if e.VariationID != nil {
		saw = fmt.Sprintf("campaign %d", e.CampaignID)
		if e.WidgetID != 0 {
			saw = fmt.Sprintf("widget %d", e.WidgetID)
		}
		if e.ExperimentID != 0 {
			saw += fmt.Sprintf(" experiment %d", e.ExperimentID)
		}
		saw += fmt.Sprintf(" variation %d", *e.VariationID)
	}
	what := string(e.Event)
	if e.GoalID != 0 {
		what += " " + strconv.FormatInt(e.GoalID, 10)
	}
	text := fmt.Sprintf("%s  website %-3d %-10s %s  visitor %s  of %s", at, a.WebsiteID, what, saw, e.Visitor, e.Time.UTC().Format("2006-01-02 15:04:05"))
	for _, more := range []string{string(e.Value), e.Device, e.Country} {
		if more != "" {
			text += "  " + more
		}
	}
	return render.Printable(text)
}

func knownWebsite(id int64) string {
	if id == 0 {
		return "?"
	}
	return strconv.FormatInt(id, 10)
}

func (p *program) events(ctx context.Context, s *app.Store, q eventsQuery) error {
	if q.follow && p.running == nil && s.Dir != "" {
		return errors.New("--follow: nothing arrives, since this store is not served; start 'lifthouse serve' first")
	}
	f := newFollower(s.Conn, q)
	last, err := f.last(ctx)
	if err != nil {
		return err
	}
	p.show(last, q.raw)
	if !q.follow {
		if len(last) == 0 && !q.raw {
			p.say("Nothing has arrived.")
		}
		return nil
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		more, err := f.more(ctx)
		if err != nil {
			return err
		}
		p.show(more, q.raw)
	}
}

func (p *program) show(arrivals []arrival, raw bool) {
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	slices.SortStableFunc(arrivals, func(a, b arrival) int { return a.At.Compare(b.At) })
	for _, a := range arrivals {
		if raw {
			_ = encoder.Encode(a)
			continue
		}
		p.say("%s", a.line())
	}
}
