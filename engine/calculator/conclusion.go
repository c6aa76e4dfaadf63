package calculator

import (
	"fmt"
	"slices"

	"lifthouse/engine/looks"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// setConclusion sets the conclusion of an answer.
func (q *Input) setConclusion(a *Answer, found *looks.Question, comparisons []stats.Comparison) {
	c, enough := &a.Conclusion, slices.ContainsFunc(comparisons, func(c stats.Comparison) bool {
		return c.Verdict != stats.VerdictInsufficientData
	})
	c.Status, c.Reasons = stats.StatusInconclusive, reasonsOf(found, comparisons)
	outcome := found.FindOutcome(stats.Options{SignificanceLevel: q.SignificanceLevel}.Alpha())
	switch number := len(found.Rows); {
	case a.isInvalid():
		c.Status, c.Reasons = stats.StatusInvalid, []stats.Reason{stats.ReasonSampleRatioMismatch}
		c.Text = "The results are not valid: " + result.ExplainAll(c.Reasons) + "."
	case outcome != nil:
		row, verdict := &found.Rows[outcome.Look][outcome.Treatment], "better"
		c.Status, c.Reasons = stats.StatusWinner, []stats.Reason{}
		if !outcome.Winner {
			c.Status, verdict = stats.StatusLoser, "worse"
		}
		if row.Reason != "" {
			c.Reasons = append(c.Reasons, row.Reason)
		}
		c.VariationID, c.Look = &row.VariationID, &row.Number
		c.Text = fmt.Sprintf("Variation %d is %s than control at look %d: %s.", row.VariationID, verdict, row.Number,
			result.LookInWords(row, q.SignificanceLevel, q.Metric == MetricBinary))
	case q.SignificanceLevel == result.LevelWithoutAlpha:
		c.Text = "No conclusion is possible: " + result.ExplainReason(stats.ReasonLevel100) + "."
	case !enough:
		c.Status, c.Text = stats.StatusInsufficientData, "Not enough data for a verdict: "+result.ExplainAll(c.Reasons)+"."
	case number == 0:
		c.Text = "No conclusion: pass the sums at each weekly look to conclude."
	case !slices.ContainsFunc(found.Rows[number-1], func(r looks.Row) bool { return r.Critical != nil && r.Z != nil }):
		c.Text = fmt.Sprintf("No conclusion at look %d: %s.", number, result.ExplainAll(c.Reasons))
	default:
		c.Text = fmt.Sprintf("No variation differs significantly from control by look %d (%d %% level).",
			number, q.SignificanceLevel)
	}
}

// reasonsOf returns the distinct reasons of the last look, and of the comparisons with
// insufficient data. Without looks, it returns the reasons of all comparisons.
func reasonsOf(found *looks.Question, comparisons []stats.Comparison) []stats.Reason {
	reasons := []stats.Reason{}
	add := func(reason stats.Reason) {
		if reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if n := len(found.Rows); n > 0 {
		for _, row := range found.Rows[n-1] {
			add(row.Reason)
		}
	}
	for _, c := range comparisons {
		if len(found.Rows) > 0 && c.Verdict != stats.VerdictInsufficientData {
			continue
		}
		for _, reason := range c.Reasons {
			add(reason)
		}
	}
	return reasons
}
