package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"lifthouse/api/results"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/engine/worth"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/outbox"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzhttp"
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
			answered.keep, answered.stale = notKept, true
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
	if err != nil {
		return nil, err
	}
	owned, bound := s.accountResources(c)
	if shared := tokenOf(c).Shared; shared != nil && shared.ExperimentID != 0 && operation == query.WidgetResults {
		owned.Widgets = nil // a share link of an experiment reads the widget, but not the widget's own report
	}
	return s.results.ReportQuery(request, owned, bound, kind)
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

// parquetType is the content type of Parquet files.
const parquetType = "application/vnd.apache.parquet"

// visitorSlots is the maximum number of concurrent files of visitors. They have an admission of their own, because a
// slow client must not hold up reports.
const visitorSlots = 2

// sendVisitors returns the handler of an operation that sends the visitors of a report as a Parquet file. It sends the
// file while it reads the visitors. If that fails, it aborts the connection.
func (s *API) sendVisitors(operation query.Operation) gin.HandlerFunc {
	return func(c *gin.Context) {
		p, err := s.planVisitors(c, operation)
		if err == nil && c.Request.Method != http.MethodHead {
			var leave func()
			if leave, err = s.files.AcquireSlot(c.Request.Context()); err == nil {
				defer leave()
				err = s.Engine.WriteVisitors(c.Request.Context(), p, &fileWriter{c, p})
			}
		}
		switch {
		case err == nil:
			setFileHeaders(c, p)
			c.Writer.WriteHeaderNow()
		case c.Writer.Written():
			_ = c.Error(err)
			panic(http.ErrAbortHandler)
		default:
			writeProblem(c, problemOf(err))
		}
	}
}

// planVisitors returns the plan of the report whose visitors are requested.
func (s *API) planVisitors(c *gin.Context, operation query.Operation) (*plan.Plan, error) {
	if err := negotiateType(c, []string{parquetType}); err != nil {
		return nil, err
	}
	asked, err := s.readQuery(c, operation, query.ParseVisitors, parquetType)
	if err != nil {
		return nil, err
	}
	return asked.Plan, nil
}

func setFileHeaders(c *gin.Context, p *plan.Plan) {
	c.Header("Content-Type", parquetType)
	name := fileName(p.Subject, "visitors", c.Request.URL.RawQuery)
	c.Header("Content-Disposition", `attachment; filename="`+name+`.parquet"`)
	c.Header("Cache-Control", notKept)
	c.Header(gzhttp.HeaderNoCompression, "1")
}

// fileWriter sends a file. Its headers are set with the first bytes, because an error before them is a problem.
type fileWriter struct {
	*gin.Context
	plan *plan.Plan
}

// sendTime is the maximum time to send a part of a file.
const sendTime = time.Minute

func (w *fileWriter) Write(part []byte) (int, error) {
	if !w.Writer.Written() {
		setFileHeaders(w.Context, w.plan)
	}
	if err := http.NewResponseController(w.Writer).SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return 0, err
	}
	return w.Writer.Write(part)
}

// sentMessage is a message with the state of its deliveries.
type sentMessage struct {
	outbox.Message
	Path       string            `json:"path"` // of the page of the subject
	Deliveries []webhookDelivery `json:"deliveries"`
}

// webhookDelivery is the state of the delivery of a message to a webhook.
type webhookDelivery struct {
	outbox.Delivery
	Host string `json:"host"` // of the webhook; the rest of its URL may be a secret
}

// listedMessages is the number of messages in the list of deliveries.
const listedMessages = 100

// listDeliveries returns the latest messages, the latest first.
func (s *API) listDeliveries(c *gin.Context) (any, error) {
	token := tokenOf(c)
	sent, err := s.Outbox.RecentMessages(c.Request.Context(), token.AccountID, token.WebsiteID, listedMessages)
	if err != nil {
		return nil, source.StoreFailure(c.Request.Context(), err)
	}
	owned, _ := s.accountResources(c)
	list := make([]sentMessage, len(sent))
	for i := range sent {
		m := &sent[i]
		list[i] = sentMessage{m.Message, catalogue.PagePath(&m.Data.SubjectIDs), []webhookDelivery{}}
		for _, d := range m.Deliveries {
			if hook, known := owned.Webhooks[d.WebhookID]; known {
				list[i].Deliveries = append(list[i].Deliveries, webhookDelivery{d, hook.Host()})
			}
		}
	}
	return list, nil
}

// getWorth returns what a website's shipped variations are worth together.
func (s *API) getWorth(c *gin.Context) (any, error) {
	asked, err := query.ParseProgramme(c.Request.URL.RawQuery)
	id, err := pathID(c, pathIDName, err)
	if err != nil {
		return nil, err
	}
	owned, id, err := s.searchedWebsite(c, id)
	if err != nil {
		return nil, err
	}
	if err := results.CheckGoal(owned, id, asked.GoalID); err != nil {
		return nil, err
	}
	asked.WebsiteID = id
	programme, err := results.RunAdmitted(c.Request.Context(), s.results,
		func(ctx context.Context) (*worth.Programme, error) { return s.Engine.ReadProgramme(ctx, asked) })
	if err != nil || c.GetString(typeKey) != results.CSV {
		return programme, err
	}
	return render.ProgrammeCSV(programme)
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
		ctx, found := byToken(c), false
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
