package bench_test

import (
	"fmt"
	"testing"
	"time"

	"lifthouse/loadgen/bench"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestMissedBarsAreAnError has bars at and above their highest values.
func TestMissedBarsAreAnError(t *testing.T) {
	r := &bench.Result{Bars: []bench.Bar{
		{Name: "report", Value: 1000, Most: 1000, Unit: "ms"},
		{Name: "unchanged", Value: 20.1, Most: 20, Unit: "ms"},
		{Name: "memory", Value: 101, Most: 100, Unit: "MiB"},
	}}
	err := r.Err()
	must.That(t, err != nil, "no error")
	check.Equal(t, err.Error(), "unchanged: 20.1 ms; at most 20 are allowed\nmemory: 101 MiB; at most 100 are allowed")
	r.Bars = r.Bars[:1]
	check.OK(t, r.Err(), "at the highest value")
}

// TestBulkMeasuresAllBars runs the preset bulk on a small store.
func TestBulkMeasuresAllBars(t *testing.T) {
	s := newShop(t)
	o := bench.Defaults
	o.URL, o.AdminURL, o.Token = s.URL, s.AdminURL, s.Read
	o.Mix = bench.Presets["bulk"]
	o.Rate, o.Duration, o.WarmUp = 400, 300*time.Millisecond, 0
	r := must.Get(bench.Run(t.Context(), o))(t)
	var names []string
	for _, bar := range r.Bars {
		names = append(names, bar.Name)
		check.That(t, bar.Unit != "ms" || bar.Ratio > 0, "%+v has no ratio", bar)
	}
	check.Equal(t, fmt.Sprint(names), "[first report report, CPU report, computed unchanged compact table experiments "+
		"table results table looks table decisions table worth table series table segments memory "+
		"single reports beside it, p99]")
	check.Equal(t, len(r.Steps), 2, "steps")
	check.Contains(t, r.String(), "single reports beside it, p99")
	o.IngestToken = s.Ingest
	_, err := bench.Run(t.Context(), o)
	must.That(t, err != nil, "no error without 100 running campaigns")
	check.Contains(t, err.Error(), "the bars need 100: use loadgen standard --campaigns 500")
}
