package watch

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
)

// runsInterval is the time between two checks for starts and stops.
const runsInterval = time.Second

// reportedWithin is how long ago a start or a stop may be to be reported. Older ones are from an import, or from a time
// when no server ran.
const reportedWithin = 24 * time.Hour

// FollowRuns reports the starts and stops of campaigns until the context ends.
func FollowRuns(ctx context.Context, c *catalogue.Catalogue, box *outbox.Outbox) {
	tick := time.NewTicker(runsInterval)
	defer tick.Stop()
	var seen *catalogue.Snapshot
	var next time.Time // of the first planned start or stop, or zero
	for {
		if snapshot, now := c.Snapshot(), time.Now(); snapshot != seen || !next.IsZero() && !now.Before(next) {
			planned, err := ReportRuns(ctx, snapshot, box, now)
			if err == nil {
				seen, next = snapshot, planned
			} else if ctx.Err() == nil {
				slog.WarnContext(ctx, "report starts and stops failed", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ReportRuns writes the messages about starts and stops that are not stored yet. It returns the time of the first start
// or stop that is planned, or zero.
func ReportRuns(ctx context.Context, snapshot *catalogue.Snapshot, box *outbox.Outbox, now time.Time) (next time.Time, err error) {
	var messages []outbox.Message
	for _, owned := range snapshot.AllAccounts() {
		for _, c := range catalogue.ByID(owned.Campaigns) {
			addMessage := func(event, verb, author string, when time.Time) {
				if when.After(now) && (next.IsZero() || when.Before(next)) {
					next = when
				}
				if when.After(now) || now.Sub(when) > reportedWithin {
					return
				}
				id := outbox.MessageID(owned.ID, event, " ", c.ID, " ", when.UnixMilli())
				data := outbox.Data{Name: c.Name, Text: describeRun(verb, author), By: author}
				messages = append(messages, outbox.NewMessage(id, owned.ID, event, c.Subject(), "", when, data))
			}
			for _, run := range c.Runs {
				if run.To != nil || c.Active { // else a date of start was declared, but the campaign has not been started
					addMessage(catalogue.EventCampaignStarted, "started", run.StartedBy, run.From)
				}
				if run.To != nil {
					addMessage(catalogue.EventCampaignStopped, "stopped", run.StoppedBy, *run.To)
				}
			}
		}
	}
	_, err = box.WriteMessages(ctx, messages)
	return next, err
}

// describeRun returns the sentence about a start or a stop. The author of a declared one is empty.
func describeRun(verb, author string) string {
	if decision, isAuto := strings.CutPrefix(author, autoStopAuthor); isAuto {
		return fmt.Sprintf("The campaign was stopped automatically, because the decision is %s.", decision)
	}
	if author == "" {
		return fmt.Sprintf("The campaign was %s as planned.", verb)
	}
	return fmt.Sprintf("The campaign was %s by %s.", verb, author)
}
