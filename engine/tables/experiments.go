package tables

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"
)

// readExperiments reads the rows of the table experiments.
func readExperiments(ctx context.Context, r *reading, write func(*experimentRow) error) error {
	for of, err := range r.summaries(ctx) {
		if err != nil {
			return err
		}
		row := experimentRow{subjectKey: r.keyOf(of.subject), ChangedAt: r.changes[of.index]}
		r.setDeclared(&row, of.subject)
		row.setReport(of.report)
		if p := of.summary.Plan; p != nil {
			row.PlannedDays = new(int64(p.Rules.PlannedDays))
		}
		if err := write(&row); err != nil {
			return err
		}
	}
	return nil
}

// setDeclared sets what the catalogue says of a subject.
func (r *reading) setDeclared(row *experimentRow, of schema.Subject) {
	if outcome, has := r.owned.StateOf(of).Outcomes[of.ExperimentID]; has {
		row.Outcome = &outcome.Outcome
		row.OutcomeVariationID = optionalOf(outcome.VariationID)
		row.OutcomeDate = parseDay(outcome.Date)
	}
	if of.Kind == schema.SubjectCampaign {
		campaign := r.owned.Campaigns[of.ID]
		row.Type = optionalOf(campaign.Type)
		row.Active = campaign.Active
		row.StartDate = toMillis(campaign.StartDate)
		row.EndDate = toMillis(campaign.EndDate)
		row.Owner = optionalOf(campaign.Owner)
		row.Tags = optionalOf(strings.Join(campaign.Tags, ", "))
		row.Hypothesis = optionalOf(campaign.Hypothesis)
		return
	}
	widget := r.owned.Widgets[of.ID]
	row.Type = optionalOf(widget.Type)
	for i := range widget.Experiments {
		e := &widget.Experiments[i]
		if e.ID != of.ExperimentID {
			continue
		}
		row.Active = widget.Active && e.Active
		if e.StartDate != nil {
			row.StartDate = toMillis(&e.StartDate.Time)
		}
		if e.EndDate != nil {
			row.EndDate = toMillis(&e.EndDate.Time)
		}
	}
}

// setReport sets what the report of the declared question says.
func (row *experimentRow) setReport(of *result.Report) {
	row.Methodology = of.Methodology
	row.SignificanceLevel = int64(of.SignificanceLevel)
	if of.Goal != nil {
		row.GoalID = &of.Goal.ID
		row.Goal = &of.Goal.Name
	}
	if len(of.Scorecard) > 0 && of.Scorecard[0].Role == result.RolePrimary {
		row.Metric = textOf(of.Scorecard[0].Metric)
	}
	if d := of.Decision; d != nil {
		row.Decision = textOf(d.Status)
		row.DecisionVariationID = d.VariationID
		row.DecidedAt = toMillis(d.DecidedAt)
	}
	if of.Conclusion != nil {
		row.DecidedLook = numberOf(of.Conclusion.Look)
	}
	if check := of.Checks.SampleRatio; check != nil {
		row.SampleRatioMismatch = &check.Mismatch
	}
	codes := make([]string, len(of.Checks.Warnings))
	for i := range of.Checks.Warnings {
		codes[i] = string(of.Checks.Warnings[i].Code)
	}
	row.Warnings = optionalOf(strings.Join(codes, " "))
	row.Visitors = of.Totals.Visitors
	if weeks := of.Checks.FullWeeks; weeks != nil {
		row.FullDays = new(int64(weeks.Days))
	}
	if of.NextLook != nil {
		row.NextLookEnd = toMillis(&of.NextLook.End)
	}
}

// readResults reads the rows of the table results.
func readResults(ctx context.Context, r *reading, write func(*resultRow) error) error {
	for of, err := range r.summaries(ctx) {
		if err != nil {
			return err
		}
		var rows []resultRow
		for i, card := range of.report.Scorecard {
			for k := range card.Variations {
				row := resultRow{subjectKey: r.keyOf(of.subject)}
				row.setFigures(of, i, k)
				row.setComparison(&card.Variations[k])
				if at, has := r.accepted[of.subject]; has {
					row.DataThrough = toMillis(&at)
				}
				rows = append(rows, row)
			}
		}
		if err := sortRows(rows, compareResults, write); err != nil {
			return err
		}
	}
	return nil
}

func compareResults(a, b *resultRow) int {
	return cmp.Or(compareIDs(a.GoalID, b.GoalID), cmp.Compare(a.Metric, b.Metric),
		cmp.Compare(a.ConversionWindow, b.ConversionWindow), cmp.Compare(a.VariationID, b.VariationID))
}

// setFigures sets what a row of the scorecard is about, and the counts of a variation.
func (row *resultRow) setFigures(of *summarized, i, variation int) {
	card := of.report.Scorecard[i]
	figures := &of.summary.Figures.Rows[i]
	goal := &of.summary.Figures.Goals[figures.Goal]
	if card.Goal != nil {
		row.GoalID = &card.Goal.ID
		row.Goal = &card.Goal.Name
	}
	row.Metric = string(card.Metric)
	row.ConversionWindow = goal.Window.String()
	row.Role = string(card.Role)
	row.Direction = card.Direction
	counts := &goal.Variations[variation]
	row.Visitors = counts.Visitors
	row.ConvertedVisitors = counts.ConvertedVisitors
	row.GoalsReached = counts.GoalsReached
	row.Value = counts.Value.Float()
	row.Profit = counts.Profit.Float()
	if figures.LookLifts != nil {
		row.LookLift = figures.LookLifts[variation]
	}
	v := &card.Variations[variation]
	row.VariationID = v.ID
	row.Variation = v.Name
	row.Control = v.Control
	at := slices.IndexFunc(of.report.Variations, func(o result.VariationResults) bool { return o.ID == v.ID })
	if at >= 0 {
		row.Share = int64(of.report.Variations[at].Share)
	}
	row.Estimate = v.Estimate.Value
	row.EstimateLower, row.EstimateUpper = endsOf(v.Estimate.Interval)
}

