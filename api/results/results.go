// Package results answers requests for results with a cached body, with the result of an equal request that is already
// running, or with a new computation. Only a limited number of computations use the store at the same time.
package results

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/cache"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"golang.org/x/sync/semaphore"
)

// Options limit the work. The zero value of a limit means no limit.
type Options struct {
	Age     time.Duration // maximum age of cached bodies of unchanged data; 0: no cache
	Memory  int64         // bytes of cached bodies; 0: no cache
	Timeout time.Duration // of a computation, including its wait for a slot
}

// Service answers requests for results.
type Service struct {
	Options

	engine  *engine.Engine
	metrics *Metrics
	cache   *cache.Cache
	flights flightGroup[entry]
	gate    *Admission
}

// New returns the service of an engine. gate limits the concurrent computations.
func New(e *engine.Engine, gate *Admission, o Options, m *Metrics) *Service {
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
	return &Service{Options: o, engine: e, metrics: m, cache: c, gate: gate}
}

// Query is a request for results in canonical form.
type Query struct {
	Plan *plan.Plan
	Kind string // content type
	Key  string // everything in the request, including the account

	catalogue uint64 // version of the account's resources
	compute   func(context.Context, engine.Version) (body []byte, err error)
}

// ReportQuery returns the query for a report of an account, or of the website of a token that is bound to one. The
// error is a NotFoundError or an InvalidError.
func (s *Service) ReportQuery(
	request query.Request, owned *catalogue.AccountResources, bound int64, kind string,
) (*Query, error) {
	err := CheckGoal(owned, cmp.Or(bound, request.WebsiteID), request.GoalID)
	if err != nil {
		return nil, err
	}
	request.AccountID = owned.ID
	if request.WebsiteID, err = SearchedWebsite(owned, bound, request.WebsiteID); err != nil {
		return nil, err
	}
	resolved, err := plan.New(request, owned)
	if err != nil {
		return nil, err
	}
	canonical, err := json.Marshal(request)
	q := &Query{Plan: resolved, Kind: kind, catalogue: owned.Version, Key: kind + " " + string(canonical)}
	q.compute = func(ctx context.Context, version engine.Version) ([]byte, error) {
		p, err := s.engine.PlanInForce(ctx, q.Plan)
		if err != nil {
			return nil, err
		}
		report, err := s.engine.ComputeReportAt(ctx, p, version)
		switch {
		case err != nil:
			return nil, err
		case kind == CSV:
			return render.CSV(report)
		case kind == SVG:
			return render.ForestPlot(report)
		}
		return render.JSON(report)
	}
	return q, err
}

// ValuesQuery returns the query for the most frequent values of an attribute among the visitors of a report, as JSON.
func (s *Service) ValuesQuery(report *Query, attribute string, most int) *Query {
	q := *report
	q.Key = fmt.Sprintf("values of %s, %d, %s", attribute, most, q.Key)
	q.compute = func(ctx context.Context, _ engine.Version) ([]byte, error) {
		values, err := s.engine.ReadValues(ctx, q.Plan, attribute, most)
		if err != nil {
			return nil, err
		}
		return render.JSON(values)
	}
	return &q
}

// Answer is the answer to a query.
type Answer struct {
	Body    []byte // nil: the client has the body of this version
	Version string // of the data and the catalogue of Body; empty: Body does not include all accepted events
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
	waits, key := data.Waiting.Events > 0, fmt.Sprint(q.catalogue, data)
	version := key
	if waits || !data.Known {
		version = ""
	}
	if version != "" && !newest {
		if has != nil && has(version) {
			s.metrics.outcomes.WithLabelValues("not_modified").Inc()
			return Answer{Version: version}, nil
		}
		last, madeFrom := s.cache.LastValue(q.Key)
		if kept, found := last.(entry); found && madeFrom == version && time.Since(kept.at) < s.Age {
			s.metrics.outcomes.WithLabelValues("hit").Inc()
			return Answer{Body: kept.body, Version: version}, nil
		}
	}
	// The version was read before the data, so a body may include newer data than its version, but never older.
	compute := func(ctx context.Context) (made entry, err error) {
		made.at = time.Now()
		made.body, err = q.compute(ctx, data)
		return made, err
	}
	found, joined, err := s.flights.joinFlight(ctx, key+" "+q.Key, func(ctx context.Context) (entry, error) {
		made, err := RunAdmitted(ctx, s, compute)
		if err == nil && !waits {
			s.cache.StoreValue(q.Key, key, made, int64(len(q.Key)+len(made.body)))
		}
		return made, err
	})
	switch {
	case err != nil:
		return s.lastGood(q, err)
	case joined:
		s.metrics.outcomes.WithLabelValues("shared").Inc()
	default:
		s.metrics.outcomes.WithLabelValues("miss").Inc()
	}
	return Answer{Body: found.body, Version: version, Stale: waits}, nil
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
	last, _ := s.cache.LastValue(q.Key)
	kept, found := last.(entry)
	if _, failed := errors.AsType[*source.StoreError](err); !found || !failed {
		return Answer{}, err
	}
	s.metrics.outcomes.WithLabelValues("stale").Inc()
	body := kept.body
	if q.Kind == JSON { // the first such field is that of the report, because quotes in earlier texts are escaped
		body = bytes.Replace(body, []byte(`"stale":false`), []byte(`"stale":true`), 1)
	}
	return Answer{Body: body, Stale: true}, nil
}

