package visit

import "cmp"

// Kind is the kind of an event, with the values of the column event.
type Kind uint8

// The kinds. NoKind is an event that does not count in the report; it shows
// only that the visitor is active.
const (
	NoKind Kind = iota
	View
	Click
	Submit
	Completion
	Conversion
	Contact
	Goal
	kinds
)

// Event is an event of a visitor.
type Event struct {
	At        int64 // milliseconds since 1970
	ID        uint64
	Variation int64
	Kind      Kind
	Amounts   [3]int64 // value, profit and extra value of a goal, in 1/schema.MoneyScale
}

// precedes reports whether a view precedes another: by time, variation and id.
func (e *Event) precedes(o *Event) bool {
	return cmp.Or(cmp.Compare(e.At, o.At), cmp.Compare(e.Variation, o.Variation), cmp.Compare(e.ID, o.ID)) < 0
}

// Exposure is the first view of a visitor.
type Exposure struct {
	First        Event // the minimum of the views by time, variation and id
	Row          int   // the number that See was given with the first view
	Exposed      bool  // false: the visitor has no view
	MultiExposed bool  // there are views of more than one variation
}

// See adds a view. The order of the views does not matter. Row identifies the
// view to the caller.
func (x *Exposure) See(view *Event, row int) {
	x.MultiExposed = x.MultiExposed || x.Exposed && view.Variation != x.First.Variation
	if !x.Exposed || view.precedes(&x.First) {
		x.First, x.Row, x.Exposed = *view, row, true
	}
}

// Counts reports whether an event is part of the visitor's report: it is not
// before the first view.
func (x *Exposure) Counts(e *Event) bool { return x.Exposed && e.At >= x.First.At }

// Totals are a visitor's events of one kind, and their amounts.
type Totals struct {
	Events  int64
	Amounts [3]int64
}

// Add adds an event. The amounts of 900,000 events do not overflow.
func (t *Totals) Add(e *Event) {
	t.Events++
	for i, amount := range e.Amounts {
		t.Amounts[i] += amount
	}
}

// Plus returns the totals of two disjoint sets of events.
func (t Totals) Plus(o Totals) Totals {
	t.Events += o.Events
	for i, amount := range o.Amounts {
		t.Amounts[i] += amount
	}
	return t
}

// Visitor has the totals of a visitor of a report.
type Visitor struct {
	Events [kinds]int64 // by kind, except goals
	Goals  Totals
}

// Add adds an event.
func (v *Visitor) Add(e *Event) {
	if e.Kind == Goal {
		v.Goals.Add(e)
		return
	}
	v.Events[e.Kind]++
}
