package calculator

import (
	"fmt"
	"slices"

	"lifthouse/engine/result"
	"lifthouse/stats"
)

// sentence returns the conclusion as text. The winner or loser, nil if there is none,
// has the figures of the look that decided.
func (q *Input) sentence(a *Answer, decides *AnswerVariation) string {
	if text := q.undecided(a); text != "" {
		return text
	}
	s := &result.Statement{
		Conclusion: &a.Conclusion, Control: "control", Rate: q.Metric == MetricBinary, Level: a.SignificanceLevel, MDE: q.MDE,
		Remaining: a.Power.RemainingVisitors,
	}
	if a.Checks != nil {
		s.SampleRatio = &a.Checks.SampleRatio
	}
	if decides != nil {
		s.Decides, s.Comparison = fmt.Sprintf("Variation %d", decides.ID), decides.Comparison
	}
	return s.Sentence()
}

// undecided returns the text about variations that are only ahead or behind, although
// the planned look is over or the sample is complete. It is empty otherwise.
func (q *Input) undecided(a *Answer) string {
	remaining := a.Power.RemainingVisitors
	switch reasons := a.Conclusion.Reasons; {
	case slices.Contains(reasons, stats.ReasonPlannedLookInconclusive):
		return a.atPlannedLook()
	case slices.Contains(reasons, stats.ReasonTooEarly) && remaining != nil && *remaining == 0:
		return fmt.Sprintf("No conclusion: the effect is not significant at repeated looks, and there are no sums of the planned look; "+
			"the sample is large enough to detect a lift of %v %%.", q.MDE)
	}
	return ""
}

// atPlannedLook returns the text about a planned look without a conclusion. It quotes
// the variation with the smallest p-value that is significant as if this were the only
// look.
func (a *Answer) atPlannedLook() string {
	alpha := float64(100-a.SignificanceLevel) / 100
	var ahead *AnswerVariation
	smallest := alpha
	for i := range a.PlannedLook.Variations {
		v := &a.PlannedLook.Variations[i]
		if v.Comparison == nil || v.Comparison.Verdict != stats.VerdictBetter && v.Comparison.Verdict != stats.VerdictWorse {
			continue
		}
		if p, known := familyP(v.Comparison); known && p < smallest {
			ahead, smallest = v, p
		}
	}
	switch {
	case ahead == nil && a.IsPlannedLook():
		return "No conclusion: the planned look is not conclusive."
	case ahead == nil:
		return "No conclusion: the planned look was not conclusive, and the effect is not significant at repeated looks."
	}
	where := map[stats.Verdict]string{stats.VerdictBetter: "ahead", stats.VerdictWorse: "behind"}[ahead.Comparison.Verdict]
	text := fmt.Sprintf("Variation %d is %s", ahead.ID, where)
	if only := 2; len(a.Variations) == only {
		text = map[string]string{"ahead": "Ahead", "behind": "Behind"}[where]
	}
	return result.AheadOnly(text, smallest, a.SignificanceLevel)
}

// familyP returns the p-value of a comparison at the planned look, adjusted for the
// number of variations. The published one is this p-value, divided by the share of
// alpha that the look has.
func familyP(c *result.Comparison) (p float64, known bool) {
	switch {
	case c.Frequentist != nil && c.Frequentist.AdjustedPValue != nil:
		return *c.Frequentist.AdjustedPValue, true
	case c.Sequential != nil && c.Sequential.PValue != nil:
		return stats.PlannedLookShare * *c.Sequential.PValue, true
	}
	return 0, false
}
