package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/looks"
	"lifthouse/engine/result"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
)

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

// reportedDecisions are the decisions that are reported. The others say that nothing is decided.
var reportedDecisions = []result.DecisionStatus{result.DecisionShip, result.DecisionRollBack, result.DecisionNoDifference, result.DecisionInvalid}

// decisionMessage returns the message about the decision, or nil if there is nothing to report. Decisions of the time
// before the first view was accepted are not reported: they are from an import.
func (d *decided) decisionMessage() (*outbox.Message, error) {
	found := d.report.Decision
	if found == nil || !slices.Contains(reportedDecisions, found.Status) || found.DecidedAt != nil && !found.DecidedAt.After(d.FirstView.Accepted) {
		return nil, nil
	}
	data := outbox.Data{Text: found.Text, Metric: string(d.Plan.Declared.Metric)}
	var errs [3]error
	data.Decision, errs[0] = json.Marshal(found)
	if d.report.Conclusion != nil {
		data.Sentence = d.report.Conclusion.Text
	}
	if found.VariationID != nil && d.status.Lift != nil {
		data.Lift, errs[1] = json.Marshal(d.status.Lift)
		if month := d.report.ImpactOf(*found.VariationID); month != nil && month.PerMonth != nil {
			data.PerMonth, errs[2] = json.Marshal(month.PerMonth)
			data.Worth = month.InWords(d.Plan.Declared.Metric, d.report.SignificanceLevel)
		}
	}
	declared := looks.DeclarationOf(d.Looks.Plan)
	id := outbox.MessageID(d.account, "decision ", d.Plan.Subject, " ", declared.Hash, " ", found.Status)
	m := d.newMessage(id, catalogue.EventDecisionChanged, string(found.Status), data)
	return &m, errors.Join(errs[:]...)
}

func (d *decided) newMessage(id, event, state string, data outbox.Data) outbox.Message {
	data.Name = d.name
	return outbox.NewMessage(id, d.account, event, d.Plan.Subject, state, d.now, data)
}

// silentDay is how long a subject must be silent to be reported. With v views a day, a day without any comes by chance
// with probability e^-v, and the subject must have been silent for ten times its mean gap, which has probability e^-10.
const silentDay = 24 * time.Hour

// checkMessages returns the messages about checks that failed, or were cleared, since the last stored message about them.
// Each check has at most one message a day.
func (d *decided) checkMessages(stored []outbox.Message) (messages []outbox.Message) {
	type check struct{ name, failed, cleared string }
	checks := []check{
		{"sampleRatio", d.report.WarningText(result.WarningSampleRatio), "the split of the visitors matches the shares again"},
		{
			"multipleExposures", d.report.WarningText(result.WarningMultipleExposures, result.WarningMultipleExposuresSkewed),
			"few visitors are exposed to more than one variation again",
		},
	}
	if d.observed {
		silence := check{"silence", "", "events arrive again"}
		if silent := d.status.SilenceAt(d.now); d.Plan.Running && silent >= silentDay {
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
		if (check.failed != "") == (last.Event == catalogue.EventCheckFailed) || last.RecordedAt.Format(time.DateOnly) == day {
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
