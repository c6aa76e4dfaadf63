package engine

import "lifthouse/stats"

// conclude sets the conclusion and puts it into one sentence.
func (j *cellResult) conclude(plan *Plan, c stats.Conclusion) {
	if !plan.Rules.Compare {
		return
	}
	j.Conclusion = newConclusion(c)
	for i, conclusive := range c.Conclusive {
		j.Variations[i+1].Comparison.Conclusive = &conclusive
	}
	s := &statement{
		conclusion: j.Conclusion, metric: metricInWords[plan.Metric], rate: isRate[plan.Metric],
		level: plan.Rules.SignificanceLevel, mde: plan.Rules.MDE, sampleRatio: j.Checks.SampleRatio,
	}
	if len(j.Variations) > 0 {
		s.control = j.Variations[0].Name
	}
	if j.Power != nil {
		s.required, s.remaining = j.Power.RequiredVisitors, j.Power.RemainingVisitors
	}
	if c.Index >= 0 {
		decides := &j.Variations[c.Index+1]
		j.Conclusion.VariationID = &decides.ID
		s.decides, s.comparison = decides.Name, decides.Comparison
	}
	j.Conclusion.Text = s.sentence()
}

// The reasons of conclusions that name no variation, beside those of package
// stats.
const (
	reasonNotSignificant   stats.Reason = "NOT_SIGNIFICANT"
	reasonNothingToCompare stats.Reason = "NOTHING_TO_COMPARE"
)

// newConclusion has a reason wherever it names no variation.
func newConclusion(c stats.Conclusion) *Conclusion {
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

// metricInWords names a metric as a person would.
var metricInWords = map[Metric]string{
	GoalConversionRate:   "the goal conversion rate",
	ConversionRate:       "the conversion rate",
	CompletionRate:       "the completion rate",
	ValuePerVisitor:      "value per visitor",
	ProfitPerVisitor:     "profit per visitor",
	ExtraValuePerVisitor: "extra value per visitor",
}

// isRate says which of them are shares of the visitors.
var isRate = map[Metric]bool{GoalConversionRate: true, ConversionRate: true, CompletionRate: true}
