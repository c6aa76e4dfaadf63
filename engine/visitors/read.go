package visitors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"

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

// slots are the slots of the files of sql/ that read.
type slots struct {
	source.Slots
	Committed   source.Expr   // of a row: whether its refresh is complete
	From, To    bool          // whether the window starts, and ends before the newest event
	Shares      bool          // some visitors were exposed before the current shares took effect
	Window      source.Expr   // of a conversion: whether it is in the window
	Within      source.Expr   // of a later event of an exposure: whether it is in the window
	Counts      []source.Expr // of an exposure: columns with the events until the end of the window
	Key         source.Expr   // what rows are grouped by, see decodeKey
	ByDimension bool          // group by the dimension
	OneGoal     bool          // events of one goal count, {goal_id}
	Numbered    bool          // number the counted events of each visitor again
}

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
	execution := *x.Execution
	x.Execution = &execution
	if x.Outliers, err = x.readOutliers(ctx); err != nil {
		return nil, "", err
	}
	found = &visit.Rows{Through: x.Through, Newest: x.Newest, Outliers: x.Outliers}
	var column source.Expr
	r := x.reading()
	if x.Dimension != "" {
		column = source.Columns[string(x.Dimension)]
		r.top, err = x.top(ctx, column)
	}
	if err == nil {
		err = r.segments(ctx, column)
	}
	found.Whole, found.Cells = r.rows()
	if err == nil && x.Interval != "" {
		found.Steps, err = x.steps(ctx)
	}
	if errors.Is(err, errTorn) {
		return nil, err.Error(), nil
	}
	return found, "", err
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

// reading adds up the rows of a report.
type reading struct {
	Source
	top     []string // most frequent values of the dimension, in the order of their ranks
	sums    map[key]*visit.Moments
	markers int64 // seen by the current statement
}

// key is the key of sums.
type key struct {
	bucket int64
	rank   uint32 // of the value of the dimension, from 1; 0: another value, or no dimension
	visit.Segment
}

func (x Source) reading() *reading { return &reading{Source: x, sums: map[key]*visit.Moments{}} }

// each runs a statement, which reads a table a number of times, and calls add for
// each row. The error may be errTorn.
func (r *reading) each(ctx context.Context, q *source.Query, times int64, add func(driver.Rows) error) error {
	r.markers = 0
	if err := r.Store.Each(ctx, q, add); err != nil {
		return err
	}
	if r.markers != times*r.Generation.markers() {
		return errTorn
	}
	return nil
}

