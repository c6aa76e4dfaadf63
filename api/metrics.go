package api

import (
	"errors"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lifthouse/api/results"
	"lifthouse/engine"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
)

// metrics are the Prometheus metrics of the server. Clients cannot create label
// values.
type metrics struct {
	registry     *prometheus.Registry
	requests     *prometheus.HistogramVec
	inFlight     prometheus.Gauge
	storeQueries *prometheus.HistogramVec
	results      *results.Metrics
	rateLimited  prometheus.Counter
	events       *prometheus.CounterVec
	inbox        *prometheus.CounterVec
	copies       prometheus.Counter
	sweeps       *prometheus.CounterVec
	servers      *prometheus.GaugeVec
	reports      *prometheus.CounterVec
}

// seconds are histogram buckets from cached responses to reports at the time
// limit.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds", Help: "Duration of a request from its header to the end of its response.", Buckets: seconds,
		}, []string{"method", "route", "status"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "http_requests_in_flight", Help: "Requests that are being processed.",
		}),
		storeQueries: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "lifthouse_store_query_seconds", Help: "Duration of a store query until its last row.", Buckets: seconds,
		}, []string{"outcome"}),
		rateLimited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lifthouse_rate_limited_total", Help: "Requests rejected because of the rate limit of their token, or because of too many unknown tokens from their address.",
		}),
	}
	m.results = results.NewMetrics(m.registry)
	m.events = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lifthouse_events_total", Help: "Events received over HTTP: stored, duplicate, rejected.",
	}, []string{"verdict"})
	m.inbox = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lifthouse_inbox_rows_total", Help: "Rows moved out of events_inbox: stored, duplicate, rejected.",
	}, []string{"verdict"})
	m.copies = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "lifthouse_copies_removed_total", Help: "Copies of events that several processes stored on a server, removed by sweeps.",
	})
	m.sweeps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lifthouse_sweeps_total", Help: "Sweeps for copies of events on a server by outcome: ok, error.",
	}, []string{"outcome"})
	m.servers = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "lifthouse_store_server_up", Help: "Whether a server of a cluster answers the others: 1 or 0.",
	}, []string{"server"})
	m.reports = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "lifthouse_reports_total", Help: "Computed reports by source: rollup, in-process (events counted by the server), single-pass and reference (events counted by the store).",
	}, []string{"source"})
	m.registry.MustRegister(
		m.reports, m.events, m.inbox, m.copies, m.sweeps, m.servers,
		m.requests, m.inFlight, m.storeQueries, m.rateLimited,
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

// CountInbox counts rows moved from events_inbox.
func (a *API) CountInbox(moved ingest.Moved) {
	rows := a.server.metrics.inbox
	rows.WithLabelValues("stored").Add(float64(moved.Stored))
	rows.WithLabelValues("duplicate").Add(float64(moved.Duplicates))
	rows.WithLabelValues("rejected").Add(float64(moved.Rejected))
}

// CountSweep counts a sweep, and the copies of events that it removed.
func (a *API) CountSweep(removed int, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	a.server.metrics.sweeps.WithLabelValues(outcome).Inc()
	a.server.metrics.copies.Add(float64(removed))
}

// SetServers sets which servers of a cluster answer.
func (a *API) SetServers(servers []schema.Server) {
	for i := range servers {
		up := 0.0
		if servers[i].Answers {
			up = 1
		}
		a.server.metrics.servers.WithLabelValues(servers[i].Name()).Set(up)
	}
}

// rollups exports the lag of the rollup refresh, the refreshes that had no effect, and the
// size of the events in memory.
func (m *metrics) rollups(of *engine.Engine) {
	for reason, count := range map[string]func() uint64{"deletion": of.Rollups.Refused, "concurrent": of.Rollups.Lost, "restored": of.Rollups.Unusable} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "lifthouse_rollup_refreshes_refused_total", ConstLabels: prometheus.Labels{"reason": reason},
			Help: "Rollup refreshes without effect by reason: deletion (events were being deleted), concurrent (another process did the same) and restored (the events were restored by ClickHouse).",
		}, func() float64 { return float64(count()) }))
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifthouse_rollup_lag_seconds", Help: "Longest time that events have been waiting for a rollup refresh; 0: none wait, or only until a report asks for them.",
	}, func() float64 { return of.Rollups.Lag().Seconds() }))
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifthouse_events_in_memory_bytes", Help: "Approximate size of the events of small subjects in memory.",
	}, func() float64 { return float64(of.EventsInMemory()) }))
}

// queried observes the duration of a store query.
func (m *metrics) queried(elapsed time.Duration, err error) {
	outcome := "ok"
	var store *source.StoreError
	switch {
	case errors.As(err, &store):
		outcome = string(store.Fault)
	case err != nil:
		outcome = "canceled"
	}
	m.storeQueries.WithLabelValues(outcome).Observe(elapsed.Seconds())
}

// Admin returns the handler of metrics and profiles. It requires no token, so
// it must be served at an address that only operators can reach.
func (a *API) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.server.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
