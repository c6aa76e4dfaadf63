package metric

import (
	"slices"
	"strings"
)

// Kind is what a metric is.
type Kind string

// The kinds.
const (
	Rate   Kind = "rate"   // a share of the visitors
	Number Kind = "number" // a number per visitor
	Money  Kind = "money"  // an amount per visitor
	Ratio  Kind = "ratio"  // of two sums over visitors
)

// Unit is the unit of a value of a metric.
type Unit string

// The units.
const (
	Share   Unit = "share"
	InMoney Unit = "money"
	Plain   Unit = "number"
)

// Test is the test that compares a metric of two variations.
type Test string

// The tests. TestNested is the score test of visitors who converted among visitors who converted.
const (
	TestScore  Test = "score"
	TestWelch  Test = "welch"
	TestDelta  Test = "delta"
	TestNested Test = "nestedScore"
)

// Kind returns the kind of a metric.
func (m *Metric) Kind() Kind {
	if m.Denominator != nil {
		return Ratio
	}
	return m.Numerator.Kind()
}

// Kind returns the kind of a quantity per visitor.
func (q *Quantity) Kind() Kind {
	switch {
	case q.IsRate():
		return Rate
	case q.isMoney():
		return Money
	default:
		return Number
	}
}

// IsRate reports whether the quantity of a visitor is 0 or 1.
func (q *Quantity) IsRate() bool { return q.Call == Converted || q.Call == Funnel }

func (q *Quantity) isMoney() bool {
	return q.Field.IsAmount()
}

// Unit returns the unit of the values of a metric. A ratio of two rates or of two amounts is a share.
func (m *Metric) Unit() Unit {
	of := m.Numerator.Kind()
	if m.Denominator != nil {
		by := m.Denominator.Kind()
		switch {
		case of == by && of != Number:
			return Share
		case of == Money:
			return InMoney
		default:
			return Plain
		}
	}
	return map[Kind]Unit{Rate: Share, Money: InMoney, Number: Plain}[of]
}

// Test returns the test of a metric.
func (m *Metric) Test() Test {
	switch {
	case m.IsNested():
		return TestNested
	case m.Denominator != nil:
		return TestDelta
	case m.Numerator.IsRate():
		return TestScore
	default:
		return TestWelch
	}
}

// ReadsAmounts reports whether a quantity reads an amount of money.
func (q *Quantity) ReadsAmounts() bool { return slices.ContainsFunc(q.ReadFields(), Field.IsAmount) }

// IsAmount reports whether a field is an amount of money, in the currency of its event.
func (f Field) IsAmount() bool {
	isOfEvent := f.Source == OfEvent || f.Source == OfLine
	return isOfEvent && f.Number && f.Name != "items.quantity"
}

// Scale returns the number of units of a visitor's quantity that make 1.
func (q *Quantity) Scale() int64 {
	if q.Call == Sum || q.Call == Max {
		return Scale
	}
	return 1
}

// Quantities returns the numerator and, if there is one, the denominator.
func (m *Metric) Quantities() []*Quantity {
	if m.Denominator == nil {
		return []*Quantity{&m.Numerator}
	}
	return []*Quantity{&m.Numerator, m.Denominator}
}

// SingleGoal returns the goal whose events a metric reads; 0: it reads those of several goals, or actions.
func (m *Metric) SingleGoal() int64 {
	if goals, all := m.ReadGoals(); len(goals) == 1 && !all {
		return goals[0].ID
	}
	return 0
}

// ReadsActions reports whether a quantity of a metric is of actions, which are no goals.
func (m *Metric) ReadsActions() bool {
	return slices.ContainsFunc(m.Quantities(), func(q *Quantity) bool { return q.Steps[0].areActions() })
}

// OnlyDescribes reports whether a metric can have no role: max and distinct have no daily increments, so they have no
// looks and no series. call is the first of them.
func (m *Metric) OnlyDescribes() (call Call, only bool) {
	for _, q := range m.Quantities() {
		if q.Call == Max || q.Call == Distinct {
			return q.Call, true
		}
	}
	return "", false
}

// IsAdditiveOver reports whether the values of a split by a field, with those of visitors without it, add up to the
// metric. An event with lines of two categories is counted with both of them.
func (m *Metric) IsAdditiveOver(split Field) bool {
	q := &m.Numerator
	isSum := q.Call == Sum || q.Call == Count
	isOnce := split.Source != OfLine || q.Field.Source == OfLine
	return m.Denominator == nil && isSum && isOnce
}

