package result

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
)

// CumulateSteps returns the running sums of the steps as points.
func CumulateSteps(p *plan.Plan, steps []moments.Step) []Point {
	first, last := steps[0].Bucket, steps[len(steps)-1].Bucket
	through := make([]sliceSums, last-first+1)
	sums := map[moments.RowKey]moments.Row{}
	for bucket, i := first, 0; bucket <= last; bucket++ {
		for ; i < len(steps) && steps[i].Bucket == bucket; i++ {
			key := steps[i].RowKey
			sums[key] = moments.Row{RowKey: key, Moments: sums[key].Merge(steps[i].Moments)}
		}
		through[bucket-first] = sumRows(slices.Collect(maps.Values(sums)), p.MultipleExposures)
	}
	points := make([]Point, len(through))
	onAllCores(len(points), func(i int) { points[i] = pointOf(p, first+int64(i), &through[i]) })
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

// NewPoint returns the point at the end of a bucket, from the rows of its report.
func NewPoint(p *plan.Plan, bucket int64, rows []moments.Row) Point {
	c := sumRows(rows, p.MultipleExposures)
	return pointOf(p, bucket, &c)
}

func pointOf(p *plan.Plan, bucket int64, through *sliceSums) Point {
	return Point{Time: EndOf(p, bucket), Variations: through.compareVariations(p).Variations}
}

// EndOf returns the end of a bucket or of the window, whichever is earlier.
func EndOf(p *plan.Plan, bucket int64) time.Time {
	width, shift := p.Interval.BucketGrid()
	end := time.UnixMilli((bucket+1)*width.Milliseconds() - shift.Milliseconds()).UTC()
	if to := p.WindowEnd(); to.Before(end) {
		return to
	}
	return end
}
