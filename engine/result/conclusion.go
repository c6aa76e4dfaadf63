package result

import (
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/stats"
)

// conclude sets the conclusion and its text.
func (j *cellResult) conclude(plan *plan.Plan, c stats.Conclusion) {
	if !plan.Rules.Compare {
		return
	}
	j.Conclusion = NewConclusion(c)
	for i, conclusive := range c.Conclusive {
		j.Variations[i+1].Comparison.Conclusive = &conclusive
	}
	s := &Statement{
		Conclusion: j.Conclusion, metric: metricInWords[plan.Metric], Rate: isRate[plan.Metric],
		Level: plan.Rules.SignificanceLevel, MDE: plan.Rules.MDE, SampleRatio: j.Checks.SampleRatio,
	}
	if len(j.Variations) > 0 {
		s.Control = j.Variations[0].Name
	}
	if j.Power != nil {
		s.Required, s.Remaining = j.Power.RequiredVisitors, j.Power.RemainingVisitors
	}
	if c.Index >= 0 {
		decides := &j.Variations[c.Index+1]
		j.Conclusion.VariationID = &decides.ID
		s.Decides, s.Comparison = decides.Name, decides.Comparison
	}
	j.Conclusion.Text = s.Sentence()
}

// Reasons of conclusions without a variation, in addition to those of package
// stats.
const (
	reasonNotSignificant   stats.Reason = "NOT_SIGNIFICANT"
	reasonNothingToCompare stats.Reason = "NOTHING_TO_COMPARE"
)

// NewConclusion returns the conclusion for the results body. A conclusion
// without a variation has a reason.
func NewConclusion(c stats.Conclusion) *Conclusion {
	shown := &Conclusion{Status: c.Status, Reasons: append([]stats.Reason{}, c.Reasons...)}
	if c.Index < 0 && len(shown.Reasons) == 0 {
		switch c.Status {
		case stats.StatusInsufficientData:
			shown.Reasons = append(shown.Reasons, reasonNothingToCompare)
		default:
			shown.Reasons = append(shown.Reasons, reasonNotSignificant)
		}
	}
	return shown
}

// metricInWords maps a metric to its name in texts.
var metricInWords = map[query.Metric]string{
	query.GoalConversionRate:   "the goal conversion rate",
	query.ConversionRate:       "the conversion rate",
	query.CompletionRate:       "the completion rate",
	query.ValuePerVisitor:      "value per visitor",
	query.ProfitPerVisitor:     "profit per visitor",
	query.ExtraValuePerVisitor: "extra value per visitor",
}

// isRate has the metrics that are shares of the visitors.
var isRate = map[query.Metric]bool{query.GoalConversionRate: true, query.ConversionRate: true, query.CompletionRate: true}
