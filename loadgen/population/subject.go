package population

import (
	"strconv"
	"time"

	"lifthouse/schema"
)

// subject is a campaign or an experiment of a widget, with its visitors.
type subject struct {
	scenario      *Scenario
	website       *Website
	key           string // unique within the scenario
	visitors      int
	kind          schema.SubjectKind
	id            int64 // of the campaign or widget
	experimentID  int64 // 0 for a campaign
	primaryGoalID int64
	variations    weightedTable[sharedVariation]
	effects       []Effect
	outcomes      []outcome
	seed          uint64
	start         time.Time
}

// outcome is a goal, or an action on a widget.
type outcome struct {
	kind  schema.Kind
	rate  float64
	*Goal // nil for an action
}

// allSubjects returns the campaigns and experiments of a valid scenario, in the
// order of the scenario.
func (s *Scenario) allSubjects() []*subject {
	var all []*subject
	add := func(site *Website, kind schema.SubjectKind, id, experimentID, primaryGoalID int64, split *Split, actions []action) {
		sub := &subject{
			scenario: s, website: site, visitors: split.Visitors, kind: kind, id: id, experimentID: experimentID, primaryGoalID: primaryGoalID,
			variations: split.sharedVariations(), effects: split.Effects, start: s.Start.UTC(),
			key: string(kind[0]) + strconv.FormatInt(id, 10) + "." + strconv.FormatInt(experimentID, 10),
		}
		sub.seed = mixBits(s.Seed ^ schema.HashID(sub.key))
		for i := range site.Goals {
			sub.outcomes = append(sub.outcomes, outcome{schema.KindGoal, site.Goals[i].Rate, &site.Goals[i]})
		}
		for _, action := range actions {
			sub.outcomes = append(sub.outcomes, outcome{action.kind, action.rate, nil})
		}
		all = append(all, sub)
	}
	for w := range s.Websites {
		site := &s.Websites[w]
		for i := range site.Campaigns {
			c := &site.Campaigns[i]
			add(site, schema.SubjectCampaign, c.ID, 0, c.PrimaryGoalID, &c.Split, nil)
		}
		for i := range site.Widgets {
			w := &site.Widgets[i]
			add(site, schema.SubjectWidget, w.ID, w.Experiment, w.PrimaryGoalID, &w.Split, w.actions)
		}
	}
	return all
}

// outcomeProbability returns the probability that a visitor of the variation with the
// attributes has the outcome: its rate times the factors of all matching
// effects, at most 1.
func (s *subject) outcomeProbability(o *outcome, variation int64, a *schema.Attributes) float64 {
	rate := o.rate
	for i := range s.effects {
		if e := &s.effects[i]; e.Rate != 0 && e.appliesTo(o, variation, a) {
			rate *= e.Rate
		}
	}
	return min(rate, 1)
}

// meanValue returns the mean value of one event of the outcome.
func (s *subject) meanValue(o *outcome, variation int64, a *schema.Attributes) float64 {
	if o.Goal == nil {
		return 0
	}
	value := o.Value
	for i := range s.effects {
		if e := &s.effects[i]; e.Value != 0 && e.appliesTo(o, variation, a) {
			value *= e.Value
		}
	}
	return value
}

// appliesTo reports whether the effect applies to the outcome for a visitor of
// the variation with the attributes.
func (e *Effect) appliesTo(o *outcome, variation int64, a *schema.Attributes) bool {
	if e.Variation != nil && *e.Variation != variation {
		return false
	}
	switch {
	case e.Event != "":
		if o.kind != e.Event {
			return false
		}
	case o.Goal == nil || (e.Goal != 0 && e.Goal != o.ID):
		return false
	}
	return hasAttributes(a, e.When)
}

func hasAttributes(a *schema.Attributes, when map[string]string) bool {
	for attribute, value := range when {
		if effectAttributes[attribute](a) != value {
			return false
		}
	}
	return true
}

// mixBits is the finalizer of SplitMix64: equal inputs give equal outputs, and
// similar inputs give dissimilar outputs.
func mixBits(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
