package result

import (
	"fmt"
	"slices"
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
	describes, missing := segment || isDescriptive(p), missingLook(p, segment)
	if describes {
		a = nil
	}
	for i := range j.Variations {
		c := j.Variations[i].Comparison
		if c == nil {
			continue
		}
		var last *looks.Row
		if a != nil {
			last = a.Primary.LastLook(i - 1)
		}
		c.Sequential = NewSequential(last, missing)
		if !describes {
			c.Conclusive = new(supportsVerdict(a, i-1, c.Verdict))
		}
	}
	c := &Conclusion{Status: stats.StatusInconclusive, Reasons: []stats.Reason{}}
	j.Conclusion = c
	enough := false
	var reasons []stats.Reason // for a missing conclusion
	for i := 1; i < len(j.Variations); i++ {
		of := j.Variations[i].Comparison
		enough = enough || of.Verdict != stats.VerdictInsufficientData
		reasons = stats.AppendReasons(reasons, of.Reasons...)
	}
	switch {
	case j.Checks.SampleRatio.Mismatch:
		c.Status, c.Reasons = stats.StatusInvalid, append(c.Reasons, stats.ReasonSampleRatioMismatch)
		c.Text = InvalidInWords(*j.Checks.SampleRatio.PValue, isBayesian(p))
	case len(j.Variations) < 2:
		c.Status, c.Reasons = stats.StatusInsufficientData, append(c.Reasons, reasonNothingToCompare)
		c.Text = "There is nothing to compare: there is only one variation."
	case a != nil && a.Outcome != nil:
		row := &a.Primary.Rows[a.Outcome.Look][a.Outcome.Treatment]
		c.Status = stats.StatusLoser
		if a.Outcome.Winner {
			c.Status = stats.StatusWinner
		}
		c.VariationID, c.Look, c.DecidedAt = &row.VariationID, &row.Number, &row.End
		c.Text = j.decidedText(p, row)
	case !enough:
		c.Status, c.Reasons = stats.StatusInsufficientData, append(c.Reasons, reasons...)
		c.Text = "Not enough data for a verdict: " + ExplainAll(c.Reasons) + "."
	case missing == stats.ReasonLevel100:
		c.Reasons = []stats.Reason{missing}
		c.Text = "No conclusion is possible: " + wording.ExplainReason(missing) + "."
	case missing == stats.ReasonNotDeclared:
		c.Reasons = []stats.Reason{missing}
		c.Text = "This report describes: only the primary metric of all visitors has a conclusion."
	case a == nil || len(a.Looks) == 0:
		c.Reasons = []stats.Reason{missing}
		c.Text = "There was no look yet" + whenNext(a) + "."
	default:
		c.Reasons = []stats.Reason{reasonNotSignificant}
		last, differed := a.LastLook(), "differed significantly from"
		if isBayesian(p) {
			differed = "was clearly better or worse than"
		}
		c.Text = fmt.Sprintf("No variation %s %s at look %d on %s%s.", differed, j.Variations[0].Name, last.Number,
			lastDay(last.End), whenNext(a))
	}
}

// Reasons of conclusions that name no variation, in addition to the reasons of package stats.
const (
	reasonNotSignificant   stats.Reason = "NOT_SIGNIFICANT"
	reasonNothingToCompare stats.Reason = "NOTHING_TO_COMPARE"
	reasonNotMature        stats.Reason = "NOT_MATURE"
)

// InvalidInWords returns the conclusion of results with a sample ratio mismatch. A Bayesian one has no p-value.
func InvalidInWords(p float64, bayesian bool) string {
	text := "The results are not valid: the split of the visitors does not match the configured shares (sample ratio " +
		"mismatch"
	if !bayesian {
		text += ", p = " + wording.FormatPValue(p)
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

// whenNext returns the text about the next look.
func whenNext(a *looks.Analysis) string {
	next := nextLook(a)
	if next == nil {
		return ""
	}
	text := "; the " + next.InWords()
	if w := a.Plan.ConversionWindow; w.IsSet() {
		text += ", when its last visitors have had " + w.EndInWords() + " to convert"
	}
	return text
}

// decidedText returns the text about the winner or loser, with the interval at the concluding look.
func (j *sliceResult) decidedText(p *plan.Plan, row *looks.Row) string {
	at := slices.IndexFunc(j.Variations, func(v VariationResults) bool { return v.ID == row.VariationID })
	verdict := "worse"
	if j.Conclusion.Status == stats.StatusWinner {
		verdict = "better"
	}
	text := fmt.Sprintf("%s is %s than %s: %s has %s", j.Variations[at].Name, verdict, j.Variations[0].Name,
		nameIn(p), LookInWords(row, p.Rules.SignificanceLevel, IsRate(p.Metric)))
	text += fmt.Sprintf(" at look %d on %s with %s visitors", row.Number, lastDay(row.End),
		wording.FormatCount(row.Visitors))
	if row.Chance != nil {
		text += fmt.Sprintf(", with a chance of %s to beat %s", wording.FormatChance(*row.Chance), j.Variations[0].Name)
	}
	return text + "."
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
func NewLookVariation(r *looks.Row) LookVariation {
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
func NewSequential(r *looks.Row, missing stats.Reason) *Sequential {
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
func isDescriptive(p *plan.Plan) bool { return !p.IsDeclared() || !p.OfAllVisitors() }

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

// supportsVerdict reports whether any look supports the verdict on a treatment. a has the results of the looks; nil:
// there are none.
func supportsVerdict(a *looks.Analysis, treatment int, verdict stats.Verdict) bool {
	return a != nil && a.Primary.SupportsVerdict(treatment, verdict, statsOptions(a.Plan).Alpha())
}

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
