package competitors

import (
	"embed"
	"errors"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"lifthouse/loadgen/measure"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

var sqlTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql"))

// expr is a trusted SQL expression. Only constants of this package, and names and
// numbers that it generates, may have this type.
type expr string

// dialect is the dialect of a SQL text.
type dialect int

const (
	clickHouse dialect = iota
	duckDB
)

// parameterReference returns a reference to a query parameter.
func (d dialect) parameterReference(name, kind string) expr {
	if d == duckDB {
		return expr("$" + name)
	}
	return expr("{" + name + ":" + kind + "}")
}

// slots are the variable parts of the SQL templates.
type slots struct {
	dialect   dialect
	Events    expr // table of events
	Dimension expr
	Filter    expr // condition on exposures
	Metrics   []metric
	GoalValue bool   // only goal events from a value
	EveryGoal bool   // goal events of all goals
	Limits    bool   // without outliers
	Span      expr   // length of the window, in milliseconds
	Goals     []expr // names of the parameters with the ids of all goals
}

// Param returns a reference to a query parameter.
func (s *slots) Param(name expr, kind string) expr {
	return s.dialect.parameterReference(string(name), kind)
}

// Campaign returns the condition on the events of the campaign.
func (s *slots) Campaign() expr {
	if s.dialect == duckDB {
		return "true" // the table has no other events
	}
	return "website_id = {website_id:Int64} AND subject = 'campaign' AND subject_id = {campaign_id:Int64}"
}

// Goal returns the condition on goal events.
func (s *slots) Goal() expr {
	switch goal := "goal_id = " + s.Param("goal_1", "Int64"); {
	case s.EveryGoal:
		return "goal_id != 0"
	case s.GoalValue:
		return goal + " AND value >= " + s.Param("goal_value", "Int64")
	default:
		return goal
	}
}

// Window returns the condition on a time.
func (s *slots) Window(column expr) expr {
	const kind = "DateTime64(3, 'UTC')"
	return column + " >= " + s.Param("from", kind) + " AND " + column + " < " + s.Param("to", kind)
}

// ZScore returns the limit of outliers.
func (s *slots) ZScore() int { return OutlierZScore }

// Attributes returns the columns that the questions use.
func (s *slots) Attributes() []expr { return attributes }

func sqlText(file string, s *slots) (string, error) {
	var text strings.Builder
	err := sqlTemplates.ExecuteTemplate(&text, file, s)
	return text.String(), err
}

// Tables that the competitors' queries read.
const (
	duckDBTable         expr = "events"
	visitorOrderedTable expr = "loadgen_events_by_visitor" // copy of the events with a column for each attribute
	timeOrderedTable    expr = "loadgen_events_by_time"    // the same copy, ordered by time
)

// Where the data of a computation are.
const (
	byVisitor   = "by visitor"
	byTime      = "by time"
	precomputed = "precomputed"
	inDuckDB    = "in DuckDB"
)

// Names of the systems.
const (
	lifthouse     = "Lifthouse"
	growthBook    = "GrowthBook"
	postHog       = "PostHog"
	onePass       = "one pass"
	rowPerVisitor = "a row per visitor"
)

// count selects one of the counts.
type count func(*Counts) int64

func convertedOf(c *Counts) int64 { return c.Converted }
func goalEvents(c *Counts) int64  { return c.Goals }
func valueOf(c *Counts) int64     { return c.Value }
func profitOf(c *Counts) int64    { return c.Profit }
func extraValue(c *Counts) int64  { return c.ExtraValue }

// computation is one system's way to answer a question.
type computation struct {
	question Question
	system   string
	table    string
	queries  []string // of a competitor, run one after the other; nil for Lifthouse
	totals   []count  // the count that each total of the queries must equal
	isSlow   bool     // it took longer than slow
	costs    []measure.Cost
}

// isLifthouse reports whether the computation is a Lifthouse report.
func (c *computation) isLifthouse() bool { return c.queries == nil }

// hasSameDefinition reports whether the numbers must equal those of Lifthouse.
// Lifthouse excludes visitors who saw another variation after the end of a window.
// Of the competitors, only GrowthBook's precomputed units include this information.
func (c *computation) hasSameDefinition() bool {
	return c.question != FirstWeek || c.system == growthBook && c.table == precomputed
}

// form is one way in which a competitor computes.
type form struct {
	system  string
	table   string // where the data are
	file    string
	dialect dialect
	events  expr
	single  bool // one query per metric
	answers func(Question) bool
}

func everyQuestion(Question) bool { return true }

// isUnfiltered reports whether a question has no filter. Only such questions also use the copy ordered by time, because
// queries with filters are faster on the copy ordered by visitor.
func isUnfiltered(q Question) bool {
	return slices.Contains([]Question{MeanValue, ConversionRate, FourMetrics, ByDevice}, q)
}

// forms are all the ways in which the competitors compute. In ClickHouse, a PostHog
// proportion is a funnel.
var forms = []form{
	{growthBook, byVisitor, "growthbook.sql", clickHouse, visitorOrderedTable, false, everyQuestion},
	{postHog, byVisitor, "posthog.sql", clickHouse, visitorOrderedTable, true, everyQuestion},
	{growthBook, byTime, "growthbook.sql", clickHouse, timeOrderedTable, false, isUnfiltered},
	{postHog, byTime, "posthog.sql", clickHouse, timeOrderedTable, true, isUnfiltered},
	{growthBook, precomputed, "growthbook_precomputed.sql", clickHouse, "", false, func(q Question) bool {
		return q != WithoutOutliers // daily values do not contain single goal events
	}},
	{postHog, precomputed, "posthog_precomputed.sql", clickHouse, "", true, everyQuestion},
	{growthBook, inDuckDB, "growthbook.sql", duckDB, duckDBTable, false, everyQuestion},
	{postHog, inDuckDB, "posthog.sql", duckDB, duckDBTable, true, everyQuestion},
	{onePass, inDuckDB, "one_pass.sql", duckDB, duckDBTable, false, everyQuestion},
	{rowPerVisitor, inDuckDB, "visitors.sql", duckDB, "", false, func(q Question) bool {
		return q != WithoutOutliers && q != GoalValue && q != FirstWeek // the table has only sums over all goal events of a visitor
	}},
}

// allComputations returns all computations of all questions. The first computation
// of each question is the Lifthouse report.
func (r *runner) allComputations() ([]*computation, error) {
	var all []*computation
	var errs []error
	for _, question := range questions {
		all = append(all, &computation{question: question, system: lifthouse, table: "facts"})
		for i := range forms {
			f := &forms[i]
			if !f.answers(question) || f.dialect == duckDB && r.DuckDB == nil {
				continue
			}
			c, err := f.newComputation(question, len(r.GoalIDs), r.to.Sub(r.from))
			all = append(all, c)
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

// newComputation returns the computation that answers the question.
func (f *form) newComputation(question Question, goals int, span time.Duration) (*computation, error) {
	metrics, totals := metricsOf(f.dialect, question, goals)
	s := slots{
		dialect: f.dialect, Events: f.events, Dimension: "''", Filter: "true", Metrics: metrics, GoalValue: question == GoalValue,
		EveryGoal: question == Scorecard, Limits: question == WithoutOutliers, Span: expr(strconv.FormatInt(span.Milliseconds(), 10)),
	}
	if filter := filters[question]; filter != "" {
		s.Filter = filter
	}
	switch question {
	case ByDevice:
		s.Dimension = "device"
	case ByCity:
		s.Dimension = "city"
	default:
	}
	c := &computation{question: question, system: f.system, table: f.table, totals: totals}
	parts := [][]metric{metrics}
	if f.single {
		parts = nil
		for _, m := range metrics {
			parts = append(parts, []metric{m})
		}
	}
	for _, part := range parts {
		s.Metrics = part
		file := f.file
		if file == "posthog.sql" && f.dialect == clickHouse && question == ConversionRate {
			file = "posthog_proportion.sql"
		}
		text, err := sqlText(file, &s)
		if err != nil {
			return nil, err
		}
		c.queries = append(c.queries, text)
	}
	return c, nil
}
