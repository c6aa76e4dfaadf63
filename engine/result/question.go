package result

import (
	"fmt"
	"math/big"
	"strings"

	"lifthouse/engine/looks"
	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// Question is what a report answers in the language of metrics.
type Question struct {
	Metric   string      `json:"metric,omitempty"`   // canonical text; empty: compareMetric says what is compared
	Name     string      `json:"name,omitempty"`     // of the metric, such as Shoes revenue per visitor
	Unit     metric.Unit `json:"unit,omitempty"`     // share, money or number
	Visitors string      `json:"visitors,omitempty"` // canonical text of the condition; empty: all visitors
	Words    string      `json:"words"`              // the question in words
}

// newQuestion returns what the report of a plan answers; nil: it is about a metric with a name, of visitors without a
// condition.
func newQuestion(p *plan.Plan) *Question {
	if p.Expression == nil && p.Filters.Visitors == nil {
		return nil
	}
	q := &Question{Words: strings.TrimPrefix(metrics[p.Metric].name, "the ")}
	if p.Expression != nil {
		q.Metric = p.Written.String()
		q.Name = nameOfExpression(p)
		q.Unit = p.Expression.Unit()
		q.Words = p.Expression.FullText()
	}
	if of := p.Filters.Visitors; of != nil {
		q.Visitors = of.String()
		q.Words = fmt.Sprintf("%s, of visitors with %s.", strings.TrimSuffix(q.Words, "."), of.InWords())
	}
	return q
}

// MetricResult is an expression for one variation.
type MetricResult struct {
	stats.Estimate
	Visitors    int64 `json:"visitors"`              // whose quantity is not 0; of the denominator of a nested ratio
	Numerator   Money `json:"numerator"`             // total of the quantity over visitors
	Denominator Money `json:"denominator,omitempty"` // of a ratio
}

// newMetricResult returns the metric of a variation.
func newMetricResult(m *moments.Moments, p *plan.Plan, o stats.Options) *MetricResult {
	of := p.Expression
	isWithheld := m.Unknown > 0
	r := &MetricResult{
		Visitors: m.Pair.Nonzero, Numerator: totalOf(m.Pair.X.Sum, &of.Numerator, isWithheld),
		Denominator: Money{Units: new(big.Int).Mul(big.NewInt(m.Visitors), big.NewInt(metric.Scale))},
	}
	if of.Denominator != nil {
		r.Denominator = totalOf(m.Pair.Y.Sum, of.Denominator, isWithheld)
	}
	switch s := looks.SampleOfQuestion(m, &p.Question).(type) {
	case stats.Rate:
		r.Estimate = stats.EstimateRate(s, o)
	case stats.Mean:
		if of.Denominator != nil {
			r.Estimate = stats.EstimateRatio(looks.RatioOfExpression(m, of), o)
		} else {
			r.Estimate = stats.EstimateMean(s, o)
		}
	}
	return r
}

// checkDenominator warns if the denominator of a ratio differs between the variations. The ratio then compares other
// visitors, or other events, in each of them.
func (c *sliceSums) checkDenominator(p *plan.Plan, checks *Checks) {
	isRatio := p.Expression != nil && p.Expression.Denominator != nil
	if !isRatio || !p.Rules.Compare || len(p.Variations) == 0 {
		return
	}
	alone := *p
	alone.Expression = &metric.Metric{Numerator: *p.Expression.Denominator}
	options := statsOptions(p)
	options.Methodology = stats.MethodologyFrequentist // a check of the data, as the sample ratio is
	comparisons, _ := c.ofDenominator().compareSamples(&alone, options)
	for i := range comparisons {
		if comparisons[i].Significant {
			checks.addWarning(warningDenominatorMoved,
				"%s itself differs between %s and %s (%s), so this ratio compares different visitors",
				strings.ToLower(alone.Expression.ShortName()), p.Variations[i+1].Name, p.Variations[0].Name,
				wording.PValueInWords(*comparisons[i].Frequentist.AdjustedPValue))
		}
	}
}

// ofDenominator returns the sums of the visitors with the denominator of a ratio in the place of its numerator.
func (c *sliceSums) ofDenominator() *sliceSums {
	replace := func(counted map[int64]moments.Moments) map[int64]moments.Moments {
		replaced := make(map[int64]moments.Moments, len(counted))
		for id, m := range counted {
			m.Pair = m.Pair.Denominator()
			replaced[id] = m
		}
		return replaced
	}
	of := &sliceSums{counted: replace(c.counted)}
	for _, counted := range c.periods {
		of.periods = append(of.periods, replace(counted))
	}
	return of
}

// totalOf returns the total of a quantity.
func totalOf(sum *big.Int, of *metric.Quantity, isWithheld bool) Money {
	if sum == nil {
		sum = new(big.Int)
	}
	units := new(big.Int).Mul(sum, big.NewInt(metric.Scale/of.Scale()))
	return Money{Units: units, Withheld: isWithheld && of.ReadsAmounts()}
}

// QuestionChecks are the checks of a report that are about its question, and not only about its subject.
type QuestionChecks struct {
	Outliers         *OutliersCheck   `json:"outliers,omitempty"`         // only with a z-score
	Cap              *CapCheck        `json:"cap,omitempty"`              // only with a cap
	Currencies       *CurrenciesCheck `json:"currencies,omitempty"`       // only if amounts are in other currencies
	ConversionWindow *MaturityCheck   `json:"conversionWindow,omitempty"` // only with a conversion window
	Warnings         []Warning        `json:"warnings"`
}
