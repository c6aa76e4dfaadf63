package api

import (
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lifthouse/api/results"
	"lifthouse/engine/facts"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/outbox"
)

// metrics are the Prometheus metrics of the server. Clients cannot create label values.
type metrics struct {
	registry     *prometheus.Registry
	requests     *prometheus.HistogramVec
	inFlight     prometheus.Gauge
	storeQueries *prometheus.HistogramVec
	results      *results.Metrics
	rateLimited  prometheus.Counter
	events       *prometheus.CounterVec
	sources      *prometheus.CounterVec
	inbox        *prometheus.CounterVec
	deliveries   *prometheus.CounterVec
	servers      *prometheus.GaugeVec
}

// seconds are histogram buckets. They range from cached responses to reports at the time limit.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

func newMetrics() *metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	add := promauto.With(registry)
	return &metrics{
		registry: registry,
		results:  results.NewMetrics(registry),
		requests: add.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds",
			Help: "Duration of a request from its header to the end of its response.", Buckets: seconds,
		}, []string{"method", "route", "status"}),
		inFlight: add.NewGauge(prometheus.GaugeOpts{
			Name: "http_requests_in_flight", Help: "Requests that are being processed.",
		}),
		storeQueries: add.NewHistogramVec(prometheus.HistogramOpts{
			Name: "lifthouse_store_query_seconds", Help: "Duration of a store query until its last row.",
			Buckets: seconds,
		}, []string{"outcome"}),
		rateLimited: add.NewCounter(prometheus.CounterOpts{
			Name: "lifthouse_rate_limited_total",
			Help: "Requests rejected because of the rate limit of their token, or because of too many unknown " +
				"tokens from their address.",
		}),
		events: add.NewCounterVec(prometheus.CounterOpts{
			Name: "lifthouse_events_total", Help: "Events received over HTTP: accepted, rejected.",
		}, []string{"verdict"}),
		sources: add.NewCounterVec(prometheus.CounterOpts{
			Name: "lifthouse_source_items_total",
			Help: "Items received from sources: accepted, ignored, rejected. Of the accepted ones, cut: some " +
				"attributes were too long and are cut.",
		}, []string{"source", "verdict"}),
		deliveries: add.NewCounterVec(prometheus.CounterOpts{
			Name: "lifthouse_webhook_attempts_total",
			Help: "Attempts to deliver messages to webhooks: delivered, retrying, failed (no further attempt).",
		}, []string{"outcome"}),
		inbox: add.NewCounterVec(prometheus.CounterOpts{
			Name: "lifthouse_inbox_rows_total", Help: "Rows moved out of events_inbox: accepted, rejected.",
		}, []string{"verdict"}),
		servers: add.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lifthouse_store_server_up", Help: "Whether a server of a cluster answers the others: 1 or 0.",
		}, []string{"server"}),
	}
}

// CountInbox counts rows moved from events_inbox.
func (s *API) CountInbox(moved ingest.Moved) {
	rows := s.metrics.inbox
	rows.WithLabelValues("accepted").Add(float64(moved.Accepted))
	rows.WithLabelValues("rejected").Add(float64(moved.Rejected))
}

// CountDelivery counts an attempt to deliver a message to a webhook.
func (s *API) CountDelivery(outcome outbox.Outcome) {
	s.metrics.deliveries.WithLabelValues(string(outcome)).Inc()
}

// SetServers sets which servers of a cluster answer.
func (s *API) SetServers(servers []schema.Server) {
	for i := range servers {
		up := 0.0
		if servers[i].Answers {
			up = 1
		}
		s.metrics.servers.WithLabelValues(servers[i].Name()).Set(up)
	}
}

// exportNames exports the numbers of names that the catalogue does not declare.
func (s *API) exportNames() {
	add := promauto.With(s.metrics.registry)
	sum := func(of func(ingest.NameCounts) int) func() float64 {
		return func() (all float64) {
			for _, counts := range s.Collector.CountNames() {
				all += float64(of(counts))
			}
			return all
		}
	}
	add.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifthouse_undeclared_names", Help: "Campaigns and goals in events that the catalogue does not declare.",
	}, sum(func(c ingest.NameCounts) int { return c.Undeclared }))
	add.NewCounterFunc(prometheus.CounterOpts{
		Name: "lifthouse_forgotten_names_total",
		Help: "Undeclared names that were forgotten with their events, because there were too many.",
	}, sum(func(c ingest.NameCounts) int { return c.Forgotten }))
}

// ExportFacts exports how far the facts lag behind the events, and the number of visitors who lost events.
func (s *API) ExportFacts(of facts.Shards) {
	add := promauto.With(s.metrics.registry)
	add.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifthouse_facts_lag_seconds", Help: "Time since the last refresh of facts that succeeded.",
	}, func() float64 { return of.RefreshLag().Seconds() })
	add.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifthouse_lost_visitors",
		Help: "Visitors of the last scrubs whose stored events are fewer than those that their facts were made of.",
	}, func() float64 { return float64(of.LostVisitors()) })
	add.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lifthouse_fold_progress",
		Help: "Share of the events that a fold of all events has folded, the first one or a rebuild; 1: none runs.",
	}, func() float64 { return of.FoldProgress().Share() })
}

// AdminHandler returns the handler of metrics and profiles. It requires no token, so its address must be reachable only
// by operators.
func (s *API) AdminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
