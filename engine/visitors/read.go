package visitors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema/catalogue"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Source counts the rows of a generation.
type Source struct {
	*source.Execution
	Generation      *Generation
	Through, Newest time.Time // what the generation includes
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
	if errors.Is(err, errTorn) {
		return nil, err.Error(), nil
	}
	return found, "", err
}

// read reads the rows of a report. The error may be errTorn.
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
	query, err := x.exposureStepsQuery()
	if err != nil {
		return nil, err
	}
	if err := r.each(ctx, query, 1, r.addExposureSteps); err != nil {
		return nil, err
	}
	if query, err = x.conversionStepsQuery(); err != nil {
		return nil, err
	}
	if err := r.each(ctx, query, 1, r.addConversions); err != nil {
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

// top returns the most frequent values of a dimension.
func (x Source) top(ctx context.Context, dimension source.Expr) ([]string, error) {
	query, s := x.query()
	s.Dimension = dimension
	query.Params = append(query.Params, source.Param{Name: "most", Value: uint32(x.Top)}) //nolint:gosec // few
	if err := query.RenderFrom(sqlTemplates, "top.sql", s); err != nil {
		return nil, err
	}
	values := []string{}
	return values, x.Store.Each(ctx, query, func(row driver.Rows) error {
		var value string
		var visitors int64
		err := row.Scan(&value, &visitors)
		values = append(values, value)
		return err
	})
}

// readOutliers returns the bounds of the requested z-score, or nil if there is
// none. The error may be errTorn.
func (x Source) readOutliers(ctx context.Context) (*visit.Outliers, error) {
	if x.Filters.ZScore == 0 {
		return nil, nil
	}
	x.Execution = x.WithoutOutliers()
	q, s := x.query()
	x.countedGoals(q, &s)
	q.Params = append(q.Params, x.comparedSegments())
	if err := q.RenderFrom(sqlTemplates, "outliers.sql", s); err != nil {
		return nil, err
	}
	var n, markers int64
	var sum, squares big.Int
	if err := x.Store.Each(ctx, q, func(row driver.Rows) error { return row.Scan(&n, &sum, &squares, &markers) }); err != nil {
		return nil, err
	}
	if markers != x.Generation.markers() {
		return nil, errTorn
	}
	return visit.NewOutliers(n, &sum, &squares, x.Filters.ZScore), nil
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
	key := fmt.Sprint(x.Plan, *x.Generation, x.Outliers)
	if kept := x.Store.KeptCap(key); kept != nil {
		return kept, nil
	}
	q, s := x.query()
	x.countedGoals(q, &s)
	q.Params = append(q.Params, x.comparedSegments())
	if err := q.RenderFrom(sqlTemplates, "totals.sql", s); err != nil {
		return nil, err
	}
	var totals []int64
	var markers int64
	if err := x.Store.Each(ctx, q, func(row driver.Rows) error { return row.Scan(&markers, &totals) }); err != nil {
		return nil, err
	}
	if markers != x.Generation.markers() {
		return nil, errTorn
	}
	limited := visit.NewCap(*x.Cap, totals)
	x.Store.KeepCap(key, limited)
	return limited, nil
}

// comparedSegments returns the parameter with the segments of the visitors of the
// declared variations.
func (x Source) comparedSegments() source.Param {
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
