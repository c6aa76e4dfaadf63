package plan

import (
	"cmp"
	"slices"
	"time"

	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// Declared has the catalogue's declarations for the conclusion of a subject.
type Declared struct {
	Metric           query.Metric // of a declared one, the text that identifies it
	GoalID           int64        // 0: all goals count
	Cap              *schema.Cap  // nil: none
	ConversionWindow schema.ConversionWindow
	Superseded       []string // fields whose declaration has changed since the first view
	Secondary        []Secondary
	Guardrails       []Guardrail
	MinDays          int      // full days before a decision to ship
	Questions        []string // whose answers need less evidence, in the language of metrics
	FollowUp         []FollowUp

	plan catalogue.Plan
}

// Secondary is a metric of a goal that should improve but does not decide.
type Secondary struct {
	Measure
	Metric query.Metric
	Down   bool // lower values are good
}

// Guardrail is a metric of a goal that must not be harmed.
type Guardrail struct {
	Measure
	Metric query.Metric
	stats.Margin
}

// FollowUp is a reading of later orders, which describes and has one share of the error rate.
type FollowUp struct {
	Measure
	Metric query.Metric
}

// equalShares is the maximum difference of shares that count as equal. Thirds, for example, are written as 34, 33 and
// 33 per cent.
const equalShares = 0.015

// setDeclared sets everything that the plan of a campaign or an experiment declares. The variations must already be
// set. shares are those that decide the default rule for multi-exposed visitors.
func (p *Plan) setDeclared(d catalogue.Plan, shares []float64) {
	p.setRules(&d)
	p.setRoles(d)
	if p.Asked.Metric == "" {
		p.Metric = p.Declared.Metric
		if p.Metric.Expression() != nil { // which names its goals, and does not suit another one
			p.Metric = query.GoalConversionRate
		}
	}
	p.MultipleExposures = cmp.Or(d.MultipleExposures, defaultMultipleExposures(shares))
}

// defaultMultipleExposures returns how multi-exposed visitors count if nothing is declared: they are excluded if the
// expected shares are equal. With unequal shares, that would bias the comparison.
func defaultMultipleExposures(shares []float64) string {
	taken := slices.DeleteFunc(slices.Clone(shares), func(share float64) bool { return share == 0 })
	if len(taken) > 0 && slices.Max(taken)-slices.Min(taken) <= equalShares {
		return catalogue.ExcludeMultiExposed
	}
	return catalogue.FirstVariation
}

// setRoles sets the declared primary metric, the metrics with another role, and the follow-up.
func (p *Plan) setRoles(d catalogue.Plan) {
	primary := cmp.Or(query.Metric(d.PrimaryMetric), query.GoalConversionRate)
	if p.Subject.ExperimentID != 0 {
		primary = cmp.Or(query.ExperimentMetric[d.PrimaryMetric], query.Metric(d.PrimaryMetric))
	}
	p.Declared = Declared{
		Metric: primary, GoalID: d.PrimaryGoalID, Cap: d.ValueCap, ConversionWindow: d.ConversionWindow.ValueOrNone(),
		MinDays: *cmp.Or(d.MinDays, new(catalogue.DefaultMinDays)), Questions: d.Questions, plan: d,
	}
	goals := *cmp.Or(d.Goals, &catalogue.Goals{})
	for _, g := range goals.Secondary {
		of := query.Metric(g.Metric)
		p.Declared.Secondary = append(p.Declared.Secondary, Secondary{
			newMeasure(g.GoalID, of, g.Window), of, g.Direction == catalogue.Down,
		})
	}
	for _, g := range goals.Guardrails {
		isDown := g.Direction == catalogue.Down
		margin := stats.Margin{Relative: g.Margin / 100, Absolute: g.AbsoluteMargin, Down: isDown}
		if g.Margin == 0 && g.AbsoluteMargin == 0 {
			margin.Relative = d.MDE / 100 // by default, the minimum effect
		}
		of := query.Metric(g.Metric)
		p.Declared.Guardrails = append(p.Declared.Guardrails, Guardrail{newMeasure(g.GoalID, of, g.Window), of, margin})
	}
	if d.FollowUp != nil {
		for _, window := range d.FollowUp.Windows {
			p.Declared.FollowUp = append(p.Declared.FollowUp,
				FollowUp{Measure{GoalID: d.PrimaryGoalID, Window: window}, query.Metric(d.FollowUp.Metric)})
		}
	}
}

// AsOf returns the plan with the rules, the primary goal and the shares that were in force when the first view was
// accepted. Later changes must not move the looks, because people may make them after seeing the results. Variations
// that had no share then are Added. Shares that were replaced before the first view, at its own time, do not matter.
func (p *Plan) AsOf(viewed, accepted time.Time) *Plan {
	if !p.Rules.Compare || viewed.IsZero() { // a change before the first view counts
		return p
	}
	first := p.Declared.plan
	var superseded []string
	if len(p.history) > 0 {
		first = catalogue.PlanAt(p.history, accepted)
		superseded = first.ChangedFields(p.Declared.plan)
	}
	asOf := *p
	shares := p.SharePeriods[PeriodAt(p.SharePeriods, accepted)].Shares
	asOf.setDeclared(first, shares)
	asOf.Declared.Superseded = superseded
	asOf.Variations = slices.Clone(p.Variations)
	for i := range asOf.Variations {
		asOf.Variations[i].Added = i > 0 && shares[i] == 0 && slices.Max(shares) > 0
	}
	asOf.SharePeriods = slices.Clone(p.SharePeriods[PeriodAt(p.SharePeriods, viewed):])
	asOf.SharePeriods[0].Since = OpenFrom
	if asOf.GoalID != 0 && asOf.GoalID == first.PrimaryGoalID && asOf.Asked.Cap == nil {
		asOf.Cap = first.ValueCap
	}
	asOf.ConversionWindow = asOf.WindowOf(asOf.GoalID)
	switch {
	case asOf.asksDeclared():
		_ = asOf.setPrimaryMetric() // its faults were found when the plan was made
	case asOf.leavesOpen() && asOf.Written != nil: // the primary metric in force has a name
		asOf.setMeasure(asOf.Declared.PrimaryMeasure())
		asOf.Metric = asOf.Declared.Metric
	case asOf.Written != nil: // the windows of its quantities are those of the plan in force
		asOf.Expression = asOf.Written
		_ = asOf.resolveExpression() // its faults were found when the plan was made
	}
	return &asOf
}

// IsDeclared reports whether the report is about the declared goal, metric and cap. Only such a report has a
// conclusion. Filters of visitors may restrict it.
func (p *Plan) IsDeclared() bool {
	isPart := p.Filters.GoalValue != nil || p.Filters.ZScore != 0 || p.Split != nil
	if !p.Rules.Compare || isPart {
		return false
	}
	isOfMetric := p.Measure() == p.Declared.PrimaryMeasure() && p.Metric == p.Declared.Metric
	return isOfMetric && p.Cap.Equal(p.Declared.Cap)
}

// DeclaredPlan returns the plan of the daily series of the declared question.
func (p *Plan) DeclaredPlan() *Plan {
	asked := *p
	asked.Asked.Cap = nil
	asked.Asked.ConversionWindow = nil
	declared := asked.AboutMeasure(p.Declared.PrimaryMeasure()).WithMetric(p.Declared.Metric)
	declared.Cap = p.Declared.Cap
	declared.Filters = query.Filters{}
	declared.Interval = query.Daily
	declared.Crossings = true
	declared.Timing = OnFirstView
	return declared
}

// DeclaredReport returns the plan of the report about the declared question.
func (p *Plan) DeclaredReport() *Plan {
	declared := p.DeclaredPlan()
	declared.Interval = ""
	declared.Crossings = false
	declared.Timing = WhenMature
	return declared
}
