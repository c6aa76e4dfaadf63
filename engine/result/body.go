package result

import (
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/visit"
)

// New computes the body from the rows, without the series. a is what the looks of the
// declared question found; nil: there is none. The conclusions of the cells of a breakdown
// need ConcludeCells, too.
func New(plan *plan.Plan, found *visit.Rows, a *looks.Analysis) *Report {
	all := sumRows(found.Whole, plan.MultipleExposures)
	result := all.evaluate(plan, found)
	result.Checks.Outliers = outliersCheck(found.Outliers, result.Totals.GoalsReached)
	result.keepMismatch(plan, a)
	result.conclude(plan, a)
	if a != nil {
		result.Power = result.power(plan, a.FirstView.Time, found.Through)
	}
	results := &Report{
		Methodology:       plan.Rules.Methodology,
		SignificanceLevel: plan.Rules.SignificanceLevel,
		Filters:           plan.Filters.Echo(),
		Window:            Window{given(plan.Filters.From), given(plan.Filters.To)},
		Population:        "firstExposedInWindow",
		GeneratedAt:       time.Now().UTC().Truncate(time.Millisecond),
		DataThrough:       given(found.Through),
		NewestEvent:       given(found.Newest),
		Cell:              result.Cell,
	}
	if plan.Operation == query.CampaignResults {
		results.CampaignID = plan.Subject.ID
	} else {
		results.WidgetID, results.ExperimentID = plan.Subject.ID, plan.Subject.ExperimentID
	}
	if plan.Rules.Compare {
		results.CompareMetric = &plan.Metric
		if a != nil && !describes(plan) {
			results.Looks, results.NextLook = newLooks(a), nextLook(a)
		}
	}
	if plan.Goal != nil {
		results.Goal = &GoalName{plan.Goal.ID, plan.Goal.Name}
	}
	if plan.Dimension != "" {
		results.Dimension = &plan.Dimension
		results.cells = newBreakdown(plan, found)
		results.ConcludeCells(nil)
	}
	return results
}

func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
