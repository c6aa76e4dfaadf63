package engine

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
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

// answer returns the rows of the report and the points of its series. In
// process, the events are read once for both.
func (p *Plan) answer(ctx context.Context, from *store) ([]row, []Point, error) {
	if p.Interval != "" && p.Filters.ZScore == 0 && p.events <= from.limits.inProcessEvents() {
		f, err := p.readInProcess(ctx, from)
		if err != nil {
			return nil, nil, err
		}
		defer f.release()
		points, err := p.points(ctx, from, f.steps())
		return f.rows(), points, err
	}
	rows, err := p.moments(ctx, from)
	if err != nil || p.Interval == "" {
		return rows, nil, err
	}
	points, err := p.series(ctx, from)
	return rows, points, err
}

// series returns a point at the end of each bucket, from the first visitor to
// the last counted event. The last point equals the report.
func (p *Plan) series(ctx context.Context, from *store) ([]Point, error) {
	plain := *p
	plain.Outliers = nil // each point has its own bounds
	steps, err := plain.steps(ctx, from)
	if err != nil {
		return nil, err
	}
	return p.points(ctx, from, steps)
}

// points returns a point for each bucket, including empty ones.
func (p *Plan) points(ctx context.Context, from *store, steps []step) ([]Point, error) {
	if len(steps) == 0 {
		return []Point{}, nil
	}
	first, last := steps[0].bucket, steps[len(steps)-1].bucket
	most := int64(maxPoints)
	if p.Filters.ZScore != 0 {
		most = maxZScorePoints
	}
	if n := last - first + 1; n > most {
		return nil, &InvalidError{Code: InvalidParameter, Faults: []Fault{
			{paramInterval, string(p.Interval), fmt.Sprintf("would return %d points, the maximum is %d: choose a longer interval or a shorter window", n, most)},
		}}
	}
	if p.Filters.ZScore != 0 {
		return p.pointReports(ctx, from, first, last)
	}
	return p.cumulated(steps), nil
}

func (p *Plan) steps(ctx context.Context, from *store) ([]step, error) {
	query, err := p.seriesQuery()
	if err != nil {
		return nil, err
	}
	var steps []step
	err = from.each(ctx, query, func(found driver.Rows) error {
		var s step
		var err error
		s.row, err = scanRow(found, &s.bucket)
		steps = append(steps, s)
		return err
	})
	return steps, err
}

// cumulated returns the running sums of the steps as points.
func (p *Plan) cumulated(steps []step) []Point {
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
	onAllCores(len(points), func(i int) { points[i] = p.point(first+int64(i), &through[i]) })
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
func (p *Plan) pointReports(ctx context.Context, from *store, first, last int64) ([]Point, error) {
	var points []Point
	for bucket := first; bucket <= last; bucket++ {
		at := *p
		at.Filters.To = p.endOf(bucket)
		if err := at.findOutliers(ctx, from); err != nil {
			return nil, err
		}
		rows, err := at.moments(ctx, from)
		if err != nil {
			return nil, err
		}
		c := sumRows(rows, p.MultipleExposures)
		points = append(points, p.point(bucket, &c))
	}
	return points, nil
}

func (p *Plan) point(bucket int64, through *cell) Point {
	j, _, _ := through.compare(p)
	return Point{Time: p.endOf(bucket), Variations: j.Variations}
}

// endOf returns the end of a bucket or of the window, whichever is earlier.
func (p *Plan) endOf(bucket int64) time.Time {
	width, shift := p.Interval.grid()
	end := time.UnixMilli((bucket+1)*width.Milliseconds() - shift.Milliseconds()).UTC()
	if to := p.to(); to.Before(end) {
		return to
	}
	return end
}
