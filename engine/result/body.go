package result

import (
	"strings"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/visit"
	"lifthouse/stats"
)

// New computes the body from the rows, without the series. Without a decision, the
// conclusion is that of this look, which is not the planned one.
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
		results.Breakdown = breakdown(plan, found, plannedLook)
	}
	return results
}

func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// The names of cells without a value. A real value with such a name, possibly
// after backslashes, gets another backslash.
const (
	otherValues = "(other)"
	noValue     = "(none)"
)

// breakdown computes a cell for each of the most frequent values of the
// dimension, and one for all others.
func breakdown(plan *plan.Plan, found *visit.Rows, plannedLook bool) []BreakdownCell {
	byValue := map[string][]visit.Row{}
	visitors := map[string]int64{}
	var others []visit.Row
	for _, r := range found.Cells {
		if r.Others {
			others = append(others, r)
			continue
		}
		byValue[r.Dimension] = append(byValue[r.Dimension], r)
		if !r.ExposedBefore {
			visitors[r.Dimension] += r.Visitors
		}
	}
	values := visit.MostVisited(visitors)
	var names []string
	var all []cell
	add := func(name string, rows []visit.Row) {
		names, all = append(names, name), append(all, sumRows(rows, plan.MultipleExposures))
	}
	for _, value := range values[:min(len(values), plan.Top)] {
		add(ShownValue(value), byValue[value])
		delete(byValue, value)
	}
	if len(values) > plan.Top || len(others) > 0 {
		for _, rows := range byValue {
			others = append(others, rows...)
		}
		add(otherValues, others)
	}
	cells := make([]cellResult, len(all))
	onAllCores(len(cells), func(i int) { cells[i] = all[i].evaluate(plan, found, plannedLook) })
	return concluded(plan, names, cells)
}

// concluded adds the conclusions to the cells. They are corrected for the
// number of cells.
func concluded(plan *plan.Plan, names []string, cells []cellResult) []BreakdownCell {
	evidence := make([]stats.Evidence, len(cells))
	for i := range cells {
		evidence[i] = cells[i].evidence
	}
	shown := make([]BreakdownCell, len(cells))
	for i, conclusion := range stats.ConcludeCells(evidence, options(plan)) {
		cells[i].conclude(plan, undeclared(plan, conclusion), nil)
		cells[i].Power = nil
		shown[i] = BreakdownCell{Value: names[i], Cell: cells[i].Cell}
	}
	return shown
}

// ShownValue returns the name of the cell of a value of the dimension.
func ShownValue(value string) string {
	switch strings.TrimLeft(value, `\`) {
	case "":
		if value == "" {
			return noValue
		}
	case otherValues, noValue:
		return `\` + value
	}
	return value
}
