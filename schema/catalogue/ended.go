package catalogue

import (
	"time"

	"lifthouse/schema"
)

// Ended is a campaign or a widget, with its experiments, that is over.
type Ended struct {
	WebsiteID int64
	Subject   schema.Subject
	ID        int64
	Name      string
	EndDate   time.Time
}

// Ended returns what ended at the instant or before: it is not active now, and
// its end is the one that its last stop, or its declaration, gave it. What is
// active has no end, whatever its dates say; neither has what never ran, nor
// what is archived and may come back.
func (s *Snapshot) Ended(at time.Time) []Ended {
	var ended []Ended
	add := func(of schema.Subject, website, id int64, name string, state State) {
		if !state.Active && state.EndDate != nil && !state.EndDate.After(at) {
			ended = append(ended, Ended{website, of, id, name, *state.EndDate})
		}
	}
	for _, owned := range s.Accounts() {
		for _, c := range ByID(owned.Campaigns) {
			add(schema.SubjectCampaign, c.WebsiteID, c.ID, c.Name, c.State)
		}
		for _, w := range ByID(owned.Widgets) {
			add(schema.SubjectWidget, w.WebsiteID, w.ID, w.Name, w.State)
		}
	}
	return ended
}
