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

// NamesOf returns the names that questions about a website may contain: its goals and metrics, and the own attributes
// and the properties in its events.
func NamesOf(owned *catalogue.AccountResources, website int64, labels []schema.Label) *metric.Names {
	terms := owned.TermsOf(website)
	names := &metric.Names{Goals: terms.Goals(), Metrics: terms.NamedMetrics()}
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
func (p *Plan) DeclaredNames() *metric.Names { return p.terms.DeclaredNames() }

// DeclaredMetrics returns the metrics that the website declares.
func (p *Plan) DeclaredMetrics() []*catalogue.DeclaredMetric { return p.terms.DeclaredMetrics() }

// leavesOpen reports whether the request leaves open what is compared.
func (p *Plan) leavesOpen() bool {
	hasMetric := p.Asked.Metric != "" || p.Asked.GoalID != 0 || p.Asked.Expression != ""
	return p.Rules.Compare && !hasMetric
}

// asksDeclared reports whether the request leaves open what is compared, and the primary metric is a declared one.
func (p *Plan) asksDeclared() bool { return p.leavesOpen() && p.Declared.Metric.Expression() != nil }

// setPrimaryMetric makes the plan one about the primary metric, which is a declared one. The error is an InvalidError
// with the parameters that do not suit it.
func (p *Plan) setPrimaryMetric() error {
	p.setMeasure(p.Declared.PrimaryMeasure())
	var found faults.Collector
	p.checkExpression(p.Written, &found)
	isChanged := p.Asked.ConversionWindow != nil || p.Filters.GoalValue != nil || p.Split != nil
	if len(found.List) > 0 || !isChanged {
		return query.InvalidParameters(found.List...)
	}
	p.Expression = p.Written
	return p.resolveExpression()
}

// setDeclaredMetric makes the plan one about a declared metric with a text, which may have another name or another
// expression since.
func (p *Plan) setDeclaredMetric(text query.Metric) {
	of, err := metric.ParseRecorded(string(text), p.terms.Goals())
	if err != nil { // no such text is declared
		of = text.Expression()
	}
	p.Metric = text
	p.Expression = of
	p.Written = of
	p.GoalID = of.SingleGoal()
	p.nameDeclared()
}

// nameDeclared sets what the catalogue says of a declared metric that the plan is about.
func (p *Plan) nameDeclared() {
	text := p.Measure().Expression
	for _, m := range p.terms.DeclaredMetrics() {
		if m.Text == text {
			p.MetricName = m.Name
			p.Written = m.Written
			p.Cap = cmp.Or(p.Asked.Cap, m.Cap)
			return
		}
	}
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
	p.GoalID = m.SingleGoal()
	p.checkExpression(m, found)
}

// checkExpression finds faults in the combination of an expression with other parameters.
func (p *Plan) checkExpression(m *metric.Metric, found *faults.Collector) {
	r := &p.Asked
	refuse := func(is bool, detail string) { found.AddIf(is, "metric", m.String(), detail) }
	refuse(r.Filters.ZScore != 0, "filters[zScore] is only for amounts of one goal")
	refuse(r.ConversionWindow != nil && m.HasRange(), "write one of them: within, or conversionWindow")
	refuse(r.Scorecard && r.Expression != "", "a scorecard has the metrics that are declared: omit scorecard or metric")
	refuse(r.Curve, "a curve is that of a goal: write goal, or omit curve")
	refuse(r.Distribution, "a distribution is that of the values of goal events: write goal, or omit distribution")
	refuse(r.Interval != "" && m.ReadsActions(), "the time of an action is not stored apart: omit interval")
	if fault := catalogue.CapFault(m, r.Cap); fault != "" {
		found.Add("cap", r.Cap, fault)
	}
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
	m := p.Expression
	if least := p.Filters.GoalValue; least != nil {
		m = m.WithCondition(AtLeastValue(least))
	}
	p.Expression, p.ConversionWindow = catalogue.WithWindows(m, p.windowOfQuantity)
	isMoney := m.Numerator.Call == metric.Sum && m.Numerator.Kind() == metric.Money
	if p.Asked.Cap == nil && (!isMoney || p.Split != nil) {
		p.Cap = nil
	}
	p.Metric = query.Metric(p.Measure().Expression)
	if p.Split == nil {
		p.nameDeclared()
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

// windowOfQuantity returns the conversion window of a quantity that writes no range of ages: that of the request, or
// that of its goal.
func (p *Plan) windowOfQuantity(q *metric.Quantity) schema.ConversionWindow {
	if asked := p.Asked.ConversionWindow; asked != nil {
		return *asked
	}
	goal := q.SingleGoal()
	if goal == 0 {
		return schema.ConversionWindow{}
	}
	return p.WindowOf(goal)
}
