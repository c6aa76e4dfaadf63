package tables

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// The entries of the log of decisions. All are derived from what is written down elsewhere: messages, the ledger, and
// the audit log of the catalogue.
const (
	entryDecision = "decision" // message
	entryCheck    = "check"    // message
	entryLook     = "look"     // ledger
	entryOutcome  = "outcome"  // audit, like the others
	entryStarted  = "started"
	entryStopped  = "stopped"
	entryShares   = "shares"
	entryPlan     = "plan"
	entryArchived = "archived"
)

// entry is an entry of the log about a subject.
type entry struct {
	schema.Subject
	decisionRow
}

// readDecisions reads the rows of the table decisions.
func readDecisions(ctx context.Context, r *reading, write func(*decisionRow) error) error {
	archived := map[schema.Subject]bool{}
	for _, of := range r.owned.ArchivedSubjects() {
		archived[of.Subject] = true
	}
	audited, names, err := r.readAudited(ctx)
	if err != nil {
		return err
	}
	notified, err := r.readMessages(ctx)
	if err != nil {
		return err
	}
	recorded, err := r.readRecorded(ctx, archived)
	if err != nil {
		return err
	}
	entries := slices.Concat(audited, notified, recorded)
	entries = slices.DeleteFunc(entries, func(e entry) bool {
		_, isOwned := r.owned.Websites[e.WebsiteID()]
		isOut := !isOwned || !r.isInScope(e.Subject)
		return isOut || e.At.Before(r.Since)
	})
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(a.Compare(b.Subject), a.At.Compare(b.At), cmp.Compare(a.EntryID, b.EntryID))
	})
	for i := range entries {
		row := &entries[i].decisionRow
		row.subjectKey = r.keyOf(entries[i].Subject)
		if archived[entries[i].Subject] {
			row.Name = names[entries[i].WithoutExperiment()]
		}
		if err := write(row); err != nil {
			return err
		}
	}
	return nil
}

// WebsiteID returns the website of the subject.
func (e *entry) WebsiteID() int64 { return e.Subject.WebsiteID }

// newEntry returns an entry whose id is a hash of what it is of.
func newEntry(kind string, of schema.Subject, at time.Time, by, text string, identity *schema.Identity) entry {
	identity.Add("entry", kind)
	identity.AddSubject(of)
	return entry{of, decisionRow{
		EntryID: identity.Hex(), At: at.UTC().Truncate(time.Millisecond), By: optionalOf(by), Entry: kind, Text: text,
	}}
}

// readMessages returns the entries of messages: decisions and checks. Their ids are those of the messages.
func (r *reading) readMessages(ctx context.Context) (entries []entry, err error) {
	sent, err := r.Outbox.RecentMessages(ctx, r.owned.ID, r.WebsiteID, math.MaxUint32)
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	for i := range sent {
		m := &sent[i].Message
		kind := map[string]string{
			catalogue.EventDecisionChanged: entryDecision, catalogue.EventCheckFailed: entryCheck,
			catalogue.EventCheckCleared: entryCheck,
		}[m.Event]
		if kind == "" { // starts and stops are in the audit log
			continue
		}
		row := decisionRow{
			EntryID: m.ID, At: m.RecordedAt, Entry: kind, Status: optionalOf(m.State), Text: m.Data.Text,
		}
		var decision struct{ VariationID *int64 }
		if m.Data.Decision != nil {
			if err := json.Unmarshal(m.Data.Decision, &decision); err != nil {
				return nil, fmt.Errorf("message %s: %w", m.ID, err)
			}
		}
		row.VariationID = decision.VariationID
		entries = append(entries, entry{m.Subject, row})
	}
	return entries, nil
}

