package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lifthouse/schema"
)

// maxNames is the maximum number of different names that EventNames counts. Events with further names, which only a
// wrong mapping produces, are not counted.
const maxNames = 10_000

// EventNames counts the events that name each campaign, widget, experiment, variation and goal.
type EventNames struct {
	exposures map[exposureName]*int
	goals     map[goalName]*int
	keyOf     func(schema.NamedID) string
	last      schema.Event
}

type exposureName struct {
	schema.Subject
	shown int64 // the variation
}

type goalName struct{ website, goal int64 }

// NewEventNames returns an empty count. keyOf returns the key of an id in events, or an empty string.
func NewEventNames(keyOf func(schema.NamedID) string) *EventNames {
	return &EventNames{exposures: map[exposureName]*int{}, goals: map[goalName]*int{}, keyOf: keyOf}
}

// AddEvents counts the rows of events. The rows of one event must follow each other.
func (n *EventNames) AddEvents(rows []schema.Event) {
	for i := range rows {
		e := &rows[i]
		n.addExposure(e, 1)
		again := n.last.EventID == e.EventID && n.last.VisitorID == e.VisitorID && n.last.GoalID == e.GoalID
		if e.Kind == schema.KindGoal && !again {
			addCount(n.goals, goalName{e.WebsiteID, e.GoalID}, 1)
		}
		n.last.EventID, n.last.VisitorID, n.last.GoalID = e.EventID, e.VisitorID, e.GoalID
	}
}

// AddRows counts a number of rows with the same names. A goal counts once for each row.
func (n *EventNames) AddRows(row *schema.Event, rows int) {
	n.addExposure(row, rows)
	if row.GoalID != 0 {
		addCount(n.goals, goalName{row.WebsiteID, row.GoalID}, rows)
	}
}

func (n *EventNames) addExposure(row *schema.Event, rows int) {
	if row.Subject != schema.SubjectNone {
		addCount(n.exposures, exposureName{row.SubjectOf(), row.VariationID}, rows)
	}
}

func addCount[K comparable](counts map[K]*int, name K, rows int) {
	if n := counts[name]; n != nil {
		*n += rows
	} else if len(counts) < maxNames {
		counts[name] = &rows
	}
}

// Undeclared is a name that occurs in events but not in the catalogue.
type Undeclared struct {
	WebsiteID int64  `json:"websiteId"`
	Kind      string `json:"kind"`          // campaign, widget, experiment, variation or goal
	ID        int64  `json:"id"`            // the undeclared id
	Key       string `json:"key,omitempty"` // from which the id is computed
	Of        string `json:"of,omitempty"`  // what an experiment or a variation belongs to, such as campaign 12
	Events    int    `json:"events"`        // events with the id
	Detail    string `json:"detail"`

	belongsTo int64 // another website that declares the id; 0: none
}

