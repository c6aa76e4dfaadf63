package bench

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Server has the server's own metrics over a step.
type Server struct {
	Cores         float64            `json:"cores"`         // CPU seconds per second
	ResidentBytes float64            `json:"residentBytes"` // at the end of the step
	StoreQueries  float64            `json:"storeQueries"`
	StoreMean     float64            `json:"storeMean"` // milliseconds per store query
	Results       map[string]float64 `json:"results"`   // by cache outcome: hit, miss, shared, not_modified, stale
}

// scrape has the sum of each metric by name, and by name and label value.
type scrape map[string]float64

// scrapeMetrics reads the server's metrics.
func (c *client) scrapeMetrics(ctx context.Context, admin string) (scrape, error) {
	address := strings.TrimSuffix(strings.TrimRight(admin, "/"), "/metrics") + "/metrics"
	body, err := c.fetchBody(ctx, address)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", address, err)
	}
	s := scrape{}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			s[name] += value
			for _, label := range metric.GetLabel() {
				s[name+" "+label.GetValue()] += value
			}
			s[name+"_count"] += float64(metric.GetHistogram().GetSampleCount())
			s[name+"_sum"] += metric.GetHistogram().GetSampleSum()
		}
	}
	return s, nil
}

// stepWithMetrics measures a step with the server's metrics if o.AdminURL is
// set.
func (l *load) stepWithMetrics(ctx context.Context, o *Options, phase string, rate float64) (Step, error) {
	if o.AdminURL == "" {
		return l.runStep(ctx, phase, rate, o.Duration)
	}
	before, err := l.client.scrapeMetrics(ctx, o.AdminURL)
	if err != nil {
		return Step{}, err
	}
	step, err := l.runStep(ctx, phase, rate, o.Duration)
	if err != nil {
		return step, err
	}
	after, err := l.client.scrapeMetrics(ctx, o.AdminURL)
	if err != nil {
		return step, err
	}
	step.Server = serverMetrics(before, after, step.Seconds)
	return step, nil
}

// serverMetrics returns the metrics over the interval between two scrapes.
func serverMetrics(before, after scrape, seconds float64) *Server {
	increase := func(name string) float64 { return after[name] - before[name] }
	const cpu, store = "process_cpu_seconds_total", "lifthouse_store_query_seconds"
	s := &Server{
		Cores: increase(cpu) / seconds, ResidentBytes: after["process_resident_memory_bytes"],
		StoreQueries: increase(store + "_count"), Results: map[string]float64{},
	}
	if s.StoreQueries > 0 {
		s.StoreMean = 1000 * increase(store+"_sum") / s.StoreQueries
	}
	for name := range after {
		if label, ok := strings.CutPrefix(name, "lifthouse_results_total "); ok && increase(name) > 0 {
			s.Results[label] = increase(name)
		}
	}
	return s
}
