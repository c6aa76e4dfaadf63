package moments_test

import (
	"testing"

	"lifthouse/engine/moments"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestNewCap checks the nearest rank: the smallest total that at least the percentile of the totals do not exceed.
func TestNewCap(t *testing.T) {
	upTo := func(n int64) []int64 {
		totals := make([]int64, n)
		for i := range totals {
			totals[i] = n - int64(i)
		}
		return totals
	}
	for _, test := range []struct {
		rule   string
		totals []int64
		want   int64
	}{
		{"p99", upTo(100), 99},
		{"p99", upTo(101), 100},
		{"p99", upTo(199), 198},
		{"p99", upTo(200), 198},
		{"p99", upTo(99), 0},
		{"p99.9", upTo(1000), 999},
		{"p99.9", upTo(999), 0},
		{"p50", upTo(2), 1},
		{"p50", upTo(3), 2},
		{"p50", nil, 0},
		{"p50", []int64{-3, -2, 5}, 0},
		{"12.5", nil, 125_000},
	} {
		rule := must.Get(schema.ParseCap(test.rule))(t)
		check.Equal(t, moments.NewCap(rule, test.totals).Limit, test.want, "%s of %d totals", test.rule,
			len(test.totals))
	}
}
