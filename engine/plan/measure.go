package plan

import (
	"cmp"
	"fmt"
	"slices"

	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Measure is what sums over visitors measure: the events of a goal within a conversion window, or the quantities of a
// metric. All metrics of a goal with a name are made of the same sums.
type Measure struct {
	GoalID     int64 // 0: all goals; of a metric without a name, which has this goal only, or names others
	Window     schema.ConversionWindow
	Expression string // the text that identifies a metric without a name; empty: the events of the goal
}

// OfGoal returns the measure of the events of the goal, which are counted beside the quantities of a metric.
func (m Measure) OfGoal() Measure { return Measure{GoalID: m.GoalID, Window: m.Window} }

// newMeasure returns the measure of a metric, of a goal if it has a name.
func newMeasure(goal int64, of query.Metric, window *schema.ConversionWindow) Measure {
	m := Measure{GoalID: goal, Window: window.ValueOrNone()}
	if expression := of.Expression(); expression != nil {
		m.GoalID = expression.SingleGoal()
		m.Expression = string(of)
	}
	return m
}

// AboutMeasure returns the plan of the report about another measure, without breakdown and series. A cap of the request
// applies to all measures; otherwise each has its own. The plan as of the first view may refer to a goal that was
// removed from the catalogue. The name of such a goal is its number.
func (p *Plan) AboutMeasure(of Measure) *Plan {
	about := *p
	about.Split = nil
	about.Dimension = ""
	about.Interval = ""
	about.setMeasure(of)
	return &about
}

// setMeasure makes the plan one about a measure.
func (p *Plan) setMeasure(of Measure) {
	p.GoalID = of.GoalID
	p.ConversionWindow = of.Window
	p.Expression = nil
	p.Written = nil
	p.MetricName = ""
	p.Cap = p.Asked.Cap
	if of.Expression != "" {
		p.setDeclaredMetric(query.Metric(of.Expression))
	}
	p.GoalName = ""
	if p.GoalID != 0 {
		p.GoalName = fmt.Sprint("goal ", p.GoalID)
	}
	if g, known := p.FindGoal(p.GoalID); known {
		p.GoalName = g.Name
		if p.Expression == nil {
			p.Cap = cmp.Or(p.Asked.Cap, g.ValueCap)
		}
	}
	if of == p.Declared.PrimaryMeasure() {
		p.Cap = cmp.Or(p.Asked.Cap, p.Declared.Cap)
	}
}

// setGoal sets the goal, that of the request or else the primary one, with its window and its cap. limit is the cap of
// the request; nil: that of the goal.
func (p *Plan) setGoal(limit *schema.Cap, primaryGoalID int64) error {
	p.Cap = limit
	p.GoalID = cmp.Or(p.GoalID, primaryGoalID)
	p.ConversionWindow = p.WindowOf(p.GoalID)
	if p.GoalID == 0 {
		return nil
	}
	goal, known := p.FindGoal(p.GoalID)
	if !known {
		return query.GoalFault(p.GoalID)
	}
	p.GoalName = goal.Name
	p.Cap = cmp.Or(limit, goal.ValueCap)
	return nil
}

// WindowOf returns the conversion window of reports about a goal: that of the request, or else that of the goal, which
// the plan fixes for the primary goal.
func (p *Plan) WindowOf(goal int64) schema.ConversionWindow {
	switch own, known := p.FindGoal(goal); {
	case p.Asked.ConversionWindow != nil:
		return *p.Asked.ConversionWindow
	case p.Rules.Compare && goal == p.Declared.GoalID:
		return p.Declared.ConversionWindow
	case known:
		return own.Window().ValueOrNone()
	}
	return schema.ConversionWindow{}
}

// FindGoal returns a goal of the website of the subject.
func (p *Plan) FindGoal(id int64) (catalogue.Goal, bool) {
	goal, known := p.goals[id]
	return goal, known && goal.WebsiteID == p.Subject.WebsiteID
}

// PrimaryMeasure returns the measure of the primary metric.
func (d *Declared) PrimaryMeasure() Measure {
	return newMeasure(d.GoalID, d.Metric, &d.ConversionWindow)
}

// AllMeasures returns the measures of the metrics with a role, in order.
func (d *Declared) AllMeasures() []Measure {
	all := []Measure{d.PrimaryMeasure()}
	for _, g := range d.Guardrails {
		all = append(all, g.Measure)
	}
	for _, g := range d.Secondary {
		all = append(all, g.Measure)
	}
	return SortedMeasures(all)
}

// SortedMeasures returns measures in order, each once.
func SortedMeasures(all []Measure) []Measure {
	slices.SortFunc(all, func(a, b Measure) int {
		return cmp.Or(cmp.Compare(a.GoalID, b.GoalID), cmp.Compare(a.Window.From, b.Window.From),
			cmp.Compare(a.Window.To, b.Window.To), cmp.Compare(a.Window.Settle, b.Window.Settle),
			cmp.Compare(a.Expression, b.Expression))
	})
	return slices.Compact(all)
}

// Measure returns what the question measures.
func (q *Question) Measure() Measure {
	m := Measure{GoalID: q.GoalID, Window: q.ConversionWindow}
	if q.Expression != nil {
		m.Expression = q.Expression.WithGoalIDs().String()
	}
	return m
}

// GoalIDs returns the goals whose events the question counts; none: all goals.
func (q *Question) GoalIDs() []int64 {
	ids := []int64{}
	if q.Expression == nil {
		if q.GoalID != 0 {
			ids = append(ids, q.GoalID)
		}
		return ids
	}
	goals, all := q.Expression.ReadGoals()
	for _, goal := range goals {
		if !all {
			ids = append(ids, goal.ID)
		}
	}
	return ids
}
