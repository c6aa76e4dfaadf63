// Package results answers requests for results: with a cached body, with that of
// a computation that already runs for an equal request, or with a new
// computation. Only some computations use the store at the same time.
package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lifthouse/engine"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"
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
	flights flightGroup
	gate    *Admission
}

// New returns the service of an engine. The gate admits computations.
func New(e *engine.Engine, gate *Admission, o Options, m *Metrics) *Service {
	return &Service{engine: e, options: o, metrics: m, cache: newCache(o.Memory, m), gate: gate}
}

// Query is a request for results in canonical form.
type Query struct {
	Plan *plan.Plan
	Kind string // content type
	Key  string // everything in the request, including the account

	catalogue uint64 // version of the account's resources
	body      func(context.Context) ([]byte, error)
}

// Report returns the query for a report. The error is a NotFoundError or an
// InvalidError.
func (s *Service) Report(request query.Request, owned *catalogue.Owned, kind string) (*Query, error) {
	q, err := newQuery(request, owned, kind)
	if err != nil {
		return nil, err
	}
	q.body = func(ctx context.Context) ([]byte, error) { return s.report(ctx, q) }
	return q, nil
}

// Values returns the query for the most frequent values of an attribute, as JSON.
// The error is a NotFoundError or an InvalidError.
func (s *Service) Values(request query.Request, owned *catalogue.Owned, attribute string, most int) (*Query, error) {
	q, err := newQuery(request, owned, JSON)
	if err != nil {
		return nil, err
	}
	q.Key = fmt.Sprintf("values of %s, %d, %s", attribute, most, q.Key)
	q.body = func(ctx context.Context) ([]byte, error) {
		values, err := s.engine.Values(ctx, q.Plan, attribute, most)
		if err != nil {
			return nil, err
		}
		return render.JSON(values)
	}
	return q, nil
}

func newQuery(request query.Request, owned *catalogue.Owned, kind string) (*Query, error) {
	resolved, err := plan.New(request, owned)
	if err != nil {
		return nil, err
	}
	canonical, err := json.Marshal(request)
	return &Query{Plan: resolved, Kind: kind, catalogue: owned.Version, Key: kind + " " + string(canonical)}, err
}

// Version returns the version of the data that the query reads, after the events that this process has stored are
// folded. It is unknown if that fails.
func (s *Service) Version(ctx context.Context, q *Query) Version {
	v := Version{catalogue: q.catalogue}
	if s.engine.FoldNoted(ctx) == nil {
		v.data, v.Known = s.engine.Version(ctx, q.Plan.Subject)
	}
	return v
}

// Answer is the answer to a query.
type Answer struct {
	Body  []byte
	Stale bool // the store failed; Body is the last successful one
}

// Answer returns the body of a version of the data, or of newer data. With
// newest, it is not a cached one. If the store fails, it is the last successful
// one, marked as stale; otherwise the error is that of the engine, of the
// admission or of the context.
func (s *Service) Answer(ctx context.Context, q *Query, is Version, newest bool) (Answer, error) {
	if !newest {
		if last, found := s.cache.get(q.Key); found && last.version.same(is) && time.Since(last.at) < s.options.Age {
			s.metrics.Count(Hit)
			return Answer{Body: last.body}, nil
		}
	}
	key := is.String() + " " + q.Key
	body, joined, err := s.flights.join(ctx, key, func(ctx context.Context) ([]byte, error) { return s.compute(ctx, q, is) })
	switch {
	case err != nil:
		return s.lastGood(q, err)
	case joined:
		s.metrics.Count(Shared)
	default:
		s.metrics.Count(Miss)
	}
	return Answer{Body: body}, nil
}

// compute computes the body and caches it. The version was read before the data,
// so a body may include newer data than its version, but never older.
func (s *Service) compute(ctx context.Context, q *Query, is Version) ([]byte, error) {
	ctx, cancel := WithDeadline(ctx, s.options.Timeout) // independent of the request that started it, since others may wait
	defer cancel()
	leave, err := s.gate.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	at := time.Now()
	body, err := q.body(ctx)
	if err != nil {
		return nil, err
	}
	s.cache.add(q.Key, entry{body, is, at})
	return body, nil
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
	last, found := s.cache.get(q.Key)
	if !found || !errors.As(err, &store) {
		return Answer{}, err
	}
	s.metrics.Count(Stale)
	return Answer{Body: markStale(q.Kind, last.body), Stale: true}, nil
}

// Version identifies the data of a body. An unknown version equals no other.
type Version struct {
	Known           bool
	catalogue, data uint64
}

// String returns the version as text.
func (v Version) String() string { return fmt.Sprint(v.Known, v.catalogue, v.data) }

func (v Version) same(as Version) bool { return v.Known && v == as }
