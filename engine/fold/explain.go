package fold

import "lifthouse/schema"

// Reason says why an event counts for a subject, or why it does not.
type Reason uint8

// The reasons. Events count with FirstView and SinceFirstView.
const (
	Copied          Reason = iota + 1 // another copy of the event arrived first
	WithoutView                       // the visitor has no view of the subject
	BeforeFirstView                   // of the subject
	FirstView
	SinceFirstView
	AutomatedVisitor // the visitor is automated
)

// Explained is an event, and whether and why the rows of a subject count it. A goal without exposures is explained for
// its own subject, and for each subject that counts it.
type Explained struct {
	Event     *Event
	Subject   schema.Subject
	Reason    Reason
	Basis     *Event // of a copy: the copy that arrived first; otherwise the first view of the subject; nil: none
	Variation string // of the rows; empty: the event does not count
}

// explainEvents explains events of a subject, unless explain is nil. They do not count if the variation is empty.
func explainEvents(events []*Event, subject schema.Subject, first *Event, variation string, explain func(Explained)) {
	if explain == nil {
		return
	}
	for _, e := range events {
		x := Explained{e, subject, SinceFirstView, first, variation}
		switch {
		case first == nil:
			x.Reason = WithoutView
		case variation == "":
			x.Reason = BeforeFirstView
		case e == first:
			x.Reason = FirstView
		}
		explain(x)
	}
}