// segments reads both tables.
func (r *reading) segments(ctx context.Context, dimension source.Expr) error {
	query, err := r.exposuresQuery(dimension, r.top)
	if err != nil {
		return err
	}
	times := int64(1)
	if endsEarly(r.Plan, r.Newest) {
		times = 2 // the statement reads the table twice
	}
	if err := r.each(ctx, query, times, r.addExposures); err != nil {
		return err
	}
	if query, err = r.conversionsQuery(dimension, r.top); err != nil {
		return err
	}
	return r.each(ctx, query, 1, r.addConversions)
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
func (r *reading) add(of int64, m *visit.Moments, rows int64) {
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

func (r *reading) addExposures(row driver.Rows) error {
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

func (r *reading) addExposureSteps(row driver.Rows) error {
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

func (r *reading) addConversions(row driver.Rows) error {
	var of, converted, goals, goalsSquares int64
	var amounts [3]struct {
		sum, squares      big.Int
		nonzero, negative int64
	}
	var valueGoals big.Int
	v, p, e := &amounts[0], &amounts[1], &amounts[2]
	if err := row.Scan(&of, &converted, &goals, &goalsSquares, &v.sum, &v.squares, &v.nonzero, &v.negative, &valueGoals,
		&p.sum, &p.squares, &p.nonzero, &p.negative, &e.sum, &e.squares, &e.nonzero, &e.negative); err != nil {
		return err
	}
	m := visit.NoMoments()
	m.Converted, m.Goals = converted, stats.Sums{Sum: big.NewInt(goals), Squares: big.NewInt(goalsSquares)}
	for i, to := range []*visit.Amounts{&m.Value, &m.Profit, &m.ExtraValue} {
		a := &amounts[i]
		*to = visit.Amounts{Sums: stats.Sums{Sum: &a.sum, Squares: &a.squares}, Nonzero: a.nonzero, Negative: a.negative}
	}
	m.ValueGoals = &valueGoals
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

// query returns the parameters and slots that all statements share.
func (x Source) query() (*source.Query, slots) {
	p, g := x.Plan, x.Generation
	q := &source.Query{Params: []source.Param{{Name: "bucket", Value: g.Bucket}, {Name: "generation", Value: g.Number}}}
	s := slots{Slots: source.Slots{Filters: "true", Dimension: "''"}, From: !p.Filters.From.IsZero(), To: endsEarly(p, x.Newest)}
	s.Shares, s.Widget = p.SharesSince.After(plan.OpenFrom), p.Subject.Kind == schema.SubjectWidget
	q.VisitorFilters(&p.Filters, &s.Slots)
	var committed []string
	for i, epoch := range slices.Sorted(maps.Keys(g.Refreshes)) {
		first := epoch << numberBits
		q.Params = append(q.Params, source.Param{Name: fmt.Sprintf("first_%d", i), Value: first + 1}, source.Param{Name: fmt.Sprintf("last_%d", i), Value: first + uint64(g.Refreshes[epoch])})
		committed = append(committed, fmt.Sprintf("refresh BETWEEN {first_%d:UInt64} AND {last_%d:UInt64}", i, i))
	}
	s.Committed = source.Expr(strings.Join(committed, " OR "))
	if p.Goal != nil {
		q.Params = append(q.Params, source.Param{Name: "goal_id", Value: p.Goal.ID})
	}
	if s.From {
		q.Params = append(q.Params, source.Param{Name: "from_ms", Value: p.From().UnixMilli()})
		s.Window += " AND toUnixTimestamp64Milli(first_time) >= {from_ms:Int64}"
	}
	if s.To {
		q.Params = append(q.Params, source.Param{Name: "to_ms", Value: p.To().UnixMilli()})
		s.Window += " AND toUnixTimestamp64Milli(first_time) + since_ms < {to_ms:Int64}"
	}
	return q, s
}

// dimensioned sets the slot of a dimension: the rank of its value among the most
// frequent ones. A small number is cheaper to group by than a text.
func dimensioned(q *source.Query, s *slots, dimension source.Expr, top []string) {
	if len(top) == 0 {
		return
	}
	ranks := make([]uint16, len(top))
	for i := range ranks {
		ranks[i] = uint16(i + 1) //nolint:gosec // few
	}
	s.ByDimension, s.Dimension = true, "transform(toString("+dimension+"), {top:Array(String)}, {ranks:Array(UInt16)}, toUInt16(0))"
	q.Params = append(q.Params, source.Param{Name: "top", Value: top}, source.Param{Name: "ranks", Value: ranks})
}

// until returns the condition on the hours of a later event before a time in
// milliseconds, which is a whole hour.
func until(ms string) string {
	return "hour < intDiv({" + ms + ":Int64}, 3600000) - intDiv(toUnixTimestamp64Milli(first_time), 3600000)"
}

func (x Source) exposuresQuery(dimension source.Expr, values []string) (*source.Query, error) {
	q, s := x.query()
	dimensioned(q, &s, dimension, values)
	recentFrom, recentTo := plan.Recent(x.Through)
	q.Params = append(q.Params, source.Param{Name: "recent_from", Value: recentFrom.Format(time.DateOnly)}, source.Param{Name: "recent_to", Value: recentTo.Format(time.DateOnly)})
	if s.Shares {
		q.Params = append(q.Params, source.Param{Name: "shares_since", Value: x.SharesSince.UnixMilli()})
	}
	s.Key = s.keyOf(s.From)
	s.Within = source.Expr(until("to_ms") + " AND NOT " + until("from_ms"))
	for kind, column := range map[visit.Kind]string{visit.View: "views", visit.Click: "clicks", visit.Submit: "submits", visit.Completion: "completions", visit.Conversion: "conversions", visit.Contact: "contacts"} {
		counted := fmt.Sprintf("arrayCount((hour, kind) -> kind = %d AND %s, later_hours, later_kinds)", kind, until("to_ms"))
		if kind == visit.View {
			counted = "1 + " + counted
		}
		s.Counts = append(s.Counts, source.Expr(fmt.Sprintf("toUInt32(%s) AS %s", counted, column)))
	}
	slices.Sort(s.Counts)
	return q, q.RenderFrom(sqlTemplates, "exposures.sql", s)
}

func (x Source) conversionsQuery(dimension source.Expr, values []string) (*source.Query, error) {
	q, s := x.query()
	dimensioned(q, &s, dimension, values)
	s.Key = s.keyOf(false)
	if x.isEveryEvent() {
		return q, q.RenderFrom(sqlTemplates, "conversions.sql", s)
	}
	x.countedGoals(q, &s)
	return q, q.RenderFrom(sqlTemplates, "converted.sql", s)
}

// isEveryEvent reports whether every event of one goal counts, so that the sums in
// the rows are those of the report.
func (x Source) isEveryEvent() bool {
	return x.Goal != nil && x.Filters.GoalValue == nil && x.Outliers == nil
}

// countedGoals sets the slot of the events that count.
func (x Source) countedGoals(q *source.Query, s *slots) {
	s.Goals = "true"
	if s.OneGoal = x.Goal != nil; s.OneGoal {
		s.Goals = "goal_id = {goal_id:Int64}"
	}
	q.ValueFilters(x.Execution, &s.Slots)
}

// stepParams adds the parameters of the grid of the series.
func (x Source) stepParams(q *source.Query) {
	width, shift := x.Interval.Grid()
	q.Params = append(q.Params, source.Param{Name: "width", Value: width.Milliseconds()}, source.Param{Name: "shift", Value: shift.Milliseconds()})
}

func (x Source) exposureStepsQuery() (*source.Query, error) {
	q, s := x.query()
	x.stepParams(q)
	return q, q.RenderFrom(sqlTemplates, "exposure_steps.sql", s)
}

func (x Source) conversionStepsQuery() (*source.Query, error) {
	q, s := x.query()
	x.stepParams(q)
	s.Key = "toInt64(segment) + 4294967296 * intDiv(toUnixTimestamp64Milli(first_time) + toInt64(since_ms) + {shift:Int64}, {width:Int64})"
	if s.Numbered = !x.isEveryEvent(); s.Numbered {
		s.Key = "toInt64(segment) + 4294967296 * intDiv(toInt64(at_ms) + {shift:Int64}, {width:Int64})"
		x.countedGoals(q, &s)
	}
	return q, q.RenderFrom(sqlTemplates, "conversions.sql", s)
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
	q.Params = append(q.Params, source.Param{Name: "segments", Value: ids})
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
