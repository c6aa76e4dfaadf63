package looks

import (
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/stats"
)

// Guardrail has the looks of a guardrail, and the resulting status of each variation.
type Guardrail struct {
	Question
	Plan   *plan.Plan        // of the question
	Status []GuardrailStatus // by variation, without control
}

// GuardrailStatus says whether a variation harms a guardrail.
type GuardrailStatus struct {
	Status    string    // Safe, Harmed or NotYetKnown
	DecidedAt time.Time // end of the look or day that decided; zero: none
	Upper     *float64  // the always-valid upper bound of the effect in the good direction
	Reason    stats.Reason

	recorded bool
}

// The values of GuardrailStatus.Status.
const (
	Safe        = "safe"
	Harmed      = "harmed"
	NotYetKnown = "notYetKnown"
)

// guardrailOf returns the status of each treatment at a margin, from the looks and days. It is harmed at the first look
// or day that shows harm, or else safe at the first look that shows safety. Recorded harm is permanent.
func (a *Analyzer) guardrailOf(
	of *harmData, margin stats.Margin, looks *Question, recorded []Record,
) []GuardrailStatus {
	p := of.sums.plan
	days := of.readDays()
	treatments := len(p.Variations) - 1
	compute := func() []GuardrailStatus {
		all := make([]GuardrailStatus, treatments)
		for t := range all {
			all[t] = of.judgeTreatment(t, margin, looks, days)
		}
		return all
	}
	all := slices.Clone(computeOnce(a, (len(days)+1)*treatments*lookBytes, compute, "guardrail", margin,
		p.Rules.SignificanceLevel, p.Rules.PlannedVisitors, len(p.Declared.Guardrails), p.Metric, p.Variations, days,
		looks.Rows))
	for t := range all {
		for _, r := range recorded {
			if r.isAbout(p) && r.Kind == OfHarm && r.VariationID == p.Variations[t+1].ID {
				all[t] = GuardrailStatus{Status: Harmed, DecidedAt: r.End, Upper: r.Upper, recorded: true}
			}
		}
	}
	return all
}

// harmDay has the sums of all visitors until the end of a full day.
type harmDay struct {
	End    time.Time
	Strata []StratumData
}

// readDays returns the sums until the end of each full day.
func (h *harmData) readDays() (days []harmDay) {
	for _, end := range h.schedule.fullDays() {
		d := harmDay{End: end}
		for _, st := range h.sums.strataUntil(h.schedule.sinceLooks(end), end) {
			data, _ := samplesOf(h.sums.plan, &st)
			d.Strata = append(d.Strata, data)
		}
		days = append(days, d)
	}
	return days
}

// judgeTreatment returns the status of a treatment.
func (h *harmData) judgeTreatment(
	treatment int, margin stats.Margin, looks *Question, days []harmDay,
) GuardrailStatus {
	if h.sums.plan.Variations[treatment+1].Added {
		return GuardrailStatus{Status: NotYetKnown, Reason: stats.ReasonPlanChanged}
	}
	status := GuardrailStatus{Status: NotYetKnown, Reason: stats.ReasonTooFewVisitors}
	isSafe := func(rows []LookRow) bool { return margin.IsSafe(rows[treatment].LookResult) }
	if k := slices.IndexFunc(looks.Rows, isSafe); k >= 0 {
		status.Status, status.DecidedAt = Safe, looks.Rows[k][treatment].End
	}
	rule := h.ruleOf(treatment)
	for _, d := range days {
		strata, nonNegative := strataOf(d.Strata, treatment)
		bound := margin.HarmBound(strata, nonNegative, rule)
		status.Upper, status.Reason = bound.Upper, bound.Reason
		if bound.Breaks || bound.Below && h.schedule.isLook(d.End) {
			status.Status, status.DecidedAt = Harmed, d.End
			break
		}
	}
	return status
}

// ruleOf returns the rule by which harm of a treatment is found.
func (h *harmData) ruleOf(treatment int) stats.HarmRule {
	p := h.sums.plan
	rule := stats.HarmRule{Alpha: alphaOf(p), Guardrails: len(p.Declared.Guardrails)}
	for _, v := range p.Variations[1:] {
		if !v.Added {
			rule.Treatments++
		}
	}
	if len(h.schedule.days) == 0 {
		return rule
	}
	shares := h.schedule.firstShares(p)
	total := 0.0
	for _, share := range shares {
		total += share
	}
	if total > 0 { // the planned visitors of control and the treatment
		rule.PlannedVisitors = (shares[0] + shares[treatment+1]) / total * float64(p.Rules.PlannedVisitors)
	}
	return rule
}

// isLook reports whether a look has ended at a time.
func (s *Schedule) isLook(end time.Time) bool {
	return slices.ContainsFunc(s.Looks, func(l Look) bool { return l.End.Equal(end) })
}
