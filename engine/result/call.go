package result

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/stats"
)

// Guardrail is what the days say of a guardrail for a variation. Lower and Upper bound
// the effect in the good direction, one-sided: a lift as a fraction with a margin, a
// difference with an absolute margin.
type Guardrail struct {
	Status           stats.GuardrailStatus `json:"status"`
	Margin           *float64              `json:"margin,omitempty"`         // the largest acceptable loss, as a fraction
	AbsoluteMargin   *float64              `json:"absoluteMargin,omitempty"` // the same in the unit of the metric
	Lower            *float64              `json:"lower"`                    // safe if it is above the negative margin
	Upper            *float64              `json:"upper"`                    // harmed if it is below the negative margin
	RequiredVisitors *int64                `json:"requiredVisitors"`         // over all variations, to show safety with the planned power
	DecidedAt        *time.Time            `json:"decidedAt,omitempty"`      // end of the day that decided
	Reason           stats.Reason          `json:"reason,omitempty"`
}

// guarded are the results of a guardrail by treatment, with the ends of its days.
type guarded struct {
	results []stats.GuardrailResult
	ends    []time.Time
}

// guard returns the results of the guardrails.
func (d *Decision) guard(guards []*Days) []guarded {
	all := make([]guarded, len(guards))
	onAllCores(len(guards), func(i int) {
		days := guards[i]
		n := d.daysUntil(days)
		planned := -1
		if end, reached := d.lookEnd(); reached {
			planned = slices.IndexFunc(days.ends, end.Equal)
		}
		o := options(days.plan)
		o.SharesChanged = false
		all[i] = guarded{stats.Guard(days.looks[:n], planned, days.plan.Declared.Guardrails[i].Guardrail, decisionPlan(days.plan), o), days.ends}
	})
	return all
}

// daysUntil returns the number of days that end until the last day of the decision.
func (d *Decision) daysUntil(days *Days) int {
	if d.fullDays() == 0 {
		return 0
	}
	last := d.days.ends[d.looks-1]
	n := len(days.ends)
	for n > 0 && days.ends[n-1].After(last) {
		n--
	}
	return n
}

// newGuardrail returns the result of a guardrail for a treatment.
func newGuardrail(g *plan.Guardrail, all []guarded, guardrail, treatment int) *Guardrail {
	shown := &Guardrail{Status: stats.GuardrailNotYetKnown, Reason: stats.ReasonNoVisitors}
	if g.Margin > 0 {
		shown.Margin = &g.Margin
	} else {
		shown.AbsoluteMargin = &g.AbsoluteMargin
	}
	if guardrail >= len(all) || treatment >= len(all[guardrail].results) {
		return shown
	}
	r := all[guardrail].results[treatment]
	shown.Status, shown.Lower, shown.Upper, shown.RequiredVisitors, shown.Reason = r.Status, r.Lower, r.Upper, r.Required, r.Reason
	if r.Look >= 0 {
		shown.DecidedAt = &all[guardrail].ends[r.Look]
	}
	return shown
}

// Call is what to do with the campaign.
type Call struct {
	Status      CallStatus   `json:"status"`
	VariationID *int64       `json:"variationId"`         // to ship or to roll back
	DecidedAt   *time.Time   `json:"decidedAt,omitempty"` // end of the day that decided; nil: nothing is decided
	Reasons     []CallReason `json:"reasons"`             // why, or what is missing
	Text        string       `json:"text"`
}

// CallStatus says what to do.
type CallStatus string

// The statuses, by precedence.
const (
	CallInvalid      CallStatus = "invalid"
	CallRollBack     CallStatus = "rollBack"
	CallShip         CallStatus = "ship"
	CallNoDifference CallStatus = "noDifference"
	CallKeepRunning  CallStatus = "keepRunning"
)

// CallReason is a reason of a decision. Goal and metric are those of a guardrail.
type CallReason struct {
	Code   stats.Reason `json:"code"`
	GoalID int64        `json:"goalId,omitzero"`
	Metric string       `json:"metric,omitempty"`
	Text   string       `json:"text"`
}

