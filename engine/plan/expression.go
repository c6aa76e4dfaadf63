package plan

import (
	"cmp"
	"errors"
	"math/big"
	"slices"

	"lifthouse/engine/metric"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
)

// NamesOf returns the names that metrics of a website may contain: its goals, and the own attributes and the properties
// in its events.
func NamesOf(owned *catalogue.AccountResources, website int64, labels []schema.Label) *metric.Names {
	names := &metric.Names{Goals: metricGoals(owned.Goals, website)}
	for _, label := range labels {
		switch {
		case label.HasValue:
		case label.Kind == schema.NameAttribute:
			names.Attributes = append(names.Attributes, label.Name)
		default:
			addProperty(names, label)
		}
	}
	return names
}

// DeclaredNames returns the names that declared questions may contain.
func (p *Plan) DeclaredNames() *metric.Names {
	return &metric.Names{
		Goals:                    metricGoals(p.goals, p.Subject.WebsiteID),
		AcceptsUnknownProperties: true, AcceptsUnknownAttributes: true,
	}
}

// metricGoals returns the goals of a website as they are written in metrics.
func metricGoals(goals map[int64]catalogue.Goal, website int64) []metric.Goal {
	own := slices.DeleteFunc(catalogue.ByID(goals), func(g catalogue.Goal) bool { return g.WebsiteID != website })
	return catalogue.MetricGoals(own)
}

func addProperty(names *metric.Names, label schema.Label) {
	at := slices.IndexFunc(names.Properties, func(p metric.Property) bool { return p.Name == label.Name })
	if at < 0 {
		at = len(names.Properties)
		names.Properties = append(names.Properties, metric.Property{Name: label.Name})
	}
	if label.Kind == schema.NameNumber {
		names.Properties[at].Number = true
	} else {
		names.Properties[at].Text = true
	}
}

// parseNames reads what a request writes with names of the website: the metric, the condition of visitors and the
// dimension. A metric with a name of its own is that metric. The error is an InvalidError with all faults.
func (p *Plan) parseNames(r *query.Request) error {
	if !r.NeedsNames() {
		return nil
	}
	names := r.Names
	if names == nil {
		names = &metric.Names{}
	}
	var found faults.Collector
	addFaults := func(name, text string, err error) {
		if list, is := errors.AsType[metric.Faults](err); is {
			found.Append(list.ListFaults(name, text)...)
		}
	}
	if r.Visitors != "" {
		condition, err := metric.ParseVisitors(r.Visitors, names)
		addFaults("visitors", r.Visitors, err)
		if err == nil {
			p.Filters.Visitors = condition
			p.Asked.Visitors = condition.String()
		}
	}
	all := slices.Concat(query.Dimensions, names.Attributes)
	for _, attribute := range r.Dimension.Attributes() {
		found.AddIf(!slices.Contains(all, attribute), "dimension", attribute, faults.OneOf(all...))
	}
	if r.Split != "" {
		split, err := metric.ParseSplit(r.Split, names)
		addFaults("split", r.Split, err)
		if err == nil {
			p.Split = split
			p.SplitTop = cmp.Or(r.SplitTop, query.DefaultSplitTop)
			p.Asked.Split = split.Name
		}
	}
	if r.Expression != "" {
		m, err := metric.Parse(r.Expression, names)
		addFaults("metric", r.Expression, err)
		if err == nil {
			p.setExpression(m, &found)
		}
	}
	return query.InvalidParameters(found.List...)
}

// setExpression sets the metric of the request: as one with a name, if it has one, and otherwise as an expression.
func (p *Plan) setExpression(m *metric.Metric, found *faults.Collector) {
	r := &p.Asked
	alias, goal := m.FindAlias()
	isNamed := alias != nil && goal != nil && slices.Contains(query.Comparable[r.Operation], alias.Name)
	if isNamed {
		r.Expression = ""
		r.Metric = query.Metric(alias.Name)
		r.GoalID = goal.ID
		p.Metric = r.Metric
		p.GoalID = goal.ID
		return
	}
	r.Expression = m.String()
	p.Expression = m
	p.Written = m
	goals, all := m.ReadGoals()
	if len(goals) == 1 && !all {
		p.GoalID = goals[0].ID
	}
	p.checkExpression(m, found)
}