// readRecorded returns the entries of the recorded looks at the primary question of each declaration. A look is one
// entry, whatever the number of its variations.
func (r *reading) readRecorded(ctx context.Context, archived map[schema.Subject]bool) (entries []entry, err error) {
	all := slices.Concat(r.subjects, slices.Collect(maps.Keys(archived)))
	for _, of := range all {
		records, err := r.Engine.Ledger.SubjectRecords(ctx, of)
		if err != nil {
			return nil, source.StoreFailure(ctx, err)
		}
		for _, rows := range looksOf(records, r.primaryOf(of, records)) {
			entries = append(entries, newLookEntry(of, rows))
		}
	}
	return entries, nil
}

// primaryOf returns the goal and the metric of the primary question of a subject.
func (r *reading) primaryOf(of schema.Subject, records []looks.Record) looks.Record {
	if len(records) == 0 {
		return looks.Record{}
	}
	p, err := plan.New(plan.ResultsRequest(r.owned.ID, of), r.owned)
	if err != nil { // it is archived
		end := slices.IndexFunc(records, func(o looks.Record) bool { return o.Kind == looks.OfEnd })
		return records[max(end, 0)] // an end is of the primary question
	}
	p = r.Engine.AsOfFirstView(p)
	return looks.Record{GoalWindow: p.Declared.PrimaryGoal(), Metric: p.Declared.Metric}
}

// looksOf returns the rows of each look at a goal and a metric, in the order of the ledger.
func looksOf(records []looks.Record, primary looks.Record) (all [][]*looks.Record) {
	type look struct {
		declaration looks.Declaration
		number      int
	}
	at := map[look]int{}
	for i := range records {
		of := &records[i]
		if of.Kind != looks.OfLook || of.GoalWindow != primary.GoalWindow || of.Metric != primary.Metric {
			continue
		}
		key := look{of.Declaration, of.Number}
		k, known := at[key]
		if !known {
			k = len(all)
			at[key] = k
			all = append(all, nil)
		}
		all[k] = append(all[k], of)
	}
	return all
}

// newLookEntry returns the entry of a look.
func newLookEntry(of schema.Subject, rows []*looks.Record) entry {
	first := rows[0]
	identity := schema.NewIdentity("entry of a look", 1)
	identity.Add("question", questionID(first))
	identity.AddInteger("number", int64(first.Number))
	text := fmt.Sprintf("Look %d until %s, with %s visitors.", first.Number, dayOf(first.End.Add(-1)),
		wording.FormatCount(first.Visitors))
	e := newEntry(entryLook, of, first.RecordedAt, "", text, identity)
	e.Status = new("notSignificant")
	for _, row := range rows {
		if row.Significant {
			e.Status = new("significant")
			e.VariationID = optionalOf(row.VariationID)
		}
	}
	if len(rows) == 1 {
		e.VariationID = optionalOf(first.VariationID)
	}
	return e
}

// questionID returns the id of what a record declares.
func questionID(of *looks.Record) string { return strconv.FormatUint(of.Hash, 16) }

// resourceKey identifies a campaign or a widget in the audit log.
type resourceKey struct {
	kind string
	id   int64
}

// audited is what the audit log has said of a campaign or a widget so far.
type audited struct {
	subject     schema.Subject // without an experiment
	experiments []int64
	state       catalogue.State
	hasState    bool
}

// readAudited returns the entries of the audit log, and the last names of campaigns and widgets.
func (r *reading) readAudited(ctx context.Context) (entries []entry, names map[schema.Subject]string, err error) {
	log, err := r.Catalogue.ReadAuditLog(ctx, r.owned.ID, time.Unix(0, 0), math.MaxUint32)
	if err != nil {
		return nil, nil, source.StoreFailure(ctx, err)
	}
	slices.Reverse(log)
	// A definition says of which website a state is, and may be later in the log.
	kinds := map[string]schema.SubjectKind{"campaign": schema.SubjectCampaign, "widget": schema.SubjectWidget}
	resources := map[resourceKey]*audited{}
	names = map[schema.Subject]string{}
	for _, isDefinition := range []bool{true, false} {
		for i := range log {
			change := &log[i]
			kind, isSubject := kinds[change.Kind]
			if !isSubject || change.IsState == isDefinition {
				continue
			}
			of := resources[resourceKey{change.Kind, change.ID}]
			if of == nil {
				of = &audited{}
				resources[resourceKey{change.Kind, change.ID}] = of
			}
			var found []entry
			if isDefinition {
				found, err = of.addDefinition(kind, change, names)
			} else {
				found, err = of.addState(change)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("audit log of %s %d: %w", change.Kind, change.ID, err)
			}
			entries = append(entries, found...)
		}
	}
	return entries, names, nil
}

