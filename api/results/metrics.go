package results

import (
	"github.com/prometheus/client_golang/prometheus"

	"lifthouse/engine/cache"
)

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

	outcomes *prometheus.CounterVec
	registry prometheus.Registerer
}

// NewMetrics returns the metrics, registered.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		registry: registry,
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifthouse_results_total", Help: "Responses with results: not_modified, hit (cached), shared (computed for another request), miss (computed), stale (the store failed).",
		}, []string{"outcome"}),
		Shed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lifthouse_shed_total", Help: "Requests rejected because too many requests use the store.",
		}),
	}
	registry.MustRegister(m.outcomes, m.Shed)
	return m
}

// observeCache registers the metrics of the cached bodies.
func (m *Metrics) observeCache(c *cache.Cache) {
	m.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "lifthouse_results_evictions_total", Help: "Cached results that were evicted.",
		}, func() float64 { _, _, evicted := c.Usage(); return float64(evicted) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lifthouse_results_kept_bytes", Help: "Memory of cached results.",
		}, func() float64 { _, bytes, _ := c.Usage(); return float64(bytes) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "lifthouse_results_kept", Help: "Cached results.",
		}, func() float64 { values, _, _ := c.Usage(); return float64(values) }),
	)
}

// CountOutcome counts a response.
func (m *Metrics) CountOutcome(o Outcome) { m.outcomes.WithLabelValues(string(o)).Inc() }
