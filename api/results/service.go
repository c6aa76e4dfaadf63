// Package results answers requests for results with a cached body, with the result of an equal request that is already
// running, or with a new computation. Only a limited number of computations use the store at the same time.
package results

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/cache"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/tables"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// Options limit the work. The zero value of a limit means no limit.
type Options struct {
	Age     time.Duration // maximum age of cached tables and plots of unchanged data; 0: no cache, also of reports
	Memory  int64         // bytes of cached bodies; 0: no cache
	Timeout time.Duration // of a computation, including its wait for a slot
}

// Service answers requests for results.
type Service struct {
	Options

	engine    *engine.Engine
	summaries *watch.Summaries
	metrics   *Metrics
	cache     *cache.Cache // of all but summaries
	flights   flightGroup[*kept]
	gate      *Admission
}

// New returns the service of an engine. gate limits the concurrent computations.
func New(e *engine.Engine, summaries *watch.Summaries, gate *Admission, o Options, m *Metrics) *Service {
	c := cache.New(o.Memory)
	m.add.NewCounterFunc(prometheus.CounterOpts{
		Name: "lifthouse_results_evictions_total", Help: "Cached results that were evicted.",
	}, func() float64 { _, _, evicted := c.Usage(); return float64(evicted) })
	m.add.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifthouse_results_kept_bytes", Help: "Memory of cached results.",
	}, func() float64 { _, bytes, _ := c.Usage(); return float64(bytes) })
	m.add.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifthouse_results_kept", Help: "Cached results.",
	}, func() float64 { values, _, _ := c.Usage(); return float64(values) })
	m.add.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifthouse_summaries_kept_bytes", Help: "Memory of the reports of declared questions, which lists show.",
	}, func() float64 { _, bytes, _ := summaries.Usage(); return float64(bytes) })
	return &Service{Options: o, engine: e, summaries: summaries, metrics: m, cache: c, gate: gate}
}

// Query is a request for results in canonical form.
type Query struct {
	Plan *plan.Plan
	Kind string // content type
	Key  string // everything in the request, including the account

	owned   *catalogue.AccountResources
	summary *watch.SummaryKey // of the summary that answers the query; nil: none does
	compute func(context.Context, engine.Version) (*kept, error)
}

// versionAt returns the version of the answer at a version of the data.
func (q *Query) versionAt(data *engine.Version) string {
	return fmt.Sprint(q.owned.SubjectVersion(q.Plan.Subject), " ", data.Key())
}

// ReportQuery returns the query for a report of an account, or of the website of a token that is bound to one. parsed
// is the error of the parser of the request, which may have further faults. The error is a NotFoundError or an
// InvalidError.
func (s *Service) ReportQuery(
	ctx context.Context, request query.Request, parsed error, owned *catalogue.AccountResources, bound int64,
	kind string,
) (*Query, error) {
	q, err := s.resolveReport(ctx, request, owned, bound, kind)
	return q, query.JoinFaults(parsed, err)
}

func (s *Service) resolveReport(
	ctx context.Context, request query.Request, owned *catalogue.AccountResources, bound int64, kind string,
) (*Query, error) {
	err := CheckGoal(owned, cmp.Or(bound, request.WebsiteID), request.GoalID)
	if err != nil {
		return nil, err
	}
	request.AccountID = owned.ID
	request.WebsiteID, err = SearchedWebsite(owned, bound, request.WebsiteID)
	if err != nil {
		return nil, err
	}
	resolved, err := s.engine.PlanWithNames(ctx, request, owned)
	if err != nil {
		return nil, err
	}
	request = resolved.Asked
	canonical, err := json.Marshal(request)
	q := &Query{Plan: resolved, Kind: kind, owned: owned, Key: kind + " " + string(canonical)}
	if kind == JSON && isAboutSummary(request, resolved.Subject) {
		q.summary = &watch.SummaryKey{AccountID: owned.ID, Subject: resolved.Subject}
	}
	q.compute = func(ctx context.Context, version engine.Version) (*kept, error) {
		return s.computeReport(ctx, q, version)
	}
	return q, err
}