// addDefinition adds a definition, and returns the entries if it is archived.
func (a *audited) addDefinition(
	kind schema.SubjectKind, change *catalogue.AuditEntry, names map[schema.Subject]string,
) (entries []entry, err error) {
	var definition struct {
		WebsiteID   int64
		Name        string
		Experiments []struct{ ID int64 }
	}
	if err := json.Unmarshal(change.After, &definition); err != nil {
		return nil, err
	}
	a.subject = schema.Subject{WebsiteID: definition.WebsiteID, Kind: kind, ID: change.ID}
	names[a.subject] = definition.Name
	a.experiments = nil
	for _, e := range definition.Experiments {
		a.experiments = append(a.experiments, e.ID)
	}
	if change.Change == "archived" {
		for _, of := range a.subjects() {
			entries = append(entries, entryOf(entryArchived, of, change, "It was archived."))
		}
	}
	return entries, nil
}

// subjects returns the campaign, or the experiments of the widget.
func (a *audited) subjects() []schema.Subject {
	if a.subject.Kind == schema.SubjectCampaign {
		return []schema.Subject{a.subject}
	}
	all := make([]schema.Subject, len(a.experiments))
	for i, experiment := range a.experiments {
		all[i] = a.subject
		all[i].ExperimentID = experiment
	}
	return all
}

// entryOf returns an entry of the audit log.
func entryOf(kind string, of schema.Subject, change *catalogue.AuditEntry, text string) entry {
	identity := schema.NewIdentity("entry of the audit log", 1)
	identity.AddInteger("version", int64(change.Version)) //nolint:gosec // a version counts changes
	return newEntry(kind, of, change.At, change.By, text, identity)
}

// addState adds a state, and returns the entries of what has changed since the one before.
func (a *audited) addState(change *catalogue.AuditEntry) (entries []entry, err error) {
	before, hadState := a.state, a.hasState
	a.state = catalogue.State{}
	a.hasState = true
	if err := json.Unmarshal(change.After, &a.state); err != nil {
		return nil, err
	}
	now := &a.state
	for _, of := range a.subjects() {
		id := of.ExperimentID
		add := func(kind, text string) *entry {
			entries = append(entries, entryOf(kind, of, change, text))
			return &entries[len(entries)-1]
		}
		switch {
		case now.Active && !before.Active:
			add(entryStarted, "It was started.")
		case before.Active && !now.Active:
			add(entryStopped, "It was stopped.")
		}
		if history := now.ShareHistory[id]; hadState && len(history) > len(before.ShareHistory[id]) {
			add(entryShares, "The shares are now "+sharesInWords(history[len(history)-1].Shares)+".")
		}
		if hadState && len(now.PlanHistory[id]) > len(before.PlanHistory[id]) {
			add(entryPlan, "The plan was changed.")
		}
		outcome, has := now.Outcomes[id]
		switch earlier, had := before.Outcomes[id]; {
		case has && !reflect.DeepEqual(outcome, earlier):
			e := add(entryOutcome, cmp.Or(outcome.Note, "The outcome is "+outcome.Outcome+"."))
			e.Status = &outcome.Outcome
			e.VariationID = optionalOf(outcome.VariationID)
		case had && !has:
			add(entryOutcome, "The outcome was withdrawn.")
		}
	}
	return entries, nil
}

// sharesInWords lists the shares of the variations.
func sharesInWords(of catalogue.Shares) string {
	var all []string
	for _, variation := range slices.Sorted(maps.Keys(of)) {
		all = append(all, fmt.Sprintf("%d of variation %d", of[variation], variation))
	}
	return strings.Join(all, ", ")
}
