// Package results answers requests for results with a cached body, with the result
// of an equal request that is already running, or with a new computation. Only a
// limited number of computations use the store at the same time.
package results

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/otel"
)

// Options limit the work. The zero value of a limit means no limit.
type Options struct {
	Age     time.Duration // maximum age of cached bodies of unchanged data; 0: no cache
	Memory  int64         // bytes of cached bodies; 0: no cache
	Timeout time.Duration // of a computation, including its wait for a slot
}

// Service answers requests for results.
type Service struct {
	engine  *engine.Engine
	options Options
	metrics *Metrics
	cache   *cache
	flights flightGroup[entry]
	gate    *Admission
}

// New returns the service of an engine. gate limits the concurrent computations.
func New(e *engine.Engine, gate *Admission, o Options, m *Metrics) *Service {
	return &Service{engine: e, options: o, metrics: m, cache: newCache(o.Memory, m), gate: gate}
}

// Query is a request for results in canonical form.
type Query struct {
	Plan *plan.Plan
	Kind string // content type
	Key  string // everything in the request, including the account

	catalogue uint64 // version of the account's resources
	body      func(context.Context) (body []byte, stale bool, err error)
}

// ReportQuery returns the query for a report. The error is a NotFoundError or an
// InvalidError.
func (s *Service) ReportQuery(request query.Request, owned *catalogue.AccountResources, kind string) (*Query, error) {
	q, err := newQuery(request, owned, kind)
	if err != nil {
		return nil, err
	}
	q.body = func(ctx context.Context) ([]byte, bool, error) { return s.computeReport(ctx, q) }
	return q, nil
}

// ValuesQuery returns the query for the most frequent values of an attribute, as JSON.
// The error is a NotFoundError or an InvalidError.
func (s *Service) ValuesQuery(request query.Request, owned *catalogue.AccountResources, attribute string, most int) (*Query, error) {
	q, err := newQuery(request, owned, JSON)
	if err != nil {
		return nil, err
	}
	q.Key = fmt.Sprintf("values of %s, %d, %s", attribute, most, q.Key)
	q.body = func(ctx context.Context) ([]byte, bool, error) {
		values, err := s.engine.ReadValues(ctx, q.Plan, attribute, most)
		if err != nil {
			return nil, false, err
		}
		body, err := render.JSON(values)
		return body, false, err
	}
	return q, nil
}

func newQuery(request query.Request, owned *catalogue.AccountResources, kind string) (*Query, error) {
	resolved, err := plan.New(request, owned)
	if err != nil {
		return nil, err
	}
	canonical, err := json.Marshal(request)
	return &Query{Plan: resolved, Kind: kind, catalogue: owned.Version, Key: kind + " " + string(canonical)}, err
}

// DataVersion returns the version of the data that the query reads. The version is unknown if the store does not
// answer.
func (s *Service) DataVersion(ctx context.Context, q *Query) Version {
	v := Version{catalogue: q.catalogue, waiting: s.engine.LastUnfoldedTime()}
	v.data, v.known = s.engine.ResultsVersion(ctx, q.Plan.Subject)
	return v
}

// Answer is the answer to a query.
type Answer struct {
	Body    []byte
	Version Version // of Body
	Stale   bool    // accepted events are not in Body yet, or the store failed and Body is the last successful one
}

// AnswerQuery returns the body for a version of the data, or for newer data. If
// newest is set, it does not use a cached body. If the store fails, it returns the
// last successful body, marked as stale. Without such a body, it returns the error
// of the engine, the admission or the context.
func (s *Service) AnswerQuery(ctx context.Context, q *Query, is Version, newest bool) (Answer, error) {
	if last, found := s.currentEntry(q, is); found && !newest {
		s.metrics.CountOutcome(Hit)
		return Answer{Body: last.body, Version: last.version}, nil
	}
	if is.waiting != 0 {
		folded, err := s.foldedVersion(ctx, q)
		if err != nil {
			return s.lastGood(q, err)
		}
		if folded.waiting == 0 {
			return s.AnswerQuery(ctx, q, folded, newest)
		}
		is = folded
	}
	found, joined, err := s.flights.joinFlight(ctx, is.String()+" "+q.Key, func(ctx context.Context) (entry, error) { return s.computeBody(ctx, q, is) })
	switch {
	case err != nil:
		return s.lastGood(q, err)
	case joined:
		s.metrics.CountOutcome(Shared)
	default:
		s.metrics.CountOutcome(Miss)
	}
	return Answer{Body: found.body, Version: found.version, Stale: found.stale}, nil
}

// foldedVersion returns the version of the data that the query reads, once the waiting events are folded, or if they wait
// for too long. It does not wait for events that arrived during the fold.
func (s *Service) foldedVersion(ctx context.Context, q *Query) (Version, error) {
	ctx, cancel := s.LimitTime(ctx)
	defer cancel()
	waits, err := s.engine.FoldNoted(ctx)
	v := s.DataVersion(ctx, q)
	if waits.Events == 0 {
		v.waiting = 0
	}
	return v, err
}

