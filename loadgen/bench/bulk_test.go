package bench_test

import (
	"testing"

	"lifthouse/loadgen/bench"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestSlowBulkRequestsAreAnError has a p99 latency of all results above the highest one.
func TestSlowBulkRequestsAreAnError(t *testing.T) {
	for _, test := range []struct {
		kind bench.Kind
		p99  float64
		want string
	}{
		{bench.BulkPoll, 20, ""},
		{bench.BulkPoll, 21, "bulkPoll: a p99 latency of 21 ms; at most 20 ms are allowed"},
		{bench.Opened, 5000, ""},
	} {
		step := bench.Step{Kinds: []bench.Figures{{Kind: test.kind, Latency: bench.Latency{P99: test.p99}}}}
		err := (&bench.Result{Mix: bench.Presets["bulk"].String(), Steps: []bench.Step{step}}).Err()
		if test.want == "" {
			check.OK(t, err, "%s of %v ms", test.kind, test.p99)
			continue
		}
		must.That(t, err != nil, "%s of %v ms is no error", test.kind, test.p99)
		check.Equal(t, err.Error(), test.want)
	}
	mix := must.Get(bench.ParseMix("bulk"))(t)
	check.That(t, mix[bench.Bulk] > 0, "the preset requests no bulk: %v", mix)
}
