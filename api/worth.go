package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/worth"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// websiteOfGoal returns the website of the path, which must have a goal; 0: any. parsed is the error of the parameters,
// to which that of the path is added.
func (s *API) websiteOfGoal(c *gin.Context, goal int64, parsed error) (int64, error) {
	id, err := pathID(c, pathIDName, parsed)
	if err != nil {
		return 0, err
	}
	owned, id, err := s.searchedWebsite(c, id)
	if err != nil {
		return 0, err
	}
	return id, results.CheckGoal(owned, id, goal)
}

// getWorth returns what a website's shipped variations are worth together.
func (s *API) getWorth(c *gin.Context) (any, error) {
	asked, err := query.ParseProgramme(c.Request.URL.RawQuery)
	asked.WebsiteID, err = s.websiteOfGoal(c, asked.GoalID, err)
	if err != nil {
		return nil, err
	}
	if c.GetString(typeKey) == results.CSV {
		owned, _ := s.accountResources(c)
		return results.RunAdmitted(c.Request.Context(), s.results,
			func(ctx context.Context) ([]byte, error) { return s.worthTable(ctx, owned, asked) })
	}
	return results.RunAdmitted(c.Request.Context(), s.results,
		func(ctx context.Context) (*worth.Programme, error) { return s.Engine.ReadProgramme(ctx, asked) })
}

// getPlan returns what experiments of several lengths on a website would find.
func (s *API) getPlan(c *gin.Context) (any, error) {
	asked, err := query.ParseOutlook(c.Request.URL.RawQuery)
	asked.WebsiteID, err = s.websiteOfGoal(c, asked.GoalID, err)
	if err != nil {
		return nil, err
	}
	return results.RunAdmitted(c.Request.Context(), s.results,
		func(ctx context.Context) (*result.Outlook, error) { return s.Engine.ReadOutlook(ctx, asked) })
}

// putOutcome records what was done after a campaign or an experiment, or deletes the record.
func (s *API) putOutcome(kind schema.SubjectKind) handler {
	return admitTo(s.changes, func(c *gin.Context) (any, error) {
		p, err := s.parsePlace(c)
		of := schema.Subject{Kind: kind, ID: p.id}
		if kind == schema.SubjectWidget {
			of.ExperimentID, err = pathID(c, experimentIDName, err)
		}
		if err != nil {
			return nil, err
		}
		var outcome *catalogue.Outcome
		if c.Request.Method == http.MethodPut {
			outcome = &catalogue.Outcome{}
			if err := s.readBodyYAML(c, outcome); err != nil {
				return nil, err
			}
			outcome.Date = cmp.Or(outcome.Date, time.Now().UTC().Format(time.DateOnly))
		}
		ctx := byToken(c)
		found := false
		err = within(ctx, func() (err error) {
			found, err = s.Catalogue.SetOutcome(ctx, p.owned.ID, p.website, of, outcome)
			return err
		})
		invalid := faults.List(nil)
		switch {
		case errors.As(err, &invalid):
			return nil, bodyFaults("invalid_outcome", invalid)
		case errors.Is(err, catalogue.ErrRunning):
			return nil, newRefusal(http.StatusConflict, "outcome_running", err.Error())
		case err != nil:
			return nil, changeFailure(c, err, "repeat the request, which is idempotent")
		case !found && kind == schema.SubjectWidget:
			return nil, &query.NotFoundError{Kind: "experiment", ID: of.ExperimentID}
		case !found:
			return nil, &query.NotFoundError{Kind: "campaign", ID: of.ID}
		}
		return struct {
			Outcome *catalogue.Outcome `json:"outcome"` // null: the default
		}{outcome}, nil
	})
}
