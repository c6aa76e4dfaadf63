// Package watch does what happens without a request: it records looks, computes the statuses of lists, writes messages
// about decisions, checks, starts and stops, stops campaigns that are decided, and delivers messages to webhooks.
package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/looks"
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
	statuses  *Statuses

	checked map[schema.Subject]time.Time // the day on which each subject was last checked for harm
	judged  map[schema.Subject]time.Time // the day on which it was last judged
	tested  map[schema.Subject]uint64    // number of imported events whose split was last tested
	// the day on which the interactions of each website were last measured
	measured map[int64]time.Time
	passes   int // since this process started
}

// NewRecorder returns the recorder of a store. When it records something, it also renews the statuses of lists.
func NewRecorder(e *engine.Engine, c *catalogue.Catalogue, box *outbox.Outbox, statuses *Statuses) *Recorder {
	return &Recorder{
		engine: e, catalogue: c, outbox: box, statuses: statuses, checked: map[schema.Subject]time.Time{},
		judged: map[schema.Subject]time.Time{}, tested: map[schema.Subject]uint64{}, measured: map[int64]time.Time{},
	}
}

// FollowLooks records what is due, in regular passes over all subjects, until the context ends.
func (r *Recorder) FollowLooks(ctx context.Context) {
	schema.Repeat(ctx, 10*time.Minute, "record looks", func(ctx context.Context) error {
		r.RecordDue(ctx, time.Now())
		return nil
	})
}

// RecordDue records the looks that are mature at a time and any harm so far. Then it judges the subjects with new
// records, and once a day all that can still change. A subject whose events are not folded yet waits for a later pass.
// It logs errors, and the next pass tries again.
func (r *Recorder) RecordDue(ctx context.Context, now time.Time) {
	waiting := 0
	for _, owned := range r.catalogue.Snapshot().AllAccounts() {
		r.measureInteractions(ctx, owned, now)
		for _, subject := range owned.Subjects() {
			err := r.recordSubject(ctx, owned, subject, now)
			if ctx.Err() != nil {
				return
			}
			switch {
			case errors.Is(err, engine.ErrEventsWait):
				waiting++
			case err != nil:
				slog.WarnContext(ctx, "record looks failed", "subject", subject, "err", err)
			}
		}
	}
	if waiting > 0 {
		slog.InfoContext(ctx, "looks are recorded after the events of their subjects are folded", "subjects", waiting)
	}
	r.passes++
}

// measureInteractions measures once a day which campaigns of each website of an account disturb each other. It logs
// errors, and the next pass tries again.
func (r *Recorder) measureInteractions(ctx context.Context, owned *catalogue.AccountResources, now time.Time) {
	today := now.UTC().Truncate(24 * time.Hour)
	for website := range owned.Websites {
		if !r.measured[website].Before(today) || ctx.Err() != nil {
			continue
		}
		began := time.Now()
		pairs, err := r.engine.MeasureInteractions(ctx, owned, website, now)
		if err != nil {
			slog.WarnContext(ctx, "measure interactions failed", "website", website, "err", err)
			continue
		}
		r.measured[website] = today
		if pairs > 0 {
			slog.InfoContext(ctx, "interactions measured", "website", website, "pairs", pairs,
				"seconds", time.Since(began).Seconds())
		}
	}
}