// checkExpression finds faults in the combination of an expression with other parameters.
func (p *Plan) checkExpression(m *metric.Metric, found *faults.Collector) {
	r := &p.Asked
	refuse := func(is bool, name, detail string) { found.AddIf(is, name, r.Expression, detail) }
	refuse(r.Filters.ZScore != 0, "metric", "filters[zScore] is only for amounts of one goal")
	refuse(r.ConversionWindow != nil && m.HasRange(), "metric", "write one of them: within, or conversionWindow")
	refuse(r.Scorecard, "metric", "a scorecard has the metrics that are declared: omit scorecard or metric")
	refuse(r.Curve, "metric", "a curve has no metric of its own: omit curve or metric")
	refuse(r.Distribution, "metric", "a distribution is that of the values of goal events: omit distribution or metric")
	refuse(r.Interval != "" && m.ReadsActions(), "metric", "the time of an action is not stored apart: omit interval")
	call := m.Numerator.Call
	refuse(r.Cap != nil && call != metric.Sum && call != metric.Count, "metric", "only sum and count have a cap")
	isWhole := r.Cap == nil || r.Cap.Units%schema.MoneyScale == 0
	refuse(call == metric.Count && !isWhole, "cap", "the cap of a count must be a whole number")
}

// resolveExpression sets the ranges of ages of the quantities of an expression, its cap, and which visitors are mature.
// A metric with a name that is split is an expression, too.
func (p *Plan) resolveExpression() error {
	if p.Split != nil {
		if err := p.resolveSplit(); err != nil {
			return err
		}
	}
	if p.Expression == nil {
		return nil
	}
	m := *p.Expression
	if least := p.Filters.GoalValue; least != nil {
		m = *m.WithCondition(AtLeastValue(least))
	} else {
		m = *m.WithCondition(nil) // a copy
	}
	var longest schema.ConversionWindow
	for _, q := range m.Quantities() {
		window := p.windowOfQuantity(q)
		if window.Maturity() > longest.Maturity() {
			longest = window
		}
		if window.IsSet() && q.Call != metric.Funnel {
			q.Within = metric.Range{From: window.From, To: window.To}
		}
	}
	p.Expression = &m
	p.ConversionWindow = longest
	isMoney := m.Numerator.Call == metric.Sum && m.Numerator.Kind() == metric.Money
	if p.Asked.Cap == nil && (!isMoney || p.Split != nil) {
		p.Cap = nil
	}
	return nil
}

// resolveSplit makes a metric with a name an expression, and returns the faults of its split.
func (p *Plan) resolveSplit() error {
	if p.Expression == nil {
		goal, known := p.FindGoal(p.GoalID)
		of := &metric.Goal{ID: p.GoalID, Key: goal.MetricKey()}
		if !known {
			of = nil
		}
		p.Expression, _ = metric.NewAlias(string(p.Metric), of)
		p.Written = p.Expression
		p.Asked.Expression = p.Expression.String()
	}
	var found faults.Collector
	refuse := func(is bool, detail string) { found.AddIf(is, "split", p.Asked.Split, detail) }
	refuse(p.Asked.Cap != nil, "the parts of a split have no cap: omit split or cap")
	refuse(p.Asked.Interval != "", "a split has no series: omit split or interval")
	refuse(p.Expression.ReadsActions(), "an action has no properties or lines")
	return query.InvalidParameters(found.List...)
}

// AtLeastValue returns the condition that an event has at least a value.
func AtLeastValue(least *big.Rat) *metric.Condition {
	value := metric.Field{Source: metric.OfEvent, Name: "value", Number: true}
	return metric.CompareNumber(value, metric.GreaterEqual, LeastUnits(least))
}

// LeastUnits returns an amount in 1/schema.MoneyScale, rounded up. One that is beyond all amounts of events is just
// beyond them.
func LeastUnits(amount *big.Rat) int64 {
	units := new(big.Rat).Mul(amount, big.NewRat(schema.MoneyScale, 1))
	up := new(big.Int).Add(units.Num(), new(big.Int).Sub(units.Denom(), big.NewInt(1)))
	up.Div(up, units.Denom())
	const most = schema.MaxMoney*schema.MoneyScale + 1
	switch {
	case up.Cmp(big.NewInt(most)) > 0:
		return most
	case up.Cmp(big.NewInt(-most)) < 0:
		return -most
	}
	return up.Int64()
}

// windowOfQuantity returns the conversion window of a quantity: the range that it writes, that of the request, or that
// of its goal. The range of a funnel is none: it begins at the first step.
func (p *Plan) windowOfQuantity(q *metric.Quantity) schema.ConversionWindow {
	switch {
	case q.Call == metric.Funnel && q.Within.IsSet():
		return schema.ConversionWindow{}
	case q.Within.IsSet():
		return schema.ConversionWindow{From: q.Within.From, To: q.Within.To}
	case p.Asked.ConversionWindow != nil:
		return *p.Asked.ConversionWindow
	}
	of := metric.Metric{Numerator: *q}
	goals, all := of.ReadGoals()
	if all || len(goals) != 1 || goals[0].Action != "" {
		return schema.ConversionWindow{}
	}
	return p.WindowOf(goals[0].ID)
}
