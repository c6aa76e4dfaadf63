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
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/notes"
)

// The kinds of entries of the log. All but notes are derived from what is written down elsewhere: messages, the ledger,
// documents, and the audit log of the catalogue.
const (
	EntryDecision   = "decision" // message
	entryCheck      = "check"    // message
	entryFollowUp   = "followUp" // message
	entryLook       = "look"     // ledger
	EntryOutcome    = "outcome"  // audit, like the next ones
	entryStarted    = "started"
	entryStopped    = "stopped"
	entryShares     = "shares"
	entryPlan       = "plan"
	entryArchived   = "archived"
	EntryReadout    = "readout" // documents
	entryNote       = string(notes.Plain)
	entryAnnotation = string(notes.Annotation)
)

// EntryKinds are all kinds of entries, in the order of the documentation.
var EntryKinds = []string{
	EntryDecision, entryCheck, entryFollowUp, entryLook, EntryOutcome, entryStarted, entryStopped, entryShares,
	entryPlan, entryArchived, EntryReadout, entryNote, entryAnnotation,
}

// Entry is an entry of the log about a campaign, a widget or an experiment, or about a whole website: then it has no
// other ids. Its fields are in the order of output.
type Entry struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	By        string    `json:"by,omitempty"` // empty: the server
	Kind      string    `json:"entry"`
	Status    string    `json:"status,omitempty"`
	WebsiteID int64     `json:"websiteId"`
	schema.SubjectIDs
	Name        string     `json:"name"` // of the subject
	VariationID *int64     `json:"variationId,omitempty"`
	Text        string     `json:"text"`
	StartsAt    *time.Time `json:"startsAt,omitempty"`
	EndsAt      *time.Time `json:"endsAt,omitempty"`
	Link        string     `json:"link,omitempty"`
	ReadoutID   string     `json:"readoutId,omitempty"`
	WithdrawnAt *time.Time `json:"withdrawnAt,omitempty"`
	WithdrawnBy string     `json:"withdrawnBy,omitempty"`

	Subject schema.Subject `json:"-"` // of the kind none: the website
}

// setSubject sets what an entry is about.
func (e *Entry) setSubject(of schema.Subject, owned *catalogue.AccountResources) {
	e.Subject = of
	e.WebsiteID = of.WebsiteID
	if of.Kind == schema.SubjectNone {
		e.Name = owned.Websites[of.WebsiteID].Domain
		return
	}
	e.SubjectIDs = of.IDs()
	e.Name = owned.SubjectName(of)
}

// Key returns the key after which a page of the log begins.
func (e *Entry) Key() query.LogKey { return query.LogKey{At: e.At, ID: e.ID} }

// ReadLog returns the entries of an account that a request selects, the latest first.
func (r Reader) ReadLog(ctx context.Context, owned *catalogue.AccountResources, asked *query.Log) ([]Entry, error) {
	of := &reading{Reader: r, Table: query.Table{WebsiteID: asked.WebsiteID, Since: asked.Since}, owned: owned}
	for _, subject := range owned.Subjects() {
		if of.isInScope(subject) && asked.SelectsSubject(subject) {
			of.subjects = append(of.subjects, subject)
		}
	}
	entries, err := of.readEntries(ctx)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool {
		return !asked.SelectsSubject(e.Subject) || asked.Entry != "" && asked.Entry != e.Kind
	})
	slices.SortFunc(entries, func(a, b Entry) int { return a.Key().Compare(b.Key()) })
	return entries, nil
}

