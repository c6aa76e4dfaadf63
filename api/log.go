package api

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/tables"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/notes"

	"github.com/gin-gonic/gin"
)

// listLog returns a page of the log, the latest entries first.
func (s *API) listLog(c *gin.Context) (any, error) {
	asked, err := query.ParseLog(c.Request.URL.RawQuery, tables.EntryKinds, time.Now())
	if err != nil {
		return nil, err
	}
	owned, website, err := s.searchedWebsite(c, asked.WebsiteID)
	if err != nil {
		return nil, err
	}
	asked.WebsiteID = website
	entries, err := s.results.ReadLog(c.Request.Context(), s.tableReader(), owned, asked)
	if err != nil {
		return nil, err
	}
	return encodeLog(c, pageLog(c, asked, entries))
}

// pageLog returns the page of a request, and sets the headers of pagination.
func pageLog(c *gin.Context, asked *query.Log, entries []tables.Entry) []tables.Entry {
	c.Header("X-Total-Count", strconv.Itoa(len(entries)))
	page, next := asked.Page(len(entries), func(i int) query.LogKey { return entries[i].Key() })
	if next != "" {
		values := c.Request.URL.Query()
		values.Set("after", next)
		target := url.URL{Path: c.Request.URL.Path, RawQuery: values.Encode()}
		c.Header("Link", fmt.Sprintf(`<%s>; rel="next"`, target.String()))
	}
	return entries[page.From:page.To]
}

// encodeLog returns entries as an array, or as lines.
func encodeLog(c *gin.Context, entries []tables.Entry) (any, error) {
	if c.GetString(typeKey) != lineType {
		return append([]tables.Entry{}, entries...), nil
	}
	lines := []byte{}
	for i := range entries {
		line, err := render.JSON(&entries[i])
		if err != nil {
			return nil, err
		}
		lines = append(lines, line...)
	}
	return lines, nil
}

// maxNote is the maximum size of the body of a new note.
const maxNote = 64 << 10

// askedNote is the body of a request for a new note.
type askedNote struct {
	WebsiteID    *int64     `yaml:"websiteId"`
	CampaignID   *int64     `yaml:"campaignId"`
	WidgetID     *int64     `yaml:"widgetId"`
	ExperimentID *int64     `yaml:"experimentId"`
	Kind         notes.Kind `yaml:"kind"`
	StartsAt     *string    `yaml:"startsAt"`
	EndsAt       *string    `yaml:"endsAt"`
	Text         string     `yaml:"text"`
	Link         string     `yaml:"link"`
}

// parseTime returns a time; nil: it is omitted or invalid.
func (f *bodyFields) parseTime(name string, given *string) *time.Time {
	if given == nil {
		return nil
	}
	at, err := schema.ParseTime(*given)
	if err != nil {
		f.Add(name, *given, "must be RFC 3339 with an offset, such as 2026-11-18T00:00:00Z")
		return nil
	}
	return &at
}

// createNote stores a note about a website, a campaign, a widget or an experiment.
func (s *API) createNote(c *gin.Context) (any, error) {
	var asked askedNote
	document := &catalogue.Document{}
	err := s.useYAML(c, maxNote, func(text io.Reader) (err error) {
		document, err = catalogue.ReadDocument(text, &asked)
		if err == nil || errors.As(err, new(faults.List)) { // faults follow with those of the values
			return nil
		}
		return bodyProblem(err)
	})
	if err != nil {
		return nil, err
	}
	token := tokenOf(c)
	var fields bodyFields
	note := notes.Note{
		AccountID: token.AccountID, By: authorOfNotes(&token), Kind: asked.Kind,
		StartsAt: fields.parseTime("startsAt", asked.StartsAt), EndsAt: fields.parseTime("endsAt", asked.EndsAt),
		Text: asked.Text, Link: asked.Link,
	}
	subject, missing := s.findNoted(c, &asked, &fields)
	found := document.WithFaults(fields.List).WithOthers(document.WithFaults(note.FindFaults()))
	if missing == nil {
		note.Subject = subject
		ctx := c.Request.Context()
		note, err = s.Notes.AddNote(ctx, note, found)
		if err == nil {
			return s.answerNote(c, &note)
		}
		if !errors.As(err, &found) {
			return nil, changeFailure(c, err, "get the log to see whether the note is in it")
		}
	}
	if len(found) > 0 {
		return nil, bodyFaults("invalid_note", found)
	}
	return nil, missing
}

// authorOfNotes returns what notes say of a token.
func authorOfNotes(token *catalogue.Token) string {
	return cmp.Or(token.Name, fmt.Sprint("token ", token.ID))
}

// findNoted returns the subject of a new note. An error says that there is no such subject, or, with the faults of the
// fields, that they do not name one.
func (s *API) findNoted(c *gin.Context, asked *askedNote, fields *bodyFields) (of schema.Subject, err error) {
	website := fields.optionalID(websiteIDName, asked.WebsiteID)
	ids := schema.SubjectIDs{
		CampaignID:   fields.optionalID("campaignId", asked.CampaignID),
		WidgetID:     fields.optionalID("widgetId", asked.WidgetID),
		ExperimentID: fields.optionalID(experimentIDName, asked.ExperimentID),
	}
	if field, id, detail := ids.Conflict(); field != "" {
		fields.Add(field, id, detail)
	}
	owned, bound := s.accountResources(c)
	website, err = results.SearchedWebsite(owned, bound, website)
	if err != nil {
		return of, err
	}
	if ids != (schema.SubjectIDs{}) {
		return results.FindSubject(owned, website, &ids)
	}
	for _, w := range catalogue.ByID(owned.Websites) {
		if website == 0 && len(owned.Websites) == 1 {
			website = w.ID
		}
	}
	fields.AddIf(website == 0, websiteIDName, nil, "must be set, or campaignId, or widgetId: what the note is about")
	return schema.Subject{WebsiteID: website, Kind: schema.SubjectNone}, nil
}

// answerNote returns the entry of a new note.
func (s *API) answerNote(c *gin.Context, note *notes.Note) (any, error) {
	owned, _ := s.accountResources(c)
	entry := tables.NewNoteEntry(note, owned)
	body, err := render.JSON(&entry)
	c.Header("Location", "/v1/notes/"+note.ID)
	return reply{status: http.StatusCreated, kind: results.JSON, body: body, keep: notKept}, err
}

// noteID matches the ids of notes.
var noteID = regexp.MustCompile(`^note_[0-9a-f]{32}$`)

// withdrawNote withdraws a note. It stays in the log.
func (s *API) withdrawNote(c *gin.Context) (any, error) {
	id := c.Param(pathIDName)
	err := query.ReadParameters(c.Request.URL.RawQuery).Err()
	if !noteID.MatchString(id) {
		const detail = "must be the id of a note, such as note_ and 32 digits"
		fault := faults.Fault{Name: pathIDName, Value: id, Detail: detail}
		err = prependFault(err, fault)
	}
	if err != nil {
		return nil, err
	}
	token := tokenOf(c)
	ctx := c.Request.Context()
	found, err := s.Notes.WithdrawNote(ctx, token.AccountID, token.WebsiteID, id, authorOfNotes(&token))
	switch {
	case err != nil:
		return nil, changeFailure(c, err, "repeat the request, which is idempotent")
	case !found:
		return nil, notFound("no note " + id)
	}
	return reply{status: http.StatusNoContent, keep: notKept}, nil
}
