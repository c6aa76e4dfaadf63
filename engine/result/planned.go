package result

import (
	"fmt"
	"slices"

	"lifthouse/stats"
)

// PlannedLookInWords returns a line about the planned look, or "" if nothing is
// compared.
func (r *Report) PlannedLookInWords() string {
	look := r.PlannedLook
	if look == nil {
		return ""
	}
	var text string
	switch {
	case look.RequiredVisitors == nil:
		return "Planned look: none: " + Explain(look.Reason) + "."
	case look.Time != nil:
		text = fmt.Sprintf("Planned look: %s (%s visitors; %s planned)", lastDay(*look.Time), Grouped(*look.Visitors), Grouped(*look.RequiredVisitors))
	case !r.countsTowardsPlan():
		text = fmt.Sprintf("Planned look: not reached yet (%s visitors planned)", Grouped(*look.RequiredVisitors))
	case r.Totals.Visitors >= *look.RequiredVisitors:
		text = fmt.Sprintf("Planned look: at the end of the day in UTC (%s of %s visitors)", Grouped(r.Totals.Visitors), Grouped(*look.RequiredVisitors))
	default:
		text = fmt.Sprintf("Planned look: not reached yet (%s of %s visitors)", Grouped(r.Totals.Visitors), Grouped(*look.RequiredVisitors))
	}
	if look.Segment > 1 {
		text += fmt.Sprintf(" in period %d of equal shares", look.Segment)
	}
	return text + "."
}

// countsTowardsPlan reports whether the planned look counts the visitors of the
// report: it has no filters, and the shares never changed.
func (r *Report) countsTowardsPlan() bool {
	return len(r.Filters) == 0 && r.Window.From == nil && r.Window.To == nil && r.PlannedLook.Segment <= 1
}

// DecidedInWords returns a line about the figures that decided, or "" if they are those
// of the report.
func (r *Report) DecidedInWords() string {
	decided := r.Decided()
	if decided == nil {
		return ""
	}
	write := func(x float64, decimals int) string { return Percent(x, decimals, true) }
	lift, difference, _ := decided.carrying()
	name, effect, precision := "lift", lift, PercentDecimals
	if effect.Value == nil || effect.Interval == nil {
		name, effect, precision = "difference", difference, Decimals
		write = Signed
		if r.CompareMetric != nil && IsRate(*r.CompareMetric) {
			precision = PercentDecimals
			write = func(x float64, decimals int) string { return Signed(100*x, decimals) }
		}
	}
	if effect.Value == nil {
		return ""
	}
	decimals := precision(HalfWidth(effect.Value, effect.Interval))
	each := func(x float64) string { return write(x, decimals) }
	p := "always-valid p"
	if decided.Sequential.PlannedLook {
		p = "p"
	}
	text := fmt.Sprintf("Decided on %s: %s %s %s, %s = %s", lastDay(*r.Conclusion.DecidedAt), name, each(*effect.Value),
		RangeInWords(effect.Interval, each), p, Probability(*decided.Sequential.PValue))
	return text + "; today's figures are in the table."
}

// Decided returns the comparison that decided on an earlier day, or nil if there is
// none or if it equals the present one.
func (r *Report) Decided() *Comparison {
	c := r.Conclusion
	if c == nil || c.Decided == nil || c.DecidedAt == nil || c.VariationID == nil || c.Decided.Sequential == nil || c.Decided.Sequential.PValue == nil {
		return nil
	}
	at := slices.IndexFunc(r.Variations, func(v VariationResults) bool { return v.ID == *c.VariationID })
	if at < 0 || r.Variations[at].Comparison == nil {
		return nil
	}
	now := r.Variations[at].Comparison
	if equal(now.Difference.Value, c.Decided.Difference.Value) && now.Sequential != nil && equal(now.Sequential.PValue, c.Decided.Sequential.PValue) {
		return nil
	}
	return c.Decided
}

func equal(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// HasDecision reports whether there is a winner or a loser. Without one, a conclusive
// verdict is not a decision: the goal or metric is not the declared one.
func (c *Conclusion) HasDecision() bool {
	return c != nil && (c.Status == stats.StatusWinner || c.Status == stats.StatusLoser)
}

// VerdictInWords returns the verdict of a comparison of the cell as text.
func (c *Cell) VerdictInWords(of *Comparison) string {
	text := of.VerdictInWords()
	if v := of.Judged(); !c.Conclusion.HasDecision() && (v == stats.VerdictBetter || v == stats.VerdictWorse) {
		text += " (no conclusion)"
	}
	return text
}

// Judged returns the verdict of a comparison of the cell if a conclusion supports it,
// and otherwise VerdictInconclusive. It selects the colour of the verdict.
func (c *Cell) Judged(of *Comparison) stats.Verdict {
	if !c.Conclusion.HasDecision() {
		return stats.VerdictInconclusive
	}
	return of.Judged()
}
