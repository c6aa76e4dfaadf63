package engine

import (
	"math/big"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// CampaignCounters are the live counters of a campaign. They count all folded events,
// including those that a report excludes. Goals and value are those of the
// primary goal.
type CampaignCounters struct {
	Views, GoalsReached, Value int64
}

// CountersOfCampaign returns the live counters of a campaign.
func (e *Engine) CountersOfCampaign(c *catalogue.LiveCampaign) CampaignCounters {
	t := e.facts.SubjectCounters(c.Subject())
	goal := t.Goals[c.PrimaryGoalID]
	return CampaignCounters{Views: t.Events[moments.View], GoalsReached: goal.Events, Value: wholeMoney(goal.Value)}
}

// WidgetCounters are the live counters of a widget and its experiments. Goals
// and values are those of the primary goal, or of all goals if there is no
// primary goal.
type WidgetCounters struct {
	Views, Clicks, Submits, Completions, Conversions, Contacts int64
	GoalsReached, Value, ExtraValue                            int64
}

// CountersOfWidget returns the live counters of a widget, with those of its experiments.
func (e *Engine) CountersOfWidget(w *catalogue.LiveWidget) WidgetCounters {
	var t facts.SubjectCounters
	for _, experiment := range append([]catalogue.Experiment{{}}, w.Experiments...) {
		own := e.facts.SubjectCounters(w.Subject(experiment.ID))
		t.Merge(&own)
	}
	var goals facts.GoalCounters
	for id, goal := range t.Goals {
		if w.PrimaryGoalID == 0 || id == w.PrimaryGoalID {
			goals = goals.Plus(goal)
		}
	}
	return WidgetCounters{
		Views: t.Events[moments.View], Clicks: t.Events[moments.Click], Submits: t.Events[moments.Submit],
		Completions: t.Events[moments.Completion], Conversions: t.Events[moments.Conversion], Contacts: t.Events[moments.Contact],
		GoalsReached: goals.Events, Value: wholeMoney(goals.Value), ExtraValue: wholeMoney(goals.ExtraValue),
	}
}

// wholeMoney rounds an amount to an integer, half away from zero.
func wholeMoney(units fold.Int128) int64 {
	half := big.NewInt(schema.MoneyScale / 2)
	amount := units.BigInt()
	if amount.Sign() < 0 {
		half.Neg(half)
	}
	return half.Quo(half.Add(amount, half), big.NewInt(schema.MoneyScale)).Int64()
}
