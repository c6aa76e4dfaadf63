package fold

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"lifthouse/engine/books"
	"lifthouse/engine/moments"
	"lifthouse/schema"
)

// Event is a stored event of a visitor, perhaps one of several copies.
type Event struct {
	Subject    schema.Subject // of the kind schema.SubjectNone: a goal without exposures
	Visitor    uint64
	ID         uint64
	Revision   uint64 // of a goal: of several, the state of the highest one counts
	Cancelled  bool   // of a goal: it does not count
	At         int64  // milliseconds since 1970
	Variation  int64
	Kind       moments.Kind
	Goal       int64
	Amounts    [3]int64 // value, profit and extra value, in 1/schema.MoneyScale
	Foreign    string   // currency of the amounts, if it is not that of the website
	Accepted   int64    // milliseconds since 1970
	Version    uint64   // of copies that arrived in the same millisecond, merges keep the one with the highest
	Attributes string   // of a view, joined
	Details    string   // see schema.Details, as the next ones, which are parts of it
	Custom     string   // own attributes, joined
	Properties string   // joined
	Items      []schema.Item
	Customer   uint64      // of a goal: whose order it is; 0: not known
	Book       *books.Book // converts the amounts into the currency of the website

	// State is set in a goal that is lost, and that stored rows count: the amounts are those of the rows.
	State AmountsState

	// A row of a customer of the visitor, which is among the events of each visitor whose orders name the customer.
	OfCustomer bool
	Buyer      uint64 // the visitor that the row names; 0: none
	// Acquired is set in a row of a customer that the visitor gets: when the customer was acquired, in milliseconds
	// since 1970, or revisesAnOwn; 0: the event is one of the visitor.
	Acquired int64
	// IsRevised is set in an own order of the visitor, as it counts, whose state is that of a row of its customer.
	IsRevised bool
}

// compareIdentity orders events of a visitor of a website by subject, id and revision, goals without exposures first.
// Equal events are copies.
func (e *Event) compareIdentity(o *Event) int {
	bare := cmp.Compare(oneIf(o.isBare()), oneIf(e.isBare()))
	return cmp.Or(bare, e.Subject.Compare(o.Subject), cmp.Compare(e.ID, o.ID), cmp.Compare(e.Revision, o.Revision))
}

// compareArrival orders copies of an event: the first copy counts. Copies that arrived in the same millisecond are
// ordered by their version, which is a hash of their content, and then by their content. So the result depends neither
// on the order of the events nor on merges.
func (e *Event) compareArrival(o *Event) int {
	return cmp.Or(
		cmp.Compare(e.Accepted, o.Accepted), cmp.Compare(o.Version, e.Version),
		cmp.Compare(e.At, o.At), cmp.Compare(e.Kind, o.Kind), cmp.Compare(e.Variation, o.Variation),
		cmp.Compare(e.Goal, o.Goal), slices.Compare(e.Amounts[:], o.Amounts[:]),
		cmp.Compare(e.Attributes, o.Attributes), cmp.Compare(e.Details, o.Details),
		cmp.Compare(oneIf(e.Cancelled), oneIf(o.Cancelled)),
	)
}

// compareView orders the views of a subject: the first view decides the variation of the visitor.
func (e *Event) compareView(o *Event) int {
	return cmp.Or(cmp.Compare(e.At, o.At), cmp.Compare(e.Variation, o.Variation), cmp.Compare(e.ID, o.ID))
}

// compareTime orders the counted events of a subject.
func (e *Event) compareTime(o *Event) int {
	return cmp.Or(cmp.Compare(e.At, o.At), cmp.Compare(e.Kind, o.Kind), cmp.Compare(e.ID, o.ID))
}

// Version must change whenever AppendVisitorRows returns different rows for the same events. Facts of an earlier
// version are then rebuilt.
const Version = 7

