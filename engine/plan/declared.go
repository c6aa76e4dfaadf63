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

	plan catalogue.Plan // without the cap
}

// declare sets what the plan of a campaign or an experiment declares, except its primary goal.
// The variations must be set.
func (p *Plan) declare(d catalogue.Plan) {
	p.Rules = Rules{
		Compare: true, Methodology: d.Methodology, SignificanceLevel: d.SignificanceLevel,
		Power: d.Power, MDE: d.MDE, Prior: priorOf(&d), LookRules: lookRules(&d.LookPlan),
	}
	metric := cmp.Or(query.Metric(d.PrimaryMetric), query.GoalConversionRate)
	if p.Operation == query.ExperimentResults {
		metric = cmp.Or(query.ExperimentMetric[d.PrimaryMetric], query.Metric(d.PrimaryMetric))
	}
	p.Declared = Declared{Metric: metric, plan: d}
	p.Declared.setGoals(d.Goals, d.MinDays, d.MDE)
	if p.defaultMetric {
		p.Metric = metric
	}
	p.MultipleExposures = cmp.Or(d.MultipleExposures, defaultMultipleExposures(p))
}

// PlanChanged reports whether the plan of the subject ever changed. If so, the rules
// of the report depend on the time of the first view, see AsOf.
func (p *Plan) PlanChanged() bool { return len(p.history) > 0 }

// AsOf returns the plan with the rules and the primary goal that were in force when
// the first view was accepted. Later changes must not move the looks, because
// they may be made in view of the results.
func (p *Plan) AsOf(firstView time.Time) *Plan {
	first, now := catalogue.PlanAt(p.history, firstView), p.Declared.plan
	now.ValueCap = p.Declared.Cap
	asOf := *p
	asOf.declare(first)
	asOf.Declared.GoalID, asOf.Declared.Cap = first.PrimaryGoalID, first.ValueCap
	if asOf.Goal != nil && asOf.Goal.ID == first.PrimaryGoalID && asOf.Request.Cap == nil {
		asOf.Cap = first.ValueCap
	}
	asOf.Declared.Superseded = first.ChangedFields(now)
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
