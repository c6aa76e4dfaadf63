package result

import (
	"cmp"
	_ "embed" // the texts of decisions
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/metric"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// VerdictInWords returns a verdict as text. A verdict that is not conclusive reads as a preliminary result. One without
// looks says whether it holds or only describes.
func (c *Comparison) VerdictInWords() string {
	conclusive, today := "better", "ahead"
	switch c.Verdict {
	case stats.VerdictBetter:
	case stats.VerdictWorse:
		conclusive, today = "worse", "behind"
	case stats.VerdictInconclusive:
		return "inconclusive"
	case stats.VerdictInsufficientData:
		return "not enough data"
	}
	switch {
	case c.Evidence != nil && c.Evidence.Holds:
		return conclusive + ", holds"
	case c.Evidence != nil:
		return today + ", describes"
	case c.Conclusive == nil:
		return today
	case *c.Conclusive:
		return conclusive
	}
	return today + ", not conclusive"
}

// ConclusiveVerdict returns the verdict if a look supports it, and VerdictInconclusive otherwise: the last look if the
// verdict only describes. The result selects the colour of a verdict.
func (c *Comparison) ConclusiveVerdict() stats.Verdict {
	isConclusive := c.Sequential != nil && c.Sequential.Significant
	if c.Conclusive != nil {
		isConclusive = *c.Conclusive
	}
	if c.Evidence != nil {
		isConclusive = c.Evidence.Holds
	}
	if isConclusive {
		return c.Verdict
	}
	return stats.VerdictInconclusive
}

// metrics has the name of each metric with a name in texts, and what it counts in a month.
var metrics = map[query.Metric]struct{ name, month string }{
	query.GoalConversionRate:   {"the goal conversion rate", "converted visitors"},
	query.ConversionRate:       {"the conversion rate", "visitors with a conversion"},
	query.CompletionRate:       {"the completion rate", "visitors with a completion"},
	query.GoalsPerVisitor:      {"goals per visitor", "goals"},
	query.AverageValue:         {"average value", ""},
	query.ValuePerVisitor:      {"value per visitor", "of value"},
	query.ProfitPerVisitor:     {"profit per visitor", "of profit"},
	query.ExtraValuePerVisitor: {"extra value per visitor", "of extra value"},
}

// nameIn returns the name of the compared metric of a plan in a sentence, with its conversion window. That of an
// expression is in its text.
func nameIn(p *plan.Plan) string {
	if p.Expression != nil {
		return nameOfExpression(p)
	}
	return metrics[p.Metric].name + newAgeRange(p).afterName()
}

// nameOfExpression returns the name of a declared metric, or else one that says what the expression measures.
func nameOfExpression(p *plan.Plan) string { return cmp.Or(p.MetricName, p.Expression.ShortName()) }

// nameOfDeclared returns the name of the primary metric in a sentence.
func nameOfDeclared(p *plan.Plan) string {
	if about := p.AboutMeasure(p.Declared.PrimaryMeasure()); about.Expression != nil {
		return nameOfExpression(about)
	}
	return metrics[p.Declared.Metric].name
}

// nameOfMetric returns the name of a metric in a sentence. That of a declared metric, whose plan is not known, says
// what it measures.
func nameOfMetric(m query.Metric) string {
	if of := m.Expression(); of != nil {
		return of.ShortName()
	}
	return metrics[m].name
}

// monthOf returns what a metric counts in a month. The units of money follow its currency.
func monthOf(m query.Metric) string {
	of := m.Expression()
	switch {
	case of == nil:
		return metrics[m].month
	case of.Kind() == metric.Money:
		return metrics[query.ValuePerVisitor].month
	case of.Kind() == metric.Rate:
		return "visitors"
	default:
		return ""
	}
}

// MetricInWords returns the name of a metric in texts.
func MetricInWords(m query.Metric) string { return strings.TrimPrefix(nameOfMetric(m), "the ") }

// estimateOf returns the value of the expression of the report, or else that of a metric with a name.
func (v *VariationResults) estimateOf(of query.Metric) Estimate {
	if v.Metric != nil {
		return v.Metric.Estimate
	}
	return v.Metrics.EstimateOf(of)
}

// EstimateOf returns the estimate of a metric.
func (m *Metrics) EstimateOf(of query.Metric) Estimate {
	return *cmp.Or(map[query.Metric]*Estimate{
		query.GoalConversionRate: &m.GoalConversionRate, query.ConversionRate: &m.ConversionRate,
		query.CompletionRate: &m.CompletionRate, query.GoalsPerVisitor: &m.GoalsPerVisitor,
		query.ValuePerVisitor: &m.ValuePerVisitor, query.ProfitPerVisitor: &m.ProfitPerVisitor,
		query.ExtraValuePerVisitor: &m.ExtraValuePerVisitor,
	}[of], &m.AverageValue)
}

//go:embed next_steps.json
var nextStepTexts []byte

// nextSteps are what to do after each decision. The page has the same file.
var nextSteps = func() (texts map[DecisionStatus]string) {
	if err := json.Unmarshal(nextStepTexts, &texts); err != nil {
		panic(err) // the file is part of the program
	}
	return texts
}()

// NextStep returns what to do after the decision.
func (d *Decision) NextStep() string { return nextSteps[d.Status] }

// lastDay returns the date of the day that ends at a time.
func lastDay(end time.Time) string { return end.Add(-time.Millisecond).UTC().Format(time.DateOnly) }

// LookInWords returns the lift that a look found, such as "a lift of +5 % (95 % interval +2 % to +8 %)", or else the
// difference. rate reports whether the metric is a rate.
func LookInWords(row *looks.LookRow, level int, rate bool) string {
	if lift := row.Lift; lift.Value != nil && lift.Interval != nil {
		return "a lift of " +
			withInterval(lift, level, func(x float64) string { return wording.FormatLift(x, lift.Interval) })
	}
	spread := wording.HalfWidth(row.Difference.Interval)
	write := func(x float64) string { return wording.FormatSigned(x, wording.SpreadDecimals(spread)) }
	if rate {
		write = percentagePoints(row.Difference)
	}
	return "a difference of " + withInterval(row.Difference, level, write)
}

// ComplementInWords returns how far a lift is above that among all other visitors.
func ComplementInWords(d stats.Effect, level int) string {
	if d.Value == nil {
		return "no difference from the lift among all other visitors is known: " + wording.ExplainReason(d.Reason)
	}
	return "the lift minus that among all other visitors is " + withInterval(d, level, percentagePoints(d))
}

// percentagePoints returns the format of a difference of fractions.
func percentagePoints(d stats.Effect) func(x float64) string {
	decimals := wording.PercentDecimals(wording.HalfWidth(d.Interval))
	return func(x float64) string { return wording.FormatSigned(100*x, decimals) + " percentage points" }
}

// withInterval formats an effect and its interval: 5 (95 % interval 2 to 8).
func withInterval(e stats.Effect, level int, write func(float64) string) string {
	text := write(*e.Value)
	if e.Interval == nil {
		return text
	}
	return text + fmt.Sprintf(" (%d %% interval %s)", level, wording.RangeInWords(e.Interval, write))
}
