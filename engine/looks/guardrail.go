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
	s *Schedule, sums *Sums, margin stats.Margin, looks *Question, recorded []Record,
) []GuardrailStatus {
	p := sums.plan
	treatments, planned := len(p.Variations)-1, 0
	for _, v := range p.Variations[1:] {
		if !v.Added {
			planned++
		}
	}
	type dayData struct {
		End    time.Time
		Strata []StratumData
	}
	var days []dayData
	for _, end := range s.fullDays() {
		d := dayData{End: end}
		for _, st := range sums.strataUntil(s.sinceLooks(end), end) {
			data, _ := samplesOf(p, &st)
			d.Strata = append(d.Strata, data)
		}
		days = append(days, d)
	}
	isLook := func(end time.Time) bool {
		return slices.ContainsFunc(s.Looks, func(l Look) bool { return l.End.Equal(end) })
	}
	compute := func() []GuardrailStatus {
		all := make([]GuardrailStatus, treatments)
		for t := range all {
			status := GuardrailStatus{Status: NotYetKnown, Reason: stats.ReasonTooFewVisitors}
			if p.Variations[t+1].Added {
				status.Reason = stats.ReasonPlanChanged
				all[t] = status
				continue
			}
			for _, rows := range looks.Rows {
				if margin.IsSafe(rows[t].LookResult) {
					status.Status, status.DecidedAt = Safe, rows[t].End
					break
				}
			}
			rule := stats.HarmRule{Alpha: alphaOf(p), Treatments: planned, Guardrails: len(p.Declared.Guardrails)}
			if len(s.days) > 0 { // the planned visitors of control and the treatment
				shares, total := s.firstShares(p), 0.0
				for _, share := range shares {
					total += share
				}
				if total > 0 {
					rule.PlannedVisitors = (shares[0] + shares[t+1]) / total * float64(p.Rules.PlannedVisitors)
				}
			}
			for _, d := range days {
				strata, nonNegative := strataOf(d.Strata, t)
				h := margin.HarmBound(strata, nonNegative, rule)
				status.Upper, status.Reason = h.Upper, h.Reason
				if h.Breaks || h.Below && isLook(d.End) {
					status.Status, status.DecidedAt = Harmed, d.End
					break
				}
			}
			all[t] = status
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
