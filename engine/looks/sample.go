package looks

import (
	"lifthouse/engine/moments"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/stats"
)

// SampleOf returns the sample of a metric for comparisons, with the cap of the report.
// AverageValue is not capped.
func SampleOf(m *moments.Moments, metric query.Metric) stats.Sample {
	if metric == query.AverageValue {
		return RatioOf(m).Mean(m.Value.Nonzero)
	}
	capped := m.WithCappedValues()
	return cappedSample(&capped, metric)
}

func cappedSample(m *moments.Moments, metric query.Metric) stats.Sample {
	switch metric {
	case query.GoalConversionRate:
		return stats.Rate{Visitors: m.Visitors, Converted: m.Converted}
	case query.ConversionRate:
		return stats.Rate{Visitors: m.Visitors, Converted: m.Conversion}
	case query.CompletionRate:
		return stats.Rate{Visitors: m.Visitors, Converted: m.Completed}
	case query.GoalsPerVisitor:
		mean := m.Goals.Mean(m.Visitors, 1)
		mean.Nonzero = m.Converted
		return mean
	case query.ValuePerVisitor:
		return meanOf(&m.Value, m.Visitors)
	case query.ProfitPerVisitor:
		return meanOf(&m.Profit, m.Visitors)
	case query.ExtraValuePerVisitor:
		return meanOf(&m.ExtraValue, m.Visitors)
	case query.AverageValue:
	}
	return nil
}

func meanOf(a *moments.Amounts, visitors int64) stats.Mean {
	mean := a.Mean(visitors, schema.MoneyScale)
	mean.Nonzero = a.Nonzero
	return mean
}

// NeverNegative reports whether no visitor has a negative value of the metric.
func NeverNegative(m *moments.Moments, metric query.Metric) bool {
	switch metric {
	case query.ValuePerVisitor, query.AverageValue:
		return m.Value.Negative == 0
	case query.ProfitPerVisitor:
		return m.Profit.Negative == 0
	case query.ExtraValuePerVisitor:
		return m.ExtraValue.Negative == 0
	case query.GoalConversionRate, query.ConversionRate, query.CompletionRate, query.GoalsPerVisitor:
	}
	return true
}

// RatioOf returns the ratio of AverageValue: value to goals reached.
func RatioOf(m *moments.Moments) stats.Ratio {
	return stats.Ratio{
		Visitors: m.Visitors,
		Value:    m.Value.Sums,
		Goals:    m.Goals,
		Products: m.ValueGoals,
		Scale:    schema.MoneyScale,
	}
}
