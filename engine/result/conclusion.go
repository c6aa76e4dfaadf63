package result

import (
	"fmt"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// setConclusion sets the conclusion of the report from the looks at the declared question. A report about any other
// question only describes, and so does a segment: its verdict and conclusion are the same in a breakdown as when a
// filter selects it. A sample ratio mismatch makes every report invalid.
func (j *sliceResult) setConclusion(p *plan.Plan, a *looks.Analysis, segment bool) {
	if !p.Rules.Compare {
		return
	}
	describes := segment || isDescriptive(p)
	missing := missingLook(p, segment)
	if describes {
		a = nil
	}
	j.setSequential(a, missing, describes)
	if check := j.Checks.SampleRatio; check.Mismatch {
		j.Conclusion = &Conclusion{
			Status: stats.StatusInvalid, Reasons: []stats.Reason{stats.ReasonSampleRatioMismatch},
			Text: InvalidInWords(*check.PValue, isBayesian(p)),
		}
		return
	}
	if len(j.Variations) < 2 {
		j.Conclusion = &Conclusion{
			Status: stats.StatusInsufficientData, Reasons: []stats.Reason{reasonNothingToCompare},
			Text: "There is nothing to compare: there is only one variation.",
		}
		return
	}
	if a != nil && a.Outcome != nil {
		j.Conclusion = concludeOutcome(p, a, j.Variations)
		return
	}
	j.Conclusion = explainInconclusive(p, a, j.Variations, missing)
}

// setSequential sets the result of the last look of each comparison, and whether it supports the verdict. missing says
// why there is no look. A comparison that only describes supports nothing.
func (j *sliceResult) setSequential(a *looks.Analysis, missing stats.Reason, describes bool) {
	for i := range j.Variations {
		c := j.Variations[i].Comparison
		if c == nil {
			continue
		}
		var last *looks.LookRow
		if a != nil {
			last = a.Primary.LastLook(i - 1)
		}
		c.Sequential = NewSequential(last, missing)
		if !describes {
			c.Conclusive = new(a != nil && a.Primary.SupportsVerdict(i-1, c.Verdict, statsOptions(a.Plan).Alpha()))
		}
	}
}

// concludeOutcome returns the conclusion that a look has found a winner or a loser.
func concludeOutcome(p *plan.Plan, a *looks.Analysis, variations []VariationResults) *Conclusion {
	row := &a.Primary.Rows[a.Outcome.Look][a.Outcome.Treatment]
	status := stats.StatusLoser
	verdict := "worse"
	if a.Outcome.Winner {
		status = stats.StatusWinner
		verdict = "better"
	}
	at := indexOfResults(variations, row.VariationID)
	control := variations[0].Name
	text := fmt.Sprintf("%s is %s than %s: %s has %s at look %d on %s with %s visitors",
		variations[at].Name, verdict, control, nameIn(p),
		LookInWords(row, p.Rules.SignificanceLevel, p.Metric.IsRate()), row.Number, lastDay(row.End),
		wording.FormatCount(row.Visitors))
	if row.Chance != nil {
		text += fmt.Sprintf(", with a chance of %s to beat %s", wording.FormatChance(*row.Chance), control)
	}
	return &Conclusion{
		Status: status, VariationID: &row.VariationID, Look: &row.Number, DecidedAt: &row.End,
		Reasons: []stats.Reason{}, Text: text + ".",
	}
}

// explainInconclusive returns the conclusion that names no variation, with its reason. a is nil if the report only
// describes; missing says why it has no look.
func explainInconclusive(
	p *plan.Plan, a *looks.Analysis, variations []VariationResults, missing stats.Reason,
) *Conclusion {
	inconclusive := func(reason stats.Reason, text string) *Conclusion {
		return &Conclusion{Status: stats.StatusInconclusive, Reasons: []stats.Reason{reason}, Text: text}
	}
	enough := false
	reasons := []stats.Reason{} // for a missing conclusion
	for i := 1; i < len(variations); i++ {
		of := variations[i].Comparison
		enough = enough || of.Verdict != stats.VerdictInsufficientData
		reasons = stats.AppendReasons(reasons, of.Reasons...)
	}
	switch {
	case !enough:
		return &Conclusion{
			Status: stats.StatusInsufficientData, Reasons: reasons,
			Text: "Not enough data for a verdict: " + ExplainAll(reasons) + ".",
		}
	case missing == stats.ReasonLevel100:
		return inconclusive(missing, "No conclusion is possible: "+wording.ExplainReason(missing)+".")
	case missing == stats.ReasonNotDeclared:
		return inconclusive(missing, "This report describes: only the primary metric of all visitors has a conclusion.")
	case a == nil:
		return inconclusive(missing, "There was no look yet.")
	}
	if returns := waitsForReturns(a); returns != nil {
		return inconclusive(reasonReturnsDiffer, returnsInWords(p, returns))
	}
	if len(a.Looks) == 0 {
		return inconclusive(missing, "There was no look yet"+whenNext(a)+".")
	}
	last := a.LastLook()
	differed := "differed significantly from"
	if isBayesian(p) {
		differed = "was clearly better or worse than"
	}
	return inconclusive(reasonNotSignificant, fmt.Sprintf("No variation %s %s at look %d on %s%s.",
		differed, variations[0].Name, last.Number, lastDay(last.End), whenNext(a)))
}

// Reasons in addition to those of package stats: of conclusions that name no variation, of checks, of a missing status,
// and of decisions.
const (
	reasonNotSignificant   stats.Reason = "NOT_SIGNIFICANT"
	reasonNothingToCompare stats.Reason = "NOTHING_TO_COMPARE"
	reasonNotMature        stats.Reason = "NOT_MATURE"
	reasonReturnsDiffer    stats.Reason = "RETURNS_DIFFER"
	reasonCapNotReached    stats.Reason = "CAP_NOT_REACHED" // fewer than one converted visitor is above its percentile
	reasonNoSpread         stats.Reason = "NO_SPREAD"       // fewer than two values, or all values are equal
	reasonBoundOverflow    stats.Reason = "BOUND_OVERFLOW"  // a bound beyond the range of floats removes nothing
	ReasonNotComputed      stats.Reason = "NOT_COMPUTED"    // clients may ask again
	reasonWinner           stats.Reason = "WINNER"
	reasonLoser            stats.Reason = "LOSER"
	reasonGuardrailHarmed  stats.Reason = "GUARDRAIL_HARMED"
	reasonPrimaryHarmed    stats.Reason = "PRIMARY_HARMED"
	reasonGuardrailOpen    stats.Reason = "GUARDRAIL_OPEN"
	reasonGuardrailsSafe   stats.Reason = "GUARDRAILS_SAFE"
	reasonMinDays          stats.Reason = "MIN_DAYS"
	reasonEquivalent       stats.Reason = "WITHIN_MARGIN"
	reasonPlanEnded        stats.Reason = "PLAN_ENDED"
)

// InvalidInWords returns the conclusion of results with a sample ratio mismatch. A Bayesian one has no p-value.
func InvalidInWords(p float64, bayesian bool) string {
	text := "The results are not valid: the split of the visitors does not match the configured shares (sample ratio " +
		"mismatch"
	if !bayesian {
		text += ", " + wording.PValueInWords(p)
	}
	return text + ")."
}

func isBayesian(p *plan.Plan) bool {
	return stats.Methodology(p.Rules.Methodology) == stats.MethodologyBayesian
}

// InWords returns the last day of the look, which is its date everywhere, and the day on which it is published.
func (l *NextLook) InWords() string {
	return fmt.Sprintf("next look is on %s and is published on %s", lastDay(l.End),
		l.PublishedAt.UTC().Format("Monday, 2 January 2006"))
}

func whenNext(a *looks.Analysis) string {
	next := nextLook(a)
	if next == nil {
		return ""
	}
	text := "; the " + next.InWords()
	switch w := a.Plan.ConversionWindow; {
	case a.ReturnsOfPlan(a.Plan) != nil:
		text += ", when its orders have settled"
	case w.SettlesOnly():
		text += ", when its last orders are " + w.EndInWords() + " old"
	case w.IsSet():
		text += ", when its last visitors have had " + w.EndInWords() + " to convert"
	}
	return text
}

// ConclusiveVerdict returns the verdict of a comparison if the conclusion of the slice supports it, and
// VerdictInconclusive otherwise. The result selects the colour of the verdict.
func (c *Slice) ConclusiveVerdict(of *Comparison) stats.Verdict {
	if d := c.Conclusion; d != nil && (d.Status == stats.StatusWinner || d.Status == stats.StatusLoser) {
		return of.ConclusiveVerdict()
	}
	return stats.VerdictInconclusive
}

// ExplainAll returns the texts of reasons in one line.
func ExplainAll(reasons []stats.Reason) string {
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = wording.ExplainReason(r)
	}
	return strings.Join(texts, "; ")
}

