package result

import (
	"fmt"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
)

// ReturnsCheck says that the orders of a metric are cancelled or reduced at different ages in control and a variation.
// Its looks wait until their orders have settled.
type ReturnsCheck struct {
	GoalID      int64        `json:"goalId"` // 0: all goals count
	Metric      query.Metric `json:"metric"`
	VariationID int64        `json:"variationId"`
	Look        int          `json:"look"`   // at whose time it was found
	PValue      float64      `json:"pValue"` // adjusted for the treatments and the looks so far
	Later       bool         `json:"later"`  // or less; else earlier, or more
	Settle      string       `json:"settle"` // after which orders have settled
	PublishedAt *time.Time   `json:"publishedAt,omitempty"`
	Text        string       `json:"text"`
}

// checkReturns adds the metrics whose orders change at different ages in the variations, and warns of them.
func (j *sliceResult) checkReturns(p *plan.Plan, a *looks.Analysis) {
	for i := range a.Returns {
		of := &a.Returns[i]
		check := ReturnsCheck{
			GoalID: of.Plan.GoalID, Metric: of.Plan.Metric, VariationID: of.VariationID, Look: of.Look,
			PValue: of.PValue, Later: of.IsLater, Settle: hours(of.Settle), PublishedAt: optionalTime(of.Published),
			Text: returnsInWords(p, of),
		}
		j.Checks.Returns = append(j.Checks.Returns, check)
		j.Checks.addWarning(WarningReturns, "%s: %s If that is not what the variation should change, find out why; "+
			"settle: %dd of the goal makes looks wait from the start", strings.TrimPrefix(nameIn(of.Plan), "the "),
			lowerOrders(check.Text), of.Settle/(24*time.Hour))
	}
}

// waitsForReturns returns why no look of the declared question was published since its orders were found to change at
// different ages; nil: one was, or they do not.
func waitsForReturns(a *looks.Analysis) *looks.ReturnsOf {
	if of := a.ReturnsOfPlan(a.Plan); of != nil && of.IsWaiting {
		return of
	}
	return nil
}

// returnsInWords says whose orders change at other ages, and until when the result waits.
func returnsInWords(p *plan.Plan, of *looks.ReturnsOf) string {
	nameOf := func(id int64) string {
		return p.Variations[max(p.IndexOfVariation(id), 0)].Name
	}
	change, when := "cancelled", "later, or less often,"
	if looks.LifetimeAmount(of.Plan.Metric) >= 0 {
		change = "cancelled or reduced"
	}
	if !of.IsLater {
		when = "earlier, or more often,"
	}
	text := fmt.Sprintf("Orders of %s are %s %s than those of %s.", nameOf(of.VariationID), change, when,
		p.Variations[0].Name)
	if !of.Published.IsZero() {
		text += fmt.Sprintf(" The result waits until %s, when they have settled.",
			of.Published.UTC().Format("2 January 2006"))
	}
	return text
}

// lowerOrders returns a sentence of returnsInWords that follows a colon.
func lowerOrders(sentence string) string { return strings.Replace(sentence, "Orders", "orders", 1) }
