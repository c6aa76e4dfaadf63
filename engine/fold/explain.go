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