// NewLookVariation returns a row of a look for the response body.
func NewLookVariation(r *looks.LookRow) LookVariation {
	shown := LookVariation{
		ID: r.VariationID, CriticalValue: r.Critical, Z: r.Z, PValue: r.PValue, Difference: r.Difference,
		Improvement: r.Lift, ChanceToBeatControl: r.Chance, Significant: r.Significant, Reason: r.Reason,
	}
	if r.Recomputed != nil {
		shown.Recomputed = &Recomputed{r.Recomputed.Difference, r.Recomputed.Lift, r.Recomputed.Significant}
	}
	return shown
}

// NewSequential returns the result of a look for a comparison, or the reason why there is none.
func NewSequential(r *looks.LookRow, missing stats.Reason) *Sequential {
	if r == nil {
		return &Sequential{Reason: missing, ImprovementReason: missing}
	}
	return &Sequential{
		Look: &r.Number, End: optionalTime(r.End), PValue: r.PValue, Difference: r.Difference.Interval,
		Improvement: r.Lift.Interval, Significant: r.Significant, Reason: r.Reason, ImprovementReason: r.Lift.Reason,
	}
}

// nextLook returns the next look of a running subject, or nil.
func nextLook(a *looks.Analysis) *NextLook {
	if a == nil {
		return nil
	}
	number, end := a.NextAfter(time.Now())
	if end.IsZero() {
		return nil
	}
	return &NextLook{Number: number, End: end, PublishedAt: end.Add(a.Maturity())}
}