// contentHash returns a hash of the content of an event.
func (e *Event) contentHash() uint64 {
	content := make([]byte, 0, 512)
	id := int64(e.ID)             //nolint:gosec // bits
	revision := int64(e.Revision) //nolint:gosec // bits
	a := &e.Amounts
	for _, n := range []int64{
		Version, id, revision, oneIf(e.Cancelled), e.At, e.Variation, int64(e.Kind), e.Goal, a[0], a[1], a[2],
		e.Acquired,
	} {
		content = binary.LittleEndian.AppendUint64(content, uint64(n)) //nolint:gosec // bits
	}
	for _, text := range []string{e.Attributes, e.Details, e.Foreign} {
		content = append(append(content, text...), 0)
	}
	return xxhash.Sum64(content)
}

// distinctEvents returns the first arrived copy of each revision of each event of a visitor: goals without exposures
// first, then by subject, id and revision. It explains the other copies unless explain is nil. carried are the rows of
// customers that the visitor gets.
func distinctEvents(events []Event, explain func(Explained)) (distinct, carried []*Event) {
	all := make([]*Event, 0, len(events))
	var ofCustomers []*Event
	for i := range events {
		if events[i].OfCustomer {
			ofCustomers = append(ofCustomers, &events[i])
		} else {
			all = append(all, &events[i])
		}
	}
	slices.SortFunc(all, func(a, b *Event) int { return cmp.Or(a.compareIdentity(b), a.compareArrival(b)) })
	distinct = all[:0]
	for i, e := range all {
		if i == 0 || distinct[len(distinct)-1].compareIdentity(e) != 0 {
			distinct = append(distinct, e)
		} else if explain != nil {
			explain(Explained{Event: e, Subject: e.Subject, Reason: Copied, At: e.At, Basis: distinct[len(distinct)-1]})
		}
	}
	return distinct, carriedOf(distinct, ofCustomers)
}

// AmountsState says what the amounts of an event are.
type AmountsState uint8

// The states of amounts.
const (
	AmountsSent      AmountsState = iota // in the currency of the event
	AmountsConverted                     // in the currency of the website
	AmountsUnknown                       // not known
)

// SetDetails sets the details, and whether the amounts of a goal are in another currency than that of its website.
// Without a currency of the website, all are. text is the canonical form of the details, and book that of the website.
func (e *Event) SetDetails(text string, d *schema.Details, book *books.Book) {
	e.Details = text
	e.Custom = d.JoinAttributes()
	e.Foreign = ""
	if e.Kind != moments.Goal {
		return
	}
	e.Properties = d.JoinProperties()
	e.Items = d.Items
	e.Customer = d.CustomerID()
	if d.Currency != book.CurrencyOf() {
		e.Foreign = d.Currency
		e.Book = book
	}
}

// Worth is what a goal event is worth in the currency of the website.
type Worth struct {
	Amounts [3]int64 // value, profit and extra value
	Items   []schema.Item
	IsKnown bool // false: there is no rate for the amounts, and all of them are 0
}

// worth returns what a goal event is worth. Its time is that at which it counts: the rate depends on it.
func (e *Event) worth() Worth {
	if e.Foreign == "" || e.State == AmountsConverted {
		return Worth{e.Amounts, e.Items, true}
	}
	if e.State == AmountsSent {
		if x, isKnown := e.Book.FindExchange(e.Foreign, e.At); isKnown {
			if w := e.convertAmounts(&x); w.IsKnown {
				return w
			}
		}
	}
	return Worth{Items: withoutAmounts(e.Items)}
}

// convertAmounts returns what a goal event is worth by an exchange.
func (e *Event) convertAmounts(x *books.Exchange) (w Worth) {
	w = Worth{Items: withoutAmounts(e.Items), IsKnown: true}
	convert := func(to *int64, amount int64) {
		if amount != 0 {
			converted, isKnown := x.Convert(amount)
			*to = converted
			w.IsKnown = w.IsKnown && isKnown
		}
	}
	for k, amount := range e.Amounts {
		convert(&w.Amounts[k], amount)
	}
	for i := range e.Items {
		convert(&w.Items[i].Revenue, e.Items[i].Revenue)
		convert(&w.Items[i].Profit, e.Items[i].Profit)
	}
	return w
}

