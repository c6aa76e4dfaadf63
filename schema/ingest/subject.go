package ingest

import "lifthouse/schema"

// Subject identifies a campaign, a widget or an experiment of a widget. Unattributed
// goals have ID 0.
type Subject struct {
	WebsiteID    int64
	Kind         schema.Subject
	ID           int64
	ExperimentID int64 // 0: the widget's own variations
}

func identityOf(e *schema.Event) identity {
	return identity{Subject{e.WebsiteID, e.Subject, e.SubjectID, e.ExperimentID}, e.VisitorID, e.EventID}
}
