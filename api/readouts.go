package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/engine/readout"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/documents"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

const (
	readoutsPath = "/v1/readouts/"
	htmlType     = documents.HTML
)

// filePolicy is the Content-Security-Policy of the file of a readout: no script, no request, and an origin of its own.
const filePolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

// addReadouts adds the operations of readouts.
func (s *API) addReadouts(router *gin.Engine) {
	withScopes := func(scope catalogue.Scope, also ...catalogue.Scope) *gin.RouterGroup {
		return router.Group("/v1", s.requireScope(scope, also...), s.limitTime)
	}
	change := func(handle handler) gin.HandlerFunc { return respondWith(admitTo(s.changes, handle)) }
	for path, kind := range map[string]schema.SubjectKind{
		"/campaigns/:id/readouts":                         schema.SubjectCampaign,
		"/widgets/:id/experiments/:experimentId/readouts": schema.SubjectWidget,
	} {
		getRoutes(withScopes(catalogue.ScopeRead))(path, s.listReadouts(kind))
		withScopes(catalogue.ScopeWrite).POST(path, change(s.createReadout(kind)))
	}
	shared := getRoutes(withScopes(catalogue.ScopeRead, catalogue.ScopeShare))
	shared("/readouts/:id", s.getReadout)
	shared("/readouts/:id/file.html", s.getReadoutFile, htmlType)
	withScopes(catalogue.ScopeAdmin).DELETE("/readouts/:id", change(s.withdrawReadout))
}

// storedReadout is a readout without its page.
type storedReadout struct {
	ID        string `json:"id"`
	WebsiteID int64  `json:"websiteId"`
	schema.SubjectIDs
	Name        string         `json:"name"`
	Look        *int           `json:"look"` // null: it is about full days
	EndedAt     time.Time      `json:"endedAt"`
	Status      string         `json:"status,omitempty"` // of the decision
	VariationID *int64         `json:"variationId,omitempty"`
	Sentence    string         `json:"sentence,omitempty"`
	MadeAt      time.Time      `json:"madeAt"`
	MadeBy      string         `json:"madeBy,omitempty"` // absent: the server
	Digest      string         `json:"digest"`
	Size        int            `json:"size"`
	URL         string         `json:"url"` // for people
	WithdrawnAt *time.Time     `json:"withdrawnAt,omitempty"`
	WithdrawnBy string         `json:"withdrawnBy,omitempty"`
	SinceThen   *readout.Since `json:"sinceThen,omitempty"` // not in a list
}

// newStoredReadout returns a readout for the response body.
func (s *API) newStoredReadout(of *documents.Document, owned *catalogue.AccountResources) (*storedReadout, error) {
	shown := &storedReadout{
		ID: of.ID, WebsiteID: of.Subject.WebsiteID, SubjectIDs: of.Subject.IDs(), Name: owned.SubjectName(of.Subject),
		EndedAt: of.EndedAt, MadeAt: of.MadeAt, MadeBy: of.MadeBy, Digest: of.Digest, Size: of.Size,
		URL: s.readouts.Address(of.ID), WithdrawnAt: of.WithdrawnAt, WithdrawnBy: of.WithdrawnBy,
	}
	if of.Look > 0 {
		shown.Look = &of.Look
	}
	if of.WithdrawnAt != nil {
		return shown, nil
	}
	summary, err := readout.ParseSummary(of.Summary)
	shown.Status, shown.VariationID, shown.Sentence = summary.Status, summary.Variation, summary.Sentence
	return shown, err
}

// parseReadSubject returns the campaign or the experiment in the path of a request.
func (s *API) parseReadSubject(c *gin.Context, kind schema.SubjectKind) (
	owned *catalogue.AccountResources, of schema.Subject, err error,
) {
	p, err := s.parsePlace(c)
	ids := schema.SubjectIDs{CampaignID: p.id}
	if kind == schema.SubjectWidget {
		ids = schema.SubjectIDs{WidgetID: p.id}
		ids.ExperimentID, err = pathID(c, experimentIDName, err)
	}
	if err != nil {
		return nil, of, err
	}
	of, err = results.FindSubject(p.owned, p.website, &ids)
	return p.owned, of, err
}

