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
	v.checkNumber("days", float64(s.Days), 1, 3650)
	v.checkID("account", s.Account)
	v.checkTraffic(&s.Traffic)
	if len(s.Websites) == 0 {
		v.addError("websites", "[]", "must have at least one website")
	}
	seen := map[string]bool{}
	for w := range s.Websites {
		v.checkWebsite(fmt.Sprintf("websites[%d]", w), &s.Websites[w], seen)
	}
	if len(v.errors) > 0 {
		return v.errors
	}
	return nil
}

type validator struct{ errors ValidationError }

func (v *validator) addError(path string, value any, rule string) {
	v.errors = append(v.errors, fmt.Sprintf("%s: invalid value %v: %s", path, value, rule))
}

func (v *validator) checkNumber(path string, value, least, most float64) {
	if !(value >= least && value <= most) {
		v.addError(path, value, fmt.Sprintf("must be from %v to %v", least, most))
	}
}

func (v *validator) checkID(path string, id int64) {
	if id < 1 {
		v.addError(path, id, "must be a positive integer")
	}
}

// uniqueID checks the id of a resource. Ids must be unique among resources of
// the same kind.
func (v *validator) uniqueID(path, kind string, id int64, seen map[string]bool) {
	v.checkID(path, id)
	key := fmt.Sprintf("%s %d", kind, id)
	if seen[key] {
		v.addError(path, id, "must be unique")
	}
	seen[key] = true
}

func (v *validator) checkTraffic(t *Traffic) {
	v.checkNumber("traffic.views", t.Views, 1, 1000)
	v.checkNumber("traffic.returning", t.Returning, 0, 0.95)
	v.checkNumber("traffic.multipleExposures", t.MultipleExposures, 0, 1)
	v.checkNumber("traffic.sourceChanges", t.SourceChanges, 0, 1)
	v.checkNumber("traffic.late", t.Late, 0, 1)
	v.checkNumber("traffic.duplicates", t.Duplicates, 0, 1)
}

func (v *validator) checkWebsite(path string, site *Website, seen map[string]bool) {
	v.uniqueID(path+".id", "website", site.ID, seen)
	var goals []int64
	for i := range site.Goals {
		at := fmt.Sprintf("%s.goals[%d]", path, i)
		v.uniqueID(at+".id", "goal", site.Goals[i].ID, seen)
		v.checkGoal(at, &site.Goals[i])
		goals = append(goals, site.Goals[i].ID)
	}
	for i := range site.Campaigns {
		campaign := &site.Campaigns[i]
		at := fmt.Sprintf("%s.campaigns[%d]", path, i)
		v.uniqueID(at+".id", "campaign", campaign.ID, seen)
		v.primaryGoal(at, campaign.PrimaryGoalID, goals)
		v.checkSplit(at, &campaign.Split, goals, false)
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
			for _, action := range experiment.Actions.allActions() {
				v.checkNumber(at+".actions."+string(action.kind), action.rate, 0, 1)
			}
			v.checkSplit(at, &experiment.Split, goals, true)
		}
	}
}

func (v *validator) checkGoal(path string, g *Goal) {
	v.checkNumber(path+".rate", g.Rate, 0, 1)
	v.checkNumber(path+".again", g.Again, 0, 0.95)
	if g.Value != 0 { // rounding to cents would change the mean of smaller values
		v.checkNumber(path+".value", g.Value, 1, 100_000)
	}
	v.checkNumber(path+".spread", g.Spread, 0, 2)
	v.checkNumber(path+".margin", g.Margin, -5, 5)
	v.checkNumber(path+".noise", g.Noise, 0, 5)
	v.checkNumber(path+".extra", g.Extra, 0, 5)
}

func (v *validator) primaryGoal(path string, id int64, goals []int64) {
	if !slices.Contains(goals, id) {
		v.addError(path+".primaryGoalId", id, fmt.Sprintf("must be a goal of the website: one of %v", goals))
	}
}

func (v *validator) checkSplit(path string, s *Split, goals []int64, widget bool) {
	v.checkNumber(path+".visitors", float64(s.Visitors), 0, 1e10)
	v.checkNumber(path+".controlShare", float64(s.ControlShare), 0, 100)
	weights, ids := 0, []int64{0}
	for i, variation := range s.Variations {
		at := fmt.Sprintf("%s.variations[%d]", path, i)
		v.checkID(at+".id", variation.ID)
		if slices.Contains(ids, variation.ID) {
			v.addError(at+".id", variation.ID, "must be unique")
		}
		ids = append(ids, variation.ID)
		v.checkNumber(at+".share", float64(variation.Share), 0, 100)
		weights += variation.Share
	}
	if s.ControlShare < 100 && weights <= 0 {
		v.addError(path+".variations", fmt.Sprintf("with total share %d", weights), "must have a positive total share if controlShare is below 100")
	}
	for i := range s.Effects {
		v.checkEffect(fmt.Sprintf("%s.effects[%d]", path, i), &s.Effects[i], goals, ids, widget)
	}
}

func (v *validator) checkEffect(path string, e *Effect, goals, variations []int64, widget bool) {
	if e.Variation != nil && !slices.Contains(variations, *e.Variation) {
		v.addError(path+".variation", *e.Variation, fmt.Sprintf("must be one of %v", variations))
	}
	if e.Goal != 0 && !slices.Contains(goals, e.Goal) {
		v.addError(path+".goal", e.Goal, fmt.Sprintf("must be a goal of the website: one of %v", goals))
	}
	kinds := (&Actions{}).actionNames()
	switch {
	case e.Event == "":
	case !widget || !slices.Contains(kinds, e.Event):
		v.addError(path+".event", fmt.Sprintf("%q", e.Event), "must be an action of a widget experiment: "+strings.Join(kinds, ", "))
	case e.Goal != 0:
		v.addError(path+".event", fmt.Sprintf("%q", e.Event), "goal and event are mutually exclusive")
	}
	v.checkNumber(path+".rate", e.Rate, 0, 100)
	v.checkNumber(path+".value", e.Value, 0, 100)
	for _, attribute := range sortedKeys(e.When) {
		at, value := path+".when."+attribute, e.When[attribute]
		if effectAttributes[attribute] == nil {
			v.addError(at, fmt.Sprintf("%q", value), "attribute must be one of "+strings.Join(sortedKeys(effectAttributes), ", "))
		} else if values := attributeValues(attribute); !slices.Contains(values, value) {
			v.addError(at, fmt.Sprintf("%q", value), fmt.Sprintf("must be one of %q", values))
		}
	}
}

// action is an action on a widget with the share of visitors who perform it.
type action struct {
	kind schema.Kind
	rate float64
}

func (a *Actions) allActions() []action {
	return []action{
		{schema.KindClick, a.Click},
		{schema.KindSubmit, a.Submit},
		{schema.KindCompletion, a.Completion},
		{schema.KindConversion, a.Conversion},
		{schema.KindContact, a.Contact},
	}
}

func (a *Actions) actionNames() []string {
	var names []string
	for _, action := range a.allActions() {
		names = append(names, string(action.kind))
	}
	return names
}
