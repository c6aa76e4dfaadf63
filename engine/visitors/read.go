package visitors

import (
	"cmp"
	"context"
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
	Committed  source.Expr // of a row: whether its refresh is complete
	From, To   bool        // whether the window starts, and ends before the newest event
	Shares     bool        // some visitors were exposed before the current shares took effect
	Seen       source.Expr // of an exposure: whether the visitor is active in the window
	Window     source.Expr // of a conversion: whether it is in the window
	Views      source.Expr
	Actions    []source.Expr
	Completed  source.Expr
	Conversion source.Expr
}

// Declines returns why the rows cannot tell a report, or an empty text.
func Declines(p *plan.Plan) string {
	switch {
	case p.Interval != "":
		return "the rows of visitors do not serve series yet"
	case p.Filters.ZScore != 0:
		return "the rows of visitors do not serve z-scores yet"
	}
	return ""
}

// Read declines if its snapshot lacks rows of a complete refresh.
func (x Source) Read(ctx context.Context) (found *visit.Rows, declined string, err error) {
	r := &reading{Source: x, sums: map[visit.Segment]*visit.Moments{}}
	if err := r.segments(ctx, "", nil); err != nil || r.torn {
		return nil, torn(r.torn), err
	}
	found = &visit.Rows{Through: x.Through, Newest: x.Newest, Outliers: x.Outliers}
	found.Whole = r.rows()
	found.Cells = found.Whole
	if x.Dimension == "" {
		return found, "", nil
	}
	column := source.Columns[string(x.Dimension)]
	top, err := r.top(ctx, column)
	if err != nil {
		return nil, "", err
	}
	cells := &reading{Source: x, sums: map[visit.Segment]*visit.Moments{}}
	if err := cells.segments(ctx, column, top); err != nil || cells.torn {
		return nil, torn(cells.torn), err
	}
	found.Cells = visit.WithOthers(cells.rows(), found.Whole, x.Top)
	return found, "", nil
}

func torn(is bool) string {
	if is {
		return "the rows of visitors are being replaced"
	}
	return ""
}

// reading adds up the rows of a report.
type reading struct {
	Source
	sums map[visit.Segment]*visit.Moments
	torn bool // a statement did not see all complete refreshes
}

// segments reads both tables. With a dimension, it reads only the given values.
func (r *reading) segments(ctx context.Context, dimension source.Expr, values []string) error {
	query, err := r.exposuresQuery(dimension, values)
	if err != nil {
		return err
	}
	if err := r.Store.Each(ctx, query, r.addExposures); err != nil {
		return err
	}
	if query, err = r.conversionsQuery(dimension, values); err != nil {
		return err
	}
	return r.Store.Each(ctx, query, r.addConversions)
}

// at returns the sums of a segment. It returns nil for markers, whose number it
// checks.
func (r *reading) at(segment uint8, dimension string, exposedBefore bool, rows int64) (sums *visit.Moments, cancels bool) {
	if segment == marker {
		r.torn = r.torn || rows != r.Generation.markers()
		return nil, false
	}
	key := visit.Segment{
		VariationID: r.Generation.Variations[segment>>segmentBits], Dimension: dimension,
		ExposedBefore: exposedBefore, MultiExposed: segment&multiExposedBit != 0,
	}
	if r.sums[key] == nil {
		m := visit.NoMoments()
		r.sums[key] = &m
	}
	return r.sums[key], segment&cancelsBit != 0
}

// add adds moments, or subtracts them.
func (r *reading) add(to *visit.Moments, m *visit.Moments, cancels bool) {
	switch {
	case to == nil:
	case cancels:
		to.Subtract(m)
	default:
		*to = to.Merge(*m)
	}
}

func (r *reading) addExposures(row driver.Rows) error {
	var segment, exposedBefore uint8
	var dimension string
	var visitors, sinceShares, recent, views source.Count
	var actions [7]source.Count
	to := []any{&segment, &dimension, &exposedBefore, &visitors, &sinceShares, &recent, &views}
	for i := range len(row.Columns()) - len(to) {
		to = append(to, &actions[i])
	}
	if err := row.Scan(to...); err != nil {
		return err
	}
	m := visit.NoMoments()
	m.Visitors, m.SinceShares, m.Recent, m.Views = int64(visitors), int64(sinceShares), int64(recent), int64(views)
	m.Actions = visit.Actions{Clicks: int64(actions[0]), Submits: int64(actions[1]), Completions: int64(actions[2]), Conversions: int64(actions[3]), Contacts: int64(actions[4])}
	m.Completed, m.Conversion = int64(actions[5]), int64(actions[6])
	sums, cancels := r.at(segment, dimension, exposedBefore == 1, m.Visitors)
	r.add(sums, &m, cancels)
	return nil
}

