// Package fold is the only definition of what a visitor contributes to reports. It turns all events of a visitor into
// rows, computes the changes from stored to wanted rows, and sums rows. It is pure: it knows neither the store nor the
// time.
package fold

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/books"
	"lifthouse/engine/moments"
	"lifthouse/schema"
)

// Grain is the kind of a row, with the values of the column grain.
type Grain uint8

// The grains.
const (
	OfVisitor  Grain = iota + 1 // a visitor
	OfGoal                      // a goal event of a visitor
	OfAll                       // sums over all visitors of a variation
	OfDay                       // sums by the days of the first view and of the events
	OfPosition                  // how far events are folded
)

// FactRow is a row of facts. A visitor of a subject has
//
//   - for the counted events, a row of the grain OfVisitor and a row of OfGoal for each goal
//     event. Events count from the first view on. A goal without exposures counts for each
//     subject of its website.
//   - the same rows, without a variation, for the events that do not count: events before the
//     first view, or all events of a visitor without a view. Reports ignore these rows; the counters of
//     subjects include them.
//
// Goals without exposures also have such rows, under a subject of their own. All goals with the same id, of a subject
// or without exposures, are revisions of one event, see stateOf. A cancelled event has no row of its own.
type FactRow struct {
	Subject    schema.Subject
	Grain      Grain
	Goal       int64  // of a goal event
	Variation  string // of the first view, see VariationOf and Automated; empty: the events do not count
	Visitor    uint64
	Attributes string // of the first view
	Custom     string // own attributes of the first view, joined
	First      int64  // time of the first view, or of the first event without one, in milliseconds since 1970
	Since      uint64 // time of the goal event, or of the visitor's last event, in milliseconds after First
	Number     uint32 // of a goal event among those of the visitor and goal, from 1; of an automated visitor: the limit

	MultiExposed int64 // time of the visitor's first view of another variation; 0: none

	// Of a visitor:
	Seen       uint32    // number of the subject's own events that the row is made of, with all their revisions
	Digest     uint64    // XOR of their digests
	Views      Extent    // of the views; it is not stored
	Counts     [6]uint32 // events by kind, from moments.View to moments.Contact
	Later      []uint64  // times of the events except the first view, in milliseconds after First, ascending
	LaterKinds []uint8   // their kinds

	// Of a goal event:
	Amounts [3]int64 // value, profit and extra value, in 1/schema.MoneyScale
	Before  [3]int64 // sums over the earlier events of the visitor and goal
	Marks   uint8    // UnknownValueMark, CarriedMark, RevisedMark
	Foreign string   // currency in which it was sent, if that is not the currency of the website

	Properties string        // of a goal event, joined
	Items      []schema.Item // lines of a goal event

	Cell *Cell // nil: the row is not a cell
}

// The marks of goal events.
const (
	// UnknownValueMark marks a goal event whose amounts are not known in the currency of its website, and are 0. It
	// counts as a goal.
	UnknownValueMark uint8 = 1
	// CarriedMark marks an order that names no visitor, and counts for the visitor whose order acquired its customer.
	CarriedMark uint8 = 4
	// RevisedMark marks an order of the visitor whose state is that of a row of its customer that names no visitor.
	RevisedMark uint8 = 8
)

// MultiExposed is the suffix of the variation of visitors who saw more than one.
const MultiExposed = "+"

// IsMultiExposed reports whether a row with this variation is of a counted visitor who saw more than one.
func IsMultiExposed(variation string) bool { return strings.HasSuffix(variation, MultiExposed) }

// VariationOf returns the variation of a row: the id, with the suffix MultiExposed if multi is true.
func VariationOf(id int64, multi bool) string {
	text := strconv.FormatInt(id, 10)
	if multi {
		text += MultiExposed
	}
	return text
}

// Automated is the suffix of the variation of automated visitors: those with more distinct events of a website than the
// limit. They count nowhere. Without a view, it is their variation.
const Automated = "!"