// UndeclaredNames returns the names that the catalogue does not declare, ordered by the number of events, descending.
func (s *Snapshot) UndeclaredNames(n *EventNames) []Undeclared {
	found := map[Undeclared]int{}
	note := func(u Undeclared, declared ids, campaign int64, events int) {
		if _, is := declared[u.ID]; is {
			return
		}
		kind := schema.NameKind(u.Kind)
		u.Key = n.keyOf(schema.NamedID{WebsiteID: u.WebsiteID, Kind: kind, CampaignID: campaign, ID: u.ID})
		name := u.Kind + " " + nameOf(u.ID, u.Key)
		of := ""
		if u.Of != "" {
			of = " of " + u.Of
		}
		u.Detail = fmt.Sprintf("the catalogue declares no %s%s for website %d; it declares %s", name, of, u.WebsiteID,
			listIDs(declared))
		if u.belongsTo != 0 && u.belongsTo != u.WebsiteID {
			u.Detail = fmt.Sprintf("%s belongs to website %d, not to website %d", name, u.belongsTo, u.WebsiteID)
		}
		found[u] += events
	}
	for name, events := range n.exposures {
		u, declared := s.lastDeclaredPart(&name)
		campaign := int64(0)
		if u.Kind == string(schema.NameVariation) {
			campaign = name.ID
		}
		note(u, declared, campaign, *events)
	}
	for name, events := range n.goals {
		goals := s.AccountResources(s.ownerOf(name.website)).Goals
		u := Undeclared{
			WebsiteID: name.website, Kind: "goal", ID: name.goal, belongsTo: goals[name.goal].WebsiteID,
		}
		note(u, declaredOf(goals, name.website), 0, *events)
	}
	all := make([]Undeclared, 0, len(found))
	for u, events := range found {
		u.Events = events
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b Undeclared) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.WebsiteID, b.WebsiteID),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Of, b.Of), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Declares reports whether the catalogue declares a name of events, or has declared the campaign or the goal before.
func (s *Snapshot) Declares(name schema.NamedID) bool {
	owner := s.ownerOf(name.WebsiteID)
	if name.Kind == schema.NameVariation {
		campaign := s.AccountResources(owner).Campaigns[name.CampaignID]
		return slices.ContainsFunc(campaign.Variations, func(v Variation) bool { return v.ID == name.ID })
	}
	return s.ever[key{owner, kind(name.Kind), name.ID, partDefinition}]
}

// lastDeclaredPart returns the first part of a name that is not declared, or else its variation, with the ids that are
// declared in its place.
func (s *Snapshot) lastDeclaredPart(n *exposureName) (Undeclared, ids) {
	owned := s.AccountResources(s.ownerOf(n.WebsiteID))
	u := Undeclared{WebsiteID: n.WebsiteID}
	campaign, widget := owned.Campaigns[n.ID], owned.Widgets[n.ID]
	u.Kind = string(n.Kind)
	u.ID = n.ID
	if n.Kind == schema.SubjectCampaign {
		u.belongsTo = campaign.WebsiteID
		if u.belongsTo != n.WebsiteID {
			return u, declaredOf(owned.Campaigns, n.WebsiteID)
		}
		u.Of = "campaign " + nameOf(n.ID, campaign.Key)
		u.Kind = "variation"
		u.ID = n.shown
		return u, variationIDs(campaign.Variations)
	}
	u.belongsTo = widget.WebsiteID
	if u.belongsTo != n.WebsiteID {
		return u, declaredOf(owned.Widgets, n.WebsiteID)
	}
	u.Of = fmt.Sprintf("widget %d", n.ID)
	u.Kind = "variation"
	u.ID = n.shown
	if n.ExperimentID == 0 {
		return u, variationIDs(widget.Variations)
	}
	experiments := ids{}
	for _, e := range widget.Experiments {
		experiments[e.ID] = ""
		if e.ID == n.ExperimentID {
			u.Of += fmt.Sprintf(", experiment %d", e.ID)
			return u, variationIDs(e.Variations)
		}
	}
	u.Kind = "experiment"
	u.ID = n.ExperimentID
	return u, experiments
}

// variationIDs returns the ids of the variations and of control, 0, which is never declared.
func variationIDs[V interface{ idAndKey() (id int64, key string) }](variations []V) ids {
	found := ids{0: ""}
	for _, v := range variations {
		id, key := v.idAndKey()
		found[id] = key
	}
	return found
}

func (v Variation) idAndKey() (id int64, key string)       { return v.ID, v.Key }
func (v WidgetVariation) idAndKey() (id int64, key string) { return v.ID, "" }

// maxListed is the maximum number of ids that a message lists.
const maxListed = 10

// nameOf returns a key in quotes, or an id without a key.
func nameOf(id int64, key string) string {
	if key != "" {
		return strconv.Quote(key)
	}
	return strconv.FormatInt(id, 10)
}

// listIDs returns ids in words, those with a key by their keys.
func listIDs(known ids) string {
	if len(known) == 0 {
		return "none"
	}
	var names []string
	for _, id := range slices.Sorted(maps.Keys(known)) {
		names = append(names, nameOf(id, known[id]))
	}
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
