// Package watch does what happens without a request: it records looks, computes the summaries of subjects, writes
// messages about decisions, checks, starts and stops, stops campaigns that are decided, and delivers messages to
// webhooks.
package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/daily"
	"lifthouse/schema/outbox"
)

// Recorder records over time what becomes final: looks, harm, and the messages about decisions and checks. It stops
// campaigns that are decided if they demand it.
type Recorder struct {
	engine    *engine.Engine
	catalogue *catalogue.Catalogue
	outbox    *outbox.Outbox
	summaries *Summaries

	// MakeReadout makes a readout of the decision about a subject, and returns its id; nil: none is made.
	MakeReadout func(context.Context, *catalogue.AccountResources, schema.Subject) (id string, err error)

	passes int // since this process started
}

// NewRecorder returns the recorder of a store. When it records something, it also renews the summaries.
func NewRecorder(e *engine.Engine, c *catalogue.Catalogue, box *outbox.Outbox, summaries *Summaries) *Recorder {
	return &Recorder{engine: e, catalogue: c, outbox: box, summaries: summaries}
}

// FollowLooks records what is due, in regular passes over all subjects, until the context ends.
func (r *Recorder) FollowLooks(ctx context.Context) {
	schema.Repeat(ctx, 10*time.Minute, "record looks", func(ctx context.Context) error {
		r.RecordDue(ctx, time.Now())
		return nil
	})
}

