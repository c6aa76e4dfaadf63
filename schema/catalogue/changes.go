package catalogue

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"lifthouse/schema"

	"github.com/cespare/xxhash/v2"
)

// changes say what the results of each subject of an account depend on, and when that changed.
type changes struct {
	ofWebsite  map[int64]change    // of a website and its goals
	ofResource map[resource]change // of the definition and the state of a campaign or a widget
	archived   []ArchivedSubject
}

// change has a number that changes with some rows, and the time of the last change.
type change struct {
	version uint64
	at      time.Time
}

// plus returns the change of both.
func (c change) plus(o change) change {
	return change{c.version + o.version, schema.LaterTime(c.at, o.at)}
}

// hash returns a hash of what the row says.
func (r row) hash() uint64 {
	return xxhash.Sum64String(fmt.Sprint(r.Kind, " ", r.ID, " ", r.Part, " ", r.Version, " ", r.Archived, " ", r.Body))
}

// ArchivedSubject is a campaign or an experiment that the catalogue no longer has.
type ArchivedSubject struct {
	schema.Subject
	At time.Time // of the change
}

// subjectsOfRow is what a row of a campaign or a widget, or a goal, says about subjects.
type subjectsOfRow struct {
	WebsiteID   int64
	Experiments []struct{ ID int64 }
	// ShareHistory has all experiments that the widget has ever had.
	ShareHistory map[int64]json.RawMessage
}

// newChanges returns the changes of an account with these rows.
func newChanges(rows []row) (changes, error) {
	c := changes{ofWebsite: map[int64]change{}, ofResource: map[resource]change{}}
	definitions := map[resource]row{}
	said := map[resource]subjectsOfRow{}
	for _, r := range rows {
		of, this := resource{r.AccountID, r.Kind, r.ID}, change{r.hash(), r.ChangedAt}
		switch r.Kind { //nolint:exhaustive // results depend on no others
		case kindWebsite:
			c.ofWebsite[r.ID] = c.ofWebsite[r.ID].plus(this)
		case kindGoal, kindCampaign, kindWidget:
			says := said[of] // by both parts
			if err := json.Unmarshal([]byte(r.Body), &says); err != nil {
				return c, fmt.Errorf("catalogue row %s %d of account %d: %w", r.Kind, r.ID, r.AccountID, err)
			}
			said[of] = says
			if r.Kind == kindGoal {
				c.ofWebsite[says.WebsiteID] = c.ofWebsite[says.WebsiteID].plus(this)
				continue
			}
			c.ofResource[of] = c.ofResource[of].plus(this)
			if r.Part == partDefinition {
				definitions[of] = r
			}
		}
	}
	for of, definition := range definitions {
		c.addArchived(&definition, said[of])
	}
	slices.SortFunc(c.archived, func(a, b ArchivedSubject) int { return a.Compare(b.Subject) })
	return c, nil
}

// addArchived adds the subjects that a campaign or a widget had and has no longer.
func (c *changes) addArchived(definition *row, says subjectsOfRow) {
	add := func(kind schema.SubjectKind, experiment int64) {
		of := schema.Subject{WebsiteID: says.WebsiteID, Kind: kind, ID: definition.ID, ExperimentID: experiment}
		c.archived = append(c.archived, ArchivedSubject{of, definition.ChangedAt})
	}
	if definition.Kind == kindCampaign {
		if definition.Archived {
			add(schema.SubjectCampaign, 0)
		}
		return
	}
	listed := map[int64]bool{}
	for _, e := range says.Experiments {
		listed[e.ID] = true
		if definition.Archived {
			add(schema.SubjectWidget, e.ID)
		}
	}
	for experiment := range says.ShareHistory {
		if experiment != 0 && !listed[experiment] {
			add(schema.SubjectWidget, experiment)
		}
	}
}

// changeOf returns the change of what the results of a subject depend on.
func (o *AccountResources) changeOf(of schema.Subject) change {
	kind := kindCampaign
	if of.Kind == schema.SubjectWidget {
		kind = kindWidget
	}
	return o.changes.ofResource[resource{o.ID, kind, of.ID}].plus(o.changes.ofWebsite[of.WebsiteID])
}

// SubjectVersion returns a number that changes with what the results of a subject depend on: the definition and the
// state of its campaign or widget, its website and the goals of the website. All servers of a store have the same.
func (o *AccountResources) SubjectVersion(of schema.Subject) uint64 { return o.changeOf(of).version }

// SubjectChangedAt returns when the last of these changed.
func (o *AccountResources) SubjectChangedAt(of schema.Subject) time.Time {
	return o.changeOf(of).at.UTC()
}

// ArchivedSubjects returns the campaigns and experiments that the account had and has no longer, ordered as subjects.
func (o *AccountResources) ArchivedSubjects() []ArchivedSubject { return o.changes.archived }