// setComparison sets the comparison of a variation with control.
func (row *resultRow) setComparison(v *result.ScorecardVariation) {
	row.QValue = v.QValue
	if v.Guardrail != nil {
		row.Guardrail = &v.Guardrail.Status
		row.Margin = v.Guardrail.Margin
	}
	c := v.Comparison
	if c == nil {
		return
	}
	row.Lift = c.Improvement.Value
	row.LiftLower, row.LiftUpper = endsOf(c.Improvement.Interval)
	if c.Frequentist != nil {
		row.PValue = c.Frequentist.PValue
	}
	row.Verdict = textOf(c.Verdict)
	row.Conclusive = c.Conclusive
	if last := c.Sequential; last != nil && last.Look != nil {
		row.Look = numberOf(last.Look)
		row.LookEnd = toMillis(last.End)
		row.LookLower, row.LookUpper = endsOf(last.Improvement)
		row.LookPValue = last.PValue
		row.LookSignificant = &last.Significant
	}
}

// readLooks reads the rows of the table looks.
func readLooks(ctx context.Context, r *reading, write func(*lookRow) error) error {
	for of, err := range r.summaries(ctx) {
		if err != nil {
			return err
		}
		recorded, err := r.Engine.Ledger.SubjectRecords(ctx, of.subject)
		if err != nil {
			return source.StoreFailure(ctx, err)
		}
		all := slices.DeleteFunc(slices.Clone(of.summary.Figures.Looks), func(l result.LookFigures) bool {
			return slices.ContainsFunc(recorded, func(r looks.Record) bool { return isSameRow(&l.Record, &r) })
		})
		for k := range recorded {
			if !recorded[k].RecordedAt.Before(r.Since) {
				all = append(all, result.NewLookFigures(recorded[k]))
			}
		}
		names := map[int64]string{}
		for i := range of.report.Variations {
			names[of.report.Variations[i].ID] = of.report.Variations[i].Name
		}
		var rows []lookRow
		for k := range all {
			row := newLookRow(&all[k])
			row.subjectKey = r.keyOf(of.subject)
			if row.VariationID != nil {
				row.Variation = optionalOf(names[*row.VariationID])
			}
			rows = append(rows, row)
		}
		if err := sortRows(rows, compareLooks, write); err != nil {
			return err
		}
	}
	return nil
}

// isSameRow reports whether records are of the same row of the ledger. One of them may not have been recorded when it
// was computed.
func isSameRow(a, b *looks.Record) bool {
	isSameQuestion := a.Declaration == b.Declaration && a.Measure == b.Measure && a.Metric == b.Metric
	isSameLook := a.Kind == b.Kind && a.Number == b.Number && a.VariationID == b.VariationID
	return isSameQuestion && isSameLook
}

func compareLooks(a, b *lookRow) int {
	return cmp.Or(cmp.Compare(a.Question, b.Question), compareIDs(a.GoalID, b.GoalID), cmp.Compare(a.Metric, b.Metric),
		cmp.Compare(a.ConversionWindow, b.ConversionWindow), cmp.Compare(a.LookKind, b.LookKind),
		cmp.Compare(a.Look, b.Look), compareIDs(a.VariationID, b.VariationID), a.EndedAt.Compare(b.EndedAt))
}

// newLookRow returns the row of a look, without its subject.
func newLookRow(of *result.LookFigures) lookRow {
	row := lookRow{
		Question: questionID(&of.Record), GoalID: optionalOf(of.GoalID), Metric: string(of.Metric),
		ConversionWindow: of.Window.String(), LookKind: string(of.Kind), Look: int64(of.Number),
		EndedAt: of.End.UTC().Truncate(time.Millisecond), LastDay: dayOf(of.End.Add(-1)), Visitors: of.Visitors,
		VariationID: optionalOf(of.VariationID), Tau: optionalOf(of.Tau), CriticalValue: of.Critical, Z: of.Z,
		PValue: of.PValue, Chance: of.Chance, Difference: of.Difference.Value, Lift: of.Lift.Value,
		Significant: of.Significant, RecordedAt: toMillis(&of.RecordedAt),
	}
	row.DifferenceLower, row.DifferenceUpper = endsOf(of.Difference.Interval)
	row.LiftLower, row.LiftUpper = endsOf(of.Lift.Interval)
	if of.Control == nil {
		return row
	}
	row.ControlVisitors = &of.Control.Visitors
	row.ControlConverted = &of.Control.Converted
	row.ControlGoals = &of.Control.Goals
	row.ControlValue = of.Control.Value
	row.TreatmentVisitors = &of.Treatment.Visitors
	row.TreatmentConverted = &of.Treatment.Converted
	row.TreatmentGoals = &of.Treatment.Goals
	row.TreatmentValue = of.Treatment.Value
	return row
}
