package result

import (
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/visit"
)

// New computes the body from the rows, without the series. Without a decision, the
// conclusion is that of this look, which is not the planned one. The conclusions of the
// cells of a breakdown need Conclude, too.
func New(plan *plan.Plan, found *visit.Rows, decision *Decision) *Report {
	all := sumRows(found.Whole, plan.MultipleExposures)
	plannedLook := decision.includes(plan, found.Newest)
	result := all.evaluate(plan, found, plannedLook)
	result.Checks.Outliers = outliersCheck(found.Outliers, result.Totals.GoalsReached)
	result.decide(plan, decision)
	results := &Report{
		Methodology:       plan.Rules.Methodology,
		SignificanceLevel: plan.Rules.SignificanceLevel,
		Filters:           plan.Filters.Echo(),
		Window:            Window{given(plan.Filters.From), given(plan.Filters.To)},
		Population:        "firstExposedInWindow",
		GeneratedAt:       time.Now().UTC().Truncate(time.Millisecond),
		DataThrough:       given(found.Through),
		NewestEvent:       given(found.Newest),
		PlannedLook:       decision.plannedLook(),
		Cell:              result.Cell,
	}
	if plan.Operation == query.CampaignResults {
		results.CampaignID = plan.Subject.ID
	} else {
		results.WidgetID, results.ExperimentID = plan.Subject.ID, plan.Subject.ExperimentID
	}
	if plan.Rules.Compare {
		results.CompareMetric = &plan.Metric
	}
	if plan.Goal != nil {
		results.Goal = &GoalName{plan.Goal.ID, plan.Goal.Name}
	}
	if plan.Dimension != "" {
		results.Dimension = &plan.Dimension
		results.cells = newBreakdown(plan, found, decision, plannedLook)
		results.Conclude(&EarlierCells{})
	}
	return results
}

func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