// RunAdmitted calls work with a slot of the gate and within the deadline. The work does not depend on the request that
// started it, because other requests may wait for it.
func (s *Service) RunAdmitted(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := s.LimitTime(ctx)
	defer cancel()
	leave, err := s.gate.AcquireSlot(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return work(ctx)
}

// currentEntry returns the cached body if it has the given version and is not too old.
func (s *Service) currentEntry(q *Query, is Version) (entry, bool) {
	last, found := s.cache.lastEntry(q.Key)
	return last, found && last.version.isSame(is) && time.Since(last.at) < s.options.Age
}

// computeBody computes the body and caches it. The version was read before the data,
// so a body may include newer data than its version, but never older.
func (s *Service) computeBody(ctx context.Context, q *Query, is Version) (made entry, err error) {
	err = s.RunAdmitted(ctx, func(ctx context.Context) error {
		made = entry{version: is, at: time.Now()}
		made.body, made.stale, err = q.body(ctx)
		return err
	})
	if err == nil && !made.stale {
		s.cache.storeEntry(q.Key, made)
	}
	return made, err
}

// LimitTime returns a context that ends after the timeout of a computation.
func (s *Service) LimitTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return WithDeadline(ctx, s.options.Timeout)
}

// WithDeadline returns a context that ends after the timeout with the StoreError
// TooSlow; 0: no limit.
func WithDeadline(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, &source.StoreError{Fault: source.TooSlow})
}

// lastGood returns the last successful body, marked as stale, if the store
// failed.
func (s *Service) lastGood(q *Query, err error) (Answer, error) {
	var store *source.StoreError
	last, found := s.cache.lastEntry(q.Key)
	if !found || !errors.As(err, &store) {
		return Answer{}, err
	}
	s.metrics.CountOutcome(Stale)
	return Answer{Body: markStale(q.Kind, last.body), Stale: true}, nil
}

// Version identifies the data of a body.
type Version struct {
	known           bool
	catalogue, data uint64
	waiting         int64 // acceptance time of the last event that is not folded yet; 0: none waits
}

// IsCurrent reports whether a body of this version includes all the data that a report
// must wait for.
func (v Version) IsCurrent() bool { return v.known && v.waiting == 0 }

// String returns the version as text.
func (v Version) String() string { return fmt.Sprint(v.known, v.catalogue, v.data, v.waiting) }

func (v Version) isSame(as Version) bool { return v.IsCurrent() && v == as }

// Content types of results.
const (
	JSON = "application/json"
	CSV  = "text/csv"
	SVG  = "image/svg+xml"
)

// Kinds are all content types of results, the default first.
var Kinds = []string{JSON, CSV, SVG}

var tracer = otel.Tracer("lifthouse/api")

// computeReport computes the body of a report, and reports whether accepted events are not in it yet.
func (s *Service) computeReport(ctx context.Context, q *Query) (body []byte, stale bool, err error) {
	report, err := s.engine.ComputeReport(ctx, q.Plan)
	if err != nil {
		return nil, false, err
	}
	_, span := tracer.Start(ctx, "encode")
	defer span.End()
	switch q.Kind {
	case CSV:
		body, err = render.CSV(report)
	case SVG:
		body, err = render.ForestPlot(report)
	default:
		body, err = render.JSON(report)
	}
	return body, report.Stale, err
}

// markStale sets the field stale in a body. In JSON, the first such field belongs to
// the report, because quotes in earlier texts are escaped.
func markStale(kind string, body []byte) []byte {
	if kind != JSON {
		return body // the Warning header reports it
	}
	return bytes.Replace(body, []byte(`"stale":false`), []byte(`"stale":true`), 1)
}

// entry is the last successful body of a query.
type entry struct {
	body    []byte
	version Version
	stale   bool // accepted events are not in the body yet
	at      time.Time
}

// cache keeps the last successful body of each query, up to a total size. It evicts
// the least recently used entries. It also keeps outdated bodies, which are served
// when the store is unavailable.
type cache struct {
	mu      sync.Mutex
	lru     *simplelru.LRU[string, entry]
	bytes   int64
	limit   int64
	metrics *Metrics
}

// overhead is the approximate memory of an entry without its key and body, in
// bytes.
const overhead = 256

func newCache(limit int64, m *Metrics) *cache {
	a := &cache{limit: limit, metrics: m}
	lru, err := simplelru.NewLRU(1<<30, func(key string, k entry) { a.bytes -= sizeOf(key, k) })
	if err != nil {
		panic(err) // only for a size below 1
	}
	a.lru = lru
	return a
}

func sizeOf(key string, k entry) int64 { return int64(len(key)+len(k.body)) + overhead }

// lastEntry returns the last successful body.
func (a *cache) lastEntry(key string) (entry, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lru.Get(key)
}

// storeEntry replaces the body of a query, and evicts least recently used entries.
func (a *cache) storeEntry(key string, k entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lru.Remove(key)
	if size := sizeOf(key, k); size <= a.limit/4 { // a large body must not evict all others
		a.lru.Add(key, k)
		a.bytes += size
	}
	for a.bytes > a.limit {
		a.lru.RemoveOldest()
		a.metrics.evictions.Inc()
	}
	a.metrics.bytes.Set(float64(a.bytes))
	a.metrics.bodies.Set(float64(a.lru.Len()))
}
