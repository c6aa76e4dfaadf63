package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/wording"
	"lifthouse/stats"
)

// Guardrail is the status of a guardrail for a variation. Lower and Upper bound the effect in the good direction. The
// effect is a lift (a fraction) for a relative margin, and a difference for an absolute margin.
type Guardrail struct {
	Status           string       `json:"status"`
	Margin           *float64     `json:"margin,omitempty"`         // the largest acceptable loss, as a fraction
	AbsoluteMargin   *float64     `json:"absoluteMargin,omitempty"` // the same in the unit of the metric
	Lower            *float64     `json:"lower"`                    // of the last look: safe if it is above the negative margin
	Upper            *float64     `json:"upper"`                    // always valid: harmed if it is below the negative margin
	RequiredVisitors *int64       `json:"requiredVisitors"`         // over all variations, to show safety with the planned power
	DecidedAt        *time.Time   `json:"decidedAt,omitempty"`      // end of the look or day that decided
	Reason           stats.Reason `json:"reason,omitempty"`
}

// newGuardrail returns the status of a guardrail for a treatment.
func newGuardrail(g *plan.Guardrail, a *looks.Analysis, guardrail, treatment int) *Guardrail {
	shown := &Guardrail{Status: looks.NotYetKnown, Reason: stats.ReasonTooEarly}
	if g.Relative > 0 {
		shown.Margin = &g.Relative
	} else {
		shown.AbsoluteMargin = &g.Absolute
	}
	if a == nil || guardrail >= len(a.Guardrails) {
		return shown
	}
	found := &a.Guardrails[guardrail]
	status := &found.Status[treatment]
	shown.Status, shown.Upper, shown.Reason = status.Status, status.Upper, status.Reason
	shown.DecidedAt = optionalTime(status.DecidedAt)
	if last := found.LastLook(treatment); last != nil {
		in := last.Difference.Interval
		if g.Relative > 0 {
			in = last.Lift.Interval
		}
		switch {
		case in == nil:
			shown.Reason = cmp.Or(shown.Reason, last.Reason, last.Lift.Reason, last.Difference.Reason)
		case !g.Down:
			shown.Lower = in[0]
		case in[1] != nil:
			shown.Lower = new(-*in[1])
		}
	}
	return shown
}

// Decision recommends what to do with the campaign.
type Decision struct {
	Status      DecisionStatus   `json:"status"`
	VariationID *int64           `json:"variationId"`         // to ship or to roll back
	DecidedAt   *time.Time       `json:"decidedAt,omitempty"` // end of the look or day that decided; nil: nothing is decided
	Reasons     []DecisionReason `json:"reasons"`             // why, or what is missing
	Text        string           `json:"text"`
}

// DecisionStatus is the recommended action.
type DecisionStatus string

// The statuses, highest precedence first.
const (
	DecisionInvalid      DecisionStatus = "invalid"
	DecisionRollBack     DecisionStatus = "rollBack"
	DecisionShip         DecisionStatus = "ship"
	DecisionNoDifference DecisionStatus = "noDifference"
	DecisionNoWinner     DecisionStatus = "noWinner"
	DecisionKeepRunning  DecisionStatus = "keepRunning"
)

// DecisionReason is a reason for a decision. Goal and metric identify a guardrail.
type DecisionReason struct {
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
	reasonPrimaryHarmed   stats.Reason = "PRIMARY_HARMED"
	reasonGuardrailOpen   stats.Reason = "GUARDRAIL_OPEN"
	reasonGuardrailsSafe  stats.Reason = "GUARDRAILS_SAFE"
	reasonMinDays         stats.Reason = "MIN_DAYS"
	reasonEquivalent      stats.Reason = "WITHIN_MARGIN"
	reasonPlanEnded       stats.Reason = "PLAN_ENDED"
)

// decider makes the decision of a report.
type decider struct {
	*Report
	plan  *plan.Plan
	looks *looks.Analysis
}

