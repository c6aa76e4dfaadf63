package result

import (
	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/stats"
)

// Impact is the monthly effect of showing a variation to everybody instead of control.
type Impact struct {
	PerMonth *Effect      `json:"perMonth"` // in the unit of the metric; null: see Reason
	Reason   stats.Reason `json:"reason,omitempty"`
}

// The period of an impact, and the minimum number of full days: a week includes each weekday.
const (
	daysPerMonth  = 30
	minImpactDays = 7
)

// The reasons why there is no impact.
const (
	reasonTooFewDays stats.Reason = "TOO_FEW_DAYS"
	reasonNotASum    stats.Reason = "NOT_A_SUM" // the metric is not a sum over visitors
	reasonFiltered   stats.Reason = "FILTERED"  // the report is not about all visitors
)

// newImpact returns the impact of a variation:
//
//	d N 30 / D / allocation
//
// where d is the difference per visitor with its interval: of the concluding look, else of the
// last look, else of today. N is the number of visitors of all variations in D full days.
// allocation is the share of the traffic that takes part. The impact assumes that traffic stays
// as in these days, without seasons.
func newImpact(p *plan.Plan, a *looks.Analysis, metric query.Metric, c *Comparison, row *looks.Row) *Impact {
	days := 0
	if a != nil {
		days = a.FullDays()
	}
	switch {
	case metric == query.AverageValue:
		return &Impact{Reason: reasonNotASum}
	case !p.OfAllVisitors():
		return &Impact{Reason: reasonFiltered}
	case days < minImpactDays:
		return &Impact{Reason: reasonTooFewDays}
	case p.Allocation <= 0:
		return &Impact{Reason: stats.ReasonNoTraffic}
	case c == nil || c.Difference.Value == nil && c.Difference.Observed == nil:
		return &Impact{Reason: stats.ReasonNoVisitors}
	}
	difference := c.Difference
	if difference.Observed != nil {
		difference.Value = difference.Observed
	}
	if row != nil && row.Difference.Value != nil {
		difference = newEffect(row.Difference)
	}
	by := float64(a.Visitors) * daysPerMonth / float64(days) / p.Allocation
	scaled := func(x *float64) *float64 {
		if x == nil {
			return nil
		}
		y := *x * by
		return &y
	}
	e := &Effect{Value: scaled(difference.Value), Reason: difference.Reason}
	if difference.Interval != nil {
		e.Interval = &Bounds{scaled(difference.Interval[0]), scaled(difference.Interval[1])}
	}
	return &Impact{PerMonth: e}
}

// ImpactOf returns the impact of a variation on the primary metric, or nil if the report has no scorecard.
func (r *Report) ImpactOf(variation int64) *Impact {
	for _, row := range r.Scorecard {
		for i := range row.Variations {
			if row.Role == RolePrimary && row.Variations[i].ID == variation {
				return row.Variations[i].Impact
			}
		}
	}
	return nil
}

// impactUnits are what an impact on a metric counts, in words.
var impactUnits = map[query.Metric]string{
	query.GoalConversionRate: "converted visitors", query.ConversionRate: "visitors with a conversion", query.CompletionRate: "visitors with a completion",
	query.GoalsPerVisitor: "goals", query.ValuePerVisitor: "of value", query.ProfitPerVisitor: "of profit", query.ExtraValuePerVisitor: "of extra value",
}

// InWords returns the impact on a metric with its interval at a level in per cent, or an empty text if it is not known.
func (i *Impact) InWords(metric query.Metric, level int) string {
	if i.PerMonth == nil || i.PerMonth.Value == nil {
		return ""
	}
	return withInterval(*i.PerMonth, level, SpreadDecimals, FormatSigned) + " " + impactUnits[metric] + " a month at today's traffic"
}
