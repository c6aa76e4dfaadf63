package readout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine"
	"lifthouse/engine/looks"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/tables"
	"lifthouse/engine/wording"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// Sources are what a readout is made from.
type Sources struct {
	*engine.AtLook
	Subject schema.Subject
	Owned   *catalogue.AccountResources
	Log     []tables.Entry // of the subject and its website, the latest first
	Comment string         // paragraphs, separated by blank lines
}

// builder makes a document from its sources.
type builder struct {
	Sources
	report *result.Report
	level  int // of the intervals
	names  map[int64]string
}

// New returns the readout of a subject.
func New(from Sources) *Document {
	b := &builder{Sources: from, report: from.Report, level: from.Report.SignificanceLevel, names: map[int64]string{}}
	for i := range b.report.Variations {
		v := &b.report.Variations[i]
		b.names[v.ID] = v.Name
	}
	d := &Document{
		AccountID: from.Owned.ID, Subject: from.Subject, Website: from.Owned.Websites[from.Subject.WebsiteID].Domain,
		Period: b.describePeriod(), Name: from.Owned.SubjectName(from.Subject), Metric: b.metricName(),
		IsBayesian: b.report.Methodology == string(stats.MethodologyBayesian), Comment: splitParagraphs(from.Comment),
	}
	b.addFacts(d)
	d.Answer = b.newAnswer()
	d.Variations = b.newVariations()
	if b.countVisitors() != b.report.Totals.Visitors {
		d.TestedNote = "All visitors until then. The looks count those of full days only."
	}
	b.addEffects(d)
	b.addLooks(d)
	d.Checks = b.newChecks()
	d.Segments = b.newSegments()
	b.addLog(d)
	return d
}

// describePeriod says which visitors the readout is about.
func (b *builder) describePeriod() string {
	if b.Number == 0 {
		return fmt.Sprintf("the full days until %s", lastDay(b.End))
	}
	return fmt.Sprintf("look %d, until %s", b.Number, lastDay(b.End))
}

// metricName is the name of the compared metric, with a capital.
func (b *builder) metricName() string { return upperFirst(b.report.MetricInWords()) }

