package metric

import (
	"fmt"
	"slices"
	"strings"

	"lifthouse/schema/faults"
)

// Names has the names that a text may contain, of one website. Each list begins with the names that are used most,
// which is the order of completions.
type Names struct {
	Goals      []Goal
	Properties []Property
	Attributes []string // the website's own ones, besides Attributes
	Metrics    []NamedMetric

	// AcceptsUnknownProperties is set for metrics that are declared before their data: a property that was never sent
	// has the type that its use needs.
	AcceptsUnknownProperties bool
	// AcceptsUnknownAttributes is set for questions that are declared before their data.
	AcceptsUnknownAttributes bool

	// AcceptsUnknownGoals is set for recorded metrics: an id may be that of a goal that was removed since.
	AcceptsUnknownGoals bool

	// CheckValue returns a value of an attribute in the form in which it is stored, or what is allowed instead. nil:
	// all values are as stored.
	CheckValue func(attribute, value string) (stored, fault string)
}

// Property is a property of goal events, with the types in which it was sent.
type Property struct {
	Name         string
	Text, Number bool
}

// NamedMetric is a metric that a website declares. Its key is a whole metric.
type NamedMetric struct {
	Key    string
	Metric *Metric
}

// KeyFault returns why a text cannot be the key of a declared metric; empty: it can.
func KeyFault(key string) string {
	isWord := key != "" && strings.IndexFunc(key, func(r rune) bool { return !isWordRune(r) }) < 0
	switch {
	case !isWord || isInteger(key):
		return "must have only letters, digits, -, _ and :, and not be a number"
	case slices.Contains(keywords, key):
		return "is a word of the language of metrics"
	case IsAlias(key):
		return "is the name of another metric"
	}
	return ""
}

// keywords are the words that are not names. A goal with such a key is quoted.
var keywords = []string{
	"any", "where", "and", "or", "not", "in", "like", "within", "at", "least",
	"converted", "count", "sum", "max", "distinct", "funnel",
}

// IsReserved reports whether a name has a meaning in the language, so that neither a property nor an attribute of a
// website may have it.
func IsReserved(name string) bool {
	isField := slices.ContainsFunc(numberFields, func(f Field) bool { return f.Name == name })
	return isField || name == "items" || slices.Contains(keywords, name) || slices.Contains(Attributes, name)
}

// findGoal returns the goal with a key.
func (n *Names) findGoal(key string) (Goal, bool) {
	for _, g := range n.Goals {
		if g.Key == key && key != "" {
			return g, true
		}
	}
	return Goal{}, false
}

// findProperty returns the property with a name. One that was never sent may be of both types.
func (n *Names) findProperty(name string) (Property, bool) {
	for _, p := range n.Properties {
		if p.Name == name {
			return p, true
		}
	}
	return Property{Name: name, Text: true, Number: true}, n.AcceptsUnknownProperties && !IsReserved(name)
}

// findGoalByID returns the goal with an id.
func (n *Names) findGoalByID(id int64) (Goal, bool) {
	for _, g := range n.Goals {
		if g.ID == id {
			return g, true
		}
	}
	return Goal{ID: id}, false
}

// findMetric returns the declared metric with a key; nil: there is none.
func (n *Names) findMetric(key string) *Metric {
	for _, m := range n.Metrics {
		if m.Key == key {
			return m.Metric
		}
	}
	return nil
}

// listMetrics returns the keys of the declared metrics.
func (n *Names) listMetrics() (keys []string) {
	for _, m := range n.Metrics {
		keys = append(keys, m.Key)
	}
	return keys
}

// listGoals returns the goals as they are written.
func (n *Names) listGoals() (texts []string) {
	for _, g := range n.Goals {
		texts = append(texts, g.String())
	}
	return texts
}

// listAttributes returns all attributes of a first view.
func (n *Names) listAttributes() []string { return append(slices.Clone(Attributes), n.Attributes...) }

// listFields returns the fields of a condition of events.
func (n *Names) listFields() (texts []string) {
	for _, f := range append(NumberFields(), textFields...) {
		texts = append(texts, f.Name)
	}
	for _, p := range n.Properties {
		texts = append(texts, p.Name)
	}
	return texts
}

// shownNames is the maximum number of names in an error.
const shownNames = 10

// suggestNames returns what may be meant by a name: the nearest one first, then the others.
func suggestNames(name string, known []string) string {
	if len(known) == 0 {
		return "there is none yet"
	}
	nearest := faults.NearestName(name, known)
	var others []string
	for _, other := range known {
		if other != nearest {
			others = append(others, other)
		}
	}
	rest := ""
	if more := len(others) - shownNames; more > 0 {
		others = others[:shownNames]
		rest = fmt.Sprintf(" and %d more", more)
	}
	list := strings.Join(others, ", ") + rest
	switch {
	case nearest == "":
		return "one of " + list
	case list == "":
		return "did you mean " + nearest + "?"
	default:
		return nearest + ", or one of " + list
	}
}
