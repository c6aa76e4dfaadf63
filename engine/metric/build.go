package metric

import (
	"slices"
	"strings"
)

// CompareText returns the canonical form of a comparison of a text, such as that of a filter. Only In takes several
// values, at least one.
func CompareText(f Field, operator Operator, values ...string) *Condition {
	c := &Condition{Operator: operator, Field: f, Texts: slices.Clone(values)}
	c.simplifyValues()
	return c
}

// CompareNumber returns the canonical form of a comparison of a number with values in 1/Scale. Only In takes several
// values, at least one.
func CompareNumber(f Field, operator Operator, values ...int64) *Condition {
	c := &Condition{Operator: operator, Field: f, Numbers: slices.Clone(values)}
	c.simplifyValues()
	return c
}

// JoinConditions returns the canonical form of conditions that are all true. nil is no condition.
func JoinConditions(conditions ...*Condition) *Condition {
	all := slices.DeleteFunc(slices.Clone(conditions), func(c *Condition) bool { return c == nil })
	if len(all) == 0 {
		return nil
	}
	return combineParts(And, all)
}

// Negate returns the canonical form of the opposite of a condition.
func Negate(c *Condition) *Condition { return negateCondition(c) }

// WithCondition returns a metric in which all events satisfy another condition: a row of a split, or a filter of goal
// events. Actions have no values, so they are unchanged.
func (m *Metric) WithCondition(c *Condition) *Metric {
	return m.mapQuantities(func(q *Quantity) {
		for i := range q.Steps {
			if e := &q.Steps[i]; !e.areActions() {
				e.Where = JoinConditions(e.Where, c)
			}
		}
	})
}

// HasRange reports whether a metric has a range of ages of its own.
func (m *Metric) HasRange() bool {
	return slices.ContainsFunc(m.Quantities(), func(q *Quantity) bool { return q.Within.IsSet() })
}

// WithRange returns a metric whose quantities have a range of ages.
func (m *Metric) WithRange(r Range) *Metric {
	return m.mapQuantities(func(q *Quantity) { q.Within = r })
}

// WithGoalIDs returns a metric whose text has the ids of its goals in the place of their keys. So it stays the same if
// a goal gets another key or name.
func (m *Metric) WithGoalIDs() *Metric {
	return m.mapQuantities(func(q *Quantity) {
		for i := range q.Steps {
			goals := slices.Clone(q.Steps[i].Goals)
			for k := range goals {
				goals[k].Key = ""
			}
			slices.SortFunc(goals, func(a, b Goal) int { return strings.Compare(a.String(), b.String()) })
			q.Steps[i].Goals = goals
		}
	})
}

// WithRanges returns a metric whose quantities have other ranges of ages. rangeOf returns that of a quantity.
func (m *Metric) WithRanges(rangeOf func(*Quantity) Range) *Metric {
	return m.mapQuantities(func(q *Quantity) { q.Within = rangeOf(q) })
}

// SingleGoal returns the goal of a quantity of the events of one goal; 0: it is another one.
func (q *Quantity) SingleGoal() int64 {
	goals := q.Steps[0].Goals
	if q.Call == Funnel || len(goals) != 1 {
		return 0
	}
	return goals[0].ID
}

// mapQuantities returns a copy of a metric with changed quantities.
func (m *Metric) mapQuantities(change func(*Quantity)) *Metric {
	changed := *m
	if m.Denominator != nil {
		denominator := *m.Denominator
		changed.Denominator = &denominator
	}
	for _, q := range changed.Quantities() {
		q.Steps = slices.Clone(q.Steps)
		change(q)
	}
	return &changed
}
