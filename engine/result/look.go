package result

import (
	"fmt"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/stats"
)

// newLooks returns the looks of the declared question.
func newLooks(a *looks.Analysis) []Look {
	all := []Look{}
	for _, rows := range a.Primary.Rows {
		first := rows[0]
		look := Look{Number: first.Number, End: first.End, Tau: first.Tau, Visitors: first.Visitors, RecordedAt: optionalTime(first.RecordedAt)}
		for i := range rows {
			look.Variations = append(look.Variations, NewLookVariation(&rows[i]))
		}
		all = append(all, look)
	}
	return all
}

// NewLookVariation returns a row of a look for the response body.
func NewLookVariation(r *looks.Row) LookVariation {
	shown := LookVariation{
		ID: r.VariationID, CriticalValue: r.Critical, Z: r.Z, PValue: r.PValue, Difference: newEffect(r.Difference), Improvement: newEffect(r.Lift),
		ChanceToBeatControl: r.Chance, Significant: r.Significant, Reason: r.Reason,
	}
	if r.Recomputed != nil {
		shown.Recomputed = &Recomputed{newEffect(r.Recomputed.Difference), newEffect(r.Recomputed.Lift), r.Recomputed.Significant}
	}
	return shown
}

// NewSequential returns the result of a look for a comparison, or the reason why there is none.
func NewSequential(r *looks.Row, missing stats.Reason) *Sequential {
	if r == nil {
		return &Sequential{Reason: missing, ImprovementReason: missing}
	}
	return &Sequential{
		Look: &r.Number, End: optionalTime(r.End), PValue: r.PValue, Difference: newBounds(r.Difference.Interval), Improvement: newBounds(r.Lift.Interval),
		Significant: r.Significant, Reason: r.Reason, ImprovementReason: r.Lift.Reason,
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
	return &NextLook{Number: number, End: end, PublishedAt: end.Add(a.Plan.Rules.Maturity)}
}

// isDescriptive reports whether a report is not about the declared question and all visitors.
// Such a report describes and names no winner.
func isDescriptive(p *plan.Plan) bool { return !p.IsDeclared() || !p.OfAllVisitors() }

// missingLook returns why a comparison has no look.
func missingLook(p *plan.Plan) stats.Reason {
	switch {
	case p.Rules.SignificanceLevel == LevelWithoutAlpha:
		return stats.ReasonLevel100
	case isDescriptive(p):
		return stats.ReasonNotDeclared
	}
	return stats.ReasonTooEarly
}

// LevelWithoutAlpha is the significance level at which nothing is significant.
const LevelWithoutAlpha = 100

// concludingRow returns the row of the concluding look, or nil.
func concludingRow(a *looks.Analysis) *looks.Row {
	if a == nil || a.Outcome == nil {
		return nil
	}
	return &a.Primary.Rows[a.Outcome.Look][a.Outcome.Treatment]
}

// supportsVerdict reports whether any look supports the verdict on a treatment. a has the results
// of the looks; nil: there are none.
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
		text = fmt.Sprintf("Looks: %d, the last one on %s with %s visitors", n, lastDay(r.Looks[n-1].End), FormatCount(r.Looks[n-1].Visitors))
	}
	if r.NextLook != nil {
		text += fmt.Sprintf("; the next one on %s", r.NextLook.PublishedAt.UTC().Format(time.DateOnly))
	}
	return text + "."
}
