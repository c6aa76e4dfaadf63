package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"
)

// Content types of results.
const (
	typeJSON = "application/json"
	typeSQL  = "application/sql"
	typeCSV  = "text/csv"
	typeSVG  = "image/svg+xml"
)

var resultTypes = []string{typeJSON, typeSQL, typeCSV, typeSVG}

// results returns the handler of an operation that returns a report.
func (s *server) results(operation query.Operation) func(*gin.Context) (any, error) {
	return func(c *gin.Context) (any, error) {
		_, span := tracer.Start(c.Request.Context(), "parse")
		request, err := query.ParseReport(operation, c.Request.URL.RawQuery)
		span.End()
		id, err := pathID(c, pathIDName, err)
		if operation == query.ExperimentResults {
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
		asked, err := newResultsQuery(request, owned, c.GetString(typeKey))
		if err != nil {
			return nil, err
		}
		asked.render = func(ctx context.Context) ([]byte, error) { return s.render(ctx, asked) }
		ready, err := s.answered(c, asked)
		if err == nil {
			asked.present(c)
		}
		return ready, err
	}
}

// resultsQuery is a request for results in canonical form.
type resultsQuery struct {
	plan      *plan.Plan
	kind      string // content type
	catalogue uint64 // version of the account's resources
	key       string // everything in the request, including the account
	render    func(context.Context) ([]byte, error)
}

// newResultsQuery returns an error for resources that are not in the catalogue.
func newResultsQuery(request query.Request, owned *catalogue.Owned, kind string) (*resultsQuery, error) {
	plan, err := plan.New(request, owned)
	if err != nil {
		return nil, err
	}
	canonical, err := json.Marshal(request)
	return &resultsQuery{plan: plan, kind: kind, catalogue: owned.Version, key: kind + " " + string(canonical)}, err
}

// answered processes a request for results: 304 if the client has the current
// response; the cached response if it is current; the result of a running
// computation; or a new computation. If the store fails, it returns the last
// successful response, marked as stale.
func (s *server) answered(c *gin.Context, q *resultsQuery) (reply, error) {
	ctx := c.Request.Context()
	wantsNewResult := wantsNew(c.Request)
	if wantsNewResult {
		if !s.engine.BringUpToDate(ctx, q.plan.Subject) {
			q.plan = q.plan.WithAllEvents()
		}
	}
	is := version{catalogue: q.catalogue}
	is.data, is.known = s.engine.Version(ctx, q.plan.Subject)
	answer := reply{kind: q.kind, keep: briefly}
	if is.known {
		answer.tag = tagOf(s.options.Release, q.key, fmt.Sprint(is))
	}
	if !wantsNewResult {
		if is.known && matches(c.Request, answer.tag) {
			s.metrics.results.WithLabelValues("not_modified").Inc()
			return answer, nil
		}
		if k, found := s.resultCache.get(q.key); found && k.version.same(is) && time.Since(k.at) < s.options.ResultsAge {
			s.metrics.results.WithLabelValues("hit").Inc()
			answer.body = k.body
			return answer, nil
		}
	}
	key := fmt.Sprint(is, " ", q.key)
	if q.plan.AllEvents {
		key = rand.Text() // a running computation may lack events that its version does not show
	}
	body, joined, err := s.flights.join(ctx, key, func(ctx context.Context) ([]byte, error) { return s.compute(ctx, q, is) })
	if err != nil {
		return s.lastGood(q, err)
	}
	if joined {
		s.metrics.results.WithLabelValues("shared").Inc()
	} else {
		s.metrics.results.WithLabelValues("miss").Inc()
	}
	answer.body = body
	return answer, nil
}

// compute computes the response and caches it. The version was read before the
// data, so a response may include newer data than its version, but never older.
func (s *server) compute(ctx context.Context, q *resultsQuery, is version) ([]byte, error) {
	ctx, cancel := s.withDeadline(ctx) // independent of the request that started it, since others may wait
	defer cancel()
	leave, err := s.gate.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	at := time.Now()
	body, err := q.render(ctx)
	if err != nil {
		return nil, err
	}
	s.resultCache.add(q.key, entry{body, is, at})
	return body, nil
}

func (s *server) render(ctx context.Context, q *resultsQuery) ([]byte, error) {
	if q.kind == typeSQL {
		text, err := s.engine.SQL(ctx, q.plan)
		return []byte(text), err
	}
	report, err := s.engine.Report(ctx, q.plan)
	if err != nil {
		return nil, err
	}
	_, span := tracer.Start(ctx, "encode")
	defer span.End()
	switch q.kind {
	case typeCSV:
		return render.CSV(report)
	case typeSVG:
		return render.ForestPlot(report)
	}
	return encode(report)
}

// extensions has the file extensions of downloads.
var extensions = map[string]string{typeCSV: "csv", typeSVG: "svg"}

// present sets the file name of a download, and a policy that disables scripts
// in an SVG that is opened directly.
func (q *resultsQuery) present(c *gin.Context) {
	extension := extensions[q.kind]
	if extension == "" {
		return
	}
	name := fmt.Sprintf("%s-%d", q.plan.Subject.Kind, q.plan.Subject.ID)
	if q.plan.Subject.ExperimentID != 0 {
		name += fmt.Sprintf("-experiment-%d", q.plan.Subject.ExperimentID)
	}
	how := "attachment"
	if q.kind == typeSVG {
		how = "inline"
		c.Header("Content-Security-Policy", "sandbox")
	}
	c.Header("Content-Disposition", fmt.Sprintf(`%s; filename="%s-results.%s"`, how, name, extension))
}

// lastGood returns the last successful response, marked as stale, if the store
// failed. It has no entity tag, so that it cannot be confirmed by a conditional
// request.
func (s *server) lastGood(q *resultsQuery, err error) (reply, error) {
	var store *source.StoreError
	last, found := s.resultCache.get(q.key)
	if !found || !errors.As(err, &store) {
		return reply{}, err
	}
	s.metrics.results.WithLabelValues("stale").Inc()
	return reply{kind: q.kind, body: markStale(q.kind, last.body), keep: notKept, stale: true}, nil
}

// markStale sets the field stale in a body. In JSON the first such field is
// that of the report, since quotes in texts before it are escaped.
func markStale(kind string, body []byte) []byte {
	switch kind {
	case typeSQL:
		return append([]byte("-- stale: the store does not answer\n"), body...)
	case typeCSV, typeSVG:
		return body // the Warning header reports it
	}
	return bytes.Replace(body, []byte(`"stale":false`), []byte(`"stale":true`), 1)
}

// goalFault returns an error for a goal that does not exist on the website. It
// is checked before resources are looked up, because 400 takes precedence over
// 404.
func goalFault(owned *catalogue.Owned, website, id int64) error {
	goal, known := owned.Goals[id]
	if _, ours := owned.Websites[website]; id == 0 || known && (!ours || goal.WebsiteID == website) {
		return nil
	}
	value := fmt.Sprint(id)
	if id == query.NoID {
		value = "0, or larger than any id"
	}
	return &query.InvalidError{Code: query.UnknownGoal, Faults: []query.Fault{
		{Name: "goal", Value: value, Detail: "must be the id of a goal of the same website"},
	}}
}
