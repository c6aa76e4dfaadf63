package visitors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema/catalogue"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Source counts the rows of a generation of each shard.
type Source struct {
	*source.Execution
	Shards          []Shard
	Through, Newest time.Time // what the generations include
}

// Shard has a generation of the rows of some visitors.
type Shard struct {
	Store      *source.Store
	Generation *Generation
}

// part counts the rows of one shard.
type part struct {
	Source
	Generation *Generation
}

// parts returns the parts of the report, one per shard.
func (x Source) parts() []part {
	parts := make([]part, len(x.Shards))
	for i, shard := range x.Shards {
		execution := *x.Execution
		execution.Store = shard.Store
		parts[i].Source, parts[i].Generation = x, shard.Generation
		parts[i].Execution = &execution
	}
	return parts
}

// Name returns NameVisitors.
func (x Source) Name() string { return source.NameVisitors }

// Declines returns why the rows lack what a report needs, or an empty text. newest is
// the time of the latest event.
func Declines(p *plan.Plan, newest time.Time) string {
	if endsEarly(p, newest) && (!wholeHour(p.Filters.To) || !wholeHour(p.Filters.From)) {
		return "rows of visitors have the hours of views, and the window ends within an hour"
	}
	return ""
}

// endsEarly reports whether the window excludes events at its end.
func endsEarly(p *plan.Plan, newest time.Time) bool {
	return !p.Filters.To.IsZero() && !p.Filters.To.After(newest)
}

func wholeHour(t time.Time) bool { return t.IsZero() || t.Equal(t.Truncate(time.Hour)) }

// Read declines if its snapshot lacks rows of a complete refresh.
func (x Source) Read(ctx context.Context) (found *visit.Rows, declined string, err error) {
	found, err = x.read(ctx)
	if errors.Is(err, errTorn) || errors.Is(err, errManyValues) {
		return nil, err.Error(), nil
	}
	return found, "", err
}

// read reads the rows of a report. The error may be errTorn or errManyValues.
func (x Source) read(ctx context.Context) (found *visit.Rows, err error) {
	execution := *x.Execution
	x.Execution = &execution
	if x.Outliers, err = x.readOutliers(ctx); err != nil {
		return nil, err
	}
	if x.Limited, err = x.readCap(ctx); err != nil {
		return nil, err
	}
	found = &visit.Rows{Through: x.Through, Newest: x.Newest, Outliers: x.Outliers, Cap: x.Limited}
	var column source.Expr
	r := x.reading()
	if x.Dimension != "" {
		column = source.Columns[string(x.Dimension)]
		if r.top, err = x.top(ctx, column); err != nil {
			return nil, err
		}
	}
	if err := r.segments(ctx, column); err != nil {
		return nil, err
	}
	found.Whole, found.Cells = r.rows()
	if x.Interval != "" {
		found.Steps, err = x.steps(ctx)
	}
	return found, err
}

// errTorn means that a statement did not see all complete refreshes.
var errTorn = errors.New("the rows of visitors are being replaced")

