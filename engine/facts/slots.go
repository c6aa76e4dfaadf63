package facts

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// expr is trusted SQL. It consists of constants and parameter names, and never has user input.
type expr string

// slots are the slots of the files of sql/ that reports use.
type slots struct {
	Facts, Sent  expr // tables of facts and of events
	Widget       bool // also count clicks, submits, completions, conversions and contacts
	Dimension    expr // value of the dimension
	Filters      expr // of a first view: whether its visitor is in the report
	Goals        expr // of a row: whether it is of a goal event that counts
	Cap          bool // total values of visitors are limited to {cap}
	AboveCap     bool // only events with a total above {cap} before or after them
	From, To     bool // whether the window has a start, and an end before the newest event
	Columns      expr // of a visitor, apart from the counts
	Place        expr // of a row, see addRows
	Keys         []keyColumn
	Period       expr // index of the period of equal shares of the first view; empty: the shares never changed
	Crossed      expr // see key.crossed
	ByFirstDay   bool // rows of visitors are grouped by the day of the first view
	Recent       bool // also count the visitors of the recent days
	Window       bool // only events of ages below {age_to_ms} count
	AgeFrom      bool // and from {age_from_ms} on
	Mature       bool // only visitors first exposed until {mature_ms} count
	OnlyImmature bool // only the others count
	ByAge        bool // also sum the ages of first conversions
	OnFirstView  bool // the events of the window count at the time of the first view
	Immature     expr // of a visitor: whether the window has not ended
	Completions  expr // of a visitor
	Conversions  expr // of a visitor
	InWindow     expr // of an event of a widget: 1 if it counts, and else 0
	StepTime     expr // of an event other than a goal, in a series
	Joint        bool // rows of visitors are summed, too
	Crossers     bool // only multi-exposed visitors
	Numbered     bool // number the counted events of each visitor again
	Most         bool // at most {most} values
	Unknown      bool // also count the events whose amounts are in another currency
	Few          bool // the statement reads few rows: one thread suffices
	Amounts      [3]amount
	Attributes   string // columns, separated by commas
}

// amount is a column of goal events whose total is summed for each visitor.
type amount struct {
	Column      expr // empty: the total of each visitor is 0
	Type        expr // function that converts to the type of products
	HasZero     bool // whether the total of a visitor may be 0, if not all of the goal are
	HasNegative bool // or below 0
}

// reportQuery has the slots from which a statement of a report is rendered, and its parameters.
type reportQuery struct {
	slots
	goals      []int64 // whose events count; empty: of all
	byGoal     bool    // they are summed apart
	dimensions []expr  // values of the attributes of the dimension
	params     []driver.NamedValue
	write      func() string // returns the statement; nil: it is rendered from a file
}

func (q *reportQuery) addParam(name string, value any) {
	q.params = append(q.params, driver.NamedValue{Name: name, Value: value})
}

