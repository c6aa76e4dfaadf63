package ingest

import "lifthouse/schema"

// Subject identifies a campaign, a widget or an experiment of a widget. The zero
// ID is that of unattributed goals.
type Subject struct {
	WebsiteID    int64
	Kind         schema.Subject
	ID           int64
	ExperimentID int64 // 0: the widget's own variations
}

type identity struct {
	Subject
	visitorID, eventID uint64
}

func subjectOf(e *schema.Event) Subject {
	return Subject{e.WebsiteID, e.Subject, e.SubjectID, e.ExperimentID}
}

func identityOf(e *schema.Event) identity { return identity{subjectOf(e), e.VisitorID, e.EventID} }

// subjectsOf returns the subjects of events, each once.
func subjectsOf(events []schema.Event) []Subject {
	var subjects []Subject
	seen := map[Subject]bool{}
	for i := range events {
		if of := subjectOf(&events[i]); !seen[of] {
			seen[of] = true
			subjects = append(subjects, of)
		}
	}
	return subjects
}
