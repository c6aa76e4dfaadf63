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
	website               int64
	subject               schema.SubjectKind
	id, experiment, shown int64
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
		addCount(n.exposures,
			exposureName{row.WebsiteID, row.Subject, row.SubjectID, row.ExperimentID, row.VariationID},
			rows)
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
	note := func(u Undeclared, declared map[int64]string, campaign int64, events int) {
		kind := schema.NameKind(u.Kind)
		u.Key = n.keyOf(schema.NamedID{WebsiteID: u.WebsiteID, Kind: kind, CampaignID: campaign, ID: u.ID})
		u.Detail = u.describe(declared)
		found[u] += events
	}
	for name, events := range n.exposures {
		if u, declared := s.undeclaredPart(name); u != nil {
			campaign := int64(0)
			if u.Kind == string(schema.NameVariation) {
				campaign = name.id
			}
			note(*u, declared, campaign, *events)
		}
	}
	for name, events := range n.goals {
		declared := declaredOf(s.AccountResources(s.ownerOf(name.website)).Goals,
			func(g Goal) (bool, string) { return g.WebsiteID == name.website, g.Key })
		if _, is := declared[name.goal]; !is {
			owner := s.AccountResources(s.ownerOf(name.website)).Goals[name.goal].WebsiteID
			undeclared := Undeclared{WebsiteID: name.website, Kind: "goal", ID: name.goal, belongsTo: owner}
			note(undeclared, declared, 0, *events)
		}
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

// undeclaredPart returns the first part of a name that is not declared, with the declared ids in its place, or nil.
func (s *Snapshot) undeclaredPart(n exposureName) (*Undeclared, map[int64]string) {
	owned := s.AccountResources(s.ownerOf(n.website))
	missing := func(kind string, id int64, owner string, declared map[int64]string) (*Undeclared, map[int64]string) {
		if _, is := declared[id]; is {
			return nil, nil
		}
		return &Undeclared{WebsiteID: n.website, Kind: kind, ID: id, Of: owner}, declared
	}
	of := fmt.Sprintf("%s %d", n.subject, n.id)
	if n.subject == schema.SubjectCampaign {
		declared := declaredOf(owned.Campaigns,
			func(c LiveCampaign) (bool, string) { return c.WebsiteID == n.website, c.Key })
		if u, ids := missing("campaign", n.id, "", declared); u != nil {
			u.belongsTo = owned.Campaigns[n.id].WebsiteID
			return u, ids
		}
		if key := owned.Campaigns[n.id].Key; key != "" {
			of = fmt.Sprintf("campaign %q", key)
		}
		return missing("variation", n.shown, of, variationIDs(owned.Campaigns[n.id].Variations,
			func(v Variation) (int64, string) { return v.ID, v.Key }))
	}
	declared := declaredOf(owned.Widgets, func(w LiveWidget) (bool, string) { return w.WebsiteID == n.website, "" })
	if u, ids := missing("widget", n.id, "", declared); u != nil {
		u.belongsTo = owned.Widgets[n.id].WebsiteID
		return u, ids
	}
	widget := owned.Widgets[n.id]
	if n.experiment == 0 {
		return missing("variation", n.shown, of, variationIDs(widget.Variations,
			func(v WidgetVariation) (int64, string) { return v.ID, "" }))
	}
	at := slices.IndexFunc(widget.Experiments, func(e Experiment) bool { return e.ID == n.experiment })
	if at < 0 {
		ids := map[int64]string{}
		for _, e := range widget.Experiments {
			ids[e.ID] = ""
		}
		return missing("experiment", n.experiment, of, ids)
	}
	return missing("variation", n.shown, fmt.Sprintf("%s, experiment %d", of, n.experiment),
		variationIDs(widget.Experiments[at].Variations, func(v WidgetVariation) (int64, string) { return v.ID, "" }))
}

// declaredOf returns the ids of the resources of a website, with their keys.
func declaredOf[R any](resources map[int64]R, belongs func(R) (is bool, key string)) map[int64]string {
	found := map[int64]string{}
	for id, r := range resources {
		if is, key := belongs(r); is {
			found[id] = key
		}
	}
	return found
}

// variationIDs returns the ids of the variations and of control, 0, which is never declared, with their keys.
func variationIDs[V any](variations []V, idOf func(V) (id int64, key string)) map[int64]string {
	found := map[int64]string{0: ""}
	for _, v := range variations {
		id, key := idOf(v)
		found[id] = key
	}
	return found
}

func (u *Undeclared) describe(declared map[int64]string) string {
	name := u.Kind + " " + nameOf(u.ID, u.Key)
	if u.belongsTo != 0 {
		return fmt.Sprintf("%s belongs to website %d, not to website %d", name, u.belongsTo, u.WebsiteID)
	}
	if u.Of != "" {
		name += " of " + u.Of
	}
	return fmt.Sprintf("the catalogue declares no %s for website %d; it declares %s", name, u.WebsiteID,
		listIDs(declared))
}

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
func listIDs(ids map[int64]string) string {
	if len(ids) == 0 {
		return "none"
	}
	var names []string
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		names = append(names, nameOf(id, ids[id]))
	}
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