// isAboutSummary reports whether a request asks for the report of the declared question with its scorecard, and for
// nothing else.
func isAboutSummary(request query.Request, of schema.Subject) bool {
	declared := plan.ResultsRequest(request.AccountID, of)
	declared.Scorecard = true
	request.WebsiteID = of.WebsiteID
	isOwn := of.Kind == schema.SubjectWidget && of.ExperimentID == 0
	return !isOwn && reflect.DeepEqual(request, declared)
}

// computeReport computes what is kept of the report of a query.
func (s *Service) computeReport(ctx context.Context, q *Query, version engine.Version) (*kept, error) {
	p, err := s.engine.PlanInForce(ctx, q.Plan)
	if err != nil {
		return nil, err
	}
	report, err := s.engine.ComputeReportAt(ctx, p, version)
	if err != nil {
		return nil, err
	}
	switch q.Kind {
	case CSV:
		return keepBody(render.CSV(report))
	case SVG:
		return keepBody(render.ForestPlot(report))
	}
	return keepReport(p, report)
}

// ValuesQuery returns the query for the most frequent values of an attribute among the visitors of a report, as JSON.
func (s *Service) ValuesQuery(report *Query, attribute string, most int) *Query {
	q := *report
	q.summary = nil
	of := *report.Plan
	of.Dimension = "" // an own attribute was resolved as that of a breakdown
	q.Plan = &of
	q.Key = fmt.Sprintf("values of %s, %d, %s", attribute, most, q.Key)
	q.compute = func(ctx context.Context, _ engine.Version) (*kept, error) {
		values, err := s.engine.ReadValues(ctx, q.Plan, attribute, most)
		if err != nil {
			return nil, err
		}
		return keepBody(render.JSON(values))
	}
	return &q
}

// Answer is the answer to a query.
type Answer struct {
	Body    []byte // nil: the client has the body of this version
	Version string // of all that Body depends on but the clock; empty: Body does not include all accepted events
	Stale   bool   // accepted events are not in Body yet, or the store failed and Body is the last successful one
}

// AnswerQuery returns the body of a query for the current version of the data, or for newer data. has reports whether
// the client has the body of a version; nil: it has none. If newest is set, no cached body is used. If the store fails,
// it returns the last successful body, marked as stale. Without such a body, it returns the error of the engine, the
// admission or the context.
func (s *Service) AnswerQuery(ctx context.Context, q *Query, newest bool, has func(string) bool) (Answer, error) {
	limited, cancel := WithDeadline(ctx, s.Timeout)
	defer cancel()
	data, err := s.engine.ReadPlanVersion(limited, q.Plan)
	if err != nil {
		return s.lastGood(q, err)
	}
	version := q.versionAt(&data)
	waits := data.Waiting.Events > 0
	mayConfirm := data.Known && !waits
	mayBeUnchanged := mayConfirm && !newest && has != nil
	hasBody := func(version string) bool { return mayBeUnchanged && has(version) }
	if !q.Plan.Asked.Scorecard && hasBody(version) {
		s.metrics.outcomes.WithLabelValues("not_modified").Inc()
		return Answer{Version: version}, nil
	}

	found, outcome, err := s.findKept(ctx, q, data, version, newest || !mayConfirm)
	if err != nil {
		return s.lastGood(q, err)
	}
	worth, err := s.readWorth(ctx, found)
	if err != nil {
		return s.lastGood(q, err)
	}
	if worth != nil {
		version += fmt.Sprintf(" %x", xxhash.Sum64(worth))
		if hasBody(version) {
			s.metrics.outcomes.WithLabelValues("not_modified").Inc()
			return Answer{Version: version}, nil
		}
	}
	s.metrics.outcomes.WithLabelValues(outcome).Inc()
	body, err := found.writeBody(render.Clock{Now: time.Now(), Accepted: data.Accepted, Stale: waits}, worth)
	if !mayConfirm {
		version = ""
	}
	return Answer{Body: body, Version: version, Stale: waits}, err
}