// makeDecision returns the decision. A winner ships if all its guardrails are safe and the minimum number of days has
// passed; the guardrails of other variations do not matter then.
func (r *Report) makeDecision(p *plan.Plan, a *looks.Analysis) *Decision {
	d := decider{r, p, a}
	switch r.Conclusion.Status {
	case stats.StatusInvalid:
		return &Decision{
			Status: DecisionInvalid, Text: "Do not decide: " + lowerFirst(r.Conclusion.Text),
			Reasons: []DecisionReason{{
				Code: stats.ReasonSampleRatioMismatch,
				Text: "the split of the visitors does not match the shares",
			}},
		}
	case stats.StatusLoser:
		found := d.decisionAbout(DecisionRollBack, *r.Conclusion.VariationID, r.Conclusion.DecidedAt)
		found.Reasons = []DecisionReason{{Code: reasonLoser, Text: found.Text + " is worse than control"}}
		found.Text = fmt.Sprintf("Roll back %s: it is worse than %s.", found.Text, d.Variations[0].Name)
		return found
	case stats.StatusWinner:
		return d.winnerDecision()
	case stats.StatusInconclusive, stats.StatusInsufficientData:
	}
	for treatment := range len(r.Variations) - 1 {
		if found := d.harmDecision(treatment); found != nil {
			return found
		}
	}
	if a != nil && p.Rules.EquivalenceMargin != 0 { // the intervals of all lifts may be within it
		margin := p.Rules.EquivalenceMargin
		for _, rows := range a.Primary.Rows {
			if slices.ContainsFunc(rows, func(r looks.Row) bool { return !r.IsWithin(margin) }) {
				continue
			}
			return &Decision{
				Status: DecisionNoDifference, DecidedAt: &rows[0].End,
				Reasons: []DecisionReason{{
					Code: reasonEquivalent,
					Text: "the interval of the lift is within the equivalence margin",
				}},
				Text: fmt.Sprintf("No difference: the lift is within ±%v %%, the declared equivalence margin.",
					100*margin),
			}
		}
	}
	if found := d.noWinner(); found != nil {
		return found
	}
	found := &Decision{
		Status: DecisionKeepRunning, Reasons: []DecisionReason{},
		Text: "Keep running: " + lowerFirst(r.Conclusion.Text),
	}
	if w := p.ConversionWindow; w.IsSet() && p.Ended && nextLook(a) != nil {
		found.Text = fmt.Sprintf("Wait for the conversions of the last %s%s.", w.EndInWords(), whenNext(a))
	}
	for _, reason := range r.Conclusion.Reasons {
		found.Reasons = append(found.Reasons, DecisionReason{Code: reason, Text: wording.ExplainReason(reason)})
	}
	return found
}

// decisionAbout returns a decision about a variation, whose name is the text.
func (d *decider) decisionAbout(status DecisionStatus, id int64, at *time.Time) *Decision {
	i := slices.IndexFunc(d.Variations, func(v VariationResults) bool { return v.ID == id })
	return &Decision{Status: status, VariationID: &id, DecidedAt: at, Text: d.Variations[i].Name}
}

// harmDecision returns the decision about a treatment that harms a guardrail, or nil.
func (d *decider) harmDecision(treatment int) *Decision {
	if d.looks == nil {
		return nil
	}
	var found *Decision
	var names []string
	add := func(status *looks.GuardrailStatus, reason DecisionReason, name string) {
		if status.Status != looks.Harmed {
			return
		}
		if found == nil {
			found = d.decisionAbout(DecisionRollBack, d.Variations[treatment+1].ID, &status.DecidedAt)
		}
		if status.DecidedAt.Before(*found.DecidedAt) {
			found.DecidedAt = &status.DecidedAt
		}
		found.Reasons, names = append(found.Reasons, reason), append(names, name)
	}
	if treatment < len(d.looks.Harm) {
		primary := nameIn(d.looks.Plan)
		add(&d.looks.Harm[treatment], DecisionReason{
			Code: reasonPrimaryHarmed,
			Text: primary + " is harmed by more than the minimum effect",
		}, primary)
	}
	for i := range d.looks.Guardrails {
		add(&d.looks.Guardrails[i].Status[treatment],
			d.ofGuardrail(reasonGuardrailHarmed, i, "is harmed by more than its margin"), d.guardrailName(i))
	}
	if found != nil {
		found.Text = fmt.Sprintf("Roll back %s: it harms %s by more than the margin.", found.Text,
			strings.Join(names, " and "))
	}
	return found
}

// guardrailName returns the metric and the goal of a guardrail.
func (d *decider) guardrailName(i int) string {
	g := d.plan.Declared.Guardrails[i]
	name := metrics[g.Metric].name
	if goal, known := d.plan.FindGoal(g.GoalID); known {
		name += " of " + goal.Name
	}
	return name + newAgeRange(d.plan.AboutGoal(g.GoalWindow)).afterName()
}

func (d *decider) ofGuardrail(code stats.Reason, i int, says string) DecisionReason {
	g := d.plan.Declared.Guardrails[i]
	return DecisionReason{Code: code, GoalID: g.GoalID, Metric: string(g.Metric), Text: d.guardrailName(i) + " " + says}
}

