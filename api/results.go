package api

import (
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
		if c.GetString(typeKey) == typeSQL {
			text, err := s.engine.SQL(c.Request.Context(), request)
			return plain{typeSQL, text}, err
		}
		return s.engine.Report(c.Request.Context(), request)
	}
}