// findKept returns what is kept for a query at a version, or computes it. outcome is where it comes from. With compute
// set, it computes in any case.
func (s *Service) findKept(
	ctx context.Context, q *Query, data engine.Version, version string, compute bool,
) (found *kept, outcome string, err error) {
	if !compute {
		found, isCurrent := s.lastKept(q, data)
		if isCurrent && found.isYoungerThan(s.Age) {
			return found, "hit", nil
		}
	}
	// The version was read before the data, so a body may include newer data than its version, but never older.
	flight := fmt.Sprint(version, " ", data.Waiting, " ", q.Key)
	found, joined, err := s.flights.joinFlight(ctx, flight, func(ctx context.Context) (*kept, error) {
		made, err := RunAdmitted(ctx, s, func(ctx context.Context) (*kept, error) {
			if q.summary != nil && !compute {
				found, err := s.summaries.FindSummary(ctx, q.owned, *q.summary, data)
				if err != nil {
					return nil, err
				}
				return keptSummary(found), nil
			}
			return q.compute(ctx, data)
		})
		if err == nil && data.Waiting.Events == 0 && q.summary == nil {
			s.cache.StoreValue(q.Key, version, made, int64(len(q.Key)+made.size()))
		}
		return made, err
	})
	if joined {
		return found, "shared", err
	}
	return found, "miss", err
}

// lastKept returns what was last kept for a query; nil: nothing. isCurrent reports whether it is of a version of the
// data.
func (s *Service) lastKept(q *Query, data engine.Version) (found *kept, isCurrent bool) {
	if q.summary == nil {
		last, madeFrom := s.cache.LastValue(q.Key)
		found, _ = last.(*kept)
		return found, found != nil && madeFrom == q.versionAt(&data)
	}
	last, madeFrom := s.summaries.LastSummary(*q.summary)
	if last == nil {
		return nil, false
	}
	return keptSummary(last), madeFrom == watch.SummaryVersionOf(q.owned, q.Plan.Subject, &data)
}

// SummaryWorth returns the JSON of what the treatments of a summary are worth; nil: it does not say.
func (s *Service) SummaryWorth(ctx context.Context, of *watch.Summary) ([]byte, error) {
	return s.readWorth(ctx, keptSummary(of))
}

// readWorth returns the JSON of what the treatments of a report are worth; nil: the report does not have it.
func (s *Service) readWorth(ctx context.Context, of *kept) ([]byte, error) {
	if of.plan == nil {
		return nil, nil
	}
	found, isKept, err := s.engine.LastWorth(ctx, of.plan, of.worthReason)
	if err == nil && !isKept {
		found, err = RunAdmitted(ctx, s, func(ctx context.Context) (*result.Worth, error) {
			return s.engine.ReadWorth(ctx, of.plan, of.worthReason)
		})
	}
	if err != nil || found == nil {
		return nil, err
	}
	encoded, err := render.EncodeValue(found)
	if err != nil {
		return nil, err
	}
	worth := []byte(encoded)
	of.lastWorth.Store(&worth)
	return worth, nil
}

// RunAdmitted calls work with a slot of the service and within its deadline. The work does not depend on the request
// that started it, because other requests may wait for it.
func RunAdmitted[T any](ctx context.Context, s *Service, work func(context.Context) (T, error)) (found T, err error) {
	ctx, cancel := WithDeadline(ctx, s.Timeout)
	defer cancel()
	leave, err := s.gate.AcquireSlot(ctx)
	if err != nil {
		return found, err
	}
	defer leave()
	return work(ctx)
}

// WithDeadline returns a context that ends after the timeout with the StoreError TooSlow; 0: no limit.
func WithDeadline(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, &source.StoreError{Fault: source.TooSlow})
}

