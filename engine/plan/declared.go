package plan

import (
	"cmp"
	"time"

	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Declared is what the catalogue declares that the conclusion of a subject is about.
type Declared struct {
	Metric     query.Metric
	GoalID     int64       // 0: all goals count
	Cap        *schema.Cap // nil: none
	Superseded []string    // fields in which the catalogue declares something else since the first view
	Secondary  []Secondary
	Guardrails []Guardrail
	MinDays    int // full days before a decision to ship

	campaign *catalogue.LiveCampaign // nil: an experiment of a widget
}

// PlanChanged reports whether the plan of the campaign ever changed. If so, the rules
// of the report depend on the time of the first view, see AsOf.
func (p *Plan) PlanChanged() bool {
	return p.Declared.campaign != nil && len(p.Declared.campaign.PlanHistory) > 0
}

// AsOf returns the plan with the rules and the primary goal that were in force when
// the first view was accepted. Later changes must not move the looks, because
// they may be made in view of the results.
func (p *Plan) AsOf(firstView time.Time) *Plan {
	declared, _ := p.Declared.campaign.PlanAt(firstView)
	first := p.Declared.campaign.WithPlan(declared)
	asOf := *p
	asOf.Rules = rulesOf(&first)
	metric := cmp.Or(query.Metric(first.PrimaryMetric), query.GoalConversionRate)
	if p.defaultMetric {
		asOf.Metric = metric
	}
	asOf.Declared.Metric, asOf.MultipleExposures = metric, cmp.Or(first.MultipleExposures, defaultMultipleExposures(p))
	asOf.Declared.GoalID, asOf.Declared.Cap = first.PrimaryGoalID, declared.ValueCap
	if asOf.Goal != nil && asOf.Goal.ID == first.PrimaryGoalID && asOf.Request.Cap == nil {
		asOf.Cap = declared.ValueCap
	}
	asOf.Declared.setGoals(first.Goals, first.MinDays, first.MDE)
	asOf.Declared.Superseded = declared.ChangedFields(p.Declared.campaign.Plan(p.Declared.Cap))
	return &asOf
}

// IsDeclared reports whether the report is about the declared goal, metric and cap. Only
// such a report has a conclusion. Filters of visitors may restrict it.
func (p *Plan) IsDeclared() bool {
	goal := int64(0)
	if p.Goal != nil {
		goal = p.Goal.ID
	}
	return p.Rules.Compare && p.Cap.Equal(p.Declared.Cap) && goal == p.Declared.GoalID && p.Metric == p.Declared.Metric && p.Filters.GoalValue == nil && p.Filters.ZScore == 0
}

// OfAllVisitors reports whether the report has all visitors up to the end of its
// window.
func (p *Plan) OfAllVisitors() bool {
	return p.Filters.From.IsZero() && len(p.Filters.Lists)+len(p.Filters.Texts) == 0
}

// OfAll returns the plan without filters of visitors, breakdown and series.
func (p *Plan) OfAll() *Plan {
	all := *p
	all.Filters.Lists, all.Filters.Texts = nil, nil
	all.Dimension, all.Interval = "", ""
	return &all
}

// HasEarlierShares reports whether the report has visitors of earlier shares.
func (p *Plan) HasEarlierShares() bool { return p.SharesSince.After(p.From()) }

// Declaration returns the plan of the daily series of the declared question, of the visitors
// since a time.
func (p *Plan) Declaration(since time.Time) *Plan {
	declared := *p
	declared.Metric, declared.Dimension, declared.Interval = p.Declared.Metric, "", query.Daily
	declared.Goal, declared.Cap = nil, p.Declared.Cap
	if id := p.Declared.GoalID; id != 0 {
		declared.Goal = &catalogue.Goal{ID: id}
	}
	declared.Filters = query.Filters{From: since}
	return &declared
}
