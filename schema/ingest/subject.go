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

func identityOf(e *schema.Event) identity {
	return identity{Subject{e.WebsiteID, e.Subject, e.SubjectID, e.ExperimentID}, e.VisitorID, e.EventID}
}
