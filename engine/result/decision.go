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

// Decision recommends what to do with the campaign.
type Decision struct {
	Status      DecisionStatus   `json:"status"`
	VariationID *int64           `json:"variationId"`         // to ship or to roll back
	DecidedAt   *time.Time       `json:"decidedAt,omitempty"` // end of the look or day that decided; nil: none
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

// Decide returns the decision about the declared question of a plan, from the conclusion of its report about all
// visitors and from the looks; nil: the report only describes. a is nil if there are no looks. A winner ships if all
// its guardrails are safe and the minimum number of days has passed; the guardrails of other variations do not matter
// then.
func Decide(p *plan.Plan, a *looks.Analysis, of *Slice) *Decision {
	if isDescriptive(p) {
		return nil
	}
	d := decider{variations: of.Variations, conclusion: of.Conclusion, plan: p, looks: a}
	switch d.conclusion.Status {
	case stats.StatusInvalid:
		return d.invalidDecision()
	case stats.StatusLoser:
		return d.loserDecision()
	case stats.StatusWinner:
		return d.winnerDecision()
	case stats.StatusInconclusive, stats.StatusInsufficientData:
	}
	for treatment := range len(d.variations) - 1 {
		if found := d.harmDecision(treatment); found != nil {
			return found
		}
	}
	return cmp.Or(d.equivalenceDecision(), d.endDecision(), d.openDecision())
}

// decider has what a decision is made from.
type decider struct {
	variations []VariationResults
	conclusion *Conclusion
	plan       *plan.Plan
	looks      *looks.Analysis // nil: there are none
}

// invalidDecision returns the decision for a sample ratio mismatch.
func (d *decider) invalidDecision() *Decision {
	return &Decision{
		Status: DecisionInvalid, Text: "Do not decide: " + lowerFirst(d.conclusion.Text),
		Reasons: []DecisionReason{{
			Code: stats.ReasonSampleRatioMismatch,
			Text: "the split of the visitors does not match the shares",
		}},
	}
}

func (d *decider) loserDecision() *Decision {
	id := *d.conclusion.VariationID
	name := d.nameOf(id)
	return &Decision{
		Status: DecisionRollBack, VariationID: &id, DecidedAt: d.conclusion.DecidedAt,
		Reasons: []DecisionReason{{Code: reasonLoser, Text: name + " is worse than control"}},
		Text:    fmt.Sprintf("Roll back %s: it is worse than %s.", name, d.variations[0].Name),
	}
}

// equivalenceDecision returns the decision of the first look at which the intervals of all lifts are within the
// equivalence margin, or nil.
func (d *decider) equivalenceDecision() *Decision {
	margin := d.plan.Rules.EquivalenceMargin
	if d.looks == nil || margin == 0 {
		return nil
	}
	for _, rows := range d.looks.Primary.Rows {
		if slices.ContainsFunc(rows, func(r looks.LookRow) bool { return !r.IsWithin(margin) }) {
			continue
		}
		return &Decision{
			Status: DecisionNoDifference, DecidedAt: &rows[0].End,
			Reasons: []DecisionReason{{
				Code: reasonEquivalent,
				Text: "the interval of the lift is within the equivalence margin",
			}},
			Text: fmt.Sprintf("No difference: the lift is within ±%v %%, the declared equivalence margin.", 100*margin),
		}
	}
	return nil
}

// endDecision returns the decision at the end of the plan or of the campaign, or nil before it. Its text lists the
// lifts that the last look rules out.
func (d *decider) endDecision() *Decision {
	if d.looks == nil || len(d.looks.Primary.Rows) == 0 {
		return nil
	}
	rows := d.looks.Primary.Rows[len(d.looks.Primary.Rows)-1]
	isLast := d.plan.Ended && d.looks.Next.IsZero()
	if rows[0].Tau < 1 && !isLast {
		return nil
	}
	text := fmt.Sprintf("No winner after %d days", rows[0].Days)
	if ruled := d.ruledOut(len(rows)); len(ruled) > 0 {
		text += ": " + strings.Join(ruled, "; ")
	}
	return &Decision{
		Status: DecisionNoWinner, DecidedAt: &rows[0].End, Text: text + ".",
		Reasons: []DecisionReason{{Code: reasonPlanEnded, Text: "the plan or the campaign has ended"}},
	}
}

// ruledOut returns for each treatment which lifts its last look rules out, in words.
func (d *decider) ruledOut(treatments int) (texts []string) {
	for i := range treatments {
		in := d.looks.Primary.LastLook(i).Lift.Interval
		if in == nil {
			continue
		}
		lifts := excludedLifts(in[0], in[1])
		if lifts == "" {
			continue
		}
		text := lifts + " is ruled out"
		if treatments > 1 {
			text += " for " + d.variations[i+1].Name
		}
		texts = append(texts, text)
	}
	return texts
}

// openDecision returns the decision to wait for more data.
func (d *decider) openDecision() *Decision {
	text := "Keep running: " + lowerFirst(d.conclusion.Text)
	switch w := d.plan.ConversionWindow; {
	case d.looks != nil && waitsForReturns(d.looks) != nil:
		text = "Keep running: " + lowerOrders(d.conclusion.Text)
		if d.plan.Ended {
			text = "Wait: " + lowerOrders(d.conclusion.Text)
		}
	case w.Maturity() > 0 && d.plan.Ended && nextLook(d.looks) != nil:
		text = fmt.Sprintf("Wait for the conversions of the last %s%s.", w.EndInWords(), whenNext(d.looks))
	}
	found := &Decision{Status: DecisionKeepRunning, Reasons: []DecisionReason{}, Text: text}
	for _, reason := range d.conclusion.Reasons {
		found.Reasons = append(found.Reasons, DecisionReason{Code: reason, Text: wording.ExplainReason(reason)})
	}
	return found
}

// nameOf returns the name of a variation.
func (d *decider) nameOf(id int64) string {
	return d.variations[indexOfResults(d.variations, id)].Name
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
			id := d.variations[treatment+1].ID
			found = &Decision{Status: DecisionRollBack, VariationID: &id, DecidedAt: &status.DecidedAt}
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
		found.Text = fmt.Sprintf("Roll back %s: it harms %s by more than the margin.",
			d.variations[treatment+1].Name, strings.Join(names, " and "))
	}
	return found
}

