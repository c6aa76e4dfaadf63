package readout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"lifthouse/engine"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/tables"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/faults"
)

// Maker makes readouts and stores them.
type Maker struct {
	tables.Reader
	Release   string // version of the program
	PublicURL string // where people open the page, without a slash at the end; empty: not known
}

// Asked is a request for a readout.
type Asked struct {
	Look *int   // number of the look; nil: see engine.ReadAtLook
	Text string // comment; empty: none
	By   string // who asks; empty: the server
}

// MaxText is the maximum number of characters of a comment.
const MaxText = 4000

// ParamText is the name of the comment in faults.
const ParamText = "text"

// maxShown is how many bytes of a wrong value a fault shows.
const maxShown = 100

// FindFaults returns what is wrong with a request.
func (a *Asked) FindFaults() faults.List {
	var found faults.Collector
	shown := strings.ToValidUTF8(faults.Clip(a.Text, maxShown), "�")
	size := utf8.RuneCountInString(a.Text)
	isControl := func(r rune) bool { return unicode.IsControl(r) && r != '\n' }
	if a.Look != nil && *a.Look < 1 {
		found.Add(engine.ParamLook, fmt.Sprint(*a.Look),
			"must be the number of a look, from 1; omit it for the look that decided")
	}
	found.AddIf(!utf8.ValidString(a.Text), ParamText, shown, "must be UTF-8")
	found.AddIf(size > MaxText, ParamText, shown,
		fmt.Sprintf("must have at most %d characters; it has %d", MaxText, size))
	found.AddIf(strings.ContainsFunc(a.Text, isControl), ParamText, shown,
		"must have no control characters but newlines")
	return found.List
}

// Address returns the address of a readout for people.
func (m *Maker) Address(id string) string { return m.PublicURL + "/readouts/" + id }

// MakeReadout makes a readout of a subject and stores it. If the same readout exists, it returns that one, and isNew is
// false. The error is engine.ErrNothingToCompare, documents.ErrTooMany, or that of engine.ReadAtLook.
func (m *Maker) MakeReadout(
	ctx context.Context, owned *catalogue.AccountResources, subject schema.Subject, asked Asked,
) (made documents.Document, isNew bool, err error) {
	at, err := m.Engine.ReadAtLook(ctx, owned, subject, asked.Look)
	if err != nil {
		return made, false, err
	}
	log, err := m.ReadLog(ctx, owned, &query.Log{WebsiteID: subject.WebsiteID, SubjectIDs: subject.IDs()})
	if err != nil {
		return made, false, err
	}
	earlier, err := m.Documents.ReadDocuments(ctx, owned.ID, subject.WebsiteID, documents.Readout)
	if err != nil {
		return made, false, err
	}
	summary := NewSummary(at)
	if asked.By == "" {
		if of := findOwn(earlier, subject, at, &summary); of != nil {
			return *of, false, nil
		}
	}
	page := New(Sources{AtLook: at, Subject: subject, Owned: owned, Log: log, Comment: asked.Text})
	if err := m.addPictures(ctx, page, owned); err != nil {
		return made, false, err
	}
	made = documents.Document{
		AccountID: owned.ID, Subject: subject, Kind: documents.Readout, Look: at.Number, EndedAt: at.End,
		MadeAt: time.Now(), MadeBy: asked.By, MediaType: documents.HTML,
	}
	foot := Foot{Release: m.Release, MadeAt: made.MadeAt, Accepted: at.Accepted}
	made.ID, err = page.chooseID(earlier)
	if err != nil {
		return made, false, err
	}
	foot.ID = made.ID
	foot.Address = m.Address(made.ID)
	foot.Predecessor = findPredecessor(earlier, &made)
	body, err := page.Render(&foot)
	if err != nil {
		return made, false, err
	}
	made.Summary, err = json.Marshal(summary)
	if err != nil {
		return made, false, fmt.Errorf("encode the summary of the readout: %w", err)
	}
	return m.Documents.AddDocument(ctx, made, body)
}

