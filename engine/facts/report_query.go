package facts

import (
	"fmt"
	"strings"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema"
)

// slots are the slots of the files of sql/ that reports use.
type slots struct {
	source.Slots
	Facts       source.Expr   // table
	From, To    bool          // whether the window starts, and ends before the newest event
	Shares      bool          // some visitors were exposed before the current shares took effect
	Counts      []source.Expr // of a visitor: columns with the events until the end of the window
	Rank        source.Expr   // of the value of the dimension
	ByDimension bool
	OneGoal     bool        // events of one goal count, {goal_id}
	Series      bool        // group by the bucket
	Bucket      source.Expr // of a goal event
	Numbered    bool        // number the counted events of each visitor again
	Most        bool        // at most {most} values
	Few         bool        // the statement reads few rows: one thread suffices
}

// isEveryEvent reports whether every event of one goal counts, so that the sums in
// the rows are those of the report.
func (x part) isEveryEvent() bool {
	return x.Goal != nil && x.Filters.GoalValue == nil && x.Outliers == nil
}

// endsEarly reports whether the window excludes events at its end.
func (x part) endsEarly() bool {
	return !x.Filters.To.IsZero() && !x.Filters.To.After(x.Stored.Newest)
}

// query returns the parameters and slots of all statements of the report.
func (s *counting) query() (*source.Query, slots) {
	p := s.Plan
	q := &source.Query{}
	param := func(name string, value any) { q.Params = append(q.Params, source.Param{Name: name, Value: value}) }
	param("visitors", SectionOf(p.Subject, fold.OfVisitor))
	param("goals", SectionOf(p.Subject, fold.OfGoal))
	param("days", SectionOf(p.Subject, fold.OfDay))
	slot := slots{
		Slots: source.Slots{Filters: "true", Goals: "true", Widget: p.Subject.Kind == schema.SubjectWidget}, Facts: s.facts,
		From: !p.Filters.From.IsZero(), To: s.endsEarly(), Shares: p.SharesSince.After(plan.OpenFrom), OneGoal: p.Goal != nil,
		Rank: "toUInt16(0)", Bucket: "toInt64(0)", Few: s.visitors < leastVisitorsByDay,
	}
	q.VisitorFilters(&p.Filters, &slot.Slots)
	q.ValueFilters(s.Execution, &slot.Slots)
	slot.Goals = source.Expr(strings.TrimPrefix(string(slot.Goals), "true AND "))
	if s.Limited != nil {
		q.Capped(s.Limited.Limit, &slot.Slots)
	}
	if p.Goal != nil {
		param("goal_id", p.Goal.ID)
	}
	if slot.From {
		param("from_ms", p.From().UnixMilli())
	}
	if slot.To {
		param("to_ms", p.To().UnixMilli())
	}
	if slot.Shares {
		param("shares_since", p.SharesSince.UnixMilli())
	}
	recentFrom, recentTo := plan.Recent(s.Stored.Ingested)
	param("recent_from", recentFrom.Format(time.DateOnly))
	param("recent_to", recentTo.Format(time.DateOnly))
	if p.Interval != "" {
		width, shift := p.Interval.Grid()
		param("width", width.Milliseconds())
		param("shift", shift.Milliseconds())
	}
	if p.Dimension != "" {
		slot.Dimension = source.Columns[string(p.Dimension)]
	}
	if len(s.top) > 0 {
		ranks := make([]uint16, len(s.top))
		for i := range ranks {
			ranks[i] = uint16(i + 1) //nolint:gosec // few
		}
		param("top", s.top)
		param("ranks", ranks)
		slot.ByDimension, slot.Rank = true, "transform(toString("+slot.Dimension+"), {top:Array(String)}, {ranks:Array(UInt16)}, toUInt16(0))"
	}
	for i, column := range []string{"views", "clicks", "submits", "completions", "conversions", "contacts"} {
		counted := fmt.Sprintf("arrayCount((ms, kind) -> kind = %d AND toUnixTimestamp64Milli(first_time) + ms < {to_ms:Int64}, later_ms, later_kinds)", i+int(visit.View))
		if column == "views" {
			counted = "1 + " + counted // the first view
		}
		slot.Counts = append(slot.Counts, source.Expr(fmt.Sprintf("toUInt32(%s) AS %s", counted, column)))
	}
	return q, slot
}