// The reasons of decisions in addition to those of conclusions.
const (
	reasonWinner          stats.Reason = "WINNER"
	reasonLoser           stats.Reason = "LOSER"
	reasonGuardrailHarmed stats.Reason = "GUARDRAIL_HARMED"
	reasonGuardrailOpen   stats.Reason = "GUARDRAIL_OPEN"
	reasonGuardrailsSafe  stats.Reason = "GUARDRAILS_SAFE"
	reasonMinDays         stats.Reason = "MIN_DAYS"
	reasonEquivalent      stats.Reason = "WITHIN_MDE"
)

// caller makes the decision of a report.
type caller struct {
	*Report
	plan     *plan.Plan
	decision *Decision
	guarded  []guarded
	scope    scope
}

// call returns what to do. A winner ships if all its guardrails are safe and the least
// number of days has passed; the guardrails of other variations do not matter then.
func (r *Report) call(p *plan.Plan, d *Decision, all []guarded, s scope) *Call {
	c := caller{r, p, d, all, s}
	switch r.Conclusion.Status {
	case stats.StatusInvalid:
		return &Call{Status: CallInvalid, Reasons: []CallReason{{Code: stats.ReasonSampleRatioMismatch, Text: "the split of the visitors does not match the shares"}}, Text: "Do not decide: " + lowerFirst(r.Conclusion.Text)}
	case stats.StatusLoser:
		call := c.named(CallRollBack, *r.Conclusion.VariationID, r.Conclusion.DecidedAt)
		call.Reasons = []CallReason{{Code: reasonLoser, Text: call.Text + " is worse than control"}}
		call.Text = fmt.Sprintf("Roll back %s: it is worse than %s.", call.Text, c.control())
		return call
	case stats.StatusWinner:
		return c.winner()
	case stats.StatusInconclusive, stats.StatusInsufficientData:
	}
	for treatment := range len(r.Variations) - 1 {
		if call := c.harmed(treatment); call != nil {
			return call
		}
	}
	if call := c.noDifference(); call != nil {
		return call
	}
	call := &Call{Status: CallKeepRunning, Reasons: []CallReason{}, Text: "Keep running: " + lowerFirst(r.Conclusion.Text)}
	for _, reason := range r.Conclusion.Reasons {
		call.Reasons = append(call.Reasons, CallReason{Code: reason, Text: Explain(reason)})
	}
	return call
}

func (c *caller) control() string { return c.Variations[0].Name }

// named returns a decision about a variation, with its name as text.
func (c *caller) named(status CallStatus, id int64, at *time.Time) *Call {
	i := slices.IndexFunc(c.Variations, func(v VariationResults) bool { return v.ID == id })
	return &Call{Status: status, VariationID: &id, DecidedAt: at, Text: c.Variations[i].Name}
}

// harmed returns the decision about a treatment that harms a guardrail, or nil.
func (c *caller) harmed(treatment int) *Call {
	var call *Call
	var names []string
	for i := range c.guarded {
		if treatment >= len(c.guarded[i].results) || c.guarded[i].results[treatment].Status != stats.GuardrailHarmed {
			continue
		}
		at := c.guarded[i].ends[c.guarded[i].results[treatment].Look]
		if call == nil {
			call = c.named(CallRollBack, c.Variations[treatment+1].ID, &at)
		}
		if at.Before(*call.DecidedAt) {
			call.DecidedAt = &at
		}
		call.Reasons = append(call.Reasons, c.ofGuardrail(reasonGuardrailHarmed, i, "is harmed by more than its margin"))
		names = append(names, c.guardrailName(i))
	}
	if call != nil {
		call.Text = fmt.Sprintf("Roll back %s: it harms %s by more than the margin.", call.Text, strings.Join(names, " and "))
	}
	return call
}

// guardrailName returns the metric and the goal of a guardrail.
func (c *caller) guardrailName(i int) string {
	g := c.plan.Declared.Guardrails[i]
	for j := range c.plan.Goals {
		if c.plan.Goals[j].ID == g.GoalID {
			return fmt.Sprintf("%s of %s", metricInWords[g.Metric], c.plan.Goals[j].Name)
		}
	}
	return metricInWords[g.Metric]
}