// columns maps attributes to columns.
var columns = map[string]expr{
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

// newQuery returns the parameters and slots that all statements of the report share.
func (s *counting) newQuery() *reportQuery { //nolint:funlen,gocyclo // the slots of one statement, in its order
	p := &s.Question
	q := &reportQuery{slots: slots{
		Facts: expr(s.Facts), Sent: expr(s.Sent), Widget: p.Subject.Kind == schema.SubjectWidget,
		From: !p.Filters.From.IsZero(), To: s.endsEarly, Joint: s.isJoint, Recent: s.isJoint, Few: !s.days,
		Unknown:     s.hasUnknown,
		Completions: "completions", Conversions: "conversions", InWindow: "1",
		StepTime:   "toUnixTimestamp64Milli(first_time) + ms",
		Attributes: attributes,
	}}
	q.addParam("visitors", s.sectionOf(p.Subject, fold.OfVisitor))
	q.addParam("goals", s.sectionOf(p.Subject, fold.OfGoal))
	q.addParam("days", s.sectionOf(p.Subject, fold.OfDay))

	// The goals, filters on first views, and filters on the values of goal events.
	visitors, goals := []string{}, []string{"section = {goals:UInt64}"}
	q.goals = s.goals
	if s.goals == nil && s.GoalID != 0 {
		q.goals = []int64{s.GoalID}
	}
	switch {
	case s.isJoint:
		q.goals = append([]int64{0}, q.goals...)
		goals[0] = "section IN ({visitors:UInt64}, {goals:UInt64}) AND goal_id IN {goal_ids:Array(Int64)}"
	case len(q.goals) > 1:
		goals = append(goals, "goal_id IN {goal_ids:Array(Int64)}")
	case len(q.goals) == 1: // planned faster
		goals = append(goals, "goal_id = {goal_id:Int64}")
		q.addParam("goal_id", q.goals[0])
	}
	q.addParam("goal_ids", q.goals)
	add := func(attribute string, operator, kind string, value any) {
		column := string(columns[attribute])
		visitors = append(visitors, column+operator+"{filter_"+column+":"+kind+"}")
		q.addParam("filter_"+column, value)
	}
	for _, filter := range p.Filters.Lists {
		add(filter.Attribute, " IN ", "Array(String)", filter.Values)
	}
	for _, filter := range p.Filters.Texts {
		if strings.Contains(filter.Pattern, "*") {
			add(filter.Attribute, " LIKE ", "String", likeEscaper.Replace(filter.Pattern))
		} else {
			add(filter.Attribute, " = ", "String", filter.Pattern)
		}
	}
	if p.Filters.GoalValue != nil {
		goals = append(goals, s.orUnknown("value >= {goal_value:Int64}"))
		q.addParam("goal_value", plan.LeastUnits(p.Filters.GoalValue))
	}
	if s.outliers != nil && !s.outliers.Open {
		goals = append(goals, s.orUnknown("value >= {outlier_least:Int64} AND value <= {outlier_most:Int64}"))
		q.addParam("outlier_least", s.outliers.Least)
		q.addParam("outlier_most", s.outliers.Most)
	}
	if p.Filters.Visitors != nil {
		of := compiler{query: q, name: "visitors"}
		visitors = append(visitors, of.condition(p.Filters.Visitors))
	}
	q.Filters = expr(cmp.Or(strings.Join(visitors, " AND "), "true"))
	q.Goals = expr(strings.Join(goals, " AND "))

	// What counts, and by what it is divided.
	q.Cap = s.isCapped
	if q.Cap {
		q.addParam("cap", s.limit.Limit)
	}
	if q.From {
		q.addParam("from_ms", p.Filters.From.UnixMilli())
	}
	if q.To {
		q.addParam("to_ms", p.Filters.To.UnixMilli())
	}
	if len(p.SharePeriods) > 1 {
		var changes []int64
		for _, period := range p.SharePeriods[1:] {
			changes = append(changes, period.Since.UnixMilli())
		}
		q.addParam("share_changes", changes)
		q.Period = "toUInt8(arrayCount(ms -> toUnixTimestamp64Milli(first_time) >= ms, " +
			"{share_changes:Array(Int64)}))"
	}
	q.Columns = "sign, variation, first_time, first_day, multi_exposed_at"
	if p.ConversionWindow.IsSet() {
		s.addWindow(q)
	}
	recentFrom, recentTo := plan.RecentPeriod(s.stored.Ingested)
	q.addParam("recent_from", recentFrom.Format(time.DateOnly))
	q.addParam("recent_to", recentTo.Format(time.DateOnly))
	if p.Interval != "" {
		width, shift := p.Interval.BucketGrid()
		q.addParam("width", width.Milliseconds())
		q.addParam("shift", shift.Milliseconds())
	}
	switch {
	case !p.Crossings:
	case p.Interval != "":
		q.Crossed = bucketOf("toUnixTimestamp64Milli(multi_exposed_at)")
	case q.To:
		q.Crossed = "-toInt64(toUnixTimestamp64Milli(multi_exposed_at) >= {to_ms:Int64})"
	}
	for _, attribute := range p.Dimension.Attributes() {
		q.addDimension(attribute)
	}
	return q
}

// render returns a file of sql/ with the slots.
func (q *reportQuery) render(file string) string { return renderFile(file, &q.slots) }

// addDimension adds an attribute by which the visitors are broken down: one of the 15, or an own one.
func (q *reportQuery) addDimension(attribute string) {
	column, known := columns[attribute]
	value := column
	if !known {
		of := compiler{query: q, name: "dimension" + strconv.Itoa(len(q.dimensions))}
		value = expr(of.label("custom", attribute, "=([^\\0]*)"))
		column = "custom"
	}
	q.dimensions = append(q.dimensions, value)
	q.Dimension = value
	if !strings.Contains(string(q.Columns), string(", "+column)) {
		q.Columns += ", " + column
	}
}

// orUnknown returns a condition on the value of a goal event that is also true if the value is not known. The result
// then withholds what depends on it.
func (s *counting) orUnknown(condition string) string {
	if s.hasUnknown {
		return "(" + condition + " OR bitAnd(marks, 1) = 1)"
	}
	return condition
}

// addWindow adds the conversion window of the report.
func (s *counting) addWindow(q *reportQuery) {
	w := s.ConversionWindow
	q.Window = true
	q.AgeFrom = w.From > 0
	q.OnFirstView = s.Timing == plan.OnFirstView
	q.addParam("age_from_ms", w.From.Milliseconds())
	q.addParam("age_to_ms", w.To.Milliseconds())
	q.addParam("maturity_ms", w.Maturity().Milliseconds())
	q.ByAge = s.Timing == plan.ByAge
	q.Mature = s.Timing == plan.WhenMature || q.ByAge
	if q.Mature {
		through := s.stored.Complete
		if to := s.Filters.To; !to.IsZero() && to.Before(through) {
			through = to
		}
		q.addParam("mature_ms", through.Add(-w.Maturity()).UnixMilli())
		q.Immature = "toUnixTimestamp64Milli(first_time) > {mature_ms:Int64}"
	}
	const inside = "arrayCount((ms, kind) -> kind = %d AND ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64}, " +
		"later_ms, later_kinds)"
	q.Completions = expr(fmt.Sprintf(inside, moments.Completion))
	q.Conversions = expr(fmt.Sprintf(inside, moments.Conversion))
	switch s.Timing {
	case plan.WhenMature:
		q.StepTime = "toUnixTimestamp64Milli(first_time) + greatest(toInt64(ms), {maturity_ms:Int64} - 1)"
	case plan.OnFirstView:
		if q.Widget {
			q.StepTime = "toUnixTimestamp64Milli(first_time) + if(kind IN (4, 5), 0, ms)"
		}
	case plan.ByAge:
		q.StepTime = "toInt64(ms)"
	case plan.OnEvent:
	}
	if q.Widget {
		q.Columns += ", later_ms, later_kinds"
		q.InWindow = "toUInt8(kind NOT IN (4, 5) OR ms >= {age_from_ms:UInt64} AND ms < {age_to_ms:UInt64})"
	}
}

// keyColumn is a column by which a statement groups its rows.
type keyColumn struct {
	Name  string // see addRows
	Value expr   // empty: the statement does not group by it
}

// visitorKeys returns the columns by which sums over the rows of a visitor, which have these columns, are grouped.
func (q *reportQuery) visitorKeys() (keys []keyColumn) {
	if q.Period != "" {
		keys = append(keys, keyColumn{"period", "of_period"})
	}
	if q.Crossed != "" {
		keys = append(keys, keyColumn{"crossed", "of_crossing"})
	}
	return keys
}

// visitorSteps is the file whose rows are what each bucket adds to the sums of visitors.
const visitorSteps = "visitor_steps.sql"

// factTime is the time of a fact, in milliseconds since 1970.
const factTime expr = "toUnixTimestamp64Milli(first_time) + toInt64(since_ms)"

// bucketOf returns the bucket of the series at a time in milliseconds since 1970.
func bucketOf(ms expr) expr {
	return "toInt64(intDiv(" + ms + " + {shift:Int64}, {width:Int64}))"
}