// winnerDecision returns the decision about a winner.
func (d *decider) winnerDecision() *Decision {
	id := *d.Conclusion.VariationID
	treatment := slices.IndexFunc(d.Variations, func(v VariationResults) bool { return v.ID == id }) - 1
	if found := d.harmDecision(treatment); found != nil {
		return found
	}
	at := d.Conclusion.DecidedAt
	var missing []DecisionReason
	var waits []string
	for i := range d.looks.Guardrails {
		status := &d.looks.Guardrails[i].Status[treatment]
		if status.Status != looks.Safe {
			missing = append(missing, d.ofGuardrail(reasonGuardrailOpen, i, "is not known to be safe yet"))
			waits = append(waits, "it is not yet known that "+d.guardrailName(i)+" is safe")
			continue
		}
		if status.DecidedAt.After(*at) {
			at = &status.DecidedAt
		}
	}
	if days := d.looks.FullDays(); days < d.plan.Declared.MinDays {
		text := fmt.Sprintf("%d of at least %d full days have passed", days, d.plan.Declared.MinDays)
		missing, waits = append(missing, DecisionReason{Code: reasonMinDays, Text: text}), append(waits, text)
	} else if least := d.plan.Declared.MinDays; least > 0 {
		if enough := d.looks.EndOfDay(least); enough.After(*at) {
			at = &enough
		}
	}
	name := d.Variations[treatment+1].Name
	if len(missing) > 0 {
		return &Decision{
			Status: DecisionKeepRunning, VariationID: &id, Reasons: missing,
			Text: fmt.Sprintf("Keep running: %s is better than %s, but %s.", name, d.Variations[0].Name,
				strings.Join(waits, ", and ")),
		}
	}
	found := &Decision{
		Status: DecisionShip, VariationID: &id, DecidedAt: at,
		Reasons: []DecisionReason{{Code: reasonWinner, Text: name + " is better than control"}},
	}
	found.Text = fmt.Sprintf("Ship %s: it is better than %s", name, d.Variations[0].Name)
	if n := len(d.plan.Declared.Guardrails); n > 0 {
		found.Reasons = append(found.Reasons,
			DecisionReason{Code: reasonGuardrailsSafe, Text: "all guardrails are safe"})
		safe := map[int]string{1: "its guardrail is safe", 2: "both guardrails are safe"}[n]
		found.Text += ", and " + cmp.Or(safe, fmt.Sprintf("all %d guardrails are safe", n))
	}
	found.Text += "."
	return found
}

// noWinner returns the decision if the plan or the campaign has ended without a winner or a loser, or nil. The text
// lists the lifts that the last look rules out.
func (d *decider) noWinner() *Decision {
	if d.looks == nil || len(d.looks.Primary.Rows) == 0 {
		return nil
	}
	rows := d.looks.Primary.Rows[len(d.looks.Primary.Rows)-1]
	if rows[0].Tau < 1 && (!d.plan.Ended || !d.looks.Next.IsZero()) {
		return nil
	}
	text := fmt.Sprintf("No winner after %d days", rows[0].Days)
	var ruled []string
	for i := range rows {
		in := d.looks.Primary.LastLook(i).Lift.Interval
		if in == nil {
			continue
		}
		of := ""
		if len(rows) > 1 {
			of = " for " + d.Variations[i+1].Name
		}
		if lifts := excludedLifts(in[0], in[1]); lifts != "" {
			ruled = append(ruled, lifts+" is ruled out"+of)
		}
	}
	if len(ruled) > 0 {
		text += ": " + strings.Join(ruled, "; ")
	}
	return &Decision{
		Status: DecisionNoWinner, DecidedAt: &rows[0].End, Text: text + ".",
		Reasons: []DecisionReason{{Code: reasonPlanEnded, Text: "the plan or the campaign has ended"}},
	}
}

// excludedLifts returns the lifts outside an interval in words; empty: there are none. nil is an open end, and so is a
// lower end of -100 %, the lowest lift.
func excludedLifts(lower, upper *float64) string {
	hasLower := lower != nil && *lower > -1
	switch {
	case upper != nil && hasLower:
		return fmt.Sprintf("a lift above %s or below %s", percentAt(*upper), percentAt(*lower))
	case upper != nil:
		return "a lift above " + percentAt(*upper)
	case hasLower:
		return "a lift below " + percentAt(*lower)
	}
	return ""
}

func percentAt(lift float64) string { return wording.FormatPercent(lift, 1, true) }

// lowerFirst returns a sentence that follows a colon.
func lowerFirst(sentence string) string {
	for _, article := range []string{"The ", "There ", "This ", "No ", "Not "} {
		if strings.HasPrefix(sentence, article) {
			return strings.ToLower(sentence[:1]) + sentence[1:]
		}
	}
	return sentence
}
