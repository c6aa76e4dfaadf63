package engine

import (
	"context"
	"fmt"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a series. With a z-score, each point is a separate report.
const (
	maxPoints       = 1000
	maxZScorePoints = 100
)

// step is what one bucket adds to a cumulative report.
type step struct {
	bucket int64
	row
}

// series returns a point at the end of each bucket, including empty ones, from
// the first visitor to the last counted event. The last point equals the report.
func (x *execution) series(ctx context.Context, found *answer) ([]Point, error) {
	steps := found.steps
	if len(steps) == 0 {
		return []Point{}, nil
	}
	first, last := steps[0].bucket, steps[len(steps)-1].bucket
	most := int64(maxPoints)
	if x.Filters.ZScore != 0 {
		most = maxZScorePoints
	}
	if n := last - first + 1; n > most {
		return nil, &query.InvalidError{Code: query.InvalidParameter, Faults: []query.Fault{
			{Name: query.ParamInterval, Value: string(x.Interval), Detail: fmt.Sprintf("would return %d points, the maximum is %d: choose a longer interval or a shorter window", n, most)},
		}}
	}
	if x.Filters.ZScore != 0 {
		return x.pointReports(ctx, first, last)
	}
	return cumulated(x.Plan, steps), nil
}

// cumulated returns the running sums of the steps as points.
func cumulated(p *plan.Plan, steps []step) []Point {
	first, last := steps[0].bucket, steps[len(steps)-1].bucket
	through := make([]cell, last-first+1)
	sums := map[[2]int64]row{}
	for bucket, i := first, 0; bucket <= last; bucket++ {
		for ; i < len(steps) && steps[i].bucket == bucket; i++ {
			key := [2]int64{steps[i].variationID}
			if steps[i].multiExposed {
				key[1] = 1
			}
			sum := sums[key]
			sum.variationID, sum.multiExposed = steps[i].variationID, steps[i].multiExposed
			sum.Moments = sum.Merge(steps[i].Moments)
			sums[key] = sum
		}
		through[bucket-first] = sumRows(slices.Collect(maps.Values(sums)), p.MultipleExposures)
	}
	points := make([]Point, len(through))
	onAllCores(len(points), func(i int) { points[i] = newPoint(p, first+int64(i), &through[i]) })
	return points
}

// onAllCores calls do for each number below n, concurrently.
func onAllCores(n int, do func(i int)) {
	var running sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	running.Wait()
}

// pointReports computes a separate report for each point.
func (x *execution) pointReports(ctx context.Context, first, last int64) ([]Point, error) {
	var points []Point
	for bucket := first; bucket <= last; bucket++ {
		at, err := x.until(ctx, endOf(x.Plan, bucket))
		if err != nil {
			return nil, err
		}
		found, _, err := at.read(ctx, x.state().withoutRollup())
		if err != nil {
			return nil, err
		}
		c := sumRows(found.whole, x.MultipleExposures)
		points = append(points, newPoint(x.Plan, bucket, &c))
	}
	return points, nil
}

func newPoint(p *plan.Plan, bucket int64, through *cell) Point {
	j, _, _ := through.compare(p)
	return Point{Time: endOf(p, bucket), Variations: j.Variations}
}

// endOf returns the end of a bucket or of the window, whichever is earlier.
func endOf(p *plan.Plan, bucket int64) time.Time {
	width, shift := p.Interval.Grid()
	end := time.UnixMilli((bucket+1)*width.Milliseconds() - shift.Milliseconds()).UTC()
	if to := p.To(); to.Before(end) {
		return to
	}
	return end
}