// upperFirst returns a text whose first letter is a capital.
func upperFirst(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// addFacts adds the hypothesis, the owner, the tags and the plan.
func (b *builder) addFacts(d *Document) {
	if b.Subject.Kind == schema.SubjectCampaign {
		campaign := b.Owned.Campaigns[b.Subject.ID]
		d.Hypothesis = campaign.Hypothesis
		if campaign.Owner != "" {
			d.Facts = append(d.Facts, "Owner "+campaign.Owner)
		}
		for _, tag := range campaign.Tags {
			d.Facts = append(d.Facts, "#"+tag)
		}
	}
	rules := &b.Plan.Rules
	planned := fmt.Sprintf("planned for %d days", rules.PlannedDays)
	if rules.PlannedVisitors > 0 {
		planned = fmt.Sprintf("planned for %s visitors", wording.FormatCount(rules.PlannedVisitors))
	}
	if len(b.Plan.Runs) > 0 {
		planned += ", from " + dayOf(b.Plan.Runs[0].From)
	}
	method := fmt.Sprintf("%s, %d %% intervals", upperFirst(b.report.Methodology), b.level)
	d.Facts = append(d.Facts, upperFirst(planned), method)
}

// labels are the decisions in a few words, and their tones.
var labels = map[result.DecisionStatus][2]string{
	result.DecisionShip:         {"Ship", toneGood},
	result.DecisionRollBack:     {"Roll back", toneBad},
	result.DecisionInvalid:      {"Do not decide", toneBad},
	result.DecisionNoDifference: {"No difference", toneNone},
	result.DecisionNoWinner:     {"No winner", toneNone},
	result.DecisionKeepRunning:  {"Keep running", toneNone},
}

// newAnswer returns the decision with its figures.
func (b *builder) newAnswer() Answer {
	a := Answer{Label: "Nothing is decided", Tone: toneNone, Done: b.describeOutcome()}
	decided := b.report.Decision
	if decided == nil {
		a.Text = b.report.Conclusion.Text
	} else {
		label := labels[decided.Status]
		a.Label, a.Tone = label[0], label[1]
		a.Text = decided.Text
		if decided.DecidedAt != nil {
			a.Decided = "decided by the rule on " + lastDay(*decided.DecidedAt)
		}
	}
	for i := range b.report.Variations {
		v := &b.report.Variations[i]
		isOther := decided != nil && decided.VariationID != nil && *decided.VariationID != v.ID
		if v.Comparison != nil && !isOther {
			a.Figures = append(a.Figures, b.liftFigure(v))
			if worth := b.worthFigure(v.ID); worth != nil {
				a.Figures = append(a.Figures, *worth)
			}
		}
	}
	a.Figures = append(a.Figures, Figure{
		Name: "Visitors", Value: wording.FormatCount(b.countVisitors()),
		More: "in " + wording.CountNoun(b.Days, "full day"),
	})
	return a
}

// countVisitors returns the visitors of the look, or those of the report.
func (b *builder) countVisitors() int64 {
	for i := range b.report.Looks {
		if b.report.Looks[i].Number == b.Number {
			return b.report.Looks[i].Visitors
		}
	}
	return b.report.Totals.Visitors
}

// nameFigure returns the name of a figure, with that of the variation if there are several.
func (b *builder) nameFigure(name string, variation int64) string {
	if len(b.report.Variations) > 2 {
		name += ", " + b.names[variation]
	}
	return name
}

// liftAt returns the lift of a variation at the look, with its interval; without a look, that of the report.
func (b *builder) liftAt(v *result.VariationResults) (*stats.Effect, string) {
	if look := b.lookRow(v.ID); look != nil {
		return &look.Improvement, fmt.Sprintf("%d %% interval of the look", b.level)
	}
	return &v.Comparison.Improvement, fmt.Sprintf("%d %% interval of a single test", b.level)
}

// lookRow returns the row of the look for a variation; nil: there is none.
func (b *builder) lookRow(variation int64) *result.LookVariation {
	for i := range b.report.Looks {
		look := &b.report.Looks[i]
		for k := range look.Variations {
			if look.Number == b.Number && look.Variations[k].ID == variation {
				return &look.Variations[k]
			}
		}
	}
	return nil
}

// liftFigure returns the lift of a variation.
func (b *builder) liftFigure(v *result.VariationResults) Figure {
	lift, kind := b.liftAt(v)
	f := Figure{Name: b.nameFigure("Lift of "+b.report.MetricInWords(), v.ID), Value: liftText(lift)}
	if lift.Value != nil {
		f.More = kind + " " + intervalText(lift.Interval)
	} else if lift.Reason != "" {
		f.More = wording.ExplainReason(lift.Reason)
	}
	if look := b.lookRow(v.ID); look != nil && look.ChanceToBeatControl != nil {
		f.More += "; chance to beat control " + wording.FormatChance(*look.ChanceToBeatControl)
	}
	return f
}

// liftText writes a lift, or a dash.
func liftText(of *stats.Effect) string {
	if of.Value == nil {
		return "–"
	}
	return wording.FormatLift(*of.Value, of.Interval)
}

// intervalText writes the interval of a lift, or a dash.
func intervalText(in *stats.Interval) string {
	return wording.RangeInWords(in, func(x float64) string { return wording.FormatLift(x, in) })
}

// worthFigure returns what a variation is expected to be worth; nil: it is not known.
func (b *builder) worthFigure(variation int64) *Figure {
	worth := b.report.WorthOf(variation)
	if worth == nil || worth.Text == "" {
		return nil
	}
	f := &Figure{Name: b.nameFigure("Expected worth", variation), Value: worth.Text, More: worth.ObservedText}
	if money := worth.Expected.ValuePerMonth; money != nil && b.report.Worth.Currency != "" {
		f.Name = b.nameFigure("Expected worth a month", variation)
		f.Value = result.FormatRounded(money.Value) + " " + b.report.Worth.Currency
		f.More = worth.InWords()
	}
	isLater := worth.EndedAt != nil && worth.EndedAt.After(b.End)
	if isLater {
		f.More += " As of " + lastDay(*worth.EndedAt) + "."
	}
	return f
}

// describeOutcome says what people did; empty: nothing is recorded.
func (b *builder) describeOutcome() string {
	found, has := b.Owned.StateOf(b.Subject).Outcomes[b.Subject.ExperimentID]
	if !has {
		return ""
	}
	words := map[string]string{
		catalogue.Shipped:  cmp.Or(b.names[found.VariationID], "a variation") + " was shipped on " + found.Date,
		catalogue.Dropped:  "it was dropped on " + found.Date,
		catalogue.Excluded: "it was excluded on " + found.Date,
	}[found.Outcome]
	at := slices.IndexFunc(b.Log, func(e tables.Entry) bool {
		return e.Kind == tables.EntryOutcome && e.Subject == b.Subject && e.Status == found.Outcome
	})
	if at >= 0 && b.Log[at].By != "" {
		words += " by " + b.Log[at].By
	}
	if found.Note != "" {
		words += ": " + found.Note
	}
	return words
}

// newVariations returns the rows of what was tested.
func (b *builder) newVariations() (rows []Variation) {
	sum := 0
	for i := range b.report.Variations {
		sum += b.report.Variations[i].Share
	}
	for i := range b.report.Variations {
		v := &b.report.Variations[i]
		value := b.report.EstimateOf(v)
		row := Variation{Name: v.Name, Visitors: wording.FormatCount(v.Visitors), Value: "–"}
		if sum > 0 {
			row.Share = strconv.FormatFloat(100*float64(v.Share)/float64(sum), 'g', 3, 64) + " %"
		}
		if value.Value != nil {
			row.Value = wording.FormatValue(*value.Value, value.Interval, b.report.IsShare())
		}
		rows = append(rows, row)
	}
	return rows
}

// newBar returns the bar of a lift; nil: there is no estimate.
func newBar(lift *float64, interval *stats.Interval, margin *float64) *Bar {
	if lift == nil {
		return nil
	}
	effect := stats.Effect{Value: lift, Interval: interval}
	label := liftText(&effect)
	if interval != nil {
		label += ", interval " + intervalText(interval)
	}
	return &Bar{Label: label, lift: lift, interval: interval, margin: margin}
}

// addEffects adds the rows of the scorecard with a role.
func (b *builder) addEffects(d *Document) {
	figures := b.report.ScorecardFigures()
	for i, row := range b.report.Scorecard {
		if row.Role == result.RoleOther {
			continue
		}
		for k := range row.Variations {
			if row.Variations[k].Control {
				continue
			}
			var lift *float64
			if lifts := figures.Rows[i].LookLifts; lifts != nil {
				lift = lifts[k]
			}
			d.Why = append(d.Why, b.newEffect(row, &row.Variations[k], lift))
		}
	}
	setBars(d.Why)
	d.WhyNote = fmt.Sprintf("%d %% intervals: those of the look for the primary metric and the guardrails, else of "+
		"a single test. The dotted line is no difference, the dashed one the margin of a guardrail.", b.level)
}

// newEffect returns the row of a treatment in a row of the scorecard. lookLift is its lift at the look; nil: there is
// none.
func (b *builder) newEffect(row *result.ScorecardRow, v *result.ScorecardVariation, lookLift *float64) Effect {
	e := Effect{Name: upperFirst(row.MetricInWords()), Role: string(row.Role), Lift: "–", Tone: toneNone}
	if len(row.Variations) > 2 {
		e.Variation = v.Name
	}
	c := v.Comparison
	lift, interval := c.Improvement.Value, c.Improvement.Interval
	isOfLook := c.Sequential != nil && c.Sequential.Look != nil && lookLift != nil && c.Bayesian == nil
	if isOfLook {
		lift, interval = lookLift, c.Sequential.Improvement
	}
	var margin *float64
	e.Verdict, e.Tone = verdictOf(row, v)
	if g := v.Guardrail; g != nil {
		e.Role, margin = guardrailRole(g, row.Direction)
		e.Verdict, e.Tone = guardrailVerdict(g)
	}
	e.Bar = newBar(lift, interval, margin)
	if lift != nil {
		e.Lift = wording.FormatLift(*lift, interval)
		e.Interval = intervalText(interval)
	}
	return e
}

// verdictOf says what is known of a treatment on a metric, and how good that is.
func verdictOf(row *result.ScorecardRow, v *result.ScorecardVariation) (words, tone string) {
	verdict := v.Comparison.ConclusiveVerdict()
	if v.Discovered != nil {
		verdict = stats.VerdictInconclusive
		if *v.Discovered {
			verdict = v.Comparison.Verdict
		}
	}
	mark := map[stats.Verdict]string{stats.VerdictBetter: "▲ higher", stats.VerdictWorse: "▼ lower"}[verdict]
	if mark == "" {
		return "no clear difference", toneNone
	}
	isUp := verdict == stats.VerdictBetter
	if isUp == (row.Direction == catalogue.Up) {
		return mark + ", good", toneGood
	}
	return mark + ", bad", toneBad
}

// guardrailRole returns the margin in words, and on the scale of lifts; nil: it is in the unit of the metric.
func guardrailRole(g *result.Guardrail, direction string) (role string, margin *float64) {
	verb, sign := "fall", -1.0
	if direction == catalogue.Down {
		verb, sign = "rise", 1
	}
	if g.Margin != nil {
		margin = new(sign * *g.Margin)
		return fmt.Sprintf("guardrail: may %s by at most %s %%", verb,
			strconv.FormatFloat(100**g.Margin, 'g', 6, 64)), margin
	}
	return fmt.Sprintf("guardrail: may %s by at most %v", verb, *g.AbsoluteMargin), nil
}

// guardrailVerdict returns the status of a guardrail in words.
func guardrailVerdict(g *result.Guardrail) (words, tone string) {
	since := ""
	if g.DecidedAt != nil {
		since = " since " + lastDay(*g.DecidedAt)
	}
	switch g.Status {
	case looks.Safe:
		return "✓ safe" + since, toneGood
	case looks.Harmed:
		return "✗ harmed" + since, toneBad
	}
	return "not yet known", toneNone
}

// addLooks adds the looks until the one that the readout is about.
func (b *builder) addLooks(d *Document) {
	number := func(x *float64) string {
		if x == nil {
			return "–"
		}
		return wording.FormatNumber(*x, 2)
	}
	isComputed := false
	for i := range b.report.Looks {
		look := &b.report.Looks[i]
		isComputed = isComputed || look.RecordedAt == nil
		for k := range look.Variations {
			v := &look.Variations[k]
			row := Look{
				Number: strconv.Itoa(look.Number), Date: lastDay(look.End),
				Visitors: wording.FormatCount(look.Visitors), Variation: b.names[v.ID],
				Lift: liftText(&v.Improvement), Interval: intervalText(v.Improvement.Interval),
				Z: number(v.Z), Bound: number(v.CriticalValue), P: "–", Chance: "–", Decides: "no",
			}
			if v.PValue != nil {
				row.P = wording.FormatPValue(*v.PValue)
			}
			if v.ChanceToBeatControl != nil {
				row.Chance = wording.FormatChance(*v.ChanceToBeatControl)
			}
			if v.Significant {
				row.Decides = "yes"
			}
			d.Looks = append(d.Looks, row)
		}
	}
	d.LooksNote = "Recorded by the server when the visitors of a look were mature. Later data do not change them."
	if isComputed {
		d.LooksNote = "Some looks are not recorded, such as those of imported data: they are computed from the " +
			"stored events."
	}
}

// newChecks returns what says whether the numbers can be trusted.
func (b *builder) newChecks() (all []Check) {
	checks := &b.report.Checks
	hasWarning := func(codes ...result.WarningCode) bool { return b.report.WarningText(codes...) != "" }
	pass := func(format string, args ...any) { all = append(all, Check{true, fmt.Sprintf(format, args...)}) }
	if ratio := checks.SampleRatio; ratio != nil && !hasWarning(result.WarningSampleRatio) && ratio.PValue != nil {
		counts := make([]string, len(ratio.Observed))
		for i, n := range ratio.Observed {
			counts[i] = wording.FormatCount(n)
		}
		pass("The split is as configured: %s visitors (%s).", strings.Join(counts, ", "),
			wording.PValueInWords(*ratio.PValue))
	}
	if !hasWarning(result.WarningMultipleExposures, result.WarningMultipleExposuresSkewed) {
		counted := "They are excluded"
		if checks.MultipleExposures.Rule != catalogue.ExcludeMultiExposed {
			counted = "They count for the first one"
		}
		pass("%s of the visitors saw several variations. %s.",
			wording.FormatPercent(checks.MultipleExposures.Share, 2, false), counted)
	}
	if b.Days > 0 {
		const week = 7
		days := wording.CountNoun(b.Days, "full day")
		if b.Days%week == 0 {
			pass("%s: %s.", days, wording.CountNoun(b.Days/week, "whole week"))
		} else {
			all = append(all, Check{false, days + " are no whole weeks: some weekdays count more often than others."})
		}
	}
	if !hasWarning(result.WarningDeclaredLate, result.WarningPlanChanged) {
		pass("The rule was declared before the first visitor, and is the one that decided.")
	}
	for _, w := range checks.Warnings {
		all = append(all, Check{false, upperFirst(w.Message) + "."})
	}
	return all
}

// shownSegments is the number of segments with a row.
const shownSegments = 6

// newSegments returns the effects by device; nil: there are none.
func (b *builder) newSegments() *Segments {
	if b.Devices == nil || b.Devices.Heterogeneity == nil || len(b.Devices.Breakdown) < 2 {
		return nil
	}
	s := &Segments{Text: b.Devices.Heterogeneity.Text}
	slices := b.Devices.Breakdown
	for i := range slices[:min(len(slices), shownSegments)] {
		slice := &slices[i]
		for k := range slice.Variations {
			v := &slice.Variations[k]
			if v.Comparison == nil {
				continue
			}
			lift := &v.Comparison.Improvement
			e := Effect{
				Name: slice.Value, Visitors: wording.FormatCount(slice.Totals.Visitors), Lift: liftText(lift),
				Interval: intervalText(lift.Interval), Bar: newBar(lift.Value, lift.Interval, nil),
			}
			if len(slice.Variations) > 2 {
				e.Variation = v.Name
			}
			s.Rows = append(s.Rows, e)
		}
	}
	setBars(s.Rows)
	return s
}

// shownEntries is the number of entries of the log that a readout has.
const shownEntries = 20

// addLog adds the latest entries of the log. Readouts and decisions are not among them: the answer is the decision, and
// a readout would be another one because the one before it is in the log.
func (b *builder) addLog(d *Document) {
	for i := range b.Log {
		e := &b.Log[i]
		isOfItself := e.Kind == tables.EntryDecision || e.Kind == tables.EntryReadout
		if isOfItself || e.WithdrawnAt != nil {
			continue
		}
		if len(d.Log) == shownEntries {
			d.Earlier++
			continue
		}
		text := e.Text
		if e.StartsAt != nil {
			span := query.FormatInstant(*e.StartsAt)
			if e.EndsAt != nil {
				span += " to " + query.FormatInstant(*e.EndsAt)
			}
			text = span + ": " + text
		}
		d.Log = append(d.Log, Entry{Date: dayOf(e.At), By: e.By, Text: text})
	}
}
