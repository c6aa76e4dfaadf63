package loadgen

import (
	"fmt"
	"slices"
	"strings"

	"lifthouse/schema"
)

// Faults are all that is wrong with a scenario, a line each.
type Faults []string

func (f Faults) Error() string { return strings.Join(f, "\n") }

// Validate returns nil or Faults. What the catalogue demands of names, types
// and methodologies is left to it.
func (s *Scenario) Validate() error {
	c := scenarioChecker{}
	c.number("days", float64(s.Days), 1, 3650)
	c.id("account", s.Account)
	c.traffic(&s.Traffic)
	if len(s.Websites) == 0 {
		c.fault("websites", "[]", "want at least one")
	}
	seen := map[string]bool{}
	for w := range s.Websites {
		c.website(fmt.Sprintf("websites[%d]", w), &s.Websites[w], seen)
	}
	if len(c.faults) > 0 {
		return c.faults
	}
	return nil
}

type scenarioChecker struct{ faults Faults }

func (c *scenarioChecker) fault(path string, value any, want string) {
	c.faults = append(c.faults, fmt.Sprintf("%s: %v: %s", path, value, want))
}

func (c *scenarioChecker) number(path string, value, least, most float64) {
	if !(value >= least && value <= most) {
		c.fault(path, value, fmt.Sprintf("want %v to %v", least, most))
	}
}

func (c *scenarioChecker) id(path string, id int64) {
	if id < 1 {
		c.fault(path, id, "want an integer from 1")
	}
}

// once is id for a resource of which there is one with the id.
func (c *scenarioChecker) once(path, kind string, id int64, seen map[string]bool) {
	c.id(path, id)
	key := fmt.Sprintf("%s %d", kind, id)
	if seen[key] {
		c.fault(path, id, "given twice")
	}
	seen[key] = true
}

func (c *scenarioChecker) traffic(t *Traffic) {
	c.number("traffic.views", t.Views, 1, 1000)
	c.number("traffic.returning", t.Returning, 0, 0.95)
	c.number("traffic.crossovers", t.Crossovers, 0, 1)
	c.number("traffic.sourceChanges", t.SourceChanges, 0, 1)
	c.number("traffic.late", t.Late, 0, 1)
	c.number("traffic.duplicates", t.Duplicates, 0, 1)
}

func (c *scenarioChecker) website(path string, site *Website, seen map[string]bool) {
	c.once(path+".id", "website", site.ID, seen)
	var goals []int64
	for i := range site.Goals {
		at := fmt.Sprintf("%s.goals[%d]", path, i)
		c.once(at+".id", "goal", site.Goals[i].ID, seen)
		c.goal(at, &site.Goals[i])
		goals = append(goals, site.Goals[i].ID)
	}
	for i := range site.Campaigns {
		campaign := &site.Campaigns[i]
		at := fmt.Sprintf("%s.campaigns[%d]", path, i)
		c.once(at+".id", "campaign", campaign.ID, seen)
		c.primary(at, campaign.PrimaryGoalID, goals)
		c.split(at, &campaign.Split, goals, false)
	}
	for i := range site.Widgets {
		widget := &site.Widgets[i]
		at := fmt.Sprintf("%s.widgets[%d]", path, i)
		c.once(at+".id", "widget", widget.ID, seen)
		c.primary(at, widget.PrimaryGoalID, goals)
		for e := range widget.Experiments {
			experiment := &widget.Experiments[e]
			at := fmt.Sprintf("%s.experiments[%d]", at, e)
			c.once(at+".id", fmt.Sprintf("experiment of %d", widget.ID), experiment.ID, seen)
			for _, action := range experiment.Actions.list() {
				c.number(at+".actions."+string(action.kind), action.rate, 0, 1)
			}
			c.split(at, &experiment.Split, goals, true)
		}
	}
}

func (c *scenarioChecker) goal(path string, g *Goal) {
	c.number(path+".rate", g.Rate, 0, 1)
	c.number(path+".again", g.Again, 0, 0.95)
	if g.Value != 0 { // values are rounded to cents: smaller ones would not keep their mean
		c.number(path+".value", g.Value, 1, 100_000)
	}
	c.number(path+".spread", g.Spread, 0, 2)
	c.number(path+".margin", g.Margin, -5, 5)
	c.number(path+".noise", g.Noise, 0, 5)
	c.number(path+".extra", g.Extra, 0, 5)
}

func (c *scenarioChecker) primary(path string, id int64, goals []int64) {
	if !slices.Contains(goals, id) {
		c.fault(path+".primaryGoalId", id, fmt.Sprintf("want a goal of the website: one of %v", goals))
	}
}

func (c *scenarioChecker) split(path string, s *Split, goals []int64, widget bool) {
	c.number(path+".visitors", float64(s.Visitors), 0, 1e10)
	c.number(path+".controlShare", float64(s.ControlShare), 0, 100)
	weights, ids := 0, []int64{0}
	for i, v := range s.Variations {
		at := fmt.Sprintf("%s.variations[%d]", path, i)
		c.id(at+".id", v.ID)
		if slices.Contains(ids, v.ID) {
			c.fault(at+".id", v.ID, "given twice")
		}
		ids = append(ids, v.ID)
		c.number(at+".share", float64(v.Share), 0, 100)
		weights += v.Share
	}
	if s.ControlShare < 100 && weights <= 0 {
		c.fault(path+".variations", len(s.Variations), "want one with a share, for the visitors whom control leaves")
	}
	for i := range s.Effects {
		c.effect(fmt.Sprintf("%s.effects[%d]", path, i), &s.Effects[i], goals, ids, widget)
	}
}

func (c *scenarioChecker) effect(path string, e *Effect, goals, variations []int64, widget bool) {
	if e.Variation != nil && !slices.Contains(variations, *e.Variation) {
		c.fault(path+".variation", *e.Variation, fmt.Sprintf("want one of %v", variations))
	}
	if e.Goal != 0 && !slices.Contains(goals, e.Goal) {
		c.fault(path+".goal", e.Goal, fmt.Sprintf("want a goal of the website: one of %v", goals))
	}
	kinds := (&Actions{}).names()
	switch {
	case e.Event == "":
	case !widget || !slices.Contains(kinds, e.Event):
		c.fault(path+".event", fmt.Sprintf("%q", e.Event), "only an experiment of a widget has one: "+strings.Join(kinds, ", "))
	case e.Goal != 0:
		c.fault(path+".event", fmt.Sprintf("%q", e.Event), "give a goal or an event, not both")
	}
	c.number(path+".rate", e.Rate, 0, 100)
	c.number(path+".value", e.Value, 0, 100)
	for _, attribute := range sortedKeys(e.When) {
		at, value := path+".when."+attribute, e.When[attribute]
		if attributesOf[attribute] == nil {
			c.fault(at, fmt.Sprintf("%q", value), "effects depend on "+strings.Join(sortedKeys(attributesOf), ", "))
		} else if values := valuesOf(attribute); !slices.Contains(values, value) {
			c.fault(at, fmt.Sprintf("%q", value), fmt.Sprintf("want one of %q", values))
		}
	}
}

// action is what a share of a widget's visitors do.
type action struct {
	kind schema.Kind
	rate float64
}

func (a *Actions) list() []action {
	return []action{
		{schema.KindClick, a.Click},
		{schema.KindSubmit, a.Submit},
		{schema.KindCompletion, a.Completion},
		{schema.KindConversion, a.Conversion},
		{schema.KindContact, a.Contact},
	}
}

func (a *Actions) names() []string {
	var names []string
	for _, action := range a.list() {
		names = append(names, string(action.kind))
	}
	return names
}
