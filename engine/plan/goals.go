package plan

import (
	"cmp"
	"fmt"

	"lifthouse/engine/query"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// Secondary is a metric of a goal that should improve but does not decide.
type Secondary struct {
	GoalID int64
	Metric query.Metric
	Down   bool // lower values are good
}

// Guardrail is a metric of a goal that must not be harmed.
type Guardrail struct {
	GoalID int64
	Metric query.Metric
	stats.Margin
}

// setGoals sets the roles of the goals. The default margin of a guardrail is the
// minimum detectable effect, in per cent.
func (d *Declared) setGoals(g *catalogue.Goals, minDays *int, mde float64) {
	d.MinDays, d.Secondary, d.Guardrails = catalogue.DefaultMinDays, nil, nil
	if minDays != nil {
		d.MinDays = *minDays
	}
	if g == nil {
		return
	}
	for _, s := range g.Secondary {
		d.Secondary = append(d.Secondary, Secondary{s.GoalID, query.Metric(s.Metric), s.Direction == catalogue.Down})
	}
	for _, r := range g.Guardrails {
		of := stats.Margin{Relative: r.Margin / 100, Absolute: r.AbsoluteMargin, Down: r.Direction == catalogue.Down}
		if r.Margin == 0 && r.AbsoluteMargin == 0 {
			of.Relative = mde / 100
		}
		d.Guardrails = append(d.Guardrails, Guardrail{r.GoalID, query.Metric(r.Metric), of})
	}
}

// AboutGoal returns the plan of the report about another goal, without breakdown and series.
// Goal 0 means that all goals count. A cap of the request applies to all goals; otherwise each
// goal has its own. The plan as of the first view may refer to a goal that was removed from the
// catalogue. The name of such a goal is its number.
func (p *Plan) AboutGoal(goal int64) *Plan {
	about := *p
	about.Goal, about.Cap, about.Dimension, about.Interval = nil, p.Request.Cap, "", ""
	if goal != 0 {
		about.Goal = &catalogue.Goal{ID: goal, Name: fmt.Sprint("goal ", goal)}
	}
	for i := range p.Goals {
		if g := &p.Goals[i]; g.ID == goal {
			about.Goal = g
			if goal == p.Declared.GoalID {
				about.Cap = cmp.Or(about.Cap, p.Declared.Cap)
			} else {
				about.Cap = cmp.Or(about.Cap, g.ValueCap)
			}
		}
	}
	return &about
}

// CountedGoal returns the id of the goal of the report; 0: all goals count.
func (p *Plan) CountedGoal() int64 {
	if p.Goal == nil {
		return 0
	}
	return p.Goal.ID
}

// WithMetric returns the plan with another metric.
func (p *Plan) WithMetric(m query.Metric) *Plan {
	with := *p
	with.Metric = m
	return &with
}
