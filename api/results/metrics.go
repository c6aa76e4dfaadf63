package results

import "github.com/prometheus/client_golang/prometheus"

// Outcome says where a response comes from.
type Outcome string

// The outcomes.
const (
	NotModified Outcome = "not_modified"
	Hit         Outcome = "hit"
	Shared      Outcome = "shared"
	Miss        Outcome = "miss"
	Stale       Outcome = "stale"
)

// Metrics are the Prometheus metrics of the service. Clients cannot create label
// values.
type Metrics struct {
	Shed prometheus.Counter // requests that an admission rejected

	outcomes  *prometheus.CounterVec
	evictions prometheus.Counter
	bytes     prometheus.Gauge
	bodies    prometheus.Gauge
}

// NewMetrics returns the metrics, registered.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifthouse_results_total", Help: "Responses with results: not_modified, hit (cached), shared (computed for another request), miss (computed), stale (the store failed).",
		}, []string{"outcome"}),
		evictions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lifthouse_results_evictions_total", Help: "Cached results that were evicted.",
		}),
		bytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lifthouse_results_kept_bytes", Help: "Memory of cached results.",
		}),
		bodies: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "lifthouse_results_kept", Help: "Cached results.",
		}),
		Shed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lifthouse_shed_total", Help: "Requests rejected because too many requests use the store.",
		}),
	}
	registry.MustRegister(m.outcomes, m.evictions, m.bytes, m.bodies, m.Shed)
	return m
}

// CountOutcome counts a response.
func (m *Metrics) CountOutcome(o Outcome) { m.outcomes.WithLabelValues(string(o)).Inc() }