// Content types of results.
const (
	JSON = "application/json"
	CSV  = "text/csv"
	SVG  = "image/svg+xml"
)

// Kinds are all content types of results, the default first.
var Kinds = []string{JSON, CSV, SVG}

// entry is a body.
type entry struct {
	body []byte
	at   time.Time // when it was computed
}

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

// CheckGoal returns an error if the website has no such goal. It is checked before resources are looked up, because 400
// takes precedence over 404.
func CheckGoal(owned *catalogue.AccountResources, website, id int64) error {
	goal, known := owned.Goals[id]
	if _, ours := owned.Websites[website]; id == 0 || known && (!ours || goal.WebsiteID == website) {
		return nil
	}
	return query.GoalFault(id)
}

// Metrics are the Prometheus metrics of the service. Clients cannot create label values.
type Metrics struct {
	Shed prometheus.Counter // requests that an admission rejected

	outcomes *prometheus.CounterVec // responses by where they come from
	add      promauto.Factory
}

// NewMetrics returns the metrics, registered.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	add := promauto.With(registry)
	return &Metrics{
		add: add,
		outcomes: add.NewCounterVec(prometheus.CounterOpts{
			Name: "lifthouse_results_total",
			Help: "Responses with results: not_modified, hit (cached), shared (computed for another request), " +
				"miss (computed), stale (the store failed).",
		}, []string{"outcome"}),
		Shed: add.NewCounter(prometheus.CounterOpts{
			Name: "lifthouse_shed_total", Help: "Requests rejected because too many requests use the store.",
		}),
	}
}

// flightGroup shares running computations between requests with equal keys. golang.org/x/sync/singleflight is not used:
// it cannot cancel a computation that no request waits for any more, and a panic in its DoChan ends the process.
type flightGroup[T any] struct {
	mu    sync.Mutex
	under map[string]*flight[T]
}

type flight[T any] struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int
	found   T
	err     error
}

// joinFlight waits for the running computation of the key, or starts one, and reports whether it was already running. A
// computation continues when the request that started it leaves, and is cancelled when the last request leaves.
func (f *flightGroup[T]) joinFlight(
	ctx context.Context, key string, compute func(context.Context) (T, error),
) (found T, joined bool, err error) {
	f.mu.Lock()
	if f.under == nil {
		f.under = map[string]*flight[T]{}
	}
	run, joined := f.under[key]
	remove := func() { // with the lock, so that no request joins a cancelled computation
		if f.under[key] == run {
			delete(f.under, key)
		}
		run.cancel()
	}
	if !joined {
		detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
		run = &flight[T]{done: make(chan struct{}), cancel: cancel}
		f.under[key] = run
		go func() {
			defer close(run.done)
			defer func() {
				if cause := recover(); cause != nil {
					slog.ErrorContext(detached, "panic", "panic", catalogue.RedactTokens(fmt.Sprint(cause)), "stack",
						string(debug.Stack()))
					run.err = fmt.Errorf("panic: %v", cause)
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				remove()
			}()
			run.found, run.err = compute(detached)
		}()
	}
	run.waiting++
	f.mu.Unlock()
	select {
	case <-run.done:
		return run.found, joined, run.err
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		if run.waiting--; run.waiting == 0 {
			remove()
		}
		return found, joined, context.Cause(ctx)
	}
}

// Admission limits the number of requests that use the store at the same time. A limited number of further requests
// wait briefly for a slot, and all others are rejected. Long waits would double the load, because clients repeat
// requests that take long.
type Admission struct {
	slots   *semaphore.Weighted
	waiting atomic.Int64
	queue   int64
	wait    time.Duration
	shed    prometheus.Counter
}

// Queue sets the sizes of an admission.
type Queue struct {
	Slots  int           // requests that use the store at the same time; 0: no limit
	Length int           // waiting requests
	Wait   time.Duration // maximum wait
}

// NewAdmission returns an admission that counts the rejected requests.
func NewAdmission(q Queue, shed prometheus.Counter) *Admission {
	slots := int64(math.MaxInt64)
	if q.Slots > 0 {
		slots = int64(q.Slots)
	}
	return &Admission{slots: semaphore.NewWeighted(slots), queue: int64(q.Length), wait: q.Wait, shed: shed}
}

// WaitingRequests returns the number of requests that wait for a slot.
func (g *Admission) WaitingRequests() int64 { return g.waiting.Load() }

// AcquireSlot waits for a slot, which leave releases. The error is a StoreError or the error of the context.
func (g *Admission) AcquireSlot(ctx context.Context) (leave func(), err error) {
	leave = func() { g.slots.Release(1) }
	if g.slots.TryAcquire(1) {
		return leave, nil
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) <= g.queue {
		patient, cancel := context.WithTimeout(ctx, g.wait)
		defer cancel()
		if g.slots.Acquire(patient, 1) == nil {
			return leave, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	g.shed.Inc()
	return nil, &source.StoreError{Fault: source.Busy}
}
