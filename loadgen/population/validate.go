package population

import (
	"fmt"
	"slices"
	"strings"

	"lifthouse/schema"
)

// ValidationError lists all invalid values of a scenario, one per line.
type ValidationError []string

func (e ValidationError) Error() string { return strings.Join(e, "\n") }

// Validate returns nil or a ValidationError. Validate does not check names,
// types and methodologies: the catalogue checks them.
func (s *Scenario) Validate() error {
	v := validator{}
	v.number("days", float64(s.Days), 1, 3650)
	v.id("account", s.Account)
	v.traffic(&s.Traffic)
	if len(s.Websites) == 0 {
		v.add("websites", "[]", "must have at least one website")
	}
	seen := map[string]bool{}
	for w := range s.Websites {
		v.website(fmt.Sprintf("websites[%d]", w), &s.Websites[w], seen)
	}
	if len(v.errors) > 0 {
		return v.errors
	}
	return nil
}

type validator struct{ errors ValidationError }

func (v *validator) add(path string, value any, rule string) {
	v.errors = append(v.errors, fmt.Sprintf("%s: invalid value %v: %s", path, value, rule))
}

func (v *validator) number(path string, value, least, most float64) {
	if !(value >= least && value <= most) {
		v.add(path, value, fmt.Sprintf("must be from %v to %v", least, most))
	}
}

func (v *validator) id(path string, id int64) {
	if id < 1 {
		v.add(path, id, "must be a positive integer")
	}
}

// uniqueID checks the id of a resource. Ids must be unique among resources of
// the same kind.
func (v *validator) uniqueID(path, kind string, id int64, seen map[string]bool) {
	v.id(path, id)
	key := fmt.Sprintf("%s %d", kind, id)
	if seen[key] {
		v.add(path, id, "must be unique")
	}
	seen[key] = true
}

func (v *validator) traffic(t *Traffic) {
	v.number("traffic.views", t.Views, 1, 1000)
	v.number("traffic.returning", t.Returning, 0, 0.95)
	v.number("traffic.multipleExposures", t.MultipleExposures, 0, 1)
	v.number("traffic.sourceChanges", t.SourceChanges, 0, 1)
	v.number("traffic.late", t.Late, 0, 1)
	v.number("traffic.duplicates", t.Duplicates, 0, 1)
}

func (v *validator) website(path string, site *Website, seen map[string]bool) {
	v.uniqueID(path+".id", "website", site.ID, seen)
	var goals []int64
	for i := range site.Goals {
		at := fmt.Sprintf("%s.goals[%d]", path, i)
		v.uniqueID(at+".id", "goal", site.Goals[i].ID, seen)
		v.goal(at, &site.Goals[i])
		goals = append(goals, site.Goals[i].ID)
	}
	for i := range site.Campaigns {
		campaign := &site.Campaigns[i]
		at := fmt.Sprintf("%s.campaigns[%d]", path, i)
		v.uniqueID(at+".id", "campaign", campaign.ID, seen)
		v.primaryGoal(at, campaign.PrimaryGoalID, goals)
		v.split(at, &campaign.Split, goals, false)
	}
	for i := range site.Widgets {
		widget := &site.Widgets[i]
		at := fmt.Sprintf("%s.widgets[%d]", path, i)
		v.uniqueID(at+".id", "widget", widget.ID, seen)
		v.primaryGoal(at, widget.PrimaryGoalID, goals)
		for e := range widget.Experiments {
			experiment := &widget.Experiments[e]
			at := fmt.Sprintf("%s.experiments[%d]", at, e)
			v.uniqueID(at+".id", fmt.Sprintf("experiment of %d", widget.ID), experiment.ID, seen)
			for _, action := range experiment.Actions.list() {
				v.number(at+".actions."+string(action.kind), action.rate, 0, 1)
			}
			v.split(at, &experiment.Split, goals, true)
		}
	}
}

func (v *validator) goal(path string, g *Goal) {
	v.number(path+".rate", g.Rate, 0, 1)
	v.number(path+".again", g.Again, 0, 0.95)
	if g.Value != 0 { // rounding to cents would change the mean of smaller values
		v.number(path+".value", g.Value, 1, 100_000)
	}
	v.number(path+".spread", g.Spread, 0, 2)
	v.number(path+".margin", g.Margin, -5, 5)
	v.number(path+".noise", g.Noise, 0, 5)
	v.number(path+".extra", g.Extra, 0, 5)
}

func (v *validator) primaryGoal(path string, id int64, goals []int64) {
	if !slices.Contains(goals, id) {
		v.add(path+".primaryGoalId", id, fmt.Sprintf("must be a goal of the website: one of %v", goals))
	}
}

func (v *validator) split(path string, s *Split, goals []int64, widget bool) {
	v.number(path+".visitors", float64(s.Visitors), 0, 1e10)
	v.number(path+".controlShare", float64(s.ControlShare), 0, 100)
	weights, ids := 0, []int64{0}
	for i, variation := range s.Variations {
		at := fmt.Sprintf("%s.variations[%d]", path, i)
		v.id(at+".id", variation.ID)
		if slices.Contains(ids, variation.ID) {
			v.add(at+".id", variation.ID, "must be unique")
		}
		ids = append(ids, variation.ID)
		v.number(at+".share", float64(variation.Share), 0, 100)
		weights += variation.Share
	}
	if s.ControlShare < 100 && weights <= 0 {
		v.add(path+".variations", fmt.Sprintf("with total share %d", weights), "must have a positive total share if controlShare is below 100")
	}
	for i := range s.Effects {
		v.effect(fmt.Sprintf("%s.effects[%d]", path, i), &s.Effects[i], goals, ids, widget)
	}
}

func (v *validator) effect(path string, e *Effect, goals, variations []int64, widget bool) {
	if e.Variation != nil && !slices.Contains(variations, *e.Variation) {
		v.add(path+".variation", *e.Variation, fmt.Sprintf("must be one of %v", variations))
	}
	if e.Goal != 0 && !slices.Contains(goals, e.Goal) {
		v.add(path+".goal", e.Goal, fmt.Sprintf("must be a goal of the website: one of %v", goals))
	}
	kinds := (&Actions{}).names()
	switch {
	case e.Event == "":
	case !widget || !slices.Contains(kinds, e.Event):
		v.add(path+".event", fmt.Sprintf("%q", e.Event), "must be an action of a widget experiment: "+strings.Join(kinds, ", "))
	case e.Goal != 0:
		v.add(path+".event", fmt.Sprintf("%q", e.Event), "goal and event are mutually exclusive")
	}
	v.number(path+".rate", e.Rate, 0, 100)
	v.number(path+".value", e.Value, 0, 100)
	for _, attribute := range sortedKeys(e.When) {
		at, value := path+".when."+attribute, e.When[attribute]
		if effectAttributes[attribute] == nil {
			v.add(at, fmt.Sprintf("%q", value), "attribute must be one of "+strings.Join(sortedKeys(effectAttributes), ", "))
		} else if values := attributeValues(attribute); !slices.Contains(values, value) {
			v.add(at, fmt.Sprintf("%q", value), fmt.Sprintf("must be one of %q", values))
		}
	}
}

// action is an action on a widget with the share of visitors who perform it.
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