// RecordDue records the looks that are mature at a time and any harm so far. Then it judges the subjects with new
// records, and once a day all that can still change, unless another process did, or this one before a restart. A
// subject whose events are not folded yet waits for a later pass. It logs errors, and the next pass tries again.
func (r *Recorder) RecordDue(ctx context.Context, now time.Time) {
	if err := r.readDone(ctx); err != nil {
		slog.WarnContext(ctx, "record looks failed", "err", err)
		return
	}
	defer r.writeDone(context.WithoutCancel(ctx))
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
	for website := range owned.Websites {
		if r.engine.AreInteractionsMeasured(website, now) || ctx.Err() != nil {
			continue
		}
		began := time.Now()
		pairs, err := r.engine.MeasureInteractions(ctx, owned, website, now)
		if err != nil {
			slog.WarnContext(ctx, "measure interactions failed", "website", website, "err", err)
			continue
		}
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
	found, err := r.openJudgement(ctx, owned, subject, now)
	if err != nil || found == nil {
		return err
	}
	if err := r.recordResults(ctx, owned.ID, found, now); err != nil {
		return err
	}
	if err := r.reportFollowUp(ctx, owned, found, now); err != nil {
		return err
	}
	judged := r.basisOfDecision(ctx, owned, found)
	if isFinal(found, now) || r.isDone(daily.Judged, subject, judged, now) {
		return nil
	}
	if found.Looks == nil {
		if err := r.engine.AnalyzeLooks(ctx, found); err != nil {
			return err
		}
	}
	if err := r.reportDecision(ctx, owned, found, now); err != nil {
		return err
	}
	r.noteDone(ctx, daily.Judged, subject, judged, now)
	return nil
}

// recordResults records the looks of a subject that are due or, of one that was imported, a sample ratio mismatch.
func (r *Recorder) recordResults(ctx context.Context, account int64, found *engine.Judgement, now time.Time) error {
	subject := found.Plan.Subject
	if isImportedPast(found) {
		if err := r.recordImportedSplit(ctx, account, found, now); err != nil {
			return err
		}
	}
	checked := basisOfCheck(found)
	canHaveNewDay := !found.Plan.Ended && found.Schedule.FullDays() > 0
	if found.IsDue() || canHaveNewDay && !r.isDone(daily.Checked, subject, checked, now) {
		if err := r.recordLooks(ctx, account, found, now); err != nil {
			return err
		}
		r.noteDone(ctx, daily.Checked, subject, checked, now)
	}
	return nil
}

// openJudgement returns the judgement of a subject; nil: there is nothing to judge. If its prior was just learned, it
// keeps the prior in the catalogue first, before any look has it.
func (r *Recorder) openJudgement(
	ctx context.Context, owned *catalogue.AccountResources, subject schema.Subject, now time.Time,
) (*engine.Judgement, error) {
	open := func(owned *catalogue.AccountResources) (*engine.Judgement, error) {
		p, err := plan.New(plan.ResultsRequest(owned.ID, subject), owned)
		if err != nil {
			return nil, err
		}
		return r.engine.OpenJudgement(ctx, p, now)
	}
	found, err := open(owned)
	if err != nil || found == nil {
		return nil, err
	}
	learned := found.Plan.Rules.StatedPrior
	isKept := learned.Campaigns == nil || owned.StateOf(subject).LearnedPrior != nil
	if isKept || isImportedPast(found) {
		return found, nil
	}
	author := catalogue.WithAuthor(ctx, "learned prior")
	if err := r.catalogue.KeepPrior(author, owned.ID, subject.ID, learned); err != nil {
		return nil, err
	}
	return open(r.catalogue.Snapshot().AccountResources(owned.ID))
}

// recordImportedSplit tests the split of a subject that was imported, of which no look is due. It tests the same events
// only once.
func (r *Recorder) recordImportedSplit(
	ctx context.Context, account int64, found *engine.Judgement, now time.Time,
) error {
	subject := found.Plan.Subject
	basis := basisOfSplit(found)
	if r.engine.Daily.LastRow(daily.Key{Kind: daily.Tested, Subject: subject}).Basis == basis {
		return nil
	}
	n, err := r.engine.RecordSplit(ctx, found, now)
	if err != nil {
		return err
	}
	r.noteDone(ctx, daily.Tested, subject, basis, now)
	if n == 0 {
		return nil
	}
	slog.InfoContext(ctx, "sample ratio mismatch recorded", "subject", subject)
	return r.summaries.renewSummary(ctx, SummaryKey{account, subject})
}

// recordLooks records the looks of a judgement that are due, any harm and a sample ratio mismatch.
func (r *Recorder) recordLooks(ctx context.Context, account int64, found *engine.Judgement, now time.Time) error {
	splits, err := r.engine.RecordSplit(ctx, found, now)
	if err != nil {
		return err
	}
	if err := r.engine.AnalyzeLooks(ctx, found); err != nil {
		return err
	}
	looks, err := r.engine.RecordLooks(ctx, found, now)
	if err != nil || splits+looks == 0 {
		return err
	}
	subject := found.Plan.Subject
	slog.InfoContext(ctx, "looks recorded", "subject", subject, "rows", splits+looks)
	return r.summaries.renewSummary(ctx, SummaryKey{account, subject})
}

// isFinal reports whether nothing about a subject can be decided any more: it ended longer ago than its last conversion
// window, the time in which its orders settle, the longest maturity of a look and a day.
func isFinal(j *engine.Judgement, now time.Time) bool {
	end, ended := j.Plan.EndedAt()
	if !ended {
		return false
	}
	longest := time.Duration(0)
	for _, goal := range j.Plan.Declared.AllMeasures() {
		longest = max(longest, goal.Window.Maturity())
	}
	for _, record := range j.Recorded {
		if record.Returns != nil {
			longest = max(longest, record.Window.To+record.Returns.Settle)
		}
	}
	const ofLook = 8 * 24 * time.Hour // a week until the look, and a day
	return now.Sub(end) > ofLook+longest
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
	report, err := r.engine.ReportDecision(ctx, found)
	if err != nil {
		return err
	}
	d := &decided{
		Judgement: found, account: owned.ID, name: owned.SubjectName(subject), report: report,
		status: result.NewStatus(report), now: now, observed: r.passes > 0,
	}
	stored, err := r.outbox.ReadMessages(ctx, owned.ID, subject)
	if err != nil {
		return err
	}
	messages := append(d.checkMessages(stored), d.interactionMessages(stored)...)
	decision, err := d.decisionMessage()
	if err != nil {
		return err
	}
	if decision != nil {
		known := slices.IndexFunc(stored, func(m outbox.Message) bool { return m.ID == decision.ID })
		if known >= 0 {
			decision = &stored[known] // with the time when it was recorded
		} else {
			decision.Data.ReadoutID = r.makeReadout(ctx, owned, subject, d.report.Decision.Status)
			messages = append(messages, *decision)
		}
	}
	if err := r.writeMessages(ctx, SummaryKey{owned.ID, subject}, messages); err != nil {
		return err
	}
	if decision == nil {
		return nil
	}
	return r.stopDecided(ctx, owned.ID, subject, decision)
}

// followUpAge is how long after a reading was recorded its message is written: as long as it takes to start a server
// again that ended in between.
const followUpAge = 7 * 24 * time.Hour

// reportFollowUp writes the messages about the readings of later orders that were recorded.
func (r *Recorder) reportFollowUp(
	ctx context.Context, owned *catalogue.AccountResources, found *engine.Judgement, now time.Time,
) error {
	declared := found.Plan.DeclaredPlan()
	subject := declared.Subject
	var messages []outbox.Message
	for _, reading := range looks.RecordedReadings(declared, found.Recorded) {
		if now.Sub(reading.Rows[0].RecordedAt) > followUpAge {
			continue
		}
		shown := result.NewFollowUp(&reading)
		body, err := json.Marshal(shown)
		if err != nil {
			return err
		}
		id := outbox.NewIdentity(owned.ID, "followUp")
		id.AddSubject(subject)
		id.Add("declaration", strconv.FormatUint(looks.DeclarationOf(declared).Hash, 10))
		id.AddInteger("window", int64(reading.Window()))
		data := outbox.Data{
			Name: owned.SubjectName(subject), Text: shown.Text, Metric: string(shown.Metric), FollowUp: body,
		}
		messages = append(messages, outbox.NewMessage(
			outbox.MessageID(id), owned.ID, catalogue.EventFollowUp, subject, shown.Window, now, data))
	}
	return r.writeMessages(ctx, SummaryKey{owned.ID, subject}, messages)
}

// readoutDecisions are the decisions of which a readout is made.
var readoutDecisions = []result.DecisionStatus{
	result.DecisionShip, result.DecisionRollBack, result.DecisionNoDifference,
}

// makeReadout makes a readout of a decision, and returns its id. Without one, or if that fails, which is logged, it
// returns an empty id: a message never waits for a readout.
func (r *Recorder) makeReadout(
	ctx context.Context, owned *catalogue.AccountResources, subject schema.Subject, decision result.DecisionStatus,
) (id string) {
	if r.MakeReadout == nil || !slices.Contains(readoutDecisions, decision) {
		return ""
	}
	id, err := r.MakeReadout(ctx, owned, subject)
	if err != nil {
		slog.WarnContext(ctx, "make readout failed", "subject", subject, "err", err)
		return ""
	}
	slog.InfoContext(ctx, "readout made", "subject", subject, "readout", id)
	return id
}

// writeMessages writes messages about a subject. It renews the summary of the subject first, so a list never
// contradicts a message.
func (r *Recorder) writeMessages(ctx context.Context, of SummaryKey, messages []outbox.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if err := r.summaries.renewSummary(ctx, of); err != nil {
		return err
	}
	n, err := r.outbox.WriteMessages(ctx, messages)
	if n > 0 {
		slog.InfoContext(ctx, "messages written", "subject", of.Subject, "messages", n)
	}
	return err
}

// stopDecided stops a campaign that demands this when its decision is reported. A campaign that was started after the
// decision was reported is not stopped: a person who started it knew the decision.
func (r *Recorder) stopDecided(
	ctx context.Context, account int64, subject schema.Subject, decision *outbox.Message,
) error {
	if subject.Kind != schema.SubjectCampaign {
		return nil
	}
	campaign, known := r.catalogue.Snapshot().AccountResources(account).Campaigns[subject.ID] // as it is now
	isRunning := known && campaign.Active && len(campaign.Runs) > 0
	if !isRunning || !campaign.StopsAt(decision.State) {
		return nil
	}
	started := campaign.Runs[len(campaign.Runs)-1].From
	if !started.Before(decision.RecordedAt) {
		return nil
	}
	ctx = catalogue.WithAuthor(ctx, autoStopAuthor+decision.State)
	if _, _, err := r.catalogue.Switch(ctx, account, 0, schema.SubjectCampaign, campaign.ID, false); err != nil {
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
		snapshot := c.Snapshot()
		now := time.Now()
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
			for _, change := range runChanges(&c) {
				isPlanned := change.at.After(now)
				if isPlanned && (next.IsZero() || change.at.Before(next)) {
					next = change.at
				}
				// Older ones are from an import, or from a time when no server ran.
				if !isPlanned && now.Sub(change.at) <= 24*time.Hour {
					messages = append(messages, change.newMessage(owned.ID, &c))
				}
			}
		}
	}
	_, err = box.WriteMessages(ctx, messages)
	return next, err
}

