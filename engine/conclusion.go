package engine

import (
	"fmt"

	"lifthouse/stats"
)

// conclude sets the conclusion and puts it into one sentence.
func (j *judged) conclude(plan *Plan, c stats.Conclusion) {
	if !plan.Rules.Compare {
		return
	}
	j.Conclusion = &Conclusion{Status: c.Status, Reasons: append([]stats.Reason{}, c.Reasons...)}
	var decides *VariationResults
	if c.Index >= 0 {
		decides = &j.Variations[c.Index+1]
		j.Conclusion.VariationID = &decides.ID
	}
	j.Conclusion.Text = j.sentence(plan, c, decides)
}

func (j *judged) sentence(plan *Plan, c stats.Conclusion, decides *VariationResults) string {
	if len(j.Variations) < 2 {
		return "There is nothing to compare: there is no second variation."
	}
	control := j.Variations[0].Name
	switch c.Status {
	case stats.StatusWinner:
		return fmt.Sprintf("%s is better than %s: %s.", decides.Name, control, effectInWords(plan, decides.Comparison))
	case stats.StatusLoser:
		return fmt.Sprintf("%s is worse than %s: %s.", decides.Name, control, effectInWords(plan, decides.Comparison))
	case stats.StatusInvalid:
		return "Visitors were not divided as planned, so the comparison cannot be trusted; find out why before reading it."
	case stats.StatusInsufficientData:
		return "There are too few data yet to say anything."
	case stats.StatusInconclusive:
	}
	for _, reason := range c.Reasons {
		if reason == stats.ReasonTooEarly {
			return fmt.Sprintf("One variation differs from %s, but it is too early to stop: %s.", control, progressInWords(j.evidence.Progress))
		}
	}
	return fmt.Sprintf("No variation differs clearly from %s yet.", control)
}

// metricInWords names a metric as a person would.
var metricInWords = map[Metric]string{
	GoalConversionRate:   "the goal conversion rate",
	ConversionRate:       "the conversion rate",
	CompletionRate:       "the completion rate",
	GoalsPerVisitor:      "goals per visitor",
	ValuePerVisitor:      "value per visitor",
	ProfitPerVisitor:     "profit per visitor",
	ExtraValuePerVisitor: "extra value per visitor",
	AverageValue:         "the average value",
}

// effectInWords tells the lift with its interval, or where there is none the
// difference.
func effectInWords(plan *Plan, c *Comparison) string {
	metric, kind := metricInWords[plan.Metric], "confidence"
	if c.Bayesian != nil {
		kind = "credible"
	}
	interval := fmt.Sprintf("%d %% %s interval", plan.Rules.SignificanceLevel, kind)
	lift := c.Improvement
	if lift.Value == nil {
		return fmt.Sprintf("%s differs by %.4g", metric, *c.Difference.Value)
	}
	direction := "up"
	if *lift.Value < 0 {
		direction = "down"
	}
	text := fmt.Sprintf("%s is %s by %.1f %%", metric, direction, 100*max(*lift.Value, -*lift.Value))
	if lift.Interval == nil {
		return text
	}
	return fmt.Sprintf("%s (%s of the lift: %s to %s)", text, interval, percent(lift.Interval[0], "below"), percent(lift.Interval[1], "above"))
}

func percent(end *float64, unbounded string) string {
	if end == nil {
		return "unbounded " + unbounded
	}
	return fmt.Sprintf("%+.1f %%", 100**end)
}

func progressInWords(progress *float64) string {
	if progress == nil {
		return "how many visitors it needs cannot be told"
	}
	return fmt.Sprintf("%.0f %% of the visitors it needs are in", 100**progress)
}
