package api

import (
	"slices"

	"lifthouse/api/results"
	"lifthouse/engine"
	"lifthouse/engine/query"
	"lifthouse/schema/faults"

	"github.com/gin-gonic/gin"
)

// ofValues is the maximum and the default number of values in a response.
var ofValues = bounds{1000, 100}

const attributeName = "name"

// dimensionHandler returns the observed values of an attribute.
func (s *server) dimensionHandler(operation query.Operation) func(*gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		p := query.ReadParameters(c.Request.URL.RawQuery, websiteIDName, "limit")
		request := query.Request{Operation: operation, WebsiteID: p.ID(websiteIDName)}
		most := p.ParseInteger("limit", 1, ofValues.most, ofValues.otherwise)
		err := p.Err()
		attribute := c.Param(attributeName)
		if all := engine.AttributeNames(); !slices.Contains(all, attribute) {
			err = prependFault(err, faults.Fault{Name: attributeName, Value: attribute, Detail: faults.OneOf(all...)})
		}
		request.SubjectID, err = pathID(c, pathIDName, err)
		if operation == query.ExperimentResults {
			request.ExperimentID, err = pathID(c, experimentIDName, err)
		}
		if err != nil {
			return nil, err
		}
		owned, bound := s.reportedResources(c, operation)
		if request, err = results.ScopeRequest(request, owned, bound); err != nil {
			return nil, err
		}
		asked, err := s.results.ValuesQuery(request, owned, attribute, most)
		if err != nil {
			return nil, err
		}
		return s.answerQuery(c, asked)
	}
}
