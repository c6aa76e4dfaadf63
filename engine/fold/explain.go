package fold

import "lifthouse/schema"

// Reason says why an event counts for a subject, or why it does not.
type Reason uint8

// The reasons. Events count with FirstView and SinceFirstView.
const (
	Copied          Reason = iota + 1 // another copy of the event arrived first
	Superseded                        // another revision of the event counts
	Cancelled                         // the highest revision says that the event does not count
	WithoutView                       // the visitor has no view of the subject
	BeforeFirstView                   // of the subject
	FirstView
	SinceFirstView
	AutomatedVisitor // the visitor is automated
)

// Explained is an event, and whether and why the rows of a subject count it. A goal without exposures is explained for
// its own subject, and for each subject that counts it.
type Explained struct {
	Event   *Event
	Subject schema.Subject
	Reason  Reason
	At      int64 // time at which the event counts: the least of all its revisions
	// Basis is the copy that arrived first, the revision that counts, or else the first view of the subject; nil: none.
	Basis     *Event
	Variation string // of the rows; empty: the event does not count
}

// explainState explains the rows of an event of a subject. row has its state. x has the other fields of the row; it
// does not count if the variation is empty.
func explainState(x Explained, row *Event, own []*Event, explain func(Explained)) {
	for _, e := range own {
		if e != row {
			explain(Explained{Event: e, Subject: x.Subject, Reason: Superseded, At: e.At, Basis: row})
		}
	}
	x.Event, x.Reason = row, SinceFirstView
	switch {
	case row.Cancelled:
		x.Reason, x.Variation = Cancelled, ""
	case x.Basis == nil:
		x.Reason = WithoutView
	case x.Variation == "":
		x.Reason = BeforeFirstView
	case row == x.Basis:
		x.Reason = FirstView
	}
	explain(x)
}
