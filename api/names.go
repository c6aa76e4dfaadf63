package api

import (
	"lifthouse/api/results"
	"lifthouse/engine/metric"
	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

// listNames returns the names that metrics and conditions of a website may contain.
func (s *API) listNames(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, websiteIDName)
	owned, website, names, err := s.readNames(c, p)
	if err != nil {
		return nil, err
	}
	return results.NewNames(owned, website, names), nil
}

// readNames returns the names of the website that parameters name, or of the only one of the account.
func (s *API) readNames(
	c *gin.Context, p *query.Parameters,
) (owned *catalogue.AccountResources, website int64, names *metric.Names, err error) {
	asked := p.ID(websiteIDName)
	if err := p.Err(); err != nil {
		return nil, 0, nil, err
	}
	owned, website, err = s.onlyWebsite(c, asked)
	if err == nil && website != 0 {
		names, err = s.Engine.ReadNames(c.Request.Context(), owned, website)
	}
	if names == nil {
		names = &metric.Names{}
	}
	return owned, website, names, err
}

// completion is what may follow at a place of a question.
type completion struct {
	From       int         `json:"from"` // characters before the word that is being written; it ends at the place
	Candidates []candidate `json:"candidates"`
	Field      string      `json:"field,omitempty"`  // whose value is being written
	Source     string      `json:"source,omitempty"` // of the field
	Prefix     string      `json:"prefix,omitempty"` // beginning of the value
}

// candidate is a text that may replace the word that is being written.
type candidate struct {
	Text string `json:"text"`
	Kind string `json:"kind"`
}

// completeQuestion returns what may follow at a place of a question.
func (s *API) completeQuestion(c *gin.Context) (any, error) {
	p := query.ReadParameters(c.Request.URL.RawQuery, websiteIDName, query.ParamText, "at")
	text, _ := p.SingleValue(query.ParamText)
	at := p.ParseInteger("at", 0, metric.MaxCharacters, metric.MaxCharacters)
	_, _, names, err := s.readNames(c, p)
	if err != nil {
		return nil, err
	}
	found := metric.CompleteAsk(text, at, names)
	answer := completion{From: found.From, Candidates: []candidate{}, Prefix: found.Prefix}
	for _, of := range found.Candidates {
		answer.Candidates = append(answer.Candidates, candidate{of.Text, of.Kind})
	}
	if of := found.Field; of != nil {
		answer.Field = of.Name
		answer.Source = sourcesOfFields[of.Source]
	}
	return answer, nil
}

// sourcesOfFields are the sources of fields in responses.
var sourcesOfFields = map[metric.Source]string{
	metric.OfEvent: "event", metric.OfLine: "line", metric.OfProperty: "property", metric.OfAttribute: "attribute",
}