// runChange is a start or a stop of a campaign.
type runChange struct {
	event  string
	verb   string // started or stopped
	author string // empty: its date was declared
	at     time.Time
}

// runChanges returns the starts and stops of a campaign.
func runChanges(c *catalogue.LiveCampaign) (changes []runChange) {
	for _, run := range c.Runs {
		// else a date of start was declared, but the campaign has not been started
		if run.To != nil || c.Active {
			changes = append(changes, runChange{catalogue.EventCampaignStarted, "started", run.StartedBy, run.From})
		}
		if run.To != nil {
			changes = append(changes, runChange{catalogue.EventCampaignStopped, "stopped", run.StoppedBy, *run.To})
		}
	}
	return changes
}

// newMessage returns the message about the change of a campaign of an account.
func (r *runChange) newMessage(account int64, c *catalogue.LiveCampaign) outbox.Message {
	of := outbox.NewIdentity(account, r.event)
	of.AddInteger("campaign", c.ID)
	of.AddInteger("at", r.at.UnixMilli())
	data := outbox.Data{Name: c.Name, Text: r.inWords(), By: r.author}
	return outbox.NewMessage(outbox.MessageID(of), account, r.event, c.Subject(), "", r.at, data)
}

// inWords says what happened and who did it.
func (r *runChange) inWords() string {
	if decision, isAuto := strings.CutPrefix(r.author, autoStopAuthor); isAuto {
		return fmt.Sprintf("The campaign was stopped automatically, because the decision is %s.", decision)
	}
	if r.author == "" {
		return fmt.Sprintf("The campaign was %s as planned.", r.verb)
	}
	return fmt.Sprintf("The campaign was %s by %s.", r.verb, r.author)
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

// reportedDecisions are the decisions of messages. The others say that nothing is decided.
var reportedDecisions = []result.DecisionStatus{
	result.DecisionShip, result.DecisionRollBack, result.DecisionNoDifference, result.DecisionInvalid,
}

// decisionMessage returns the message about the decision; nil: nothing is decided, or it was decided before the first
// view was accepted, so it is from an import.
func (d *decided) decisionMessage() (*outbox.Message, error) {
	made := d.report.Decision
	if made == nil || !slices.Contains(reportedDecisions, made.Status) {
		return nil, nil
	}
	if made.DecidedAt != nil && !made.DecidedAt.After(d.FirstView.Accepted) {
		return nil, nil
	}
	data := outbox.Data{Text: made.Text, Metric: string(d.Plan.Declared.Metric)}
	var errs [3]error
	data.Decision, errs[0] = json.Marshal(made)
	if d.report.Conclusion != nil {
		data.Sentence = d.report.Conclusion.Text
	}
	if made.VariationID != nil && d.status.Lift != nil {
		data.Lift, errs[1] = json.Marshal(d.status.Lift)
		if worth := d.report.WorthOf(*made.VariationID); worth != nil && worth.Text != "" {
			data.Worth, errs[2] = json.Marshal(worth)
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	of := outbox.NewIdentity(d.account, "decision")
	of.AddSubject(d.Plan.Subject)
	of.Add("declaration", strconv.FormatUint(looks.DeclarationOf(d.Looks.Plan).Hash, 10))
	of.Add("status", string(made.Status))
	m := d.newMessage(outbox.MessageID(of), catalogue.EventDecisionChanged, string(made.Status), data)
	return &m, nil
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
		of := outbox.NewIdentity(d.account, event)
		of.AddSubject(d.Plan.Subject)
		of.Add("check", check.name)
		of.Add("day", day)
		data := outbox.Data{Text: strings.ToUpper(text[:1]) + text[1:] + ".", Check: check.name}
		messages = append(messages, d.newMessage(outbox.MessageID(of), event, check.name, data))
	}
	return messages
}

// interactionMessages returns the messages about the interactions of the subject that are not stored yet. Each pair has
// one, which is not withdrawn, and one about each kind of interaction.
func (d *decided) interactionMessages(stored []outbox.Message) (messages []outbox.Message) {
	const check = "interactions"
	for _, found := range d.report.Checks.Interactions {
		of := outbox.NewIdentity(d.account, catalogue.EventCheckFailed)
		of.AddSubject(d.Plan.Subject)
		of.Add("check", check)
		of.AddInteger("withCampaign", found.With.CampaignID)
		of.AddInteger("withWidget", found.With.WidgetID)
		of.AddInteger("withExperiment", found.With.ExperimentID)
		of.Add("kind", found.Kind)
		id := outbox.MessageID(of)
		if slices.ContainsFunc(stored, func(m outbox.Message) bool { return m.ID == id }) {
			continue
		}
		data := outbox.Data{Text: found.Text, Check: check}
		messages = append(messages, d.newMessage(id, catalogue.EventCheckFailed, check, data))
	}
	return messages
}
