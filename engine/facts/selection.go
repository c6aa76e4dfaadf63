package facts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema"
)

// selection has the SQL of a question on a server that its statements share: which rows count, and by what they are
// divided.
type selection struct {
	tables
	params parameters
	few    bool // the subject has few rows

	filters   []string // conditions of the attributes of the first view, which every row has
	times     []string // conditions of the time of the first view: the window of times
	firstView []string // and that the conversion window has ended, if results wait for it
	visitors  []string // conditions of the rows of visitors: the section and the filters
	goals     []string // conditions of the rows of goal events that count

	dimensions  []string // expressions of the attributes of the dimension
	divisions   []keyColumn
	maturity    []keyColumn // whether the window has ended; none: it has, or it does not matter
	completions string      // number of completions of a visitor that count
	conversions string      // and of conversions
	endsEarly   bool        // the window of times excludes events at its end
	hasUnknown  bool        // there is no rate for amounts of some events of the subject
}

// Times in milliseconds since 1970: of the first view of the visitor of a row, and of the event of a row.
const (
	firstTime = "toUnixTimestamp64Milli(first_time)"
	factTime  = firstTime + " + toInt64(since_ms)"
)

// The conditions that the conversion window of a visitor has ended, or not.
const (
	isMature   = firstTime + " <= {mature_ms:Int64}"
	isImmature = firstTime + " > {mature_ms:Int64}"
)

// counted is a condition that the events of a row count. They do not if their visitor has no view before them.
const counted = "variation != ''"

// ofUnknown is 1 if the amounts of a row are not known, and else 0.
const ofUnknown = "bitAnd(marks, 1)"

// columns maps attributes to columns.
var columns = map[string]string{
	"device":         "device",
	"browser":        "browser",
	"os":             "os",
	"country":        "country",
	"region":         "region",
	"city":           "city",
	"channel":        "channel",
	"referrer":       "referrer",
	"utmSource":      "utm_source",
	"utmMedium":      "utm_medium",
	"utmCampaign":    "utm_campaign",
	"utmContent":     "utm_content",
	"utmTerm":        "utm_term",
	"firstVisitPage": "first_visit_page",
	"visitorType":    "visitor_type",
}

// likeEscaper converts the pattern of a filter to a LIKE pattern.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`)

// newSelection returns the selection of an answer on a server.
func newSelection(x *answer, on *state) *selection {
	s := &selection{tables: on.tables, few: !on.days, completions: "completions", conversions: "conversions"}
	s.endsEarly = !x.Filters.To.IsZero() && !x.Filters.To.After(x.stored.Newest)
	for _, cell := range on.all {
		s.hasUnknown = s.hasUnknown || cell.CountAt(fold.UnknownValues) > 0
	}
	s.params.add("visitors", on.sectionOf(x.Subject, fold.OfVisitor))
	s.params.add("goals", on.sectionOf(x.Subject, fold.OfGoal))
	s.params.add("days", on.sectionOf(x.Subject, fold.OfDay))
	recentFrom, recentTo := plan.RecentPeriod(x.stored.Ingested)
	s.params.add("recent_from", recentFrom.Format(time.DateOnly))
	s.params.add("recent_to", recentTo.Format(time.DateOnly))

	s.addFilters(&x.Question)
	s.visitors = append([]string{"section = {visitors:UInt64}"}, s.filters...)
	s.addTimes(&x.Question)
	s.addMaturity(x)
	s.addGoals(x)
	s.addDivisions(&x.Question)
	for _, attribute := range x.Dimension.Attributes() {
		s.dimensions = append(s.dimensions, s.attribute(attribute))
	}
	return s
}

