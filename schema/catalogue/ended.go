package catalogue

import (
	"time"

	"lifthouse/schema"
)

// Ended is a campaign, or a widget with its experiments, that has ended.
type Ended struct {
	schema.Subject
	Name    string
	EndDate time.Time
}

// EndedSubjects returns the campaigns and widgets that are inactive and whose end date is
// not later than now. Active and archived resources are not included, nor those without an
// end date.
func (s *Snapshot) EndedSubjects(now time.Time) []Ended {
	var ended []Ended
	add := func(subject schema.Subject, name string, state State) {
		if !state.Active && state.EndDate != nil && !state.EndDate.After(now) {
			ended = append(ended, Ended{subject, name, *state.EndDate})
		}
	}
	for _, owned := range s.AllAccounts() {
		for _, c := range ByID(owned.Campaigns) {
			add(schema.Subject{WebsiteID: c.WebsiteID, Kind: schema.SubjectCampaign, ID: c.ID}, c.Name, c.State)
		}
		for _, w := range ByID(owned.Widgets) {
			add(schema.Subject{WebsiteID: w.WebsiteID, Kind: schema.SubjectWidget, ID: w.ID}, w.Name, w.State)
		}
	}
	return ended
}
