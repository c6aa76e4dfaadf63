package result

import (
	"slices"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/stats"
)

// decide sets the conclusion of the whole report. That of the declared question about
// all visitors is what the days decided. That of some of the visitors is what this
// look says.
func (j *cellResult) decide(plan *plan.Plan, decision *Decision) {
	j.evidence.Pending = decision.pending()
	now := undeclared(plan, stats.Conclude(j.evidence))
	if decision == nil || !plan.IsDeclared() || !plan.OfAllVisitors() || now.Status == stats.StatusInvalid {
		j.conclude(plan, now, nil)
		return
	}
	decided := decision.Decided
	if decided == nil {
		if now.Index >= 0 {
			now = stats.Conclusion{Status: stats.StatusInconclusive, Index: -1, Reasons: []stats.Reason{stats.ReasonDayNotOver}, Conclusive: make([]bool, len(now.Conclusive))}
			if plan.Segment > 1 { // the report also has the visitors of earlier periods
				now.Reasons[0] = stats.ReasonSharesChanged
			}
		}
		j.conclude(plan, now, decision.describe)
		return
	}
	now.Status, now.Index, now.Reasons = decided.Conclusion.Status, decided.Conclusion.Index, decided.Conclusion.Reasons
	for i, conclusive := range decided.Conclusion.Conclusive {
		now.Conclusive[i] = now.Conclusive[i] || conclusive && decided.Comparisons[i].Verdict == j.evidence.Comparisons[i].Verdict
	}
	j.conclude(plan, now, decision.describe)
}

// undeclared withdraws the conclusion of a report about another goal or metric than
// the declared ones. Its comparisons stay conclusive, each by itself.
func undeclared(plan *plan.Plan, c stats.Conclusion) stats.Conclusion {
	if c.Index >= 0 && !plan.IsDeclared() {
		c.Status, c.Index, c.Reasons = stats.StatusInconclusive, -1, []stats.Reason{stats.ReasonNotDeclared}
	}
	return c
}

// conclude sets the conclusion and its text. describe adds what earlier looks decided; it
// is nil if the conclusion is that of this look.
func (j *cellResult) conclude(plan *plan.Plan, c stats.Conclusion, describe func(*Statement, []VariationResults)) {
	if !plan.Rules.Compare {
		return
	}
	j.Conclusion = NewConclusion(c)
	for i, conclusive := range c.Conclusive {
		j.Variations[i+1].Comparison.Conclusive = &conclusive
	}
	s := &Statement{
		Conclusion: j.Conclusion, metric: metricInWords[plan.Metric], Rate: isRate[plan.Metric],
		Level: plan.Rules.SignificanceLevel, MDE: plan.Rules.MDE, SampleRatio: j.Checks.SampleRatio,
	}
	if len(j.Variations) > 0 {
		s.Control = j.Variations[0].Name
	}
	if j.Power != nil {
		s.Required, s.Remaining = j.Power.RequiredVisitors, j.Power.RemainingVisitors
	}
	if describe != nil {
		describe(s, j.Variations)
	}
	if slices.Contains(c.Reasons, stats.ReasonNotDeclared) {
		s.Decides, s.Comparison = mostConclusive(j.Variations)
	}
	if c.Index >= 0 {
		decides := &j.Variations[c.Index+1]
		j.Conclusion.VariationID = &decides.ID
		s.Decides = decides.Name
		if s.Comparison == nil {
			s.Comparison = decides.Comparison
		}
		j.Conclusion.Basis = basisOf(s.Comparison.Sequential.PlannedLook)
	}
	j.Conclusion.Text = s.Sentence()
}

// mostConclusive returns the name and the comparison of the variation with the smallest
// p-value of the sequence, among those with a conclusive verdict.
func mostConclusive(variations []VariationResults) (name string, found *Comparison) {
	for i := range variations {
		v := &variations[i]
		if c := v.Comparison; c != nil && c.Conclusive != nil && *c.Conclusive && (found == nil || *c.Sequential.PValue < *found.Sequential.PValue) {
			name, found = v.Name, c
		}
	}
	return name, found
}

// describe adds what the days decided to the conclusion and to its text.
func (d *Decision) describe(s *Statement, variations []VariationResults) {
	if d == nil {
		return
	}
	if end, reached := d.lookEnd(); reached {
		s.PlannedLook, s.PlannedVisitors = end, d.days.looks[d.PlannedLook].Visitors
	}
	if s.Conclusion.Status == stats.StatusWinner || s.Conclusion.Status == stats.StatusLoser {
		at := d.days.ends[d.Decided.Look]
		s.Conclusion.DecidedAt = &at
		s.Conclusion.Decided = NewComparison(d.Decided.Comparisons[d.Decided.Conclusion.Index])
		s.Comparison = s.Conclusion.Decided
		return
	}
	if i := Ahead(d.AtPlannedLook); i >= 0 {
		s.Decides, s.Comparison = variations[i+1].Name, NewComparison(d.AtPlannedLook[i])
	}
}

// Ahead returns the index of the comparison with the smallest p-value that is
// significant at the planned look only as if it were the only one, or -1.
func Ahead(atPlannedLook []stats.Comparison) int {
	found := -1
	for i, c := range atPlannedLook {
		if f := c.Frequentist; f == nil || f.AdjustedPValue == nil || !c.Significant || c.Sequential.Significant {
			continue
		}
		if found < 0 || *c.Frequentist.AdjustedPValue < *atPlannedLook[found].Frequentist.AdjustedPValue {
			found = i
		}
	}
	return found
}

// Reasons of conclusions without a variation, in addition to those of package
// stats.
const (
	reasonNotSignificant   stats.Reason = "NOT_SIGNIFICANT"
	reasonNothingToCompare stats.Reason = "NOTHING_TO_COMPARE"
)

// NewConclusion returns the conclusion for the results body. A conclusion
// without a variation has a reason.
func NewConclusion(c stats.Conclusion) *Conclusion {
	shown := &Conclusion{Status: c.Status, Reasons: append([]stats.Reason{}, c.Reasons...)}
	if c.Index < 0 && len(shown.Reasons) == 0 {
		switch c.Status {
		case stats.StatusInsufficientData:
			shown.Reasons = append(shown.Reasons, reasonNothingToCompare)
		default:
			shown.Reasons = append(shown.Reasons, reasonNotSignificant)
		}
	}
	return shown
}

// metricInWords maps a metric to its name in texts.
var metricInWords = map[query.Metric]string{
	query.GoalConversionRate:   "the goal conversion rate",
	query.ConversionRate:       "the conversion rate",
	query.CompletionRate:       "the completion rate",
	query.ValuePerVisitor:      "value per visitor",
	query.ProfitPerVisitor:     "profit per visitor",
	query.ExtraValuePerVisitor: "extra value per visitor",
}

// isRate has the metrics that are shares of the visitors.
var isRate = map[query.Metric]bool{query.GoalConversionRate: true, query.ConversionRate: true, query.CompletionRate: true}
