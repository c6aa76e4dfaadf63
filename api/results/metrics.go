package results

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

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