// readDecisions reads the rows of the table decisions.
func readDecisions(ctx context.Context, r *reading, write func(*decisionRow) error) error {
	entries, err := r.readEntries(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(a.Subject.Compare(b.Subject), a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	for i := range entries {
		if err := write(newDecisionRow(&entries[i], r.keyOf(entries[i].Subject))); err != nil {
			return err
		}
	}
	return nil
}

// newDecisionRow returns the row of an entry.
func newDecisionRow(e *Entry, key subjectKey) *decisionRow {
	key.Name = e.Name // that of archived subjects is in the audit log only
	return &decisionRow{
		subjectKey: key, EntryID: e.ID, At: e.At, By: optionalOf(e.By), Entry: e.Kind, Status: optionalOf(e.Status),
		VariationID: e.VariationID, Text: e.Text, StartsAt: e.StartsAt, EndsAt: e.EndsAt, Link: optionalOf(e.Link),
		ReadoutID: optionalOf(e.ReadoutID), WithdrawnAt: e.WithdrawnAt,
	}
}

// readEntries reads the entries of the log that are in the scope of the request.
func (r *reading) readEntries(ctx context.Context) ([]Entry, error) {
	archived := map[schema.Subject]bool{}
	for _, of := range r.owned.ArchivedSubjects() {
		archived[of.Subject] = true
	}
	audited, names, err := r.readAudited(ctx)
	if err != nil {
		return nil, err
	}
	notified, err := r.readMessages(ctx)
	if err != nil {
		return nil, err
	}
	recorded, err := r.readRecorded(ctx, archived)
	if err != nil {
		return nil, err
	}
	noted, err := r.readNotes(ctx)
	if err != nil {
		return nil, err
	}
	made, err := r.readReadouts(ctx)
	if err != nil {
		return nil, err
	}
	entries := slices.Concat(audited, notified, recorded, noted, made)
	entries = slices.DeleteFunc(entries, func(e Entry) bool {
		_, isOwned := r.owned.Websites[e.Subject.WebsiteID]
		isOut := !isOwned || !r.isInScope(e.Subject)
		return isOut || e.At.Before(r.Since)
	})
	for i := range entries {
		of := entries[i].Subject
		entries[i].setSubject(of, r.owned)
		if archived[of] {
			entries[i].Name = names[of.WithoutExperiment()]
		}
	}
	return entries, nil
}

// readNotes returns the entries of notes and annotations.
func (r *reading) readNotes(ctx context.Context) (entries []Entry, err error) {
	written, err := r.Notes.ReadNotes(ctx, r.owned.ID, r.WebsiteID)
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	for i := range written {
		entries = append(entries, NewNoteEntry(&written[i], r.owned))
	}
	return entries, nil
}

// readReadouts returns the entries of readouts.
func (r *reading) readReadouts(ctx context.Context) (entries []Entry, err error) {
	made, err := r.Documents.ReadDocuments(ctx, r.owned.ID, r.WebsiteID, documents.Readout)
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	for i := range made {
		of := &made[i]
		about := fmt.Sprint("look ", of.Look)
		if of.Look == 0 {
			about = fmt.Sprintf("the full days until %s", dayOf(of.EndedAt.Add(-time.Millisecond)))
		}
		entries = append(entries, Entry{
			Subject: of.Subject, ID: of.ID, At: of.MadeAt, By: of.MadeBy, Kind: EntryReadout,
			Text: "A readout of " + about + " was made.", ReadoutID: of.ID, WithdrawnAt: of.WithdrawnAt,
			WithdrawnBy: of.WithdrawnBy,
		})
	}
	return entries, nil
}

// NewNoteEntry returns the entry of a note.
func NewNoteEntry(n *notes.Note, owned *catalogue.AccountResources) Entry {
	e := Entry{
		ID: n.ID, At: n.At, By: n.By, Kind: string(n.Kind), Text: n.Text, StartsAt: n.StartsAt, EndsAt: n.EndsAt,
		Link: n.Link, WithdrawnAt: n.WithdrawnAt, WithdrawnBy: n.WithdrawnBy,
	}
	e.setSubject(n.Subject, owned)
	return e
}

// newEntry returns an entry whose id is a hash of what it is of.
func newEntry(kind string, of schema.Subject, at time.Time, by, text string, identity *schema.Identity) Entry {
	identity.Add("entry", kind)
	identity.AddSubject(of)
	return Entry{
		Subject: of, ID: identity.Hex(), At: at.UTC().Truncate(time.Millisecond), By: by, Kind: kind, Text: text,
	}
}

// readMessages returns the entries of messages: decisions and checks. Their ids are those of the messages.
func (r *reading) readMessages(ctx context.Context) (entries []Entry, err error) {
	sent, err := r.Outbox.RecentMessages(ctx, r.owned.ID, r.WebsiteID, math.MaxUint32)
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	for i := range sent {
		m := &sent[i].Message
		kind := map[string]string{
			catalogue.EventDecisionChanged: EntryDecision, catalogue.EventCheckFailed: entryCheck,
			catalogue.EventCheckCleared: entryCheck, catalogue.EventFollowUp: entryFollowUp,
		}[m.Event]
		if kind == "" { // starts and stops are in the audit log
			continue
		}
		e := Entry{
			Subject: m.Subject, ID: m.ID, At: m.RecordedAt, Kind: kind, Status: m.State, Text: m.Data.Text,
		}
		var decision struct{ VariationID *int64 }
		if m.Data.Decision != nil {
			if err := json.Unmarshal(m.Data.Decision, &decision); err != nil {
				return nil, fmt.Errorf("message %s: %w", m.ID, err)
			}
		}
		e.VariationID = decision.VariationID
		entries = append(entries, e)
	}
	return entries, nil
}

// readRecorded returns the entries of the recorded looks at the primary question of each declaration. A look is one
// entry, whatever the number of its variations.
func (r *reading) readRecorded(ctx context.Context, archived map[schema.Subject]bool) (entries []Entry, err error) {
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
	return looks.Record{Measure: p.Declared.PrimaryMeasure(), Metric: p.Declared.Metric}
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
		if of.Kind != looks.OfLook || of.Measure != primary.Measure || of.Metric != primary.Metric {
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
func newLookEntry(of schema.Subject, rows []*looks.Record) Entry {
	first := rows[0]
	identity := schema.NewIdentity("entry of a look", 1)
	identity.Add("question", questionID(first))
	identity.AddInteger("number", int64(first.Number))
	text := fmt.Sprintf("Look %d until %s, with %s visitors.", first.Number, dayOf(first.End.Add(-1)),
		wording.FormatCount(first.Visitors))
	e := newEntry(entryLook, of, first.RecordedAt, "", text, identity)
	e.Status = "notSignificant"
	for _, row := range rows {
		if row.Significant {
			e.Status = "significant"
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
func (r *reading) readAudited(ctx context.Context) (entries []Entry, names map[schema.Subject]string, err error) {
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
			var found []Entry
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
) (entries []Entry, err error) {
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
func entryOf(kind string, of schema.Subject, change *catalogue.AuditEntry, text string) Entry {
	identity := schema.NewIdentity("entry of the audit log", 1)
	identity.AddInteger("version", int64(change.Version)) //nolint:gosec // a version counts changes
	return newEntry(kind, of, change.At, change.By, text, identity)
}

// addState adds a state, and returns the entries of what has changed since the one before.
func (a *audited) addState(change *catalogue.AuditEntry) (entries []Entry, err error) {
	before, hadState := a.state, a.hasState
	a.state = catalogue.State{}
	a.hasState = true
	if err := json.Unmarshal(change.After, &a.state); err != nil {
		return nil, err
	}
	now := &a.state
	for _, of := range a.subjects() {
		id := of.ExperimentID
		add := func(kind, text string) *Entry {
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
			e := add(EntryOutcome, cmp.Or(outcome.Note, "The outcome is "+outcome.Outcome+"."))
			e.Status = outcome.Outcome
			e.VariationID = optionalOf(outcome.VariationID)
		case had && !has:
			add(EntryOutcome, "The outcome was withdrawn.")
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