// ReadGoals returns the goals and actions that a metric reads, each once; all: it reads all goals.
func (m *Metric) ReadGoals() (goals []Goal, all bool) {
	for _, q := range m.Quantities() {
		for i := range q.Steps {
			all = all || len(q.Steps[i].Goals) == 0
			goals = append(goals, q.Steps[i].Goals...)
		}
	}
	slices.SortFunc(goals, func(a, b Goal) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(goals), all
}

// ReadFields returns the fields that a quantity reads, each once.
func (q *Quantity) ReadFields() (fields []Field) {
	if q.Field.Name != "" {
		fields = append(fields, q.Field)
	}
	for i := range q.Steps {
		fields = append(fields, q.Steps[i].Where.ReadFields()...)
	}
	return uniqueFields(fields)
}

// ReadFields returns the fields that a condition reads, each once.
func (c *Condition) ReadFields() (fields []Field) {
	if c == nil {
		return nil
	}
	if c.Field.Name != "" {
		fields = append(fields, c.Field)
	}
	for _, part := range c.Parts {
		fields = append(fields, part.ReadFields()...)
	}
	return uniqueFields(fields)
}

func uniqueFields(fields []Field) []Field {
	slices.SortFunc(fields, func(a, b Field) int { return strings.Compare(a.sortKey(), b.sortKey()) })
	return slices.Compact(fields)
}

// sortKey returns a text that orders fields by name and type.
func (f Field) sortKey() string {
	if f.Number {
		return f.Name + " number"
	}
	return f.Name
}

// ReadsLines reports whether a condition is asked of lines.
func (c *Condition) ReadsLines() bool {
	return slices.ContainsFunc(c.ReadFields(), func(f Field) bool { return f.Source == OfLine })
}

// IsPlain reports whether a quantity is one that sums of facts have: one goal, any or an action, no condition, and
// converted, count or the sum of an amount of the event.
func (q *Quantity) IsPlain() bool {
	isCall := q.Call == Converted && q.AtLeast == 1 || q.Call == Count || q.Call == Sum && q.Field.Source == OfEvent
	return isCall && len(q.Steps) == 1 && q.Steps[0].Where == nil && len(q.Steps[0].Goals) <= 1
}

// IsNested reports whether a metric is a share of visitors among visitors: by their texts, each visitor with the
// numerator has the denominator. So it is one rate of the visitors with the denominator.
func (m *Metric) IsNested() bool {
	return m.Denominator != nil && m.Numerator.impliesRate(m.Denominator)
}

// impliesRate reports whether the quantity of a visitor is 1 only if another one is 1. It may report false where it is.
func (q *Quantity) impliesRate(o *Quantity) bool {
	if !q.IsRate() || !o.IsRate() {
		return false
	}
	if q.Call == Converted && o.Call == Converted {
		return q.Steps[0].isPartOf(&o.Steps[0]) && q.AtLeast >= o.AtLeast && q.Within.isPartOf(o.Within)
	}
	if q.Call == Converted || o.AtLeast > 1 {
		return false
	}
	if o.Call == Converted && o.Within.IsSet() { // a funnel may begin at any age
		return false
	}
	return o.hasSpanOf(q) && hasSteps(q.Steps, o.Steps)
}

// hasSpanOf reports whether a funnel has at least the time of another one. A converted without a range has any time.
func (q *Quantity) hasSpanOf(o *Quantity) bool {
	return !q.Within.IsSet() || o.Within.IsSet() && o.Within.To <= q.Within.To
}

// hasSteps reports whether events that match all steps also match other steps in order.
func hasSteps(steps, others []Events) bool {
	for i := range steps {
		if len(others) > 0 && steps[i].isPartOf(&others[0]) {
			others = others[1:]
		}
	}
	return len(others) == 0
}

// isPartOf reports whether all ages of a range are in another one.
func (r Range) isPartOf(o Range) bool {
	return !o.IsSet() || r.IsSet() && r.From >= o.From && r.To <= o.To
}

// isPartOf reports whether events have the goals and all conditions of others.
func (e *Events) isPartOf(o *Events) bool {
	hasGoals := len(o.Goals) == 0 && !e.areActions()
	if len(e.Goals) > 0 && !hasGoals {
		hasGoals = !slices.ContainsFunc(e.Goals, func(g Goal) bool { return !slices.Contains(o.Goals, g) })
	}
	own := e.Where.listConjuncts()
	for text := range o.Where.listConjuncts() {
		if !own[text] {
			return false
		}
	}
	return hasGoals
}

func (e *Events) areActions() bool { return len(e.Goals) > 0 && e.Goals[0].Action != "" }

// listConjuncts returns the texts of the conditions that a condition combines by and.
func (c *Condition) listConjuncts() map[string]bool {
	texts := map[string]bool{}
	switch {
	case c == nil:
	case c.Operator == And:
		for _, part := range c.Parts {
			texts[part.String()] = true
		}
	default:
		texts[c.String()] = true
	}
	return texts
}
