package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"lifthouse/engine"
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