// listReadouts returns the readouts of a campaign or an experiment, the latest first.
func (s *API) listReadouts(kind schema.SubjectKind) handler {
	return func(c *gin.Context) (any, error) {
		owned, subject, err := s.parseReadSubject(c, kind)
		if err != nil {
			return nil, err
		}
		ctx := c.Request.Context()
		all, err := s.Documents.ReadDocuments(ctx, owned.ID, subject.WebsiteID, documents.Readout)
		if err != nil {
			return nil, source.StoreFailure(ctx, err)
		}
		list := []*storedReadout{}
		for i := range all {
			of := &all[len(all)-1-i]
			if of.Subject != subject {
				continue
			}
			shown, err := s.newStoredReadout(of, owned)
			if err != nil {
				return nil, err
			}
			list = append(list, shown)
		}
		c.Header("X-Total-Count", strconv.Itoa(len(list)))
		return list, nil
	}
}

// createReadout makes a readout of a campaign or an experiment. The body may be empty.
func (s *API) createReadout(kind schema.SubjectKind) handler {
	return func(c *gin.Context) (any, error) {
		owned, subject, missing := s.parseReadSubject(c, kind)
		if errors.As(missing, new(*query.InvalidError)) {
			return nil, missing
		}
		var asked struct {
			Look *int   `yaml:"look"`
			Text string `yaml:"text"`
		}
		document := &catalogue.Document{}
		if c.Request.ContentLength != 0 {
			err := s.useYAML(c, 64<<10, func(text io.Reader) (err error) {
				document, err = catalogue.ReadDocument(text, &asked)
				if err == nil || errors.As(err, new(faults.List)) { // faults follow with those of the values
					return nil
				}
				return bodyProblem(err)
			})
			if err != nil {
				return nil, err
			}
		}
		token := tokenOf(c)
		request := readout.Asked{Look: asked.Look, Text: asked.Text, By: authorOfNotes(&token)}
		found := document.WithFaults(request.FindFaults())
		if len(found) > 0 {
			if missing == nil {
				found = found.WithOthers(s.lookFaults(c, owned, subject, &request))
			}
			return nil, bodyFaults("invalid_readout", found)
		}
		if missing != nil {
			return nil, missing
		}
		return s.makeReadout(c, owned, subject, request)
	}
}

// lookFaults returns that a subject has no look with the number of a request that has other faults.
func (s *API) lookFaults(
	c *gin.Context, owned *catalogue.AccountResources, subject schema.Subject, asked *readout.Asked,
) faults.List {
	if asked.Look == nil || *asked.Look < 1 {
		return nil
	}
	var invalid *query.InvalidError // another error does not matter: the request is refused in any case
	_, err := s.Engine.ReadAtLook(c.Request.Context(), owned, subject, asked.Look)
	if !errors.As(err, &invalid) {
		invalid = &query.InvalidError{}
	}
	return invalid.Faults
}

// madeReadout is a readout, and whether it was made now.
type madeReadout struct {
	documents.Document
	isNew bool
}

// makeReadout makes and stores a readout, and returns it.
func (s *API) makeReadout(
	c *gin.Context, owned *catalogue.AccountResources, subject schema.Subject, asked readout.Asked,
) (any, error) {
	made, err := results.RunAdmitted(c.Request.Context(), s.results,
		func(ctx context.Context) (of madeReadout, err error) {
			of.Document, of.isNew, err = s.readouts.MakeReadout(ctx, owned, subject, asked)
			return of, err
		})
	invalid, isInvalid := errors.AsType[*query.InvalidError](err)
	switch {
	case isInvalid:
		return nil, bodyFaults("invalid_readout", invalid.Faults)
	case errors.Is(err, engine.ErrNothingToCompare):
		return nil, newRefusal(http.StatusConflict, "no_look", err.Error())
	case errors.Is(err, documents.ErrTooMany):
		return nil, newRefusal(http.StatusConflict, "too_many_readouts", err.Error())
	case err != nil:
		return nil, describeError(c, err)
	}
	shown, err := s.newStoredReadout(&made.Document, owned)
	if err != nil {
		return nil, err
	}
	body, err := render.JSON(shown)
	r := reply{status: http.StatusOK, kind: results.JSON, body: body, keep: notKept}
	if made.isNew {
		r.status = http.StatusCreated
	}
	c.Header("Location", readoutsPath+made.ID)
	return r, err
}