// addFilters adds the filters of first views.
func (s *selection) addFilters(q *plan.Question) {
	add := func(attribute string, operator, kind string, value any) {
		column := columns[attribute]
		s.filters = append(s.filters, column+operator+"{filter_"+column+":"+kind+"}")
		s.params.add("filter_"+column, value)
	}
	for _, filter := range q.Filters.Lists {
		add(filter.Attribute, " IN ", "Array(String)", filter.Values)
	}
	for _, filter := range q.Filters.Texts {
		if strings.Contains(filter.Pattern, "*") {
			add(filter.Attribute, " LIKE ", "String", likeEscaper.Replace(filter.Pattern))
		} else {
			add(filter.Attribute, " = ", "String", filter.Pattern)
		}
	}
	if q.Filters.Visitors != nil {
		of := compiler{params: &s.params, name: "visitors"}
		s.filters = append(s.filters, of.condition(q.Filters.Visitors))
	}
}

// addTimes adds the window of times.
func (s *selection) addTimes(q *plan.Question) {
	if !q.Filters.From.IsZero() {
		s.params.add("from_ms", q.Filters.From.UnixMilli())
		s.times = append(s.times, firstTime+" >= {from_ms:Int64}")
	}
	if s.endsEarly {
		s.params.add("to_ms", q.Filters.To.UnixMilli())
		s.times = append(s.times, firstTime+" < {to_ms:Int64}")
	}
	s.firstView = slices.Clone(s.times)
}

// addMaturity adds the conversion window.
func (s *selection) addMaturity(x *answer) {
	w := x.ConversionWindow
	if !w.IsSet() {
		return
	}
	s.params.add("age_from_ms", w.From.Milliseconds())
	s.params.add("age_to_ms", w.To.Milliseconds())
	s.params.add("maturity_ms", w.Maturity().Milliseconds())
	const inside = "arrayCount((ms, kind) -> kind = %d AND ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64}, " +
		"later_ms, later_kinds)"
	s.completions = fmt.Sprintf(inside, moments.Completion)
	s.conversions = fmt.Sprintf(inside, moments.Conversion)
	if !isOfMature(&x.Question) {
		return
	}
	through := x.stored.Complete
	if to := x.Filters.To; !to.IsZero() && to.Before(through) {
		through = to
	}
	s.params.add("mature_ms", through.Add(-w.Maturity()).UnixMilli())
	s.firstView = append(s.firstView, isMature)
	s.maturity = []keyColumn{{
		column{"immature", isImmature},
		"UInt8",
		func(at *rowKey) any { return &at.Immature },
	}}
}

// addGoals adds the conditions of the goal events that count.
func (s *selection) addGoals(x *answer) {
	s.goals = []string{"section = {goals:UInt64}"}
	switch of := x.countedGoals(); len(of) {
	case 0:
	case 1: // planned faster
		s.goals = append(s.goals, "goal_id = {goal_id:Int64}")
		s.params.add("goal_id", of[0])
	default:
		s.goals = append(s.goals, "goal_id IN {goal_ids:Array(Int64)}")
		s.params.add("goal_ids", of)
	}
	if x.Filters.GoalValue != nil {
		s.goals = append(s.goals, s.orUnknown("value >= {goal_value:Int64}"))
		s.params.add("goal_value", plan.LeastUnits(x.Filters.GoalValue))
	}
	if x.outliers != nil && !x.outliers.Open {
		s.goals = append(s.goals, s.orUnknown("value >= {outlier_least:Int64} AND value <= {outlier_most:Int64}"))
		s.params.add("outlier_least", x.outliers.Least)
		s.params.add("outlier_most", x.outliers.Most)
	}
	s.goals = append(s.goals, s.filters...)
	s.goals = append(s.goals, s.firstView...)
	w := x.ConversionWindow
	if s.endsEarly && !countsAtFirstView(&x.Question) {
		s.goals = append(s.goals, factTime+" < {to_ms:Int64}")
	}
	if w.From > 0 {
		s.goals = append(s.goals, "since_ms >= {age_from_ms:UInt64}")
	}
	if w.IsSet() {
		s.goals = append(s.goals, "since_ms < {age_to_ms:UInt64}")
	}
}

