package engine

import "lifthouse/stats"

// conclude sets the conclusion and puts it into one sentence.
func (j *judged) conclude(plan *Plan, c stats.Conclusion) {
	if !plan.Rules.Compare {
		return
	}
	j.Conclusion = &Conclusion{Status: c.Status, Reasons: append([]stats.Reason{}, c.Reasons...)}
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