func (c *caller) ofGuardrail(code stats.Reason, i int, says string) CallReason {
	g := c.plan.Declared.Guardrails[i]
	return CallReason{Code: code, GoalID: g.GoalID, Metric: string(g.Metric), Text: c.guardrailName(i) + " " + says}
}

// winner returns the decision about a winner.
func (c *caller) winner() *Call {
	id := *c.Conclusion.VariationID
	treatment := slices.IndexFunc(c.Variations, func(v VariationResults) bool { return v.ID == id }) - 1
	if call := c.harmed(treatment); call != nil {
		return call
	}
	at := c.Conclusion.DecidedAt
	var missing []CallReason
	var waits []string
	for i := range c.plan.Declared.Guardrails {
		var r stats.GuardrailResult
		if i < len(c.guarded) && treatment < len(c.guarded[i].results) {
			r = c.guarded[i].results[treatment]
		}
		if r.Status != stats.GuardrailSafe {
			missing = append(missing, c.ofGuardrail(reasonGuardrailOpen, i, "is not known to be safe yet"))
			waits = append(waits, "it is not yet known that "+c.guardrailName(i)+" is safe")
			continue
		}
		if safe := c.guarded[i].ends[r.Look]; safe.After(*at) {
			at = &safe
		}
	}
	enough := c.decision.days.ends[0].AddDate(0, 0, c.plan.Declared.MinDays-1)
	if c.scope.days < c.plan.Declared.MinDays {
		text := fmt.Sprintf("%d of at least %d full days have passed", c.scope.days, c.plan.Declared.MinDays)
		missing, waits = append(missing, CallReason{Code: reasonMinDays, Text: text}), append(waits, text)
	} else if enough.After(*at) {
		at = &enough
	}
	name := c.Variations[treatment+1].Name
	if len(missing) > 0 {
		return &Call{Status: CallKeepRunning, VariationID: &id, Reasons: missing, Text: fmt.Sprintf("Keep running: %s is better than %s, but %s.", name, c.control(), strings.Join(waits, ", and "))}
	}
	call := &Call{Status: CallShip, VariationID: &id, DecidedAt: at, Reasons: []CallReason{{Code: reasonWinner, Text: name + " is better than control"}}}
	call.Text = fmt.Sprintf("Ship %s: it is better than %s", name, c.control())
	if n := len(c.plan.Declared.Guardrails); n > 0 {
		call.Reasons = append(call.Reasons, CallReason{Code: reasonGuardrailsSafe, Text: "all guardrails are safe"})
		call.Text += ", and " + safeGuardrails(n)
	}
	call.Text += "."
	return call
}

func safeGuardrails(n int) string {
	switch n {
	case 1:
		return "its guardrail is safe"
	case 2:
		return "both guardrails are safe"
	}
	return fmt.Sprintf("all %d guardrails are safe", n)
}

// noDifference returns the decision that no treatment can differ by the minimum effect,
// or nil.
func (c *caller) noDifference() *Call {
	n := c.decision.fullDays()
	if n == 0 {
		return nil
	}
	days := c.decision.days
	o := options(days.plan)
	o.SharesChanged = false
	look := stats.Equivalence(days.looks[:n], c.decision.PlannedLook, c.plan.Rules.MDE/100, o)
	if look < 0 {
		return nil
	}
	return &Call{
		Status: CallNoDifference, DecidedAt: &days.ends[look],
		Reasons: []CallReason{{Code: reasonEquivalent, Text: "the interval of the lift is within the minimum detectable effect"}},
		Text:    fmt.Sprintf("No difference: the lift is within ±%v %%, the minimum effect of interest.", c.plan.Rules.MDE),
	}
}

// lowerFirst returns a sentence that follows a colon.
func lowerFirst(sentence string) string {
	for _, article := range []string{"The ", "There ", "It ", "No ", "Not "} {
		if strings.HasPrefix(sentence, article) {
			return strings.ToLower(sentence[:1]) + sentence[1:]
		}
	}
	return sentence
}
