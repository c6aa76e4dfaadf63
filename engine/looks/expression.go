package looks

import (
	"math/big"
	"slices"

	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/stats"
)

// SampleOfQuestion returns the sample of visitors on the metric of a question: of its expression, if it has one.
func SampleOfQuestion(m *moments.Moments, q *plan.Question) stats.Sample {
	if q.Expression == nil {
		return SampleOf(m, q.Metric)
	}
	return sampleOfExpression(m, q.Expression)
}

// sampleOfExpression returns the sample of visitors on an expression: a rate, a mean, or a ratio as a mean. Of a nested
// ratio, it is the rate among the visitors of the denominator.
func sampleOfExpression(m *moments.Moments, of *metric.Metric) stats.Sample {
	p := &m.Pair
	switch of.Test() {
	case metric.TestScore:
		return stats.Rate{Visitors: m.Visitors, Converted: p.Nonzero}
	case metric.TestNested:
		return stats.Rate{Visitors: p.OfY, Converted: p.Both}
	case metric.TestDelta:
		return RatioOfExpression(m, of).Mean(p.Nonzero)
	default:
		mean := p.X.Mean(m.Visitors, of.Numerator.Scale())
		mean.Nonzero = p.Nonzero
		mean.Unknown = m.Unknown > 0
		return mean
	}
}

// RatioOfExpression returns the ratio of the quantities of an expression.
func RatioOfExpression(m *moments.Moments, of *metric.Metric) stats.Ratio {
	p := &m.Pair
	ratio := stats.Ratio{
		Visitors: m.Visitors, Value: p.X, Goals: p.Y, Products: p.Products, Scale: of.Numerator.Scale(),
		Unknown: m.Unknown > 0,
	}
	// The denominator is in units of 1/scale, too: x · scale / y is the ratio.
	if scale := of.Denominator.Scale(); scale > 1 && p.X.Sum != nil {
		by := big.NewInt(scale)
		ratio.Value = stats.Sums{
			Sum: new(big.Int).Mul(p.X.Sum, by), Squares: new(big.Int).Mul(p.X.Squares, new(big.Int).Mul(by, by)),
		}
		ratio.Products = new(big.Int).Mul(p.Products, by)
	}
	return ratio
}

// readsAmounts reports whether the metric of a question is made of amounts of money.
func readsAmounts(q *plan.Question) bool {
	if q.Expression == nil {
		return IsMoney(q.Metric)
	}
	return slices.ContainsFunc(q.Expression.Quantities(), func(of *metric.Quantity) bool { return of.ReadsAmounts() })
}

// NeverNegativeIn reports whether no visitor has a negative value of the metric of a question.
func NeverNegativeIn(m *moments.Moments, q *plan.Question) bool {
	if q.Expression != nil {
		return m.Pair.Negative == 0
	}
	return NeverNegative(m, q.Metric)
}
