package peers

import (
	"embed"
	"errors"
	"strconv"
	"strings"
	"text/template"
	"time"

	"lifthouse/loadgen/measure"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

var sqlTemplates = template.Must(template.New("").Option("missingkey=error").ParseFS(sqlFiles, "sql/*.sql"))

// expr is a trusted SQL expression. Only constants of this package have this
// type.
type expr string

// slots are the variable parts of the SQL templates.
type slots struct {
	Table     expr
	Dimension expr
	Value     expr
	Aggregate expr
	Filter    expr // condition on exposures
	Span      expr // length of the window, in milliseconds
}

func sqlText(file string, s slots) (string, error) {
	var text strings.Builder
	err := sqlTemplates.ExecuteTemplate(&text, file, s)
	return text.String(), err
}

// Tables that the peers' queries read.
const (
	eventsTable      expr = "events"
	timeOrderedTable expr = "loadgen_events_by_time" // copy of the events ordered by time
)

var tableNames = map[expr]string{eventsTable: "as stored", timeOrderedTable: "by time"}

// Question is a question that all computations answer. A Lifthouse report
// always has all metrics.
type Question string

// The questions.
const (
	MeanValue       Question = "mean value"
	ConversionRate  Question = "conversion rate"
	FourMetrics     Question = "goals, value, profit and extra value"
	ByDevice        Question = "mean value by device"
	Mobile          Question = "mean value, mobile"
	MobileCountries Question = "mean value, mobile in DE, FR"
)

var questions = []Question{MeanValue, ConversionRate, FourMetrics, ByDevice, Mobile, MobileCountries}

// filters has the conditions of the filtered questions.
var filters = map[Question]expr{
	Mobile:          "device = 'mobile'",
	MobileCountries: "device = 'mobile' AND country IN ('DE', 'FR')",
}

// Names of the systems.
const (
	lifthouse       = "Lifthouse"
	lifthouseRollup = "Lifthouse, rollups"
	growthBook      = "GrowthBook"
	postHog         = "PostHog"
)

// count selects one of the counts.
type count func(*Counts) int64

func converted(c *Counts) int64  { return c.Converted }
func goals(c *Counts) int64      { return c.Goals }
func value(c *Counts) int64      { return c.Value }
func profit(c *Counts) int64     { return c.Profit }
func extraValue(c *Counts) int64 { return c.ExtraValue }

// computation is one system's way to answer a question.
type computation struct {
	question   Question
	system     string
	table      expr
	fromRollup bool     // a Lifthouse report from the rollups
	queries    []string // of a peer, run one after the other; nil for Lifthouse
	totals     []count  // the count that each total of the queries must equal
	costs      []measure.Cost
}

// Expressions that fill the slots.
const (
	noDimension     expr = "''"
	deviceDimension expr = "toString(device)"
	oneExpr         expr = "toFloat64(1)"
	valueExpr       expr = "toFloat64(value)"
	profitExpr      expr = "toFloat64(profit)"
	extraValueExpr  expr = "toFloat64(extra_value)"
)

// sumOf fills the slots for the sum of value.
func sumOf(value expr) slots {
	return slots{Dimension: noDimension, Value: value, Aggregate: "sum", Filter: "true"}
}

// computations returns all computations of all questions. The first computation
// of each question is the Lifthouse report from the events. The span is the
// length of the window.
func computations(span time.Duration, rollups bool) ([]*computation, error) {
	var all []*computation
	var errs []error
	for _, question := range questions {
		all = append(all, &computation{question: question, system: lifthouse, table: eventsTable})
		if rollups {
			all = append(all, &computation{question: question, system: lifthouseRollup, table: eventsTable, fromRollup: true})
		}
		for _, table := range []expr{eventsTable, timeOrderedTable} {
			if table == timeOrderedTable && filters[question] != "" {
				continue // the peers' filtered queries are faster on the table as stored
			}
			for _, c := range peerComputations(question) {
				c.question, c.table = question, table
				for _, s := range c.slots {
					s.Table, s.Span = table, expr(strconv.FormatInt(span.Milliseconds(), 10))
					text, err := sqlText(c.file, s)
					c.queries, errs = append(c.queries, text), append(errs, err)
				}
				all = append(all, &c.computation)
			}
		}
	}
	return all, errors.Join(errs...)
}

// peerComputation is a computation with the template of its queries. There is
// one query per slots value.
type peerComputation struct {
	computation
	file  string
	slots []slots
}

// peerComputations returns the computations of GrowthBook and PostHog.
func peerComputations(question Question) []peerComputation {
	peer := func(system, file string, totals []count, s ...slots) peerComputation {
		return peerComputation{computation{system: system, totals: totals}, file, s}
	}
	const growthBookFile, postHogFile = "growthbook.sql", "posthog_mean.sql"
	filtered := sumOf(valueExpr)
	switch question {
	case ConversionRate:
		return []peerComputation{
			peer(growthBook, growthBookFile, []count{converted}, slots{Dimension: noDimension, Value: oneExpr, Aggregate: "max", Filter: "true"}),
			peer(postHog, "posthog_proportion.sql", []count{converted}, slots{}),
		}
	case FourMetrics:
		totals := []count{goals, value, profit, extraValue}
		return []peerComputation{
			peer(growthBook, "growthbook_four.sql", totals, slots{}),
			peer(postHog, postHogFile, totals, // PostHog runs one query per metric
				sumOf(oneExpr), sumOf(valueExpr), sumOf(profitExpr), sumOf(extraValueExpr)),
		}
	case ByDevice:
		filtered.Dimension = deviceDimension
	case Mobile, MobileCountries:
		filtered.Filter = filters[question]
	case MeanValue:
	}
	return []peerComputation{
		peer(growthBook, growthBookFile, []count{value}, filtered),
		peer(postHog, postHogFile, []count{value}, filtered),
	}
}
