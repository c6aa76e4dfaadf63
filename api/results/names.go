package results

import (
	"cmp"
	"slices"

	"lifthouse/engine/metric"
	"lifthouse/schema/catalogue"
)

// Names are the names that metrics and conditions of a website may contain.
type Names struct {
	WebsiteID  int64           `json:"websiteId"`
	Goals      []NamedGoal     `json:"goals"`
	Metrics    []NamedMetric   `json:"metrics"`
	Attributes []NamedField    `json:"attributes"` // of the first view of a visitor; those of every website first
	Properties []NamedProperty `json:"properties"`
	Fields     []TypedField    `json:"fields"`
}

// NamedGoal is a goal as a metric writes it.
type NamedGoal struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	Text string `json:"text"`
}

// NamedMetric is a metric with a name and its expression for all goals, or one that the website declares.
type NamedMetric struct {
	Name       string `json:"name"` // or key
	Words      string `json:"words"`
	Expression string `json:"expression"`
	Own        bool   `json:"own"` // declared by the website
}

// NamedField is an attribute.
type NamedField struct {
	Name string `json:"name"`
	Own  bool   `json:"own"` // of the website's events
}

// NamedProperty is a property of goal events, with the types in which it was sent.
type NamedProperty struct {
	Name  string   `json:"name"`
	Types []string `json:"types"`
}

// TypedField is a field that every goal event or its lines have.
type TypedField struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// The types of fields.
const (
	typeText   = "text"
	typeNumber = "number"
)

// NewNames returns the names of a website.
func NewNames(owned *catalogue.AccountResources, website int64, names *metric.Names) *Names {
	all := &Names{WebsiteID: website, Goals: []NamedGoal{}, Properties: []NamedProperty{}}
	for _, g := range names.Goals {
		goal := owned.Goals[g.ID]
		all.Goals = append(all.Goals, NamedGoal{g.ID, cmp.Or(goal.Name, goal.Key), g.String()})
	}
	for _, alias := range metric.Aliases {
		if m, known := metric.NewAlias(alias.Name, nil); known {
			all.Metrics = append(all.Metrics, NamedMetric{alias.Name, alias.Words, m.String(), false})
		}
	}
	for _, m := range owned.TermsOf(website).DeclaredMetrics() {
		all.Metrics = append(all.Metrics, NamedMetric{m.Key, m.Name, m.Written.String(), true})
	}
	for i, name := range slices.Concat(metric.Attributes, names.Attributes) {
		all.Attributes = append(all.Attributes, NamedField{name, i >= len(metric.Attributes)})
	}
	for _, p := range names.Properties {
		property := NamedProperty{Name: p.Name}
		if p.Text {
			property.Types = append(property.Types, typeText)
		}
		if p.Number {
			property.Types = append(property.Types, typeNumber)
		}
		all.Properties = append(all.Properties, property)
	}
	for _, f := range slices.Concat(metric.NumberFields(), metric.TextFields()) {
		field := TypedField{f.Name, typeText}
		if f.Number {
			field.Type = typeNumber
		}
		all.Fields = append(all.Fields, field)
	}
	return all
}