// describeError returns the error of a readout that was not made: those of requests as they are, others as failures of
// the store.
func describeError(c *gin.Context, err error) error {
	isOfStore := errors.As(err, new(*source.StoreError))
	if isOfStore || errors.As(err, new(*query.NotFoundError)) || errors.As(err, new(*problem)) {
		return err
	}
	return changeFailure(c, err, "repeat the request, which is idempotent")
}

// findReadout returns the readout in the path of a request. The error says that there is none that the token may read.
func (s *API) findReadout(c *gin.Context) (*documents.Document, error) {
	err := query.ReadParameters(c.Request.URL.RawQuery).Err()
	id := c.Param(pathIDName)
	if !documents.IsID(id) {
		err = prependFault(err, faults.Fault{
			Name: pathIDName, Value: id, Detail: "must be the id of a readout, which has 32 hexadecimal digits",
		})
	}
	if err != nil {
		return nil, err
	}
	token := tokenOf(c)
	isShared := token.ReadoutID == id
	if token.Shared != nil && !isShared {
		return nil, notFound("no readout " + id)
	}
	ctx := c.Request.Context()
	found, err := s.Documents.FindDocument(ctx, token.AccountID, token.WebsiteID, documents.Readout, id)
	switch {
	case err != nil:
		return nil, source.StoreFailure(ctx, err)
	case found == nil:
		return nil, notFound("no readout " + id)
	}
	return found, nil
}

// newGone returns the problem of a readout that was withdrawn.
func newGone(of *documents.Document) *problem {
	return newRefusal(http.StatusGone, "readout_withdrawn",
		fmt.Sprintf("the readout was withdrawn on %s", of.WithdrawnAt.Format(time.DateOnly)))
}

// getReadout returns a readout, and what has changed since it was made.
func (s *API) getReadout(c *gin.Context) (any, error) {
	found, err := s.findReadout(c)
	if err != nil {
		return nil, err
	}
	if found.WithdrawnAt != nil {
		return nil, newGone(found)
	}
	owned := s.Catalogue.Snapshot().AccountResources(found.AccountID) // a share link shows the readout only
	shown, err := s.newStoredReadout(found, owned)
	if err != nil {
		return nil, err
	}
	since, err := results.RunAdmitted(c.Request.Context(), s.results, func(ctx context.Context) (readout.Since, error) {
		return s.readouts.ReadSince(ctx, owned, found)
	})
	if err != nil {
		return nil, err
	}
	shown.SinceThen = &since
	return shown, nil
}

// getReadoutFile returns the page of a readout, which never changes.
func (s *API) getReadoutFile(c *gin.Context) (any, error) {
	found, err := s.findReadout(c)
	if err != nil {
		return nil, err
	}
	if found.WithdrawnAt != nil {
		return nil, newGone(found)
	}
	ctx := c.Request.Context()
	body, err := s.Documents.ReadBody(ctx, found)
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	c.Header("Content-Security-Policy", filePolicy)
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Referrer-Policy", "no-referrer")
	return reply{
		kind: htmlType, body: body, tag: `"` + found.Digest + `"`, keep: keptForever,
	}, nil
}

// withdrawReadout deletes the page of a readout for good. That there was one stays known.
func (s *API) withdrawReadout(c *gin.Context) (any, error) {
	found, err := s.findReadout(c)
	if err != nil {
		return nil, err
	}
	token := tokenOf(c)
	_, err = s.Documents.WithdrawReadout(c.Request.Context(), found.AccountID, 0, found.ID, authorOfNotes(&token))
	if err != nil {
		return nil, changeFailure(c, err, "repeat the request, which is idempotent")
	}
	return reply{status: http.StatusNoContent, keep: notKept}, nil
}
