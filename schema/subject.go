package schema

import (
	"cmp"
	"fmt"
)

// Subject identifies what events are about: a campaign, a widget, or an experiment of a widget. Goals without exposures
// are about the kind SubjectNone.
type Subject struct {
	WebsiteID    int64
	Kind         SubjectKind
	ID           int64
	ExperimentID int64 // 0: a campaign, or the widget's own variations
}

// SubjectOf returns the subject of an event.
func (e *Event) SubjectOf() Subject {
	return Subject{e.WebsiteID, e.Subject, e.SubjectID, e.ExperimentID}
}

// WithoutExperiment returns the widget of an experiment, and otherwise the subject.
func (s Subject) WithoutExperiment() Subject {
	s.ExperimentID = 0
	return s
}

// Compare orders subjects by website, kind, id and experiment.
func (s Subject) Compare(o Subject) int {
	byID := cmp.Or(cmp.Compare(s.ID, o.ID), cmp.Compare(s.ExperimentID, o.ExperimentID))
	return cmp.Or(cmp.Compare(s.WebsiteID, o.WebsiteID), cmp.Compare(s.Kind, o.Kind), byID)
}

// String returns the subject as text.
func (s Subject) String() string {
	if s.ExperimentID != 0 {
		return fmt.Sprintf("experiment %d of %s %d of website %d", s.ExperimentID, s.Kind, s.ID, s.WebsiteID)
	}
	return fmt.Sprintf("%s %d of website %d", s.Kind, s.ID, s.WebsiteID)
}

// ShortName returns the subject as text without its website.
func (s Subject) ShortName() string {
	if s.ExperimentID != 0 {
		return fmt.Sprintf("%s %d, experiment %d", s.Kind, s.ID, s.ExperimentID)
	}
	return fmt.Sprintf("%s %d", s.Kind, s.ID)
}
