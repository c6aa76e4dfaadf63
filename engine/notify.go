package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
)

// Messages report decisions, failed checks, and starts and stops. A subject is judged after its looks are recorded and
// once after each day. The id of a message is a hash of what it reports. So each decision is reported once, even if the
// process ends between recording a look and writing the message, or if several servers judge the subject.

// reportedDecisions are the decisions that are reported. The others say that nothing is decided.
var reportedDecisions = []result.DecisionStatus{result.DecisionShip, result.DecisionRollBack, result.DecisionNoDifference, result.DecisionInvalid}

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

// judgement is the state of a subject at a time.
type judgement struct {
	account int64
	name    string // of the subject
	plan    *plan.Plan
	report  *result.Report
	status  *result.Status
	first   looks.FirstView
	now     time.Time

	observed bool // whether the server has run since an earlier pass, so that it could receive events
}

// judgeSubject writes the messages about a subject that are due, and stops its campaign if the decision and the campaign
// demand it. a has the results of the looks; nil: they are read.
func (r *Recorder) judgeSubject(ctx context.Context, owned *catalogue.AccountResources, of schema.Subject, a *looks.Analysis, now time.Time) error {
	e, j := r.engine, &judgement{account: owned.ID, name: nameOf(owned, of), now: now, observed: r.passes > 0}
	request := plan.ResultsRequest(owned.ID, of)
	request.Scorecard = true
	p, err := plan.New(request, owned)
	if err != nil {
		return err
	}
	x, err := e.prepareJudgement(ctx, p)
	if err != nil {
		return err
	}
	var viewed bool
	if j.first, viewed = e.firstView(of); !viewed {
		return nil
	}
	if end, ended := lastEnd(p); ended && !end.After(j.first.Accepted) {
		return nil // an imported past campaign
	}
	x.Stored.Ingested = now // days end on time, whether or not events arrive
	if a == nil {
		if a, err = e.readAnalysis(ctx, withoutScorecard(x)); err != nil {
			return err
		}
	}
	j.plan = x.Plan
	if j.report, err = e.decide(ctx, x, a); err != nil {
		return err
	}
	j.status = result.NewStatus(j.report, a)
	stored, err := e.Outbox.ReadMessages(ctx, j.account, of)
	if err != nil {
		return err
	}
	messages := j.checkMessages(stored)
	decision, err := j.decisionMessage()
	if err != nil {
		return err
	}
	if decision != nil {
		if at := slices.IndexFunc(stored, func(m outbox.Message) bool { return m.ID == decision.ID }); at >= 0 {
			decision = &stored[at] // with the time when it was recorded
		} else {
			messages = append(messages, *decision)
		}
	}
	n, err := e.Outbox.WriteMessages(ctx, messages)
	if err != nil {
		return err
	}
	if n > 0 {
		slog.InfoContext(ctx, "messages written", "subject", of, "messages", n)
	}
	if decision == nil {
		return nil
	}
	return e.stopDecided(ctx, j, decision)
}

// nameOf returns the name of a campaign, or of an experiment with its widget.
func nameOf(owned *catalogue.AccountResources, of schema.Subject) string {
	if of.Kind == schema.SubjectCampaign {
		return owned.Campaigns[of.ID].Name
	}
	widget := owned.Widgets[of.ID]
	name := widget.Name
	for _, e := range widget.Experiments {
		if e.ID == of.ExperimentID && e.Name != "" {
			name += ": " + e.Name
		}
	}
	return name
}

// decisionMessage returns the message about the decision, or nil if there is nothing to report. Decisions of the time
// before the first view was accepted are not reported: they are from an import.
func (j *judgement) decisionMessage() (*outbox.Message, error) {
	d := j.report.Decision
	if d == nil || !slices.Contains(reportedDecisions, d.Status) || d.DecidedAt != nil && !d.DecidedAt.After(j.first.Accepted) {
		return nil, nil
	}
	declared := looks.DeclarationOf(j.plan.DeclaredPlan(time.Time{}))
	data := outbox.Data{Text: d.Text, Metric: string(j.plan.Declared.Metric)}
	var errs [3]error
	data.Decision, errs[0] = json.Marshal(d)
	if j.report.Conclusion != nil {
		data.Sentence = j.report.Conclusion.Text
	}
	if d.VariationID != nil && j.status.Lift != nil {
		data.Lift, errs[1] = json.Marshal(j.status.Lift)
		if month := j.report.ImpactOf(*d.VariationID); month != nil && month.PerMonth != nil {
			data.PerMonth, errs[2] = json.Marshal(month.PerMonth)
			data.Worth = month.InWords(j.plan.Declared.Metric, j.report.SignificanceLevel)
		}
	}
	id := outbox.MessageID(j.account, "decision ", j.plan.Subject, " ", declared.Hash, " ", d.Status)
	m := j.newMessage(id, catalogue.EventDecisionChanged, string(d.Status), data)
	return &m, errors.Join(errs[:]...)
}

func (j *judgement) newMessage(id, event, state string, data outbox.Data) outbox.Message {
	data.Name = j.name
	return outbox.NewMessage(id, j.account, event, j.plan.Subject, state, j.now, data)
}

// silentDay is how long a subject must be silent to be reported. With v views a day, a day without any comes by chance
// with probability e^-v, and the subject must have been silent for ten times its mean gap, which has probability e^-10.
const silentDay = 24 * time.Hour