// MaxVisitorEvents is the default limit of the distinct events of a visitor of a website. People stay far below it: it
// is a page view every 8 seconds for a whole day.
const MaxVisitorEvents = 10_000

// IsAutomated reports whether a row with this variation is of an automated visitor.
func IsAutomated(variation string) bool { return strings.HasSuffix(variation, Automated) }

// IsCounted reports whether the events of a row with this variation count.
func IsCounted(variation string) bool { return variation != "" && !IsAutomated(variation) }

// AppendVisitorRows appends the rows of a visitor of a website. events must have all stored events of the visitor, in
// any order, including copies. A visitor with more than most distinct events is automated.
func AppendVisitorRows(events []Event, most int, rows []FactRow) []FactRow {
	return ExplainVisitor(events, most, rows, nil)
}

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
	AcquiredBefore   // the customer of an order that names no visitor was acquired before the first view
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

// counted returns the event with the time at which it counts.
func (x *Explained) counted() *Event {
	e := *x.Event
	e.At = x.At
	return &e
}

// Worth returns what a goal event is worth in the currency of the website.
func (x *Explained) Worth() Worth { return x.counted().worth() }

// FindExchange returns by what the amounts of a goal event in another currency are converted; false: it is not known.
func (x *Explained) FindExchange() (books.Exchange, bool) {
	e := x.counted()
	return e.Book.FindExchange(e.Foreign, e.At)
}

// ExplainVisitor is like AppendVisitorRows, and explains each event, in no particular order, unless explain is nil.
func ExplainVisitor(events []Event, most int, rows []FactRow, explain func(Explained)) []FactRow {
	distinct, carried := distinctEvents(events, explain)
	if len(distinct) > most {
		return appendAutomated(rows, distinct, most, explain)
	}
	bare := carried
	for own := range splitEvents(distinct) {
		rows = subjectRows(rows, own, bare, explain)
		if own[0].isBare() {
			bare = withCarried(own, carried)
		}
	}
	return rows
}

// splitEvents returns the events of each subject.
func splitEvents(events []*Event) iter.Seq[[]*Event] {
	return SplitRuns(events, func(a, b **Event) bool { return (*a).Subject == (*b).Subject })
}

// appendAutomated appends the rows of an automated visitor: one for each subject. They are made of the first events to
// arrive up to the one above the limit, so later events do not change them.
func appendAutomated(rows []FactRow, distinct []*Event, most int, explain func(Explained)) []FactRow {
	for _, e := range distinct {
		if explain != nil {
			explain(Explained{Event: e, Subject: e.Subject, Reason: AutomatedVisitor, At: e.At})
		}
	}
	arrived := slices.SortedFunc(slices.Values(distinct), func(a, b *Event) int {
		return cmp.Or(cmp.Compare(a.Accepted, b.Accepted), a.compareIdentity(b))
	})[:most+1]
	slices.SortFunc(arrived, (*Event).compareIdentity)
	for own := range splitEvents(arrived) {
		first := firstView(own)
		r := FactRow{
			Subject: own[0].Subject, Grain: OfVisitor, Visitor: own[0].Visitor, Variation: Automated,
			Number: uint32(most), //nolint:gosec // a small limit
			Digest: uint64(most), //nolint:gosec // differs from the digest of rows that count the same events
		}
		if first != nil {
			r.Variation = VariationOf(first.Variation, false) + Automated
		}
		r.addMade(own)
		rows = append(rows, r)
	}
	return rows
}

// firstView returns the first view among events of a subject; nil: none.
func firstView(own []*Event) (first *Event) {
	for _, e := range own {
		if e.Kind == moments.View && (first == nil || e.compareView(first) < 0) {
			first = e
		}
	}
	return first
}

// SplitRuns returns the runs of neighbours that belong together: isNext reports whether an element continues the run of
// the one before it.
func SplitRuns[T any](all []T, isNext func(before, e *T) bool) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for from, to := 0, 0; from < len(all); from = to {
			for to = from + 1; to < len(all) && isNext(&all[to-1], &all[to]); to++ {
			}
			if !yield(all[from:to]) {
				return
			}
		}
	}
}

