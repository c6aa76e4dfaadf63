package plan

import (
	"cmp"
	"fmt"
	"slices"

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
	about.GoalID, about.GoalName, about.Cap, about.Dimension, about.Interval = goal, "", p.asked.Cap, "", ""
	if goal != 0 {
		about.GoalName = fmt.Sprint("goal ", goal)
	}
	if g, known := p.FindGoal(goal); known {
		about.GoalName, about.Cap = g.Name, cmp.Or(p.asked.Cap, g.ValueCap)
	}
	if goal == p.Declared.GoalID {
		about.Cap = cmp.Or(p.asked.Cap, p.Declared.Cap)
	}
	return &about
}

// FindGoal returns a goal of the website of the subject.
func (p *Plan) FindGoal(id int64) (catalogue.Goal, bool) {
	goal, known := p.goals[id]
	return goal, known && goal.WebsiteID == p.Subject.WebsiteID
}

// AllGoals returns the ids of the declared goals, in order; 0: all goals count.
func (d *Declared) AllGoals() []int64 {
	goals := []int64{d.GoalID}
	for _, g := range d.Guardrails {
		goals = append(goals, g.GoalID)
	}
	for _, g := range d.Secondary {
		goals = append(goals, g.GoalID)
	}
	slices.Sort(goals)
	return slices.Compact(goals)
}

// WithMetric returns the plan with another metric.
func (p *Plan) WithMetric(m query.Metric) *Plan {
	with := *p
	with.Metric = m
	return &with
}