// lastGood returns the last successful body, marked as stale, if the store failed.
func (s *Service) lastGood(q *Query, err error) (Answer, error) {
	found, _ := s.lastKept(q, engine.Version{})
	if _, failed := errors.AsType[*source.StoreError](err); found == nil || !failed {
		return Answer{}, err
	}
	s.metrics.outcomes.WithLabelValues("stale").Inc()
	body, err := found.writeBody(render.Clock{Now: found.at, Stale: true}, found.worthAtLast())
	return Answer{Body: body, Stale: true}, err
}

// Content types of results.
const (
	JSON = "application/json"
	CSV  = "text/csv"
	SVG  = "image/svg+xml"
)

// Kinds are all content types of results, the default first.
var Kinds = []string{JSON, CSV, SVG}

// SearchedWebsite returns the website on which an operation looks for an id: the requested website, the website of the
// token, or 0 for all websites of the account.
func SearchedWebsite(owned *catalogue.AccountResources, bound, asked int64) (int64, error) {
	if asked == 0 {
		return bound, nil
	}
	if _, known := owned.Websites[asked]; !known || bound != 0 && bound != asked {
		return 0, &query.NotFoundError{Kind: "website", ID: asked}
	}
	return asked, nil
}

// FindSubject returns the campaign, the widget or the experiment with some ids, which may be archived, on a website or,
// if that is 0, on any website of the account.
func FindSubject(
	owned *catalogue.AccountResources, website int64, ids *schema.SubjectIDs,
) (of schema.Subject, err error) {
	asked := schema.Subject{Kind: schema.SubjectCampaign, ID: ids.CampaignID}
	err = &query.NotFoundError{Kind: "campaign", ID: ids.CampaignID}
	switch {
	case ids.ExperimentID != 0:
		err = &query.NotFoundError{Kind: "experiment", ID: ids.ExperimentID}
	case ids.WidgetID != 0:
		err = &query.NotFoundError{Kind: "widget", ID: ids.WidgetID}
	}
	if ids.CampaignID == 0 {
		asked = schema.Subject{Kind: schema.SubjectWidget, ID: ids.WidgetID, ExperimentID: ids.ExperimentID}
	}
	all := owned.Subjects()
	for _, of := range owned.ArchivedSubjects() {
		all = append(all, of.Subject)
	}
	for _, w := range owned.Widgets {
		all = append(all, schema.Subject{WebsiteID: w.WebsiteID, Kind: schema.SubjectWidget, ID: w.ID})
	}
	for _, one := range all {
		asked.WebsiteID = one.WebsiteID
		isReadable := website == 0 || website == one.WebsiteID
		if isReadable && asked == one {
			return one, nil
		}
	}
	return of, err
}

// CheckGoal returns an error if the website has no such goal. It is checked before resources are looked up, because 400
// takes precedence over 404.
func CheckGoal(owned *catalogue.AccountResources, website, id int64) error {
	goal, known := owned.Goals[id]
	_, ours := owned.Websites[website]
	isOfWebsite := !ours || goal.WebsiteID == website
	if id == 0 || known && isOfWebsite {
		return nil
	}
	return query.GoalFault(id)
}

// ReadLog returns the entries of the log of an account that a request selects, the latest first. The website of the
// request is one that the caller may read; 0: all. The error may say that there is no such subject.
func (s *Service) ReadLog(
	ctx context.Context, of tables.Reader, owned *catalogue.AccountResources, asked *query.Log,
) ([]tables.Entry, error) {
	if asked.SubjectIDs != (schema.SubjectIDs{}) {
		subject, err := FindSubject(owned, asked.WebsiteID, &asked.SubjectIDs)
		if err != nil {
			return nil, err
		}
		asked.WebsiteID = subject.WebsiteID
	}
	return RunAdmitted(ctx, s, func(ctx context.Context) ([]tables.Entry, error) {
		return of.ReadLog(ctx, owned, asked)
	})
}
