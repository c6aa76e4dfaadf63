package calculator

import (
	"fmt"
	"slices"
	"strings"

	"lifthouse/engine/result"
	"lifthouse/stats"
)

// conclude sets the conclusion of an answer.
func (q *Input) conclude(a *Answer, looks *looks, comparisons []stats.Comparison, order []int) {
	c := &a.Conclusion
	c.Status, c.Reasons = stats.StatusInconclusive, reasonsOf(looks, comparisons)
	switch {
	case a.isInvalid():
		c.Status, c.Reasons = stats.StatusInvalid, []stats.Reason{stats.ReasonSampleRatioMismatch}
		c.Text = fmt.Sprintf("The results are not valid: %s, p = %s).",
			strings.TrimSuffix(result.Explain(stats.ReasonSampleRatioMismatch), ")"), result.Probability(*a.Checks.SampleRatio.PValue))
	case looks.outcome != nil:
		q.decided(a, looks, order)
	case q.SignificanceLevel == levelWithoutAlpha:
		c.Text = "No conclusion is possible: " + result.Explain(stats.ReasonLevel100) + "."
	case !slices.ContainsFunc(comparisons, func(c stats.Comparison) bool { return c.Verdict != stats.VerdictInsufficientData }):
		c.Status, c.Text = stats.StatusInsufficientData, "Not enough data for a verdict: "+explainAll(c.Reasons)+"."
	case len(looks.rows) == 0:
		c.Text = "No conclusion: pass the sums at each weekly look to conclude."
	default:
		c.Text = q.undecided(a, looks)
	}
}

// levelWithoutAlpha is the significance level at which nothing is significant.
const levelWithoutAlpha = 100

// reasonsOf returns the reasons of the last look, or without looks those of the comparisons,
// each once.
func reasonsOf(looks *looks, comparisons []stats.Comparison) []stats.Reason {
	reasons := []stats.Reason{}
	add := func(reason stats.Reason) {
		if reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if n := len(looks.rows); n > 0 {
		for _, row := range looks.rows[n-1] {
			add(row.Reason)
		}
	}
	for _, c := range comparisons {
		if len(looks.rows) > 0 && c.Verdict != stats.VerdictInsufficientData {
			continue
		}
		for _, reason := range c.Reasons {
			add(reason)
		}
	}
	return reasons
}

func explainAll(reasons []stats.Reason) string {
	texts := make([]string, len(reasons))
	for i, reason := range reasons {
		texts[i] = result.Explain(reason)
	}
	return strings.Join(texts, "; ")
}

// decided sets the conclusion of a winner or loser. It quotes the look that decided.
func (q *Input) decided(a *Answer, looks *looks, order []int) {
	found := looks.outcome
	row := &looks.rows[found.Look][found.Treatment]
	v := &q.Variations[order[1+found.Treatment]]
	number, verdict := found.Look+1, "better"
	a.Conclusion.Status = stats.StatusWinner
	if !found.Winner {
		a.Conclusion.Status, verdict = stats.StatusLoser, "worse"
	}
	a.Conclusion.VariationID, a.Conclusion.Look, a.Conclusion.Reasons = &v.ID, &number, []stats.Reason{}
	if row.Reason != "" {
		a.Conclusion.Reasons = append(a.Conclusion.Reasons, row.Reason)
	}
	at := fmt.Sprintf("look %d", number)
	if n := len(looks.rows); n > number {
		at += fmt.Sprintf(" of %d", n)
	}
	text := fmt.Sprintf("Variation %d is %s than control at %s: %s", v.ID, verdict, at, q.effect(row))
	if row.chance != nil {
		text += fmt.Sprintf(", with a chance of %s to beat control", result.Chance(*row.chance))
	}
	a.Conclusion.Text = text + "."
}

// effect returns the lift with its interval, or the difference if there is no lift.
func (q *Input) effect(row *lookRow) string {
	if lift := effectOf(row.Lift); lift.Value != nil && lift.Interval != nil {
		decimals := result.PercentDecimals(result.HalfWidth(lift.Value, lift.Interval))
		return "a lift of " + q.withInterval(lift, func(x float64) string { return result.Percent(x, decimals, true) })
	}
	difference := effectOf(row.Difference)
	spread := result.HalfWidth(difference.Value, difference.Interval)
	write := func(x float64) string { return result.Signed(x, result.Decimals(spread)) }
	if q.Metric == MetricBinary {
		write = func(x float64) string {
			return result.Signed(100*x, result.PercentDecimals(spread)) + " percentage points"
		}
	}
	return "a difference of " + q.withInterval(difference, write)
}

// withInterval formats an effect and its interval: 5 (95 % interval 2 to 8).
func (q *Input) withInterval(e result.Effect, write func(float64) string) string {
	text := write(*e.Value)
	if e.Interval == nil {
		return text
	}
	switch lower, upper := e.Interval[0], e.Interval[1]; {
	case lower != nil && upper != nil:
		text += fmt.Sprintf(" (%d %% interval %s to %s)", q.SignificanceLevel, write(*lower), write(*upper))
	case lower != nil:
		text += fmt.Sprintf(" (%d %% interval from %s upward)", q.SignificanceLevel, write(*lower))
	case upper != nil:
		text += fmt.Sprintf(" (%d %% interval up to %s)", q.SignificanceLevel, write(*upper))
	}
	return text
}

// undecided returns the text about looks without a winner or loser.
func (q *Input) undecided(a *Answer, looks *looks) string {
	number := len(looks.rows)
	last := looks.rows[number-1]
	if !slices.ContainsFunc(last, func(r lookRow) bool { return r.Critical != nil && r.Z != nil }) {
		return fmt.Sprintf("No conclusion at look %d: %s.", number, explainAll(a.Conclusion.Reasons))
	}
	text := fmt.Sprintf("No variation differs significantly from control by look %d (%d %% level)", number, q.SignificanceLevel)
	switch remaining := a.Power.RemainingVisitors; {
	case remaining == nil:
	case *remaining > 0:
		text += fmt.Sprintf("; %s more visitors are needed to detect a lift of %v %%", result.Grouped(*remaining), q.MDE)
	default:
		text += fmt.Sprintf("; the sample is large enough to detect a lift of %v %%", q.MDE)
	}
	text += "."
	in := last[0].Lift.Interval
	if q.Looks[number-1].Tau >= 1 && len(last) == 1 && in != nil && in.Lower != nil && in.Upper != nil {
		decimals := result.PercentDecimals(*in.Upper/2 - *in.Lower/2)
		text += fmt.Sprintf(" This rules out a lift above %s or below %s.", result.Percent(*in.Upper, decimals, true), result.Percent(*in.Lower, decimals, true))
	}
	return text
}
