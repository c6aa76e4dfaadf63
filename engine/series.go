package engine

import (
	"context"
	"fmt"

	"lifthouse/engine/moments"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema/faults"
)

// Limits of a series. With a z-score, each point is a separate report.
const (
	maxPoints       = 1000
	maxZScorePoints = 100
)

// computeSeries returns a point at the end of each bucket, including empty ones, from
// the first visitor to the last counted event. The last point equals the report.
func (e *Engine) computeSeries(ctx context.Context, x *source.ReportQuery, found *moments.Rows) ([]result.Point, error) {
	steps := found.Steps
	if len(steps) == 0 {
		return []result.Point{}, nil
	}
	first, last := steps[0].Bucket, steps[len(steps)-1].Bucket
	most := int64(maxPoints)
	if x.Filters.ZScore != 0 {
		most = maxZScorePoints
	}
	if n := last - first + 1; n > most {
		return nil, &query.InvalidError{Code: query.InvalidParameter, Faults: []faults.Fault{
			{Name: query.ParamInterval, Value: string(x.Interval), Detail: fmt.Sprintf("would return %d points, the maximum is %d: choose a longer interval or a shorter window", n, most)},
		}}
	}
	if x.Filters.ZScore != 0 {
		return e.pointReports(ctx, x, found, first, last)
	}
	return result.CumulateSteps(x.Plan, steps), nil
}

// pointReports computes a separate report for each point. All points use the cap of the whole
// report.
func (e *Engine) pointReports(ctx context.Context, x *source.ReportQuery, whole *moments.Rows, first, last int64) ([]result.Point, error) {
	var points []result.Point
	for bucket := first; bucket <= last; bucket++ {
		until := x.EndingAt(result.EndOf(x.Plan, bucket))
		until.CapLimit = whole.Cap
		found, err := e.readRows(ctx, until)
		if err != nil {
			return nil, err
		}
		points = append(points, result.NewPoint(x.Plan, bucket, found.Whole))
	}
	return points, nil
}