func (r *reading) addConversions(row driver.Rows) error {
	var segment uint8
	var dimension string
	var converted, goals, goalsSquares int64
	var amounts [3]struct {
		sum, squares      big.Int
		nonzero, negative int64
	}
	var valueGoals big.Int
	v, p, e := &amounts[0], &amounts[1], &amounts[2]
	if err := row.Scan(&segment, &dimension, &converted, &goals, &goalsSquares, &v.sum, &v.squares, &v.nonzero, &v.negative, &valueGoals,
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
	sums, cancels := r.at(segment, dimension, false, goals)
	r.add(sums, &m, cancels)
	return nil
}

// rows returns the segments with visitors.
func (r *reading) rows() []visit.Row {
	var rows []visit.Row
	for segment, m := range r.sums {
		if m.Visitors != 0 {
			rows = append(rows, visit.Row{Segment: segment, Moments: *m})
		}
	}
	slices.SortFunc(rows, func(a, b visit.Row) int {
		return cmp.Or(cmp.Compare(a.VariationID, b.VariationID), cmp.Compare(a.Dimension, b.Dimension))
	})
	return rows
}

// top returns the most frequent values of a dimension.
func (r *reading) top(ctx context.Context, dimension source.Expr) ([]string, error) {
	query, s := r.query()
	s.Dimension = dimension
	query.Params = append(query.Params, source.Param{Name: "most", Value: uint32(r.Top)}) //nolint:gosec // few
	if err := render(query, "top.sql", s); err != nil {
		return nil, err
	}
	values := []string{}
	return values, r.Store.Each(ctx, query, func(row driver.Rows) error {
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
	s := slots{Slots: source.Slots{Filters: "true", Dimension: "''"}, From: !p.Filters.From.IsZero(), To: !p.Filters.To.IsZero() && !p.Filters.To.After(x.Newest)}
	s.Shares, s.Widget = p.SharesSince.After(plan.OpenFrom), p.Subject.Kind == schema.SubjectWidget
	q.VisitorFilters(&p.Filters, &s.Slots)
	var committed []string
	for i, epoch := range slices.Sorted(maps.Keys(g.Refreshes)) {
		first := epoch << numberBits
		q.Params = append(q.Params, source.Param{Name: fmt.Sprintf("first_%d", i), Value: first + 1}, source.Param{Name: fmt.Sprintf("last_%d", i), Value: first + uint64(g.Refreshes[epoch])})
		committed = append(committed, fmt.Sprintf("refresh BETWEEN {first_%d:UInt64} AND {last_%d:UInt64}", i, i))
	}
	s.Committed = source.Expr(strings.Join(committed, " OR "))
	if s.From {
		q.Params = append(q.Params, source.Param{Name: "from", Value: p.From()})
		s.Window += " AND first_time >= toDateTime64({from:String}, 3, 'UTC')"
	}
	if s.To {
		q.Params = append(q.Params, source.Param{Name: "to", Value: p.To()})
		s.Window += " AND time < toDateTime64({to:String}, 3, 'UTC')"
	}
	return q, s
}

// dimensioned sets the slot of a dimension, of which only some values are read.
func dimensioned(q *source.Query, s *slots, dimension source.Expr, values []string) {
	if dimension == "" {
		return
	}
	s.Dimension = "toString(" + dimension + ")"
	s.Filters += " AND " + dimension + " IN {top:Array(String)}"
	q.Params = append(q.Params, source.Param{Name: "top", Value: values})
}

const untilTo = "later_ms, later_kinds"

func (x Source) exposuresQuery(dimension source.Expr, values []string) (*source.Query, error) {
	q, s := x.query()
	dimensioned(q, &s, dimension, values)
	recentFrom, recentTo := plan.Recent(x.Through)
	q.Params = append(q.Params, source.Param{Name: "recent_from", Value: recentFrom}, source.Param{Name: "recent_to", Value: recentTo})
	if s.Shares {
		q.Params = append(q.Params, source.Param{Name: "shares_since", Value: x.SharesSince.UnixMilli()})
	}
	s.Views = "sum(views)"
	s.Actions = []source.Expr{"sum(clicks)", "sum(submits)", "sum(completions)", "sum(conversions)", "sum(contacts)"}
	s.Completed, s.Conversion = "countIf(completions > 0)", "countIf(conversions > 0)"
	s.Seen = "(first_time >= toDateTime64({from:String}, 3, 'UTC') OR first_time + toIntervalMillisecond(last_ms) >= toDateTime64({from:String}, 3, 'UTC'))"
	if s.To {
		const within = "t < dateDiff('millisecond', first_time, toDateTime64({to:String}, 3, 'UTC'))"
		of := func(kind visit.Kind) source.Expr {
			return source.Expr(fmt.Sprintf("arrayCount((t, kind) -> kind = %d AND %s, %s)", kind, within, untilTo))
		}
		s.Views = "sum(1 + " + of(visit.View) + ")"
		for i, kind := range []visit.Kind{visit.Click, visit.Submit, visit.Completion, visit.Conversion, visit.Contact} {
			s.Actions[i] = "sum(" + of(kind) + ")"
		}
		s.Completed, s.Conversion = "countIf("+of(visit.Completion)+" > 0)", "countIf("+of(visit.Conversion)+" > 0)"
		s.Seen = source.Expr("(first_time >= toDateTime64({from:String}, 3, 'UTC') OR arrayExists(t -> t >= dateDiff('millisecond', first_time, toDateTime64({from:String}, 3, 'UTC')) AND " + within + ", later_ms))")
	}
	return q, render(q, "exposures.sql", s)
}

func (x Source) conversionsQuery(dimension source.Expr, values []string) (*source.Query, error) {
	q, s := x.query()
	dimensioned(q, &s, dimension, values)
	if x.Goal != nil {
		q.Params = append(q.Params, source.Param{Name: "goal_id", Value: x.Goal.ID})
	}
	if x.Goal != nil && x.Filters.GoalValue == nil && x.Outliers == nil {
		return q, render(q, "conversions.sql", s)
	}
	s.Goals = "true"
	if x.Goal != nil {
		s.Goals = "goal_id = {goal_id:Int64}"
	}
	q.ValueFilters(x.Execution, &s.Slots)
	return q, render(q, "converted.sql", s)
}
