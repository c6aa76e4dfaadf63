package engine

import (
	"context"
	"fmt"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// Limits of a series. With a z-score, each point is a separate report.
const (
	maxPoints       = 1000
	maxZScorePoints = 100
)

// computeSeries returns a point at the end of each bucket, including empty ones, from
// the first visitor to the last counted event. The last point equals the report.
func (e *Engine) computeSeries(ctx context.Context, p *plan.Plan, found *moments.Rows) ([]result.Point, error) {
	steps := found.Steps
	if len(steps) == 0 {
		return []result.Point{}, nil
	}
	first, last := steps[0].Bucket, steps[len(steps)-1].Bucket
	most := int64(maxPoints)
	if p.Filters.ZScore != 0 {
		most = maxZScorePoints
	}
	if n := last - first + 1; n > most {
		const detail = "would return %d points, the maximum is %d: choose a longer interval or a shorter window"
		return nil, &query.InvalidError{Code: query.InvalidParameter, Faults: []faults.Fault{
			{Name: query.ParamInterval, Value: string(p.Interval), Detail: fmt.Sprintf(detail, n, most)},
		}}
	}
	if p.Filters.ZScore != 0 {
		return e.readPoints(ctx, p, found.Cap, first, last)
	}
	return result.CumulateSteps(p, steps), nil
}

// readPoints computes a separate report for each point. All points use the cap of the whole report.
func (e *Engine) readPoints(ctx context.Context, p *plan.Plan, limit *moments.Cap, first, last int64) ([]result.Point, error) {
	var points []result.Point
	for bucket := first; bucket <= last; bucket++ {
		until := p.Question
		until.Filters.To, until.Interval, until.Cap = result.EndOf(p, bucket), "", nil
		if limit != nil && limit.Limit > 0 {
			until.Cap = &schema.Cap{Units: limit.Limit}
		}
		found, err := e.facts.ReadRows(ctx, until)
		if err != nil {
			return nil, err
		}
		points = append(points, result.NewPoint(p, bucket, found.Whole))
	}
	return points, nil
}