// steps returns what each bucket of the series adds, before the removal of
// outliers.
func (x Source) steps(ctx context.Context) ([]visit.Step, error) {
	x.Execution = x.WithoutOutliers()
	r := x.reading()
	if err := r.each(ctx, (*counting).steps); err != nil {
		return nil, err
	}
	var steps []visit.Step
	for at, m := range r.sums {
		if !m.IsEmpty() {
			steps = append(steps, visit.Step{Bucket: at.bucket, Row: visit.Row{Segment: at.Segment, Moments: *m}})
		}
	}
	slices.SortFunc(steps, func(a, b visit.Step) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return steps, nil
}

// maxOfShard is the maximum number of values that each of several shards counts, to find
// those that are most frequent on all of them.
const maxOfShard = 10_000

// top returns the most frequent values of a dimension. The error may be errManyValues.
func (x Source) top(ctx context.Context, dimension source.Expr) ([]string, error) {
	most := uint32(x.Top) //nolint:gosec // few
	if len(x.Shards) > 1 {
		most = maxOfShard
	}
	counts := map[string]int64{}
	for _, part := range x.parts() {
		query, s := part.query()
		s.Dimension = dimension
		query.Params = append(query.Params, source.Param{Name: "most", Value: most})
		if err := query.RenderFrom(sqlTemplates, "top.sql", s); err != nil {
			return nil, err
		}
		values := 0
		err := part.Store.Each(ctx, query, func(row driver.Rows) error {
			var value string
			var visitors int64
			err := row.Scan(&value, &visitors)
			values++
			counts[value] += visitors
			return err
		})
		if err != nil {
			return nil, err
		}
		if values == maxOfShard {
			return nil, errManyValues
		}
	}
	values := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	return values[:min(len(values), x.Top)], nil
}

// errManyValues means that the values that are most frequent on all shards are not known.
var errManyValues = errors.New("a shard does not know which values of the dimension are most frequent on the others")

// readOutliers returns the bounds of the requested z-score, or nil if there is
// none. The error may be errTorn.
func (x Source) readOutliers(ctx context.Context) (*visit.Outliers, error) {
	if x.Filters.ZScore == 0 {
		return nil, nil
	}
	x.Execution = x.WithoutOutliers()
	var total int64
	var totalSum, totalSquares big.Int
	err := x.eachCounted(ctx, "outliers.sql", func(row driver.Rows) (markers int64, err error) {
		var n int64
		var sum, squares big.Int
		err = row.Scan(&n, &sum, &squares, &markers)
		total += n
		totalSum.Add(&totalSum, &sum)
		totalSquares.Add(&totalSquares, &squares)
		return markers, err
	})
	if err != nil {
		return nil, err
	}
	return visit.NewOutliers(total, &totalSum, &totalSquares, x.Filters.ZScore), nil
}

// eachCounted runs a statement on conversions, about the counted goal events of the visitors of
// the declared variations, on each shard. scan returns the number of markers that its row has.
// The error may be errTorn.
func (x Source) eachCounted(ctx context.Context, file string, scan func(driver.Rows) (markers int64, err error)) error {
	for _, part := range x.parts() {
		q, s := part.query()
		part.countedGoals(q, &s)
		q.Params = append(q.Params, part.comparedSegments())
		if err := q.RenderFrom(sqlTemplates, file, s); err != nil {
			return err
		}
		var markers int64
		err := part.Store.Each(ctx, q, func(row driver.Rows) (err error) {
			markers, err = scan(row)
			return err
		})
		if err != nil {
			return err
		}
		if markers != part.Generation.conversionMarkers() {
			return errTorn
		}
	}
	return nil
}

// readCap returns the limit of the cap of the report, or nil if there is none. Filters
// of visitors do not restrict a percentile. The error may be errTorn.
func (x Source) readCap(ctx context.Context) (*visit.Cap, error) {
	switch {
	case x.Cap == nil || x.Limited != nil:
		return x.Limited, nil
	case x.Cap.Percentile == 0:
		return visit.NewCap(*x.Cap, nil), nil
	}
	all := *x.Execution
	all.Plan = x.OfAll()
	x.Execution = &all
	key := fmt.Sprint(x.Plan, x.generations(), x.Outliers)
	if kept := x.Store.KeptCap(key); kept != nil {
		return kept, nil
	}
	var totals []int64
	err := x.eachCounted(ctx, "totals.sql", func(row driver.Rows) (markers int64, err error) {
		var some []int64
		err = row.Scan(&markers, &some)
		totals = append(totals, some...)
		return markers, err
	})
	if err != nil {
		return nil, err
	}
	limited := visit.NewCap(*x.Cap, totals)
	x.Store.KeepCap(key, limited)
	return limited, nil
}

// generations returns the generations of the shards.
func (x Source) generations() []Generation {
	all := make([]Generation, len(x.Shards))
	for i, shard := range x.Shards {
		all[i] = *shard.Generation
	}
	return all
}

// comparedSegments returns the parameter with the segments of the visitors of the
// declared variations.
func (x part) comparedSegments() source.Param {
	var segments []uint8
	for i, id := range x.Generation.Variations {
		if slices.ContainsFunc(x.Variations, func(v plan.Variation) bool { return v.ID == id }) {
			segments = append(segments, uint8(i)<<segmentBits) //nolint:gosec // at most MaxVariations
			if x.MultipleExposures == catalogue.FirstVariation {
				segments = append(segments, uint8(i)<<segmentBits|multiExposedBit) //nolint:gosec // at most MaxVariations
			}
		}
	}
	ids := make([]uint16, len(segments)) // the driver binds []uint8 as text
	for i, segment := range segments {
		ids[i] = uint16(segment)
	}
	return source.Param{Name: "segments", Value: ids}
}