// countsAtFirstView reports whether the events of a conversion window count at the first view, whenever they happened.
func countsAtFirstView(q *plan.Question) bool {
	return q.ConversionWindow.IsSet() && q.Timing == plan.OnFirstView
}

// countedGoals returns the goals whose events count; none: all goals.
func (x *answer) countedGoals() []int64 {
	if x.goals == nil && x.GoalID != 0 {
		return []int64{x.GoalID}
	}
	return x.goals
}

// orUnknown returns a condition on the value of a goal event that is also true if the value is not known. The result
// then withholds what depends on it.
func (s *selection) orUnknown(condition string) string {
	if s.hasUnknown {
		return "(" + condition + " OR " + ofUnknown + " = 1)"
	}
	return condition
}

// addDivisions adds the columns by which all sums are divided: periods of equal shares, and the crossings of
// multi-exposed visitors.
func (s *selection) addDivisions(q *plan.Question) {
	if q.Interval != "" {
		width, shift := q.Interval.BucketGrid()
		s.params.add("width", width.Milliseconds())
		s.params.add("shift", shift.Milliseconds())
	}
	if len(q.SharePeriods) > 1 {
		var changes []int64
		for _, period := range q.SharePeriods[1:] {
			changes = append(changes, period.Since.UnixMilli())
		}
		s.params.add("share_changes", changes)
		s.divisions = append(s.divisions, keyColumn{
			column{"period", "toUInt8(arrayCount(ms -> " + firstTime + " >= ms, {share_changes:Array(Int64)}))"},
			"UInt8",
			func(at *rowKey) any { return &at.period },
		})
	}
	crossed := ""
	switch {
	case !q.Crossings:
	case q.Interval != "":
		crossed = bucketOf("toUnixTimestamp64Milli(multi_exposed_at)")
	case s.endsEarly:
		crossed = "-toInt64(toUnixTimestamp64Milli(multi_exposed_at) >= {to_ms:Int64})"
	}
	if crossed != "" {
		s.divisions = append(s.divisions, keyColumn{
			column{"crossed", crossed}, "Int64", func(at *rowKey) any { return &at.crossed },
		})
	}
}

// attribute returns the expression of an attribute: one of the 15, or an own one.
func (s *selection) attribute(name string) string {
	if column, known := columns[name]; known {
		return column
	}
	of := compiler{params: &s.params, name: "dimension" + strconv.Itoa(len(s.dimensions))}
	return of.label("custom", name, "=([^\\0]*)")
}

// bucketKey is the bucket of the series at a time in milliseconds since 1970.
func bucketKey(ms string) keyColumn {
	return keyColumn{column{"bucket", bucketOf(ms)}, "Int64", func(at *rowKey) any { return &at.bucket }}
}

func bucketOf(ms string) string { return "toInt64(intDiv(" + ms + " + {shift:Int64}, {width:Int64}))" }

// keysOfVisitor returns the columns with the keys of a visitor in a statement that groups rows by visitor: n is the
// number of rows that are not cancelled, and all of them have the same keys. outer are the keys of a statement over it.
func keysOfVisitor(keys []keyColumn) (columns []column, outer []keyColumn) {
	for _, key := range keys {
		sql := "to" + key.kind + "(intDiv(sum(sign * toInt64(" + key.sql + ")), n))"
		columns = append(columns, column{"of_" + key.name, sql})
		key.sql = "of_" + key.name
		outer = append(outer, key)
	}
	return columns, outer
}

// slots are the slots of the files of sql/ that reports use.
type slots struct {
	tables
	Where    string // conditions of the rows
	Settings string
}

// render returns a file of sql/ with conditions.
func (s *selection) render(file string, where ...string) string {
	return renderFile(file, slots{s.tables, strings.Join(where, "\n    AND "), settingsOf(s.few)})
}

// isOfWidget reports whether a subject has other events than views and goals.
func isOfWidget(of schema.Subject) bool { return of.Kind == schema.SubjectWidget }
