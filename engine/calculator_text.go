package engine

import (
	"fmt"
)

// sentence returns the conclusion as text.
func (q *CalculatorInput) sentence(a *Answer) string {
	s := &statement{
		conclusion: &a.Conclusion, control: "control", rate: q.Metric == MetricBinary, level: a.SignificanceLevel, mde: q.MDE,
		required: a.Power.RequiredVisitors, remaining: a.Power.RemainingVisitors,
	}
	if a.Checks != nil {
		s.sampleRatio = &a.Checks.SampleRatio
	}
	for _, v := range a.Variations {
		if id := a.Conclusion.VariationID; id != nil && v.ID == *id {
			s.decides, s.comparison = fmt.Sprintf("Variation %d", v.ID), v.Comparison
		}
	}
	return s.sentence()
}