// recordSubject records what is due of a subject, and then reports and carries out its decision. It reads the events
// only if a look is due or a day has ended.
func (r *Recorder) recordSubject(
	ctx context.Context, owned *catalogue.AccountResources, subject schema.Subject, now time.Time,
) error {
	p, err := plan.New(plan.ResultsRequest(owned.ID, subject), owned)
	if err != nil {
		return err
	}
	found, err := r.engine.OpenJudgement(ctx, p, now)
	if err != nil || found == nil {
		return err
	}
	// Keep the prior that was learned, before any look has it.
	learned := found.Plan.Rules.StatedPrior
	if learned.Campaigns != nil && owned.StateOf(subject).LearnedPrior == nil && !isImportedPast(found) {
		ctx := catalogue.WithAuthor(ctx, "learned prior")
		if err := r.catalogue.KeepPrior(ctx, owned.ID, subject.ID, learned); err != nil {
			return err
		}
		return r.recordSubject(ctx, r.catalogue.Snapshot().AccountResources(owned.ID), subject, now)
	}

	today := now.UTC().Truncate(24 * time.Hour)

	// Test the split of a campaign that was imported. No look of it is due.
	if isImportedPast(found) && r.tested[subject] != found.Events {
		n, err := found.RecordSplit(ctx, now)
		if err != nil {
			return err
		}
		if r.tested[subject] = found.Events; n > 0 {
			slog.InfoContext(ctx, "sample ratio mismatch recorded", "subject", subject)
			return r.statuses.renewStatus(ctx, statusKey{owned.ID, subject})
		}
	}

	// Record the looks that are due, and once a day any harm and a sample ratio mismatch.
	hasNewDay := !p.Ended && found.Schedule.FullDays() > 0 && r.checked[subject].Before(today)
	if found.IsDue() || hasNewDay {
		ofSplit, err := found.RecordSplit(ctx, now)
		if err != nil {
			return err
		}
		if err := found.AnalyzeLooks(ctx); err != nil {
			return err
		}
		n, err := found.RecordLooks(ctx, now)
		if err != nil {
			return err
		}
		n += ofSplit
		r.checked[subject] = today
		if n > 0 {
			slog.InfoContext(ctx, "looks recorded", "subject", subject, "rows", n)
			delete(r.judged, subject)
			if err := r.statuses.renewStatus(ctx, statusKey{owned.ID, subject}); err != nil {
				return err
			}
		}
	}

	// Report what is decided, and carry it out. Nothing can be decided any more if a subject ended longer ago than its
	// last conversion window, the time in which its orders settle, the longest maturity of a look and a day.
	end, ended := p.EndedAt()
	longest := time.Duration(0)
	for _, goal := range p.Declared.AllGoals() {
		longest = max(longest, goal.Window.Maturity())
	}
	for _, r := range found.Recorded {
		if r.Returns != nil {
			longest = max(longest, r.Window.To+r.Returns.Settle)
		}
	}
	if !r.judged[subject].Before(today) || ended && now.Sub(end) > 8*24*time.Hour+longest {
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

// reportDecision writes the messages about a subject that are due, and stops its campaign if the decision and the
// campaign demand it.
func (r *Recorder) reportDecision(
	ctx context.Context, owned *catalogue.AccountResources, found *engine.Judgement, now time.Time,
) error {
	subject := found.Plan.Subject
	if isImportedPast(found) {
		return nil
	}
	report, err := found.ReportDecision(ctx)
	if err != nil {
		return err
	}
	d := &decided{
		Judgement: found, account: owned.ID, name: owned.SubjectName(subject), report: report,
		status: result.NewStatus(report), now: now, observed: r.passes > 0,
	}

	// Write the messages that are not stored yet.
	stored, err := r.outbox.ReadMessages(ctx, owned.ID, subject)
	if err != nil {
		return err
	}
	messages := d.checkMessages(stored)
	var decision *outbox.Message
	reported := []result.DecisionStatus{ // the others say that nothing is decided
		result.DecisionShip, result.DecisionRollBack, result.DecisionNoDifference, result.DecisionInvalid,
	}
	// A decision of the time before the first view was accepted is from an import.
	if made := report.Decision; made != nil && slices.Contains(reported, made.Status) &&
		(made.DecidedAt == nil || made.DecidedAt.After(found.FirstView.Accepted)) {
		data := outbox.Data{Text: made.Text, Metric: string(found.Plan.Declared.Metric)}
		var errs [3]error
		data.Decision, errs[0] = json.Marshal(made)
		if report.Conclusion != nil {
			data.Sentence = report.Conclusion.Text
		}
		if made.VariationID != nil && d.status.Lift != nil {
			data.Lift, errs[1] = json.Marshal(d.status.Lift)
			if worth := report.WorthOf(*made.VariationID); worth != nil && worth.Text != "" {
				data.Worth, errs[2] = json.Marshal(worth)
			}
		}
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		declared := looks.DeclarationOf(found.Looks.Plan)
		id := outbox.MessageID(owned.ID, "decision ", subject, " ", declared.Hash, " ", made.Status)
		decision = new(d.newMessage(id, catalogue.EventDecisionChanged, string(made.Status), data))
		if i := slices.IndexFunc(stored, func(m outbox.Message) bool { return m.ID == decision.ID }); i >= 0 {
			decision = &stored[i] // with the time when it was recorded
		} else {
			messages = append(messages, *decision)
		}
	}
	if len(messages) > 0 { // a list never contradicts a message
		if err := r.statuses.renewStatus(ctx, statusKey{owned.ID, subject}); err != nil {
			return err
		}
	}
	n, err := r.outbox.WriteMessages(ctx, messages)
	if err != nil {
		return err
	}
	if n > 0 {
		slog.InfoContext(ctx, "messages written", "subject", subject, "messages", n)
	}

	// Stop the campaign if it demands this. A campaign that was started after the decision was reported is not stopped:
	// a person who started it knew the decision.
	campaign, known := r.catalogue.Snapshot().AccountResources(owned.ID).Campaigns[subject.ID] // as it is now
	if decision == nil || subject.Kind != schema.SubjectCampaign || !known || !campaign.Active ||
		!campaign.StopsAt(decision.State) || len(campaign.Runs) == 0 ||
		!campaign.Runs[len(campaign.Runs)-1].From.Before(decision.RecordedAt) {
		return nil
	}
	ctx = catalogue.WithAuthor(ctx, autoStopAuthor+decision.State)
	if _, _, err := r.catalogue.Switch(ctx, owned.ID, 0, schema.SubjectCampaign, campaign.ID, false); err != nil {
		return fmt.Errorf("auto-stop: %w", err)
	}
	slog.InfoContext(ctx, "campaign stopped", "campaign", campaign.ID, "decision", decision.State)
	return nil
}

// isImportedPast reports whether a subject ended before its first view was accepted.
func isImportedPast(j *engine.Judgement) bool {
	end, ended := j.Plan.EndedAt()
	return ended && !end.After(j.FirstView.Accepted)
}

// autoStopAuthor begins the author of a stop by the server. The decision follows.
const autoStopAuthor = "auto-stop: "

// FollowRuns reports the starts and stops of campaigns until the context ends.
func FollowRuns(ctx context.Context, c *catalogue.Catalogue, box *outbox.Outbox) {
	var seen *catalogue.Snapshot
	var next time.Time // of the first planned start or stop, or zero
	schema.Repeat(ctx, time.Second, "report starts and stops", func(ctx context.Context) error {
		snapshot, now := c.Snapshot(), time.Now()
		if snapshot == seen && (next.IsZero() || now.Before(next)) {
			return nil
		}
		planned, err := ReportRuns(ctx, snapshot, box, now)
		if err == nil {
			seen, next = snapshot, planned
		}
		return err
	})
}

// ReportRuns writes the messages about starts and stops that are not stored yet. It returns the time of the first start
// or stop that is planned, or zero.
func ReportRuns(
	ctx context.Context, snapshot *catalogue.Snapshot, box *outbox.Outbox, now time.Time,
) (next time.Time, err error) {
	var messages []outbox.Message
	for _, owned := range snapshot.AllAccounts() {
		for _, c := range catalogue.ByID(owned.Campaigns) {
			addMessage := func(event, verb, author string, when time.Time) {
				if when.After(now) && (next.IsZero() || when.Before(next)) {
					next = when
				}
				// Older ones are from an import, or from a time when no server ran.
				if when.After(now) || now.Sub(when) > 24*time.Hour {
					return
				}
				id := outbox.MessageID(owned.ID, event, " ", c.ID, " ", when.UnixMilli())
				text := fmt.Sprintf("The campaign was %s by %s.", verb, author)
				if decision, isAuto := strings.CutPrefix(author, autoStopAuthor); isAuto {
					text = fmt.Sprintf("The campaign was stopped automatically, because the decision is %s.", decision)
				} else if author == "" { // its date was declared
					text = fmt.Sprintf("The campaign was %s as planned.", verb)
				}
				data := outbox.Data{Name: c.Name, Text: text, By: author}
				messages = append(messages, outbox.NewMessage(id, owned.ID, event, c.Subject(), "", when, data))
			}
			for _, run := range c.Runs {
				// else a date of start was declared, but the campaign has not been started
				if run.To != nil || c.Active {
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

// Messages report decisions, failed checks, and starts and stops. A subject is judged after its looks are recorded and
// once after each day. The id of a message is a hash of what it reports. So each decision is reported once, even if the
// process ends between recording a look and writing the message, or if several servers judge the subject.

// decided is a judgement with the decision that messages report.
type decided struct {
	*engine.Judgement
	account  int64
	name     string // of the subject
	report   *result.Report
	status   *result.Status
	now      time.Time
	observed bool // whether the server has run since an earlier pass, so that it could receive events
}

func (d *decided) newMessage(id, event, state string, data outbox.Data) outbox.Message {
	data.Name = d.name
	return outbox.NewMessage(id, d.account, event, d.Plan.Subject, state, d.now, data)
}

// checkMessages returns the messages about checks that failed, or were cleared, since the last stored message about
// them. Each check has at most one message a day.
func (d *decided) checkMessages(stored []outbox.Message) (messages []outbox.Message) {
	type check struct{ name, failed, cleared string }
	checks := []check{
		{
			"sampleRatio", d.report.WarningText(result.WarningSampleRatio),
			"the split of the visitors matches the shares again",
		}, {
			"multipleExposures",
			d.report.WarningText(result.WarningMultipleExposures, result.WarningMultipleExposuresSkewed),
			"few visitors are exposed to more than one variation again",
		}, {
			"interactions", d.report.WarningText(result.WarningInteraction),
			"no other campaign disturbs this one any more",
		}, {
			"returns", d.report.WarningText(result.WarningReturns), "orders change at the same ages in all variations",
		},
	}
	if d.observed {
		// With v views a day, a day without any comes by chance with probability e^-v, and the subject must have been
		// silent for ten times its mean gap, which has probability e^-10.
		silence := check{"silence", "", "events arrive again"}
		if silent := d.status.Pulse.SilenceAt(d.now); d.Plan.Running && silent >= 24*time.Hour {
			const text = "no event for %d hours, although the subject is active; check that tracking still works"
			silence.failed = fmt.Sprintf(text, int(silent.Hours()))
		}
		checks = append(checks, silence)
	}
	day := d.now.UTC().Format(time.DateOnly)
	for _, check := range checks {
		var last outbox.Message
		for _, m := range stored {
			if m.State == check.name {
				last = m
			}
		}
		if (check.failed != "") == (last.Event == catalogue.EventCheckFailed) ||
			last.RecordedAt.Format(time.DateOnly) == day {
			continue
		}
		event, text := catalogue.EventCheckFailed, check.failed
		if check.failed == "" {
			event, text = catalogue.EventCheckCleared, check.cleared
		}
		id := outbox.MessageID(d.account, "check ", d.Plan.Subject, " ", check.name, " ", event, " ", day)
		data := outbox.Data{Text: strings.ToUpper(text[:1]) + text[1:] + ".", Check: check.name}
		messages = append(messages, d.newMessage(id, event, check.name, data))
	}
	return messages
}
