package calculator

import (
	"fmt"
	"slices"
	"strings"

	"lifthouse/engine/looks"
	"lifthouse/engine/result"
	"lifthouse/stats"
)

// setConclusion sets the conclusion of an answer.
func (q *Input) setConclusion(a *Answer, found *looks.Question, comparisons []stats.Comparison) {
	c := &a.Conclusion
	c.Status, c.Reasons = stats.StatusInconclusive, reasonsOf(found, comparisons)
	switch outcome := found.FindOutcome(stats.Options{SignificanceLevel: q.SignificanceLevel}.Alpha()); {
	case a.isInvalid():
		c.Status, c.Reasons = stats.StatusInvalid, []stats.Reason{stats.ReasonSampleRatioMismatch}
		c.Text = fmt.Sprintf("The results are not valid: %s, p = %s).",
			strings.TrimSuffix(result.ExplainReason(stats.ReasonSampleRatioMismatch), ")"), result.FormatPValue(*a.Checks.SampleRatio.PValue))
	case outcome != nil:
		q.setWinnerOrLoser(a, outcome, found)
	case q.SignificanceLevel == result.LevelWithoutAlpha:
		c.Text = "No conclusion is possible: " + result.ExplainReason(stats.ReasonLevel100) + "."
	case !slices.ContainsFunc(comparisons, func(c stats.Comparison) bool { return c.Verdict != stats.VerdictInsufficientData }):
		c.Status, c.Text = stats.StatusInsufficientData, "Not enough data for a verdict: "+result.ExplainAll(c.Reasons)+"."
	case len(found.Rows) == 0:
		c.Text = "No conclusion: pass the sums at each weekly look to conclude."
	default:
		c.Text = q.undecidedText(a, found)
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

// setWinnerOrLoser sets the conclusion of a winner or loser. It quotes the look that decided.
func (q *Input) setWinnerOrLoser(a *Answer, outcome *stats.Outcome, found *looks.Question) {
	row, verdict := &found.Rows[outcome.Look][outcome.Treatment], "better"
	a.Conclusion.Status = stats.StatusWinner
	if !outcome.Winner {
		a.Conclusion.Status, verdict = stats.StatusLoser, "worse"
	}
	a.Conclusion.VariationID, a.Conclusion.Look, a.Conclusion.Reasons = &row.VariationID, &row.Number, []stats.Reason{}
	if row.Reason != "" {
		a.Conclusion.Reasons = append(a.Conclusion.Reasons, row.Reason)
	}
	at := fmt.Sprintf("look %d", row.Number)
	if n := len(found.Rows); n > row.Number {
		at += fmt.Sprintf(" of %d", n)
	}
	text := fmt.Sprintf("Variation %d is %s than control at %s: %s", row.VariationID, verdict, at, result.LookInWords(row, q.SignificanceLevel, q.Metric == MetricBinary))
	if row.Chance != nil {
		text += fmt.Sprintf(", with a chance of %s to beat control", result.FormatChance(*row.Chance))
	}
	a.Conclusion.Text = text + "."
}

// undecidedText returns the text about looks without a winner or loser.
func (q *Input) undecidedText(a *Answer, found *looks.Question) string {
	number := len(found.Rows)
	last := found.Rows[number-1]
	if !slices.ContainsFunc(last, func(r looks.Row) bool { return r.Critical != nil && r.Z != nil }) {
		return fmt.Sprintf("No conclusion at look %d: %s.", number, result.ExplainAll(a.Conclusion.Reasons))
	}
	text := fmt.Sprintf("No variation differs significantly from control by look %d (%d %% level)", number, q.SignificanceLevel)
	switch remaining := a.Power.RemainingVisitors; {
	case remaining == nil:
	case *remaining > 0:
		text += fmt.Sprintf("; %s more visitors are needed to detect a lift of %v %%", result.FormatCount(*remaining), q.MDE)
	default:
		text += fmt.Sprintf("; the sample is large enough to detect a lift of %v %%", q.MDE)
	}
	text += "."
	in := last[0].Lift.Interval
	if q.Looks[number-1].Tau >= 1 && len(last) == 1 && in != nil && in.Lower != nil && in.Upper != nil {
		decimals := result.PercentDecimals(*in.Upper/2 - *in.Lower/2)
		text += fmt.Sprintf(" This rules out a lift above %s or below %s.", result.FormatPercent(*in.Upper, decimals, true), result.FormatPercent(*in.Lower, decimals, true))
	}
	return text
}