// guardrailName returns the metric and the goal of a guardrail.
func (d *decider) guardrailName(i int) string {
	g := d.plan.Declared.Guardrails[i]
	about := d.plan.AboutMeasure(g.Measure)
	if about.Expression != nil {
		return nameOfExpression(about)
	}
	name := metrics[g.Metric].name
	if goal, known := d.plan.FindGoal(g.GoalID); known {
		name += " of " + goal.Name
	}
	return name + newAgeRange(about).afterName()
}

func (d *decider) ofGuardrail(code stats.Reason, i int, says string) DecisionReason {
	g := d.plan.Declared.Guardrails[i]
	return DecisionReason{Code: code, GoalID: g.GoalID, Metric: string(g.Metric), Text: d.guardrailName(i) + " " + says}
}

// winnerDecision returns the decision to ship the winner; or to roll it back, because it harms a guardrail; or to keep
// running until all its guardrails are safe and the minimum number of days has passed.
func (d *decider) winnerDecision() *Decision {
	id := *d.conclusion.VariationID
	treatment := indexOfResults(d.variations, id) - 1
	if found := d.harmDecision(treatment); found != nil {
		return found
	}
	w := wait{until: *d.conclusion.DecidedAt}
	d.waitForGuardrails(&w, treatment)
	d.waitForDays(&w)
	name, control := d.variations[treatment+1].Name, d.variations[0].Name
	if len(w.missing) > 0 {
		return &Decision{
			Status: DecisionKeepRunning, VariationID: &id, Reasons: w.missing,
			Text: fmt.Sprintf("Keep running: %s is better than %s, but %s.", name, control,
				strings.Join(w.texts, ", and ")),
		}
	}
	found := &Decision{
		Status: DecisionShip, VariationID: &id, DecidedAt: &w.until,
		Reasons: []DecisionReason{{Code: reasonWinner, Text: name + " is better than control"}},
		Text:    fmt.Sprintf("Ship %s: it is better than %s", name, control),
	}
	if n := len(d.plan.Declared.Guardrails); n > 0 {
		found.Reasons = append(found.Reasons,
			DecisionReason{Code: reasonGuardrailsSafe, Text: "all guardrails are safe"})
		safe := map[int]string{1: "its guardrail is safe", 2: "both guardrails are safe"}[n]
		found.Text += ", and " + cmp.Or(safe, fmt.Sprintf("all %d guardrails are safe", n))
	}
	found.Text += "."
	return found
}

// wait is what a winner still has to wait for.
type wait struct {
	until   time.Time // when the last of what is no longer missing was known
	missing []DecisionReason
	texts   []string // of what is missing, for the sentence of the decision
}

// waitForGuardrails adds the guardrails of a treatment that are not known to be safe.
func (d *decider) waitForGuardrails(w *wait, treatment int) {
	for i := range d.looks.Guardrails {
		status := &d.looks.Guardrails[i].Status[treatment]
		if status.Status == looks.Safe {
			if status.DecidedAt.After(w.until) {
				w.until = status.DecidedAt
			}
			continue
		}
		w.missing = append(w.missing, d.ofGuardrail(reasonGuardrailOpen, i, "is not known to be safe yet"))
		w.texts = append(w.texts, "it is not yet known that "+d.guardrailName(i)+" is safe")
		if of := d.looks.ReturnsOfPlan(d.looks.Guardrails[i].Plan); of != nil {
			reason := d.ofGuardrail(reasonReturnsDiffer, i, "")
			reason.Text = lowerOrders(returnsInWords(d.plan, of))
			w.missing = append(w.missing, reason)
		}
	}
}

// waitForDays adds the minimum number of full days if fewer have passed.
func (d *decider) waitForDays(w *wait) {
	least := d.plan.Declared.MinDays
	if days := d.looks.FullDays(); days < least {
		text := fmt.Sprintf("%d of at least %d full days have passed", days, least)
		w.missing = append(w.missing, DecisionReason{Code: reasonMinDays, Text: text})
		w.texts = append(w.texts, text)
		return
	}
	if least == 0 {
		return
	}
	if enough := d.looks.EndOfDay(least); enough.After(w.until) {
		w.until = enough
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