// isDescriptive reports whether a report is not about the declared question and all visitors. Such a report describes
// and names no winner.
func isDescriptive(p *plan.Plan) bool { return !p.OfAllVisitors() || !p.IsDeclared() }

// missingLook returns why a comparison has no look; segment: in a slice of a breakdown.
func missingLook(p *plan.Plan, segment bool) stats.Reason {
	switch {
	case p.Rules.SignificanceLevel == LevelWithoutAlpha:
		return stats.ReasonLevel100
	case segment || isDescriptive(p):
		return stats.ReasonNotDeclared
	}
	return stats.ReasonTooEarly
}

// LevelWithoutAlpha is the significance level at which nothing is significant.
const LevelWithoutAlpha = 100

// LooksInWords returns a line about the looks, or "" if the report has none.
func (r *Report) LooksInWords() string {
	if r.Looks == nil && r.NextLook == nil {
		return ""
	}
	text := "Looks: none yet"
	if n := len(r.Looks); n > 0 {
		text = fmt.Sprintf("Looks: %d, the last one on %s with %s visitors", n, lastDay(r.Looks[n-1].End),
			wording.FormatCount(r.Looks[n-1].Visitors))
	}
	if r.NextLook != nil {
		text += "; the " + r.NextLook.InWords()
	}
	return text + "."
}
