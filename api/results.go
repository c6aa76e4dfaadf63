package api

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"

	"lifthouse/api/negotiation"
	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// reportHandler returns the handler of an operation that returns a report.
func (s *server) reportHandler(operation query.Operation) func(*gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		request, owned, err := s.scopedRequest(c, operation, query.ParseReport)
		if err != nil {
			return nil, err
		}
		asked, err := s.results.ReportQuery(request, owned, c.GetString(typeKey))
		if err != nil {
			return nil, err
		}
		ready, err := s.answerQuery(c, asked)
		if err == nil {
			setDownloadHeaders(c, asked)
		}
		return ready, err
	}
}

// scopedRequest parses the request of an operation, within the resources that the token may read.
func (s *server) scopedRequest(
	c *gin.Context, operation query.Operation, parse func(query.Operation, string) (query.Request, error),
) (request query.Request, owned *catalogue.AccountResources, err error) {
	_, span := tracer.Start(c.Request.Context(), "parse")
	request, err = parse(operation, c.Request.URL.RawQuery)
	span.End()
	id, err := pathID(c, pathIDName, err)
	if operation == query.ExperimentResults {
		request.ExperimentID, err = pathID(c, experimentIDName, err)
	}
	if err != nil {
		return request, nil, err
	}
	owned, bound := s.reportedResources(c, operation)
	request.SubjectID = id
	request, err = results.ScopeRequest(request, owned, bound)
	return request, owned, err
}

// answerQuery returns 304 if the client has the current response, and the response
// otherwise. If the store fails, the response has no entity tag, so a conditional
// request cannot confirm it.
func (s *server) answerQuery(c *gin.Context, q *results.Query) (reply, error) {
	found, err := s.results.AnswerQuery(c.Request.Context(), q, negotiation.WantsNew(c.Request), func(v results.Version) bool {
		return negotiation.MatchesTag(c.Request, s.entityTag(q, v))
	})
	if found.Stale || err != nil {
		return reply{kind: q.Kind, keep: notKept, stale: true, body: found.Body}, err
	}
	answered := reply{kind: q.Kind, keep: briefly, body: found.Body}
	if found.Version.IsCurrent() {
		answered.tag = s.entityTag(q, found.Version)
	}
	return answered, nil
}

// entityTag returns the entity tag of a response. A response without all accepted events has none.
func (s *server) entityTag(q *results.Query, v results.Version) string {
	return negotiation.EntityTag(s.options.Release, q.Key, v.String())
}

// extensions has the file extensions of downloads.
var extensions = map[string]string{results.CSV: "csv", results.SVG: "svg"}

// setDownloadHeaders sets the file name of a download, and a policy that disables scripts
// in an SVG that is opened directly.
func setDownloadHeaders(c *gin.Context, q *results.Query) {
	extension := extensions[q.Kind]
	if extension == "" {
		return
	}
	how := "attachment"
	if q.Kind == results.SVG {
		how = "inline"
		c.Header("Content-Security-Policy", "sandbox")
	}
	name := fileName(q.Plan.Subject, "results", c.Request.URL.RawQuery)
	c.Header("Content-Disposition", fmt.Sprintf(`%s; filename="%s.%s"`, how, name, extension))
}

// notInNames matches what the name of a file does not have.
var notInNames = regexp.MustCompile(`[^\w.]+`)

// maxViewName is the maximum length of the parameters in the name of a file.
const maxViewName = 100

// fileName returns the name of a file about a subject, with the parameters of its request.
func fileName(of schema.Subject, what, rawQuery string) string {
	name := fmt.Sprintf("%s-%d", of.Kind, of.ID)
	if of.ExperimentID != 0 {
		name += fmt.Sprintf("-experiment-%d", of.ExperimentID)
	}
	view, _ := url.QueryUnescape(rawQuery) // it was parsed before
	view = notInNames.ReplaceAllString(strings.ReplaceAll(view, "filters[", "["), "-")
	return strings.TrimRight(name+"-"+what+"-"+strings.Trim(view[:min(len(view), maxViewName)], "-"), "-")
}
