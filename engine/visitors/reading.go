package visitors

import (
	"cmp"
	"context"
	"math/big"
	"slices"

	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
)

// reading adds up the rows of a report.
type reading struct {
	Source
	top  []string // most frequent values of the dimension, in the order of their ranks
	sums map[key]*visit.Moments
}

// key is the key of sums.
type key struct {
	bucket int64
	rank   uint32 // of the value of the dimension, from 1; 0: another value, or no dimension
	visit.Segment
}

func (x Source) reading() *reading { return &reading{Source: x, sums: map[key]*visit.Moments{}} }

// counting adds up the rows of one shard.
type counting struct {
	part
	top     []string
	sums    map[key]*visit.Moments
	markers int64 // seen by the current statement
}

// each counts the rows of each shard, and adds them to the sums. The error may be errTorn.
func (r *reading) each(ctx context.Context, count func(*counting, context.Context) error) error {
	parts := r.parts()
	all := make([]*counting, len(parts))
	work, ctx := errgroup.WithContext(ctx)
	for i, part := range parts {
		all[i] = &counting{part: part, top: r.top, sums: map[key]*visit.Moments{}}
		work.Go(func() error { return count(all[i], ctx) })
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, counted := range all {
		for at, m := range counted.sums {
			visit.AddTo(r.sums, at, m)
		}
	}
	return nil
}

// run runs a statement, which reads a number of markers, and calls add for each row. The
// error may be errTorn.
func (r *counting) run(ctx context.Context, q *source.Query, markers int64, add func(driver.Rows) error) error {
	r.markers = 0
	if err := r.Store.Each(ctx, q, add); err != nil {
		return err
	}
	if r.markers != markers {
		return errTorn
	}
	return nil
}

// segments reads both tables.
func (r *reading) segments(ctx context.Context, dimension source.Expr) error {
	return r.each(ctx, func(c *counting, ctx context.Context) error {
		if err := c.exposures(ctx, dimension); err != nil {
			return err
		}
		return c.conversions(ctx, dimension)
	})
}

func (r *counting) exposures(ctx context.Context, dimension source.Expr) error {
	query, err := r.exposuresQuery(dimension, r.top)
	if err != nil {
		return err
	}
	times := int64(1)
	if endsEarly(r.Plan, r.Newest) {
		times = 2 // the statement reads the table twice
	}
	return r.run(ctx, query, times*r.Generation.exposureMarkers(), r.addExposures)
}

func (r *counting) conversions(ctx context.Context, dimension source.Expr) error {
	query, err := r.conversionsQuery(dimension, r.top)
	if err != nil {
		return err
	}
	return r.run(ctx, query, r.Generation.conversionMarkers(), r.addConversions)
}

// steps reads both tables by the buckets of a series.
func (r *counting) steps(ctx context.Context) error {
	query, err := r.exposureStepsQuery()
	if err != nil {
		return err
	}
	if err := r.run(ctx, query, r.Generation.exposureMarkers(), r.addExposureSteps); err != nil {
		return err
	}
	if query, err = r.conversionStepsQuery(); err != nil {
		return err
	}
	return r.run(ctx, query, r.Generation.conversionMarkers(), r.addConversions)
}

// keyOf returns the expression to group by: a small integer, which is much cheaper
// than several columns. Rows of a series add the bucket above 32 bits.
func (s *slots) keyOf(exposedBefore bool) source.Expr {
	key := source.Expr("segment")
	if exposedBefore {
		key += " + 256 * (toUnixTimestamp64Milli(first_time) < {from_ms:Int64})"
	}
	if s.ByDimension {
		key += " + 512 * " + s.Dimension
	}
	if key == "segment" {
		return key
	}
	return "toUInt32(" + key + ")"
}

// decodeKey is the inverse of the expressions of keyOf.
func decodeKey(of int64) (segment uint8, at key) {
	at.bucket, at.rank, at.ExposedBefore = of>>32, uint32(of)>>9, of>>8&1 == 1 //nolint:gosec // parts of the key
	return uint8(of), at                                                       //nolint:gosec // the lowest bits
}

// add adds the moments of the rows with a key, or subtracts them. rows is the
// number of markers if they are one.
func (r *counting) add(of int64, m *visit.Moments, rows int64) {
	segment, at := decodeKey(of)
	if segment == marker {
		r.markers += rows
		return
	}
	at.VariationID, at.MultiExposed = r.Generation.Variations[segment>>segmentBits], segment&multiExposedBit != 0
	if r.sums[at] == nil {
		none := visit.NoMoments()
		r.sums[at] = &none
	}
	if segment&cancelsBit != 0 {
		r.sums[at].Subtract(m)
	} else {
		*r.sums[at] = r.sums[at].Merge(*m)
	}
}

func (r *counting) addExposures(row driver.Rows) error {
	var of int64
	var visitors, sinceShares, recent, views source.Count
	var actions actionCounts
	to := []any{&of, &visitors, &sinceShares, &recent, &views}
	if err := row.Scan(append(to, actions.targets()[:len(row.Columns())-len(to)]...)...); err != nil {
		return err
	}
	m := visit.NoMoments()
	m.Visitors, m.SinceShares, m.Recent, m.Views = int64(visitors), int64(sinceShares), int64(recent), int64(views)
	actions.addTo(&m)
	r.add(of, &m, m.Visitors)
	return nil
}

func (r *counting) addExposureSteps(row driver.Rows) error {
	var of int64
	var visitors, views source.Count
	var actions actionCounts
	if err := row.Scan(append([]any{&of, &visitors, &views}, actions.targets()...)...); err != nil {
		return err
	}
	m := visit.NoMoments()
	m.Visitors, m.Views = int64(visitors), int64(views)
	actions.addTo(&m)
	r.add(of, &m, m.Visitors)
	return nil
}

// actionCounts are the columns of the events of widgets: clicks, submits,
// completions, conversions, contacts, and visitors with completions and with
// conversions.
type actionCounts [7]source.Count

func (a *actionCounts) targets() []any {
	to := make([]any, len(a))
	for i := range a {
		to[i] = &a[i]
	}
	return to
}

func (a *actionCounts) addTo(m *visit.Moments) {
	m.Actions = visit.Actions{Clicks: int64(a[0]), Submits: int64(a[1]), Completions: int64(a[2]), Conversions: int64(a[3]), Contacts: int64(a[4])}
	m.Completed, m.Conversion = int64(a[5]), int64(a[6])
}

func (r *counting) addConversions(row driver.Rows) error {
	var of, converted, goals, goalsSquares int64
	var amounts [3]struct {
		sum, squares      big.Int
		nonzero, negative int64
	}
	var valueGoals big.Int
	v, p, e := &amounts[0], &amounts[1], &amounts[2]
	to := []any{
		&of, &converted, &goals, &goalsSquares, &v.sum, &v.squares, &v.nonzero, &v.negative, &valueGoals,
		&p.sum, &p.squares, &p.nonzero, &p.negative, &e.sum, &e.squares, &e.nonzero, &e.negative,
	}
	var excess source.ScannedExcess
	if err := row.Scan(append(to, excess.Targets(row)...)...); err != nil {
		return err
	}
	m := visit.NoMoments()
	m.Converted, m.Goals = converted, stats.Sums{Sum: big.NewInt(goals), Squares: big.NewInt(goalsSquares)}
	for i, to := range []*visit.Amounts{&m.Value, &m.Profit, &m.ExtraValue} {
		a := &amounts[i]
		*to = visit.Amounts{Sums: stats.Sums{Sum: &a.sum, Squares: &a.squares}, Nonzero: a.nonzero, Negative: a.negative}
	}
	m.ValueGoals, m.Excess = &valueGoals, excess.Excess()
	r.add(of, &m, goals)
	return nil
}

// rows returns the segments with visitors, and those of the breakdown.
func (r *reading) rows() (whole, cells []visit.Row) {
	merged, ranked := map[visit.Segment]visit.Moments{}, map[visit.Segment]visit.Moments{}
	for at, m := range r.sums {
		if all, has := merged[at.Segment]; has {
			merged[at.Segment] = all.Merge(*m)
		} else {
			merged[at.Segment] = *m
		}
		if at.rank != 0 {
			at.Dimension = r.top[at.rank-1]
			ranked[at.Segment] = *m
		}
	}
	whole = sorted(merged)
	if r.top == nil {
		return whole, whole
	}
	return whole, visit.WithOthers(sorted(ranked), whole, r.Top)
}

func sorted(of map[visit.Segment]visit.Moments) []visit.Row {
	var rows []visit.Row
	for at, m := range of {
		if m.Visitors != 0 {
			rows = append(rows, visit.Row{Segment: at, Moments: m})
		}
	}
	slices.SortFunc(rows, func(a, b visit.Row) int {
		return cmp.Or(cmp.Compare(a.VariationID, b.VariationID), cmp.Compare(a.Dimension, b.Dimension))
	})
	return rows
}
