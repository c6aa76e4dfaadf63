package calculator

import (
	"fmt"

	"lifthouse/engine/result"
)

// sentence returns the conclusion as text.
func (q *Input) sentence(a *Answer) string {
	s := &result.Statement{
		Conclusion: &a.Conclusion, Control: "control", Rate: q.Metric == MetricBinary, Level: a.SignificanceLevel, MDE: q.MDE,
		Required: a.Power.RequiredVisitors, Remaining: a.Power.RemainingVisitors,
	}
	if a.Checks != nil {
		s.SampleRatio = &a.Checks.SampleRatio
	}
	for _, v := range a.Variations {
		if id := a.Conclusion.VariationID; id != nil && v.ID == *id {
			s.Decides, s.Comparison = fmt.Sprintf("Variation %d", v.ID), v.Comparison
		}
	}
	return s.Sentence()
}