// splitBySubject returns the rows of each visitor of a subject: the visitor's row, and those of the goal events.
func splitBySubject(rows []FactRow) iter.Seq[[]FactRow] {
	return SplitRuns(rows, func(_, r *FactRow) bool { return r.Grain == OfGoal })
}

// addMade adds the own rows of events, also of cancelled ones, to those that a visitor's row is made of. First is then
// the least time of all.
func (r *FactRow) addMade(own []*Event) {
	for _, e := range own {
		if r.Seen == 0 || e.At < r.First {
			r.First = e.At
		}
		r.Seen++
		r.Digest ^= e.contentHash()
	}
}

// exposure is the first view of a visitor of a subject, and the variation of the visitor's rows.
type exposure struct {
	first     *Event // nil: none
	variation string
}

// exposureOf returns the exposure of the visitor of a subject's events.
func exposureOf(own []*Event) exposure {
	first := firstView(own)
	if first == nil {
		return exposure{}
	}
	isOther := func(e *Event) bool { return e.Kind == moments.View && e.Variation != first.Variation }
	return exposure{first, VariationOf(first.Variation, slices.ContainsFunc(own, isOther))}
}

// counts reports whether an event counts: it is not before the first view. The customer of an order that names no
// visitor must not have been acquired before either.
func (x *exposure) counts(e *Event) bool {
	since := e.At
	if e.Acquired > 0 {
		since = min(e.At, e.Acquired)
	}
	return x.first != nil && since >= x.first.At
}

// explainEvent explains the own rows of an event: row, whose state counts, and those that it supersedes. counted is the
// event as it counts.
func (x *exposure) explainEvent(subject schema.Subject, own []*Event, row, counted *Event, explain func(Explained)) {
	for _, o := range own {
		if o != row {
			explain(Explained{Event: o, Subject: subject, Reason: Superseded, At: o.At, Basis: row})
		}
	}
	found := Explained{Event: row, Subject: subject, At: counted.At, Basis: x.first}
	switch {
	case row.Cancelled:
		found.Reason = Cancelled
	case x.first == nil:
		found.Reason = WithoutView
	case !x.counts(counted) && counted.Acquired > 0:
		found.Reason = AcquiredBefore
	case !x.counts(counted):
		found.Reason = BeforeFirstView
	case row == x.first:
		found.Reason = FirstView
		found.Variation = x.variation
	default:
		found.Reason = SinceFirstView
		found.Variation = x.variation
	}
	explain(found)
}

// visitorEvents are the events of which the row of a visitor is made.
type visitorEvents struct {
	row    FactRow
	events []*Event // as they count, without cancelled ones
}

// addEvent adds an event, as it counts, its own rows, and those without exposures. Of these, rows of customers are in
// the digest, because no other row of the visitor is made of them, and so is what an amount in another currency is
// worth.
func (v *visitorEvents) addEvent(own, bare []*Event, counted *Event) {
	v.row.addMade(own)
	for _, e := range bare {
		if e.Acquired != 0 {
			v.row.Digest ^= e.contentHash()
		}
	}
	if !counted.Cancelled {
		v.row.Digest ^= counted.hashWorth()
		v.events = append(v.events, counted)
	}
}

