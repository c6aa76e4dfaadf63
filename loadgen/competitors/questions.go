package competitors

import (
	"fmt"
	"time"
)

// Question is a question that all computations answer. A Lifthouse report
// always has all metrics.
type Question string

// The questions.
const (
	MeanValue       Question = "mean value"
	ConversionRate  Question = "conversion rate"
	FourMetrics     Question = "goals, value, profit and extra value"
	ByDevice        Question = "mean value by device"
	ByCity          Question = "mean value by city"
	Mobile          Question = "mean value, mobile"
	MobileCountries Question = "mean value, mobile in DE, FR"
	FourFilters     Question = "mean value, four filters with a pattern"
	GoalValue       Question = "mean value of goals from 30"
	WithoutOutliers Question = "mean value without outliers"
	FirstWeek       Question = "mean value, first week"
	Scorecard       Question = "five rates and mean value"
)

var questions = []Question{
	MeanValue, ConversionRate, FourMetrics, Scorecard, ByDevice, ByCity, Mobile, MobileCountries, FourFilters, GoalValue, WithoutOutliers, FirstWeek,
}

// LeastGoalValue is the least value of a goal event in the question GoalValue, in
// the sender's unit.
const LeastGoalValue = 30

// OutlierZScore is the greatest distance from the mean, in standard deviations, in
// the question WithoutOutliers.
const OutlierZScore = 3

// filters has the conditions of the questions about some visitors.
var filters = map[Question]expr{
	Mobile:          "device = 'mobile'",
	MobileCountries: "device = 'mobile' AND country IN ('DE', 'FR')",
	FourFilters:     "device = 'mobile' AND country IN ('DE', 'FR', 'US') AND os = 'android' AND first_visit_page LIKE '/products/%'",
}

// attributes are the columns that the questions use.
var attributes = []expr{"device", "country", "os", "city", "first_visit_page"}

// metric is a metric of a query.
type metric struct {
	Name      expr
	Value     expr // of a goal event
	Aggregate expr // over the goal events of a visitor: sum, or max for a rate
	Condition expr // condition on goal events in a query with one metric; empty: the condition of the question
	Column    expr // of the precomputed tables
}

// sumOf is the mean of an amount per visitor.
func sumOf(name, column expr) metric {
	return metric{Name: name, Value: "toFloat64(" + column + ")", Aggregate: "sum", Column: column}
}

// rateOf is the share of visitors with the n-th goal.
func rateOf(d dialect, n int) metric {
	goal := goalColumn(n)
	name := expr(fmt.Sprintf("m%d", n))
	condition := "goal_id = " + d.parameterReference(string(goal), "Int64")
	return metric{Name: name, Value: "toFloat64(" + condition + ")", Aggregate: "max", Condition: condition, Column: goal}
}

// goalColumn is the name of the n-th goal's parameter and column, from 1.
func goalColumn(n int) expr { return expr(fmt.Sprintf("goal_%d", n)) }

// metricsOf returns the metrics of a question, and the count that each must equal.
func metricsOf(d dialect, question Question, goalCount int) ([]metric, []count) {
	switch question {
	case ConversionRate:
		return []metric{rateOf(d, 1)}, []count{convertedOf}
	case FourMetrics:
		goals := metric{Name: "m1", Value: "toFloat64(1)", Aggregate: "sum", Column: "goals"}
		return []metric{goals, sumOf("m2", "value"), sumOf("m3", "profit"), sumOf("m4", "extra_value")}, []count{goalEvents, valueOf, profitOf, extraValue}
	case Scorecard:
		var metrics []metric
		var counts []count
		for n := 1; n <= goalCount; n++ {
			metrics = append(metrics, rateOf(d, n))
			counts = append(counts, func(c *Counts) int64 { return c.ConvertedByGoal[n-1] })
		}
		mean := sumOf("m0", "value")
		mean.Condition = metrics[0].Condition
		mean.Value = "if(" + mean.Condition + ", toFloat64(value), 0)"
		return append(metrics, mean), append(counts, valueOf)
	case GoalValue:
		mean := sumOf("m1", "value")
		mean.Column = "value_from"
		return []metric{mean}, []count{valueOf}
	case MeanValue, ByDevice, ByCity, Mobile, MobileCountries, FourFilters, WithoutOutliers, FirstWeek:
	}
	return []metric{sumOf("m1", "value")}, []count{valueOf}
}

// windowEnd returns the end of the window of a question about events in [from, to).
func (q Question) windowEnd(from, to time.Time) time.Time {
	if q != FirstWeek {
		return to
	}
	const day = 24 * time.Hour
	return from.Truncate(day).Add(7 * day)
}
