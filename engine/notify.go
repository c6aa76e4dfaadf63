package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
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
func (r *Recorder) judgeSubject(ctx context.Context, owned *catalogue.AccountResources, of plan.Subject, a *looks.Analysis, now time.Time) error {
	e, j := r.engine, &judgement{account: owned.ID, name: nameOf(owned, of), now: now, observed: r.passes > 0}
	request := of.ResultsRequest(owned.ID)
	request.Scorecard = true
	p, err := plan.New(request, owned)
	if err != nil {
		return err
	}
	x, err := e.prepareReport(ctx, p)
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
	plain := withoutScorecard(x)
	if a == nil {
		if a, err = e.readAnalysis(ctx, plain); err != nil {
			return err
		}
	}
	rows, err := e.readRows(ctx, plain)
	if err != nil {
		return err
	}
	j.plan, j.report = x.Plan, result.New(plain.Plan, rows, a)
	j.report.AddScorecard(x.Plan, []result.GoalRows{{Plan: x.AboutGoal(x.CountedGoal()), Rows: rows}}, a)
	j.status = result.NewStatus(j.report, a)
	if err := e.Outbox.LoadMessages(ctx); err != nil {
		return err
	}
	messages, err := j.checkMessages(e.Outbox)
	if err != nil {
		return err
	}
	decision := j.decisionID()
	if decision != "" && e.Outbox.FindMessage(decision) == nil {
		m, err := j.decisionMessage(decision)
		if err != nil {
			return err
		}
		messages = append(messages, m)
	}
	n, err := e.Outbox.WriteMessages(ctx, messages)
	if err != nil {
		return err
	}
	if n > 0 {
		slog.InfoContext(ctx, "messages written", "subject", of, "messages", n)
	}
	if decision == "" {
		return nil
	}
	return e.stopDecided(ctx, j, e.Outbox.FindMessage(decision))
}

// nameOf returns the name of a campaign, or of an experiment with its widget.
func nameOf(owned *catalogue.AccountResources, of plan.Subject) string {
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

// withoutScorecard returns the query of the same report without its scorecard.
func withoutScorecard(x *source.ReportQuery) *source.ReportQuery {
	query, p := *x, *x.Plan
	p.Scorecard = false
	query.Plan = &p
	return &query
}

// decisionID returns the id of the message about the decision, or an empty text if there is nothing to report. Decisions
// of the time before the first view was accepted are not reported: they are from an import.
func (j *judgement) decisionID() string {
	d := j.report.Decision
	if d == nil || !slices.Contains(reportedDecisions, d.Status) || d.DecidedAt != nil && !d.DecidedAt.After(j.first.Accepted) {
		return ""
	}
	declared := looks.DeclarationOf(j.plan.DeclaredPlan(time.Time{}))
	return outbox.MessageID(j.account, "decision ", j.plan.Subject, " ", declared.Hash, " ", d.Status)
}

// decisionMessage returns the message about the decision.
func (j *judgement) decisionMessage(id string) (outbox.Message, error) {
	d := j.report.Decision
	data := &outbox.Data{Text: d.Text, Metric: string(j.plan.Declared.Metric)}
	var err error
	if data.Decision, err = json.Marshal(d); err != nil {
		return outbox.Message{}, err
	}
	if j.report.Conclusion != nil {
		data.Sentence = j.report.Conclusion.Text
	}
	if d.VariationID != nil && j.status.Lift != nil {
		if data.Lift, err = json.Marshal(j.status.Lift); err != nil {
			return outbox.Message{}, err
		}
		if month := j.report.ImpactOf(*d.VariationID); month != nil && month.PerMonth != nil {
			if data.PerMonth, err = json.Marshal(month.PerMonth); err != nil {
				return outbox.Message{}, err
			}
			data.Worth = month.InWords(j.plan.Declared.Metric, j.report.SignificanceLevel)
		}
	}
	return j.newMessage(id, catalogue.EventDecisionChanged, string(d.Status), data)
}

func (j *judgement) newMessage(id, event, state string, data *outbox.Data) (outbox.Message, error) {
	data.Name = j.name
	return outbox.NewMessage(id, j.account, event, outbox.Subject(j.plan.Subject), state, j.now, data)
}

// silentDay is how long a subject must be silent to be reported. With v views a day, a day without any comes by chance
// with probability e^-v, and the subject must have been silent for ten times its mean gap, which has probability e^-10.
const silentDay = 24 * time.Hour

// checkMessages returns the messages about checks that failed, or were cleared, since the last message about them. Each
// check has at most one message a day.
func (j *judgement) checkMessages(box *outbox.Outbox) ([]outbox.Message, error) {
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
	var messages []outbox.Message
	for _, check := range checks {
		last := box.LastAbout(j.account, outbox.Subject(j.plan.Subject), check.name)
		failedBefore := last != nil && last.Event == catalogue.EventCheckFailed
		if (check.failed != "") == failedBefore || last != nil && last.RecordedAt.Format(time.DateOnly) == day {
			continue
		}
		event, text := catalogue.EventCheckFailed, check.failed
		if check.failed == "" {
			event, text = catalogue.EventCheckCleared, check.cleared
		}
		id := outbox.MessageID(j.account, "check ", j.plan.Subject, " ", check.name, " ", event, " ", day)
		m, err := j.newMessage(id, event, check.name, &outbox.Data{Text: strings.ToUpper(text[:1]) + text[1:] + ".", Check: check.name})
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
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
	for {
		if now := e.catalogue.Snapshot(); now != seen {
			if err := e.reportRuns(ctx, now, time.Now()); err == nil {
				seen = now
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

// reportRuns writes the messages about starts and stops that are not stored yet.
func (e *Engine) reportRuns(ctx context.Context, snapshot *catalogue.Snapshot, now time.Time) error {
	if err := e.Outbox.LoadMessages(ctx); err != nil {
		return err
	}
	var missing []outbox.Message
	report := func(account int64, c *catalogue.LiveCampaign, event, verb, by string, at time.Time) error {
		if age := now.Sub(at); age < 0 || age > reportedWithin {
			return nil
		}
		id := outbox.MessageID(account, event, " ", c.ID, " ", at.UnixMilli())
		if e.Outbox.FindMessage(id) != nil {
			return nil
		}
		text := fmt.Sprintf("The campaign was %s by %s.", verb, cmp.Or(by, "an unknown author"))
		if reason, auto := strings.CutPrefix(by, autoStopAuthor); auto {
			text = fmt.Sprintf("The campaign was stopped automatically, because the decision is %s.", reason)
		}
		of := outbox.Subject{WebsiteID: c.WebsiteID, Kind: schema.SubjectCampaign, ID: c.ID}
		m, err := outbox.NewMessage(id, account, event, of, "", at, &outbox.Data{Name: c.Name, Text: text, By: by})
		missing = append(missing, m)
		return err
	}
	for _, owned := range snapshot.AllAccounts() {
		for _, c := range catalogue.ByID(owned.Campaigns) {
			for _, run := range c.Runs {
				if err := report(owned.ID, &c, catalogue.EventCampaignStarted, "started", run.StartedBy, run.From); err != nil {
					return err
				}
				if run.To == nil {
					continue
				}
				if err := report(owned.ID, &c, catalogue.EventCampaignStopped, "stopped", run.StoppedBy, *run.To); err != nil {
					return err
				}
			}
		}
	}
	_, err := e.Outbox.WriteMessages(ctx, missing)
	return err
}
