package measure_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"lifthouse/loadgen/measure"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestGrowthOf(t *testing.T) {
	var calls []int64
	query := measure.Query{Name: "unfiltered", Rounds: 3, Run: func(_ context.Context, campaign int64) error {
		calls = append(calls, campaign)
		return nil
	}}
	g, err := measure.GrowthOf(t.Context(), []int64{10, 20}, []int64{7, 8}, []measure.Query{query})
	must.That(t, err == nil, "%+v, error %v", g, err)
	must.Equal(t, len(g.Rows), 1, "%+v, error %v", g, err)
	must.Equal(t, len(g.Rows[0].WallMS), 2, "%+v, error %v", g, err)
	must.Equal(t, len(g.Rows[0].CPUMS), 2, "%+v, error %v", g, err)
	if len(calls) != 10 || calls[4] != 7 || calls[5] != 8 { // 3 measured rounds and 2 warm-up rounds per campaign
		t.Errorf("campaigns of the calls: %v", calls)
	}
	failure := errors.New("failure")
	query.Run = func(context.Context, int64) error { return failure }
	if _, err := measure.GrowthOf(t.Context(), []int64{10}, []int64{7}, []measure.Query{query}); !errors.Is(err,
		failure) || !strings.Contains(err.Error(), "campaign 7") {
		t.Errorf("error %v", err)
	}
}

func TestMedian(t *testing.T) {
	got := measure.Median([]measure.Cost{
		{WallMS: 3, CPUMS: 1, PeakMB: 5},
		{WallMS: 1, CPUMS: 9, PeakMB: 4},
		{WallMS: 2, CPUMS: 2, PeakMB: 6},
	})
	check.Equal(t, (measure.Cost{WallMS: 2, CPUMS: 2, PeakMB: 5}), got, "Median")
}
