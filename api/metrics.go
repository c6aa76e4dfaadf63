package api

import (
	"errors"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lifthouse/engine"
	"lifthouse/schema/ingest"
)

// metrics are what the server tells Prometheus about itself. Labels have few
// values, all of them ours.
type metrics struct {
	registry     *prometheus.Registry
	requests     *prometheus.HistogramVec
	inFlight     prometheus.Gauge
	storeQueries *prometheus.HistogramVec
	results      *prometheus.CounterVec
	evictions    prometheus.Counter
	keptBytes    prometheus.Gauge
	keptAnswers  prometheus.Gauge
	rateLimited  prometheus.Counter
	shed         prometheus.Counter
	events       *prometheus.CounterVec
	inbox        *prometheus.CounterVec
	reports      *prometheus.CounterVec
}

// seconds are bounds from an answer out of memory to a report that is cut off.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds", Help: "Time from a request's header to its answer.", Buckets: seconds,
		}, []string{"method", "route", "status"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "http_requests_in_flight", Help: "Requests that are being answered.",
		}),
		storeQueries: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "lifthouse_store_query_seconds", Help: "Time of a query for an answer, until its last row.", Buckets: seconds,
		}, []string{"outcome"}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifthouse_results_total", Help: "Answers with results: not_modified, hit (kept), shared (computed for another), miss (computed), stale (the store failed).",
		}, []string{"outcome"}),
		evictions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lifthouse_results_evictions_total", Help: "Kept answers dropped for want of room.",
		}),
		keptBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lifthouse_results_kept_bytes", Help: "What kept answers take.",
		}),
		keptAnswers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lifthouse_results_kept", Help: "Kept answers.",
		}),
		rateLimited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lifthouse_rate_limited_total", Help: "Requests refused because their token asks too often, or because too many unknown tokens came from their address.",
		}),
		shed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lifthouse_shed_total", Help: "Turns at the store that were refused since it has too much to do.",
		}),
	}
	m.events = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lifthouse_events_total", Help: "Events received over HTTP: stored, duplicate, rejected.",
	}, []string{"verdict"})
	m.inbox = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lifthouse_inbox_rows_total", Help: "Rows moved out of events_inbox: stored, duplicate, rejected.",
	}, []string{"verdict"})
	m.reports = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lifthouse_reports_total", Help: "Reports that were computed, by where their sums come from: settled, few (events counted here), exact (events counted in the store).",
	}, []string{"path"})
	m.registry.MustRegister(
		m.reports, m.events, m.inbox,
		m.requests, m.inFlight, m.storeQueries, m.results, m.evictions, m.keptBytes, m.keptAnswers, m.rateLimited, m.shed,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// received counts the events of a request.
func (m *metrics) received(r *Received) {
	m.events.WithLabelValues("stored").Add(float64(r.Stored))
	m.events.WithLabelValues("duplicate").Add(float64(r.Duplicates))
	m.events.WithLabelValues("rejected").Add(float64(r.Rejected))
}

// CountInbox counts rows that were moved out of events_inbox.
func (a *API) CountInbox(moved ingest.Moved) {
	rows := a.server.metrics.inbox
	rows.WithLabelValues("stored").Add(float64(moved.Stored))
	rows.WithLabelValues("duplicate").Add(float64(moved.Duplicates))
	rows.WithLabelValues("rejected").Add(float64(moved.Rejected))
}

// behind tells how far settlement is behind the events.
func (m *metrics) rollupLag(of *engine.Engine) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifthouse_rollup_lag_seconds", Help: "For how long events have been waiting to be settled; 0: none do.",
	}, func() float64 { return of.RollupLag().Seconds() }))
}

// queried takes the time of a store query.
func (m *metrics) queried(elapsed time.Duration, err error) {
	outcome := "ok"
	var store *engine.StoreError
	switch {
	case errors.As(err, &store):
		outcome = string(store.Fault)
	case err != nil:
		outcome = "canceled"
	}
	m.storeQueries.WithLabelValues(outcome).Observe(elapsed.Seconds())
}

// Admin returns the handler for operators: metrics and profiles. It asks for
// no token, so that its place is an address that only operators reach.
func (a *API) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.server.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