// chooseID returns the id of a readout. If documents with the same content were withdrawn, it has another id than
// these.
func (d *Document) chooseID(earlier []documents.Document) (id string, err error) {
	for attempt := range len(earlier) + 1 {
		id, err = d.ID(attempt)
		of := findDocument(earlier, id)
		if err != nil || of == nil || of.WithdrawnAt == nil {
			break
		}
	}
	return id, err
}

// findPredecessor returns the id of the last readout of the same look; empty: there is none.
func findPredecessor(earlier []documents.Document, made *documents.Document) (id string) {
	for i := range earlier {
		of := &earlier[i]
		isSameLook := of.Subject == made.Subject && of.Look == made.Look && of.EndedAt.Equal(made.EndedAt)
		if isSameLook && of.WithdrawnAt == nil {
			id = of.ID
		}
	}
	return id
}

// findOwn returns the readout that a server has made of a look with the same answer; nil: there is none. So there is
// one readout of a decision, even if late events have changed a figure since, or the server ended before it sent the
// message.
func findOwn(
	all []documents.Document, subject schema.Subject, at *engine.AtLook, answer *Summary,
) *documents.Document {
	for i := range all {
		of := &all[i]
		isOfLook := of.Subject == subject && of.Look == at.Number && of.EndedAt.Equal(at.End)
		if !isOfLook || of.MadeBy != "" || of.WithdrawnAt != nil {
			continue
		}
		summary, err := ParseSummary(of.Summary)
		if err == nil && summary.Question == answer.Question && summary.Status == answer.Status {
			return of
		}
	}
	return nil
}

// MakeOwn makes the readout of a server of the decision about a subject, and returns its id.
func (m *Maker) MakeOwn(
	ctx context.Context, owned *catalogue.AccountResources, subject schema.Subject,
) (string, error) {
	made, _, err := m.MakeReadout(ctx, owned, subject, Asked{})
	return made.ID, err
}

// findDocument returns the document with an id; nil: there is none.
func findDocument(all []documents.Document, id string) *documents.Document {
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}

// ReadSince returns what has changed since a readout was made.
func (m *Maker) ReadSince(
	ctx context.Context, owned *catalogue.AccountResources, of *documents.Document,
) (Since, error) {
	then, err := ParseSummary(of.Summary)
	if err != nil {
		return Since{}, err
	}
	number := &of.Look
	if of.Look == 0 {
		number = nil
	}
	at, err := m.Engine.ReadAtLook(ctx, owned, of.Subject, number)
	var missing *query.NotFoundError
	var invalid *query.InvalidError
	isGone := errors.Is(err, engine.ErrNothingToCompare) || errors.As(err, &invalid)
	switch {
	case errors.As(err, &missing):
		return Since{true, "Since then: it was archived. Later data are not compared with this readout."}, nil
	case isGone || err == nil && !at.End.Equal(of.EndedAt):
		return Since{true, "Since then: what is declared or stored has changed so much that this look is not among " +
			"the looks of now."}, nil
	case err != nil:
		return Since{}, err
	}
	now, err := m.readDecision(ctx, owned, of.Subject)
	if err != nil {
		return Since{}, err
	}
	return NewSince(&then, of.Look, at, now), nil
}

// readDecision returns the decision about a subject of now; nil: there is none.
func (m *Maker) readDecision(
	ctx context.Context, owned *catalogue.AccountResources, subject schema.Subject,
) (*result.Decision, error) {
	request := plan.ResultsRequest(owned.ID, subject)
	request.Scorecard = true
	p, err := plan.New(request, owned)
	if err != nil {
		return nil, err
	}
	report, err := m.Engine.ComputeReport(ctx, p)
	if err != nil {
		return nil, err
	}
	return report.Decision, nil
}