// withoutAmounts returns lines of an order with amounts of 0.
func withoutAmounts(items []schema.Item) []schema.Item {
	items = slices.Clone(items)
	for i := range items {
		items[i].Revenue = 0
		items[i].Profit = 0
	}
	return items
}

// hashWorth returns a hash of what a goal event in another currency is worth, which depends on rates besides its
// content; 0: the event is another one.
func (e *Event) hashWorth() uint64 {
	if e.Kind != moments.Goal || e.Foreign == "" {
		return 0
	}
	w := e.worth()
	content := binary.LittleEndian.AppendUint64(nil, e.ID)
	for _, amount := range w.Amounts {
		content = binary.LittleEndian.AppendUint64(content, uint64(amount)) //nolint:gosec // bits
	}
	lines := schema.Details{Items: w.Items}
	content = append(content, lines.EncodeDetails()...)
	return xxhash.Sum64(append(content, byte(oneIf(w.IsKnown))))
}

// isBare reports whether an event is a goal without exposures.
func (e *Event) isBare() bool { return e.Subject.Kind == schema.SubjectNone }

// withID returns the events with an id. The events are of one subject and sorted by id.
func withID(events []*Event, id uint64) []*Event {
	from, _ := slices.BinarySearchFunc(events, id, func(e *Event, id uint64) int { return cmp.Compare(e.ID, id) })
	to := from
	for to < len(events) && events[to].ID == id {
		to++
	}
	return events[from:to]
}

// eventRows iterates over the events of a visitor of a subject, each with its rows: the own ones, and those of a goal
// without exposures that has the same id. Both lists are sorted. A goal does not revise an event of another kind.
type eventRows struct {
	own, bare         []*Event
	ownLeft, bareLeft []*Event
}

// nextEvent returns the rows of the next event; none: there is no other.
func (r *eventRows) nextEvent() (own, bare []*Event) {
	if len(r.ownLeft) > 0 {
		first := r.ownLeft[0]
		own = r.ownLeft[:1]
		if first.Kind == moments.Goal {
			for len(own) < len(r.ownLeft) && r.ownLeft[len(own)].ID == first.ID {
				own = r.ownLeft[:len(own)+1]
			}
			if len(r.bare) > 0 && withID(r.own, first.ID)[0] == first {
				bare = withID(r.bare, first.ID)
			}
		}
		r.ownLeft = r.ownLeft[len(own):]
		return own, bare
	}
	for len(r.bareLeft) > 0 {
		bare = withID(r.bareLeft, r.bareLeft[0].ID)
		r.bareLeft = r.bareLeft[len(bare):]
		if len(withID(r.own, bare[0].ID)) == 0 && !revisesOnly(bare) {
			return nil, bare
		}
	}
	return nil, nil
}

// stateOf returns the row whose state counts, and the event as it counts: with the least time of all its rows. The
// state is that of the highest revision, and of equal ones that of the subject's own row. So it does not depend on the
// order in which the rows arrived.
func stateOf(own, bare []*Event) (row, counted *Event) {
	if len(bare) > 0 {
		row = bare[len(bare)-1]
	}
	if n := len(own); n > 0 && (row == nil || own[n-1].Revision >= row.Revision) {
		row = own[n-1]
	}
	if len(own)+len(bare) == 1 {
		return row, row
	}
	merged := *row
	merged.Acquired = acquiredAt(own, bare)
	merged.IsRevised = row.Acquired != 0 && merged.Acquired == 0
	for _, rows := range [][]*Event{own, bare} {
		for _, e := range rows {
			merged.At = min(merged.At, e.At)
		}
	}
	return row, &merged
}
