package api

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"lifthouse/engine"
	"lifthouse/schema/catalogue"
)

// The types that results can be had in.
const (
	typeJSON = "application/json"
	typeSQL  = "application/sql"
)

// results answers one of the operations that ask for a report.
func (s *server) results(operation engine.Operation) func(*gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		request, err := engine.ParseReport(operation, c.Request.URL.RawQuery)
		id, err := pathID(c, pathIDName, err)
		if operation == engine.ExperimentResults {
			request.ExperimentID, err = pathID(c, experimentIDName, err)
		}
		if err != nil {
			return nil, err
		}
		owned, bound := s.owned(c)
		if err := goalFault(owned, cmp.Or(bound, request.WebsiteID), request.GoalID); err != nil {
			return nil, err
		}
		if request.WebsiteID, err = searchedWebsite(owned, bound, request.WebsiteID); err != nil {
			return nil, err
		}
		request.AccountID, request.SubjectID = owned.ID, id
		switch c.NegotiateFormat(typeJSON, typeSQL) {
		case typeJSON:
			return s.engine.Report(c.Request.Context(), request)
		case typeSQL:
			text, err := s.engine.SQL(c.Request.Context(), request)
			return plain{typeSQL, text}, err
		}
		return nil, &problemError{&problem{Status: http.StatusNotAcceptable, Code: "not_acceptable", Detail: "have " + typeJSON + " and " + typeSQL}}
	}
}

// goalFault refuses a goal that the account does not have on the website, if
// one is known, before anything that may not be found: the goal is a parameter.
func goalFault(owned *catalogue.Owned, website, id int64) error {
	goal, known := owned.Goals[id]
	if _, ours := owned.Websites[website]; id == 0 || known && (!ours || goal.WebsiteID == website) {
		return nil
	}
	value := fmt.Sprint(id)
	if id == engine.NoID {
		value = "0, or more digits than an id has"
	}
	return &engine.InvalidError{Code: engine.UnknownGoal, Faults: []engine.Fault{
		{Name: "goal", Value: value, Detail: "want the id of a goal of the same website"},
	}}
}
