package result

import (
	"strings"

	"lifthouse/engine/query"
	"lifthouse/stats"
)

// VerdictInWords returns a verdict as text. A verdict that is not conclusive
// reads as a preliminary result, and one that only describes as the state of today.
func (c *Comparison) VerdictInWords() string {
	words := func(conclusive, today string) string {
		switch {
		case c.Conclusive == nil:
			return today
		case *c.Conclusive:
			return conclusive
		}
		return today + ", not conclusive"
	}
	switch v := c.Verdict; v {
	case stats.VerdictBetter:
		return words("better", "ahead")
	case stats.VerdictWorse:
		return words("worse", "behind")
	case stats.VerdictInconclusive:
		return "inconclusive"
	case stats.VerdictInsufficientData:
		return "not enough data"
	}
	return string(c.Verdict)
}

// ConclusiveVerdict returns the verdict if it is conclusive, and VerdictInconclusive otherwise.
// The result selects the colour of a verdict.
func (c *Comparison) ConclusiveVerdict() stats.Verdict {
	if !c.isConclusive() {
		return stats.VerdictInconclusive
	}
	return c.Verdict
}

// MetricInWords returns the name of a metric in texts.
func MetricInWords(m query.Metric) string { return strings.TrimPrefix(metricInWords[m], "the ") }

// RangeInWords formats an interval. An unbounded end is shown as open, and a missing interval
// as a dash.
func RangeInWords(in *Bounds, write func(float64) string) string {
	if in == nil || in[0] == nil && in[1] == nil {
		return "–"
	}
	lower, upper := "(-∞", "∞)"
	if in[0] != nil {
		lower = "[" + write(*in[0])
	}
	if in[1] != nil {
		upper = write(*in[1]) + "]"
	}
	return lower + ", " + upper
}

// FormatValue formats a value with the decimals that its interval permits, as the page does. A rate is in per cent.
func FormatValue(x float64, in *Bounds, rate bool) string {
	if rate {
		return FormatPercent(x, PercentDecimals(HalfWidth(nil, in)), false)
	}
	return FormatNumber(x, SpreadDecimals(HalfWidth(nil, in)))
}

// FormatLift formats a lift with the decimals that its interval permits, as the page does.
func FormatLift(x float64, in *Bounds) string {
	return FormatPercent(x, PercentDecimals(HalfWidth(nil, in)), true)
}

// EstimateOf returns the estimate of a metric.
func (m *Metrics) EstimateOf(metric query.Metric) Estimate {
	switch metric {
	case query.GoalConversionRate:
		return m.GoalConversionRate
	case query.ConversionRate:
		return m.ConversionRate
	case query.CompletionRate:
		return m.CompletionRate
	case query.GoalsPerVisitor:
		return m.GoalsPerVisitor
	case query.ValuePerVisitor:
		return m.ValuePerVisitor
	case query.ProfitPerVisitor:
		return m.ProfitPerVisitor
	case query.ExtraValuePerVisitor:
		return m.ExtraValuePerVisitor
	case query.AverageValue:
	}
	return m.AverageValue
}

// IsRate reports whether a metric is a share of the visitors.
func IsRate(m query.Metric) bool { return isRate[m] }
