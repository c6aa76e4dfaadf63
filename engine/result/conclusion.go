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
			c.Conclusive = new(a != nil && a.Primary.SupportsVerdict(i-1, c.Verdict, statsOptions(a.Plan).Alpha()))
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
		row, verdict := &a.Primary.Rows[a.Outcome.Look][a.Outcome.Treatment], "worse"
		c.Status = stats.StatusLoser
		if a.Outcome.Winner {
			c.Status, verdict = stats.StatusWinner, "better"
		}
		c.VariationID, c.Look, c.DecidedAt = &row.VariationID, &row.Number, &row.End
		at := slices.IndexFunc(j.Variations, func(v VariationResults) bool { return v.ID == row.VariationID })
		name, control := j.Variations[at].Name, j.Variations[0].Name
		c.Text = fmt.Sprintf("%s is %s than %s: %s has %s at look %d on %s with %s visitors", name, verdict, control,
			nameIn(p), LookInWords(row, p.Rules.SignificanceLevel, p.Metric.IsRate()), row.Number, lastDay(row.End),
			wording.FormatCount(row.Visitors))
		if row.Chance != nil {
			c.Text += fmt.Sprintf(", with a chance of %s to beat %s", wording.FormatChance(*row.Chance), control)
		}
		c.Text += "."
	case !enough:
		c.Status, c.Reasons = stats.StatusInsufficientData, append(c.Reasons, reasons...)
		c.Text = "Not enough data for a verdict: " + ExplainAll(c.Reasons) + "."
	case missing == stats.ReasonLevel100:
		c.Reasons = []stats.Reason{missing}
		c.Text = "No conclusion is possible: " + wording.ExplainReason(missing) + "."
	case missing == stats.ReasonNotDeclared:
		c.Reasons = []stats.Reason{missing}
		c.Text = "This report describes: only the primary metric of all visitors has a conclusion."
	case a != nil && waitsForReturns(a) != nil:
		c.Reasons = []stats.Reason{reasonReturnsDiffer}
		c.Text = returnsInWords(p, waitsForReturns(a))
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
	reasonNotComputed      stats.Reason = "NOT_COMPUTED"    // clients may ask again
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

// Guardrail is the status of a guardrail for a variation. Lower and Upper bound the effect in the good direction. The
// effect is a lift (a fraction) for a relative margin, and a difference for an absolute margin.
type Guardrail struct {
	Status           string       `json:"status"`
	Margin           *float64     `json:"margin,omitempty"`         // the largest acceptable loss, as a fraction
	AbsoluteMargin   *float64     `json:"absoluteMargin,omitempty"` // the same in the unit of the metric
	Lower            *float64     `json:"lower"`                    // of the last look; safe above the negative margin
	Upper            *float64     `json:"upper"`                    // always valid; harmed below the negative margin
	RequiredVisitors *int64       `json:"requiredVisitors"`         // in all, to show safety with the planned power
	DecidedAt        *time.Time   `json:"decidedAt,omitempty"`      // end of the look or day that decided
	Reason           stats.Reason `json:"reason,omitempty"`
}

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
	var rows []looks.Row // of the last look
	if a != nil && len(a.Primary.Rows) > 0 {
		rows = a.Primary.Rows[len(a.Primary.Rows)-1]
	}
	if len(rows) > 0 && (rows[0].Tau >= 1 || p.Ended && a.Next.IsZero()) {
		// The plan or the campaign has ended. The text lists the lifts that the last look rules out.
		text := fmt.Sprintf("No winner after %d days", rows[0].Days)
		var ruled []string
		for i := range rows {
			in := a.Primary.LastLook(i).Lift.Interval
			if in == nil {
				continue
			}
			of := ""
			if len(rows) > 1 {
				of = " for " + r.Variations[i+1].Name
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
	found := &Decision{
		Status: DecisionKeepRunning, Reasons: []DecisionReason{},
		Text: "Keep running: " + lowerFirst(r.Conclusion.Text),
	}
	switch w := p.ConversionWindow; {
	case a != nil && waitsForReturns(a) != nil:
		if found.Text = "Keep running: " + lowerOrders(r.Conclusion.Text); p.Ended {
			found.Text = "Wait: " + lowerOrders(r.Conclusion.Text)
		}
	case w.Maturity() > 0 && p.Ended && nextLook(a) != nil:
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
			if of := d.looks.ReturnsOfPlan(d.looks.Guardrails[i].Plan); of != nil {
				reason := d.ofGuardrail(reasonReturnsDiffer, i, "")
				reason.Text = lowerOrders(returnsInWords(d.plan, of))
				missing = append(missing, reason)
			}
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
