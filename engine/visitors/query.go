package visitors

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema"
)

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

// query returns the parameters and slots that all statements share.
func (x part) query() (*source.Query, slots) {
	p, g := x.Plan, x.Generation
	q := &source.Query{Params: []source.Param{{Name: "bucket", Value: g.Bucket}, {Name: "generation", Value: g.Number}}}
	s := slots{Slots: source.Slots{Filters: "true", Dimension: "''"}, From: !p.Filters.From.IsZero(), To: endsEarly(p, x.Newest)}
	s.Shares, s.Widget = p.SharesSince.After(plan.OpenFrom), p.Subject.Kind == schema.SubjectWidget
	q.VisitorFilters(&p.Filters, &s.Slots)
	if x.Limited != nil {
		q.Capped(x.Limited.Limit, &s.Slots)
	}
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

func (x part) exposuresQuery(dimension source.Expr, values []string) (*source.Query, error) {
	q, s := x.query()
	dimensioned(q, &s, dimension, values)
	recentFrom, recentTo := plan.Recent(x.Through)
	q.Params = append(q.Params, source.Param{Name: "recent_from", Value: recentFrom.Format(time.DateOnly)}, source.Param{Name: "recent_to", Value: recentTo.Format(time.DateOnly)})
	if s.Shares {
		q.Params = append(q.Params, source.Param{Name: "shares_since", Value: x.SharesSince.UnixMilli()})
	}
	s.Key = s.keyOf(s.From)
	s.Within = source.Expr(until("to_ms") + " AND NOT " + until("from_ms"))
	for i, column := range []string{"views", "clicks", "submits", "completions", "conversions", "contacts"} {
		counted := fmt.Sprintf("arrayCount((hour, kind) -> kind = %d AND %s, later_hours, later_kinds)", i+int(visit.View), until("to_ms"))
		if column == "views" {
			counted = "1 + " + counted // the first view
		}
		s.Counts = append(s.Counts, source.Expr(fmt.Sprintf("toUInt32(%s) AS %s", counted, column)))
	}
	return q, q.RenderFrom(sqlTemplates, "exposures.sql", s)
}

func (x part) conversionsQuery(dimension source.Expr, values []string) (*source.Query, error) {
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

func (x part) exposureStepsQuery() (*source.Query, error) {
	q, s := x.query()
	x.stepParams(q)
	return q, q.RenderFrom(sqlTemplates, "exposure_steps.sql", s)
}

func (x part) conversionStepsQuery() (*source.Query, error) {
	q, s := x.query()
	x.stepParams(q)
	s.Key = "toInt64(segment) + 4294967296 * intDiv(toUnixTimestamp64Milli(first_time) + toInt64(since_ms) + {shift:Int64}, {width:Int64})"
	if s.Numbered = !x.isEveryEvent(); s.Numbered {
		s.Key = "toInt64(segment) + 4294967296 * intDiv(toInt64(at_ms) + {shift:Int64}, {width:Int64})"
		x.countedGoals(q, &s)
	}
	return q, q.RenderFrom(sqlTemplates, "conversions.sql", s)
}