// checkMessages returns the messages about checks that failed, or were cleared, since the last stored message about them.
// Each check has at most one message a day.
func (j *judgement) checkMessages(stored []outbox.Message) (messages []outbox.Message) {
	type check struct{ name, failed, cleared string }
	checks := []check{
		{"sampleRatio", j.report.WarningText(result.WarningSampleRatio), "the split of the visitors matches the shares again"},
		{"multipleExposures", j.report.WarningText(result.WarningMultipleExposures, result.WarningMultipleExposuresSkewed), "few visitors are exposed to more than one variation again"},
	}
	if j.observed {
		silence := check{"silence", "", "events arrive again"}
		if silent := j.status.SilenceAt(j.now); j.plan.Running && silent >= silentDay {
			silence.failed = fmt.Sprintf("no event for %d hours, although the subject is active; check that tracking still works", int(silent.Hours()))
		}
		checks = append(checks, silence)
	}
	day := j.now.UTC().Format(time.DateOnly)
	for _, check := range checks {
		var last outbox.Message
		for _, m := range stored {
			if m.State == check.name {
				last = m
			}
		}
		if (check.failed != "") == (last.Event == catalogue.EventCheckFailed) || last.RecordedAt.Format(time.DateOnly) == day {
			continue
		}
		event, text := catalogue.EventCheckFailed, check.failed
		if check.failed == "" {
			event, text = catalogue.EventCheckCleared, check.cleared
		}
		id := outbox.MessageID(j.account, "check ", j.plan.Subject, " ", check.name, " ", event, " ", day)
		messages = append(messages, j.newMessage(id, event, check.name, outbox.Data{Text: strings.ToUpper(text[:1]) + text[1:] + ".", Check: check.name}))
	}
	return messages
}

// autoStopAuthor begins the author of a stop by the server. The decision follows.
const autoStopAuthor = "auto-stop: "

// stopDecided stops the campaign of a reported decision if the campaign demands it. A campaign that was started after the
// decision was reported is not stopped: a person who started it knew the decision.
func (e *Engine) stopDecided(ctx context.Context, j *judgement, reported *outbox.Message) error {
	campaign, known := e.catalogue.Snapshot().AccountResources(j.account).Campaigns[j.plan.Subject.ID] // as it is now
	if j.plan.Subject.Kind != schema.SubjectCampaign || !known || !campaign.Active || !campaign.StopsAt(reported.State) ||
		len(campaign.Runs) == 0 || !campaign.Runs[len(campaign.Runs)-1].From.Before(reported.RecordedAt) {
		return nil
	}
	ctx = catalogue.WithAuthor(ctx, autoStopAuthor+reported.State)
	if _, _, err := e.catalogue.SwitchCampaign(ctx, j.account, 0, campaign.ID, false); err != nil {
		return fmt.Errorf("auto-stop: %w", err)
	}
	slog.InfoContext(ctx, "campaign stopped", "campaign", campaign.ID, "decision", reported.State)
	return nil
}

// runsInterval is the time between two checks for starts and stops.
const runsInterval = time.Second

// reportedWithin is how long ago a start or a stop may be to be reported. Older ones are from an import, or from a time
// when no server ran.
const reportedWithin = 24 * time.Hour

// FollowRuns reports the starts and stops of campaigns until the context ends.
func (e *Engine) FollowRuns(ctx context.Context) {
	tick := time.NewTicker(runsInterval)
	defer tick.Stop()
	var seen *catalogue.Snapshot
	var next time.Time // of the first planned start or stop, or zero
	for {
		if snapshot, now := e.catalogue.Snapshot(), time.Now(); snapshot != seen || !next.IsZero() && !now.Before(next) {
			planned, err := e.reportRuns(ctx, snapshot, now)
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

// reportRuns writes the messages about starts and stops that are not stored yet. It returns the time of the first start
// or stop that is planned, or zero.
func (e *Engine) reportRuns(ctx context.Context, snapshot *catalogue.Snapshot, now time.Time) (next time.Time, err error) {
	var messages []outbox.Message
	for _, owned := range snapshot.AllAccounts() {
		for _, c := range catalogue.ByID(owned.Campaigns) {
			report := func(event, verb, by string, at time.Time) {
				if at.After(now) && (next.IsZero() || at.Before(next)) {
					next = at
				}
				if at.After(now) || now.Sub(at) > reportedWithin {
					return
				}
				text := fmt.Sprintf("The campaign was %s by %s.", verb, by)
				if reason, auto := strings.CutPrefix(by, autoStopAuthor); auto {
					text = fmt.Sprintf("The campaign was stopped automatically, because the decision is %s.", reason)
				}
				if by == "" { // a declared end
					text = fmt.Sprintf("The campaign was %s as planned.", verb)
				}
				of := schema.Subject{WebsiteID: c.WebsiteID, Kind: schema.SubjectCampaign, ID: c.ID}
				id := outbox.MessageID(owned.ID, event, " ", c.ID, " ", at.UnixMilli())
				messages = append(messages, outbox.NewMessage(id, owned.ID, event, of, "", at, outbox.Data{Name: c.Name, Text: text, By: by}))
			}
			for _, run := range c.Runs {
				if run.To != nil || c.Active { // else a date of start was declared, but the campaign has not been started
					report(catalogue.EventCampaignStarted, "started", run.StartedBy, run.From)
				}
				if run.To != nil {
					report(catalogue.EventCampaignStopped, "stopped", run.StoppedBy, *run.To)
				}
			}
		}
	}
	_, err = e.Outbox.WriteMessages(ctx, messages)
	return next, err
}
