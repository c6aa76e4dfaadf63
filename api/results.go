package api

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"lifthouse/api/results"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/gin-gonic/gin"
)

// answerQuery returns a handler that answers queries for results: with 304 if the client has the current response, and
// with the response otherwise. If the store fails, the response has no entity tag, so a conditional request cannot
// confirm it.
func (s *API) answerQuery(read func(*gin.Context) (*results.Query, error)) handler {
	return func(c *gin.Context) (any, error) {
		q, err := read(c)
		if err != nil {
			return nil, err
		}

		// The response, with its entity tag.
		newest := slices.ContainsFunc(valuesOf(c.Request, "Cache-Control"),
			func(directive string) bool { return strings.EqualFold(directive, "no-cache") })
		tagOf := func(version string) string { return entityTag(s.options.Release, q.Key, version) }
		found, err := s.results.AnswerQuery(c.Request.Context(), q, newest,
			func(version string) bool { return matchesTag(c.Request, tagOf(version)) })
		if err != nil {
			return nil, err
		}
		answered := reply{kind: q.Kind, keep: briefly, body: found.Body}
		switch {
		case found.Stale:
			answered.keep = notKept
			answered.stale = true
		case found.Version != "": // a response without all accepted events has no tag
			answered.tag = tagOf(found.Version)
		}

		// The name of a file.
		if extension := extensions[q.Kind]; extension != "" {
			how := "attachment"
			if q.Kind == results.SVG { // no scripts in an SVG that is opened directly
				how = "inline"
				c.Header("Content-Security-Policy", "sandbox")
			}
			name := fileName(q.Plan.Subject, "results", c.Request.URL.RawQuery)
			c.Header("Content-Disposition", fmt.Sprintf(`%s; filename="%s.%s"`, how, name, extension))
		}
		return answered, nil
	}
}

// extensions has the file extensions of downloads.
var extensions = map[string]string{results.CSV: "csv", results.SVG: "svg"}

// readReport returns a function that reads the query for the report of an operation.
func (s *API) readReport(operation query.Operation) func(*gin.Context) (*results.Query, error) {
	return func(c *gin.Context) (*results.Query, error) {
		return s.readQuery(c, operation, query.ParseReport, c.GetString(typeKey))
	}
}

// readQuery reads the query for the report of an operation, within the resources that the token may read.
func (s *API) readQuery(
	c *gin.Context, operation query.Operation, parse func(query.Operation, string) (query.Request, error), kind string,
) (*results.Query, error) {
	request, err := parse(operation, c.Request.URL.RawQuery)
	request.SubjectID, err = pathID(c, pathIDName, err)
	if operation == query.ExperimentResults {
		request.ExperimentID, err = pathID(c, experimentIDName, err)
	}
	owned, bound := s.reportResources(c, operation)
	return s.results.ReportQuery(c.Request.Context(), request, err, owned, bound, kind)
}

// reportResources returns the resources whose reports of an operation the token may read, and the website of a token
// that is bound to one, or 0.
func (s *API) reportResources(c *gin.Context, operation query.Operation) (*catalogue.AccountResources, int64) {
	owned, bound := s.accountResources(c)
	if shared := tokenOf(c).Shared; shared != nil && shared.ExperimentID != 0 && operation == query.WidgetResults {
		owned.Widgets = nil // a share link of an experiment reads the widget, but not the widget's own report
	}
	return owned, bound
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