// subjectRows appends the rows of a visitor of a subject, whose events are sorted by id. bare are the visitor's goals
// without exposures; they have no view, and so do not count under their own subject.
func subjectRows(rows []FactRow, own, bare []*Event, explain func(Explained)) []FactRow {
	x := exposureOf(own)
	visitor := FactRow{Subject: own[0].Subject, Grain: OfVisitor, Visitor: own[0].Visitor}
	counted := visitorEvents{row: visitor}
	others := visitorEvents{row: visitor}
	all := eventRows{own, bare, own, bare}
	for own, bare := all.nextEvent(); len(own)+len(bare) > 0; own, bare = all.nextEvent() {
		row, e := stateOf(own, bare)
		switch {
		case x.counts(e):
			counted.addEvent(own, bare, e)
		case len(own) > 0:
			others.addEvent(own, bare, e)
		case e.Acquired == 0 || x.first == nil:
			continue // a goal without exposures counts from the first view on
		}
		if explain != nil {
			x.explainEvent(visitor.Subject, own, row, e, explain)
		}
	}
	if others.row.Seen > 0 {
		rows = others.row.appendRows(rows, others.events, nil)
	}
	if x.first == nil {
		return rows
	}
	at := len(rows)
	rows = counted.row.appendRows(rows, counted.events, x.first)
	for i := range rows[at:] {
		r := &rows[at+i]
		r.Variation = x.variation
		r.Attributes = x.first.Attributes
		r.Custom = x.first.Custom
	}
	return rows
}

// appendRows appends a visitor's row, which knows what it is made of, and goal rows. firstView is nil if the events do
// not count.
func (v *FactRow) appendRows(rows []FactRow, events []*Event, firstView *Event) []FactRow {
	slices.SortFunc(events, (*Event).compareTime)
	if firstView != nil {
		v.First = firstView.At
		v.MultiExposed = firstOtherView(events, firstView.Variation)
	} else if len(events) > 0 {
		v.First = events[0].At
	}
	var goals []*Event
	for _, e := range events {
		if e.Kind == moments.Goal {
			goals = append(goals, e)
		} else {
			v.Counts[e.Kind-moments.View]++
		}
		if e.Kind == moments.View {
			v.Views.extendByView(e.At, e.Accepted)
		}
		v.Since = uint64(e.At - v.First) //nolint:gosec // events are in order of time
		if e != firstView {
			v.Later = append(v.Later, v.Since)
			v.LaterKinds = append(v.LaterKinds, uint8(e.Kind))
		}
	}
	return v.appendGoalRows(append(rows, *v), goals)
}

// firstOtherView returns the time of the first view of another variation; 0: there is none. The events are in order of
// time.
func firstOtherView(events []*Event, variation int64) int64 {
	for _, e := range events {
		if e.Kind == moments.View && e.Variation != variation {
			return e.At
		}
	}
	return 0
}

