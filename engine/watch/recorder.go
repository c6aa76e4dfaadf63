package watch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
)

// Recorder records over time what becomes final: looks, harm, and the messages about decisions and checks. It stops
// campaigns that are decided if they demand it.
type Recorder struct {
	engine    *engine.Engine
	catalogue *catalogue.Catalogue
	outbox    *outbox.Outbox

	checked map[schema.Subject]time.Time // the day on which each subject was last checked for harm
	judged  map[schema.Subject]time.Time // the day on which it was last judged
	passes  int                          // since this process started
}

// NewRecorder returns the recorder of a store.
func NewRecorder(e *engine.Engine, c *catalogue.Catalogue, box *outbox.Outbox) *Recorder {
	return &Recorder{engine: e, catalogue: c, outbox: box, checked: map[schema.Subject]time.Time{}, judged: map[schema.Subject]time.Time{}}
}

// recordInterval is the time between two passes over all subjects. A pass records the looks
// that have become mature.
const recordInterval = 10 * time.Minute

// FollowLooks records what is due, in regular passes, until the context ends.
func (r *Recorder) FollowLooks(ctx context.Context) {
	tick := time.NewTicker(recordInterval)
	defer tick.Stop()
	for {
		r.RecordDue(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// RecordDue records the looks that are mature at a time and any harm so far. Then it judges the subjects with new records,
// and once a day all that can still change. It logs errors, and the next pass tries again.
func (r *Recorder) RecordDue(ctx context.Context, now time.Time) {
	for _, owned := range r.catalogue.Snapshot().AllAccounts() {
		for _, subject := range owned.Subjects() {
			err := r.recordSubject(ctx, owned, subject, now)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				slog.WarnContext(ctx, "record looks failed", "subject", subject, "err", err)
			}
		}
	}
	r.passes++
}

// recordSubject records what is due of a subject, and then reports and carries out its decision. It reads the events only
// if a look is due or a day has ended.
func (r *Recorder) recordSubject(ctx context.Context, owned *catalogue.AccountResources, subject schema.Subject, now time.Time) error {
	p, err := plan.New(plan.ResultsRequest(owned.ID, subject), owned)
	if err != nil {
		return err
	}
	found, err := r.engine.OpenJudgement(ctx, p, now)
	if err != nil || found == nil {
		return err
	}
	today := now.UTC().Truncate(24 * time.Hour)

	// Record the looks that are due, and once a day any harm.
	hasNewDay := !p.Ended && found.Schedule.FullDays() > 0 && r.checked[subject].Before(today)
	if found.IsDue() || hasNewDay {
		if err := found.AnalyzeLooks(ctx); err != nil {
			return err
		}
		n, err := found.RecordLooks(ctx, now)
		if err != nil {
			return err
		}
		r.checked[subject] = today
		if n > 0 {
			slog.InfoContext(ctx, "looks recorded", "subject", subject, "rows", n)
			delete(r.judged, subject)
		}
	}

	// Report what is decided, and carry it out.
	if !r.judged[subject].Before(today) || isOver(p, now) {
		return nil
	}
	if found.Looks == nil {
		if err := found.AnalyzeLooks(ctx); err != nil {
			return err
		}
	}
	if err := r.reportDecision(ctx, owned, found, now); err != nil {
		return err
	}
	r.judged[subject] = today
	return nil
}

// reportDecision writes the messages about a subject that are due, and stops its campaign if the decision and the campaign
// demand it.
func (r *Recorder) reportDecision(ctx context.Context, owned *catalogue.AccountResources, found *engine.Judgement, now time.Time) error {
	subject := found.Plan.Subject
	if end, ended := lastEnd(found.Plan); ended && !end.After(found.FirstView.Accepted) {
		return nil // an imported past campaign
	}
	report, err := found.ReportDecision(ctx)
	if err != nil {
		return err
	}
	d := &decided{
		Judgement: found, account: owned.ID, name: owned.SubjectName(subject), report: report,
		status: result.NewStatus(report, found.Looks), now: now, observed: r.passes > 0,
	}

	// Write the messages that are not stored yet.
	stored, err := r.outbox.ReadMessages(ctx, owned.ID, subject)
	if err != nil {
		return err
	}
	messages := d.checkMessages(stored)
	decision, err := d.decisionMessage()
	if err != nil {
		return err
	}
	if decision != nil {
		if i := slices.IndexFunc(stored, func(m outbox.Message) bool { return m.ID == decision.ID }); i >= 0 {
			decision = &stored[i] // with the time when it was recorded
		} else {
			messages = append(messages, *decision)
		}
	}
	n, err := r.outbox.WriteMessages(ctx, messages)
	if err != nil {
		return err
	}
	if n > 0 {
		slog.InfoContext(ctx, "messages written", "subject", subject, "messages", n)
	}
	if decision == nil {
		return nil
	}
	return r.stopCampaign(ctx, owned.ID, subject, decision)
}

// judgedAfterEnd is how long a subject is judged after it ended: the longest maturity of a look and a day.
const judgedAfterEnd = 8 * 24 * time.Hour

// isOver reports whether nothing about a subject can be decided any more: it ended long ago.
func isOver(p *plan.Plan, now time.Time) bool {
	end, ended := lastEnd(p)
	return ended && now.Sub(end) > judgedAfterEnd
}

// lastEnd returns when the subject ended. It returns false if the subject has not ended.
func lastEnd(p *plan.Plan) (time.Time, bool) {
	if !p.Ended || len(p.Runs) == 0 || p.Runs[len(p.Runs)-1].To == nil {
		return time.Time{}, false
	}
	return *p.Runs[len(p.Runs)-1].To, true
}

// autoStopAuthor begins the author of a stop by the server. The decision follows.
const autoStopAuthor = "auto-stop: "

// stopCampaign stops the campaign of a reported decision if the campaign demands it. A campaign that was started after the
// decision was reported is not stopped: a person who started it knew the decision.
func (r *Recorder) stopCampaign(ctx context.Context, account int64, subject schema.Subject, reported *outbox.Message) error {
	campaign, known := r.catalogue.Snapshot().AccountResources(account).Campaigns[subject.ID] // as it is now
	if subject.Kind != schema.SubjectCampaign || !known || !campaign.Active || !campaign.StopsAt(reported.State) ||
		len(campaign.Runs) == 0 || !campaign.Runs[len(campaign.Runs)-1].From.Before(reported.RecordedAt) {
		return nil
	}
	ctx = catalogue.WithAuthor(ctx, autoStopAuthor+reported.State)
	if _, _, err := r.catalogue.SwitchCampaign(ctx, account, 0, campaign.ID, false); err != nil {
		return fmt.Errorf("auto-stop: %w", err)
	}
	slog.InfoContext(ctx, "campaign stopped", "campaign", campaign.ID, "decision", reported.State)
	return nil
}