// appendGoalRows appends a row for each goal event of a visitor, by goal. The goal events are in order of time.
func (v *FactRow) appendGoalRows(rows []FactRow, goals []*Event) []FactRow {
	slices.SortStableFunc(goals, func(a, b *Event) int { return cmp.Compare(a.Goal, b.Goal) })
	for i, e := range goals {
		worth := e.worth()
		r := FactRow{
			Subject: v.Subject, Grain: OfGoal, Goal: e.Goal, Visitor: v.Visitor, First: v.First,
			MultiExposed: v.MultiExposed,
			Since:        uint64(e.At - v.First), Number: 1, //nolint:gosec // not before the first one
			Amounts: worth.Amounts, Foreign: e.Foreign, Properties: e.Properties, Items: worth.Items,
			Marks: e.marks(worth.IsKnown),
		}
		if i > 0 && goals[i-1].Goal == e.Goal {
			last := &rows[len(rows)-1]
			r.Number = last.Number + 1
			for k := range r.Before {
				r.Before[k] = last.Before[k] + last.Amounts[k]
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// marks returns the marks of a goal event as it counts.
func (e *Event) marks(isKnown bool) (marks uint8) {
	if !isKnown {
		marks |= UnknownValueMark
	}
	if e.Acquired > 0 {
		marks |= CarriedMark
	}
	if e.IsRevised {
		marks |= RevisedMark
	}
	return marks
}

// DayOf returns the number of days since 1970. The time, in milliseconds, must not be before
// 1970.
func DayOf(ms int64) int64 { return ms / (24 * time.Hour.Milliseconds()) }

// Change is a row to insert: a new row, or a copy that cancels a stored row.
type Change struct {
	*FactRow
	Cancels bool
}

// AppendChanges appends the changes that turn the stored rows into the wanted ones, cancellations first. Rows that are
// both stored and wanted need no change.
func AppendChanges(changes []Change, stored, wanted []FactRow) []Change {
	surplus := make(map[string]int, len(stored))
	for i := range stored {
		surplus[stored[i].contentKey()]++
	}
	added := make([]Change, 0, len(wanted))
	for i := range wanted {
		if len(stored) > 0 {
			if content := wanted[i].contentKey(); surplus[content] > 0 {
				surplus[content]--
				continue
			}
		}
		added = append(added, Change{&wanted[i], false})
	}
	for i := range stored {
		if content := stored[i].contentKey(); surplus[content] > 0 {
			surplus[content]--
			changes = append(changes, Change{&stored[i], true})
		}
	}
	return append(changes, added...)
}

// AreSameRows reports whether the stored rows of a visitor are the wanted ones, in any order.
func AreSameRows(stored, wanted []FactRow) bool {
	if len(stored) != len(wanted) {
		return false
	}
	for i := range stored {
		if !stored[i].equals(&wanted[i]) {
			return len(AppendChanges(nil, stored, wanted)) == 0
		}
	}
	return true
}

// rowContent has all that is stored of a row of a visitor or a goal event, but its lists.
type rowContent struct {
	subject             schema.Subject
	grain               Grain
	goal                int64
	variation           string
	visitor             uint64
	attributes, custom  string
	first, multiExposed int64
	since               uint64
	number, seen        uint32
	digest              uint64
	counts              [6]uint32
	amounts, before     [3]int64
	marks               uint8
	foreign, properties string
}

func (r *FactRow) content() rowContent {
	return rowContent{
		r.Subject, r.Grain, r.Goal, r.Variation, r.Visitor, r.Attributes, r.Custom, r.First, r.MultiExposed, r.Since,
		r.Number, r.Seen, r.Digest, r.Counts, r.Amounts, r.Before, r.Marks, r.Foreign, r.Properties,
	}
}

// equals reports whether two rows of visitors or goal events are stored as the same row.
func (r *FactRow) equals(o *FactRow) bool {
	haveSameEvents := slices.Equal(r.Later, o.Later) && slices.Equal(r.LaterKinds, o.LaterKinds)
	return haveSameEvents && r.content() == o.content() && slices.Equal(r.Items, o.Items)
}

// contentKey encodes the whole row of a visitor or of a goal event. Equal rows have equal keys.
func (r *FactRow) contentKey() string {
	b := make([]byte, 0, 256+9*len(r.Later)+64*len(r.Items))
	texts := func(all ...string) {
		for _, text := range all {
			b = append(append(binary.AppendUvarint(b, uint64(len(text))), text...), 0)
		}
	}
	texts(string(r.Subject.Kind), r.Variation, r.Attributes, r.Custom, r.Foreign, r.Properties)
	numbers := func(all ...int64) {
		for _, n := range all {
			b = binary.LittleEndian.AppendUint64(b, uint64(n)) //nolint:gosec // bits
		}
	}
	numbers(r.Subject.WebsiteID, r.Subject.ID, r.Subject.ExperimentID, int64(r.Grain), r.Goal, r.First, r.MultiExposed)
	numbers(int64(r.Visitor), int64(r.Since), int64(r.Number), int64(r.Seen), int64(r.Digest)) //nolint:gosec // bits
	numbers(r.Amounts[:]...)
	numbers(r.Before[:]...)
	b = append(b, r.Marks)
	for _, n := range r.Counts {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	for i, later := range r.Later {
		b = append(binary.LittleEndian.AppendUint64(b, later), r.LaterKinds[i])
	}
	for i := range r.Items {
		item := &r.Items[i]
		texts(item.Product, item.Variant, item.Category, item.Brand, item.Name)
		numbers(item.Quantity, item.Revenue, item.Profit)
	}
	return string(b)
}
