package fold

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"lifthouse/engine/books"
	"lifthouse/engine/moments"
	"lifthouse/schema"
	"lifthouse/schema/schematest/worlds"
)

const (
	hour = 60 * 60 * 1000
	day  = 24 * hour
)

// The subjects of worlds. noSubject is that of goals without exposures.
var (
	noSubject = schema.Subject{WebsiteID: 1, Kind: schema.SubjectNone}
	subjects  = []schema.Subject{
		{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 1},
		{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 2},
		{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 3},
		{WebsiteID: 1, Kind: schema.SubjectWidget, ID: 3},
		{WebsiteID: 1, Kind: schema.SubjectWidget, ID: 3, ExperimentID: 4},
	}
	actions = []moments.Kind{moments.Click, moments.Submit, moments.Completion, moments.Conversion, moments.Contact}
)

const goalsOfWorld = 3

// world draws events from few values, so that edge cases occur: copies, ties in time, several variations, goals before
// the first view, no view at all, huge and negative amounts.
type world struct {
	worlds.Rand
	start int64
	book  *books.Book // of a website whose currency is EUR
}

// prices are rates by currency and day.
type prices map[string]map[int64]string

// pricesOf are the rates of the books of worlds.
var pricesOf = map[*books.Book]prices{}

func newWorld(r worlds.Rand) world {
	w := world{Rand: r, start: worlds.Pick[int64](r, 12*day, 20_575*day)} // in 1970 and 2026
	of := prices{}
	for _, currency := range []string{"JPY", "KWD"} {
		of[currency] = map[int64]string{}
		for d := int64(-12); d < 4; d++ {
			if w.IntN(4) == 0 {
				of[currency][w.start/day+d] = worlds.Pick(r, "160.00", "0.3", "161.25", "1")
			}
		}
	}
	w.book = newBook(of)
	return w
}

func newBook(of prices) *books.Book {
	quotes := map[string][]books.Quote{}
	for currency, prices := range of {
		for d, text := range prices {
			rate, err := books.ParseRate(text)
			if err != nil {
				panic(err)
			}
			quotes[currency] = append(quotes[currency], books.Quote{Day: d, Rate: rate})
		}
	}
	b := &books.Book{Declaration: books.Declaration{Currency: "EUR"}, Rates: books.NewRates("EUR", quotes)}
	pricesOf[b] = of
	return b
}

// corrected returns events with other rates.
func (w world) corrected(events []Event) []Event {
	of := prices{}
	for currency, days := range pricesOf[w.book] {
		of[currency] = map[int64]string{}
		for d, text := range days {
			of[currency][d] = worlds.Pick(w, text, "150")
		}
		of[currency][w.start/day+w.Int64N(4)] = "140"
	}
	book := newBook(of)
	events = slices.Clone(events)
	for i := range events {
		if events[i].Book != nil {
			events[i].Book = book
		}
	}
	return events
}

// naiveWorth returns the amounts of a goal in EUR, as it counts.
func naiveWorth(e Event) (amounts [3]int64, items []schema.Item, known bool) {
	items = slices.Clone(e.Items)
	if e.Foreign == "" {
		return e.Amounts, items, true
	}
	var price *big.Rat
	for before := int64(10); before > 0; before-- {
		if text, has := pricesOf[e.Book][e.Foreign][e.At/day-before]; has {
			price, _ = new(big.Rat).SetString(text)
		}
	}
	known = price != nil
	convert := func(units int64) int64 {
		if price == nil {
			return 0
		}
		text := new(big.Rat).Quo(new(big.Rat).SetInt64(units), price).FloatString(0) // rounds half away from zero
		n, err := strconv.ParseInt(text, 10, 64)
		known = known && err == nil && max(n, -n) <= schema.MaxMoney*schema.MoneyScale
		return n
	}
	for i, units := range e.Amounts {
		amounts[i] = convert(units)
	}
	for i := range items {
		items[i].Revenue = convert(items[i].Revenue)
		items[i].Profit = convert(items[i].Profit)
	}
	if !known {
		amounts = [3]int64{}
		for i := range items {
			items[i].Revenue = 0
			items[i].Profit = 0
		}
	}
	return amounts, items, known
}

// checkWorlds checks a property in random worlds.
func checkWorlds(t *testing.T, n int, property func(t *rapid.T, w world)) {
	t.Helper()
	worlds.Check(t, n, func(t *rapid.T, r worlds.Rand) { property(t, newWorld(r)) })
}

// at returns a time of four days.
func (w world) at() int64 {
	switch w.IntN(5) {
	case 0:
		return w.start + w.Int64N(4*24)*hour
	case 1:
		return w.start + w.Int64N(4)*day
	case 2:
		return w.start + (1+w.Int64N(4))*day - 1
	case 3:
		return w.start + w.Int64N(3)*hour + w.Int64N(3)
	default:
		return w.start + w.Int64N(4*day)
	}
}

func (w world) amount() int64 {
	const most = schema.MaxMoney * schema.MoneyScale
	switch w.IntN(6) {
	case 0:
		return 0
	case 1:
		return worlds.Pick[int64](w, -5, 5) // totals of 0 occur
	case 2:
		return worlds.Pick[int64](w, -most, most)
	case 3:
		return w.Int64N(2*most+1) - most
	default:
		return w.Int64N(1000) - 300
	}
}

// content gives an event new content: all but the subject, the visitor, the id and the acceptance time.
func (w world) content(e Event, views, variations int) Event {
	e = Event{Subject: e.Subject, Visitor: e.Visitor, ID: e.ID, Accepted: e.Accepted, At: w.at(), Kind: moments.Goal}
	if e.Subject != noSubject {
		e.Variation = w.Int64N(int64(variations))
		switch n := w.IntN(10); {
		case n < views:
			e.Kind = moments.View
		case n < views+2:
			e.Kind = worlds.Pick(w, actions...)
		}
	}
	switch e.Kind {
	default: // nothing but a kind
	case moments.View:
		e.Attributes = fmt.Sprintf("device-%d/country-%d", w.IntN(2), w.IntN(2))
		if w.IntN(3) == 0 {
			w.setDetails(&e, schema.Details{Attributes: schema.Labels{"plan": worlds.Pick(w, "free", "pro")}})
		}
	case moments.Goal:
		e.Goal = 1 + w.Int64N(goalsOfWorld)
		e.Amounts = [3]int64{w.amount(), w.amount(), w.amount()}
		w.setDetails(&e, w.detailsOfGoal())
		e.Cancelled = w.IntN(6) == 0
	}
	return e
}

// setDetails sets details, on a website whose currency is EUR.
func (w world) setDetails(e *Event, d schema.Details) {
	if text := d.EncodeDetails(); text != "" {
		e.SetDetails(text, &d, w.book)
	}
}

// detailsOfGoal returns a currency, properties and lines of an order, or none of them.
func (w world) detailsOfGoal() (d schema.Details) {
	if w.IntN(3) == 0 {
		d.Currency = worlds.Pick(w, "EUR", "JPY", "KWD", "USD")
	}
	if w.IntN(3) == 0 {
		d.Properties = schema.Labels{"payment": worlds.Pick(w, "paypal", "card")}
	}
	if w.IntN(3) == 0 {
		d.Numbers = map[string]int64{"weight": worlds.Pick[int64](w, -5, 12_500)}
	}
	if w.IntN(2) == 0 {
		for range 1 + w.IntN(2) {
			product := worlds.Pick(w, "SKU-1", "SKU-2")
			d.Items = append(d.Items, schema.Item{
				Product: product, Category: "of " + product, Quantity: worlds.Pick[int64](w, 10_000, 30_000),
				Revenue: w.amount(), Profit: w.amount(),
			})
		}
	}
	return d
}

// revision gives a goal a revision. Other events have none.
func (w world) revision(e Event) Event {
	if e.Kind == moments.Goal && w.IntN(2) == 0 {
		e.Revision = worlds.Pick[uint64](w, 1, 2, 1<<63-1)
	}
	return e
}

// visitor returns all events of a visitor, in any order and with copies.
func (w world) visitor(id uint64) []Event {
	views, variations := worlds.Pick(w, 0, 2, 5), 1+w.IntN(3)
	var events []Event
	for range w.IntN(30) {
		e := Event{
			Subject: noSubject, Visitor: id, ID: 1 + w.Uint64N(40),
			Accepted: w.start + w.Int64N(4),
		} // equal ids occur, also in a subject
		if w.IntN(4) > 0 {
			e.Subject = worlds.Pick(w, subjects...)
		}
		events = append(events, w.revision(w.content(e, views, variations)))
	}
	for _, e := range events {
		switch w.IntN(10) {
		case 0:
			events = append(events, e)
		case 1, 2: // another content of the same revision
			revision := e.Revision
			e.Accepted = e.Accepted + w.Int64N(5) - 2
			if e = w.content(e, views, variations); e.Kind == moments.Goal {
				e.Revision = revision
			}
			events = append(events, e)
		case 3, 4: // another revision, perhaps without exposures
			if e.Kind == moments.Goal {
				e.Accepted = e.Accepted + w.Int64N(5) - 2
				if w.IntN(2) == 0 {
					e.Subject = noSubject
				}
				events = append(events, w.revision(w.content(e, 0, variations)))
			}
		}
	}
	return w.shuffled(events)
}

func (w world) shuffled(events []Event) []Event {
	events = slices.Clone(events)
	w.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	return events
}

// group has the events of a visitor that are counted together, in a loop over all of them.
type group struct {
	subject   schema.Subject
	variation string  // as in rows
	first     *Event  // the first view; nil: the events do not count
	from      int64   // time of the first view, or of the first event
	events    []Event // as they count, by time, kind and id
	rows      []Event // all rows of the subject of which the events are made, also of cancelled ones
}

// naiveGroups finds the groups of a visitor.
func naiveGroups(events []Event) []group { return naiveGroupsWith(events, nil) }

// naiveGroupsWith finds the groups of a visitor, who gets some rows of customers.
func naiveGroupsWith(events, carried []Event) []group {
	kept := append(naiveDistinct(events), carried...)
	var groups []group
	for _, subject := range append([]schema.Subject{noSubject}, subjects...) {
		groups = append(groups, naiveGroupsOf(subject, kept)...)
	}
	return groups
}

// naiveDistinct returns of each revision of each event the copy that arrived first.
func naiveDistinct(events []Event) []Event {
	var kept []Event
	for i, e := range events {
		counts := true
		for j, o := range events {
			if o.Subject == e.Subject && o.ID == e.ID && o.Revision == e.Revision &&
				(naiveArrivesBefore(o, e) || reflect.DeepEqual(o, e) && j < i) {
				counts = false
			}
		}
		if counts {
			kept = append(kept, e)
		}
	}
	return kept
}

// naiveArrivesBefore reports whether a copy counts rather than another one. Copies that arrived in the same millisecond
// are ordered by their content.
func naiveArrivesBefore(a, b Event) bool {
	x := [...]int64{a.Accepted, a.At, int64(a.Kind), a.Variation, a.Goal, a.Amounts[0], a.Amounts[1], a.Amounts[2]}
	y := [...]int64{b.Accepted, b.At, int64(b.Kind), b.Variation, b.Goal, b.Amounts[0], b.Amounts[1], b.Amounts[2]}
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	if a.Attributes != b.Attributes {
		return a.Attributes < b.Attributes
	}
	if a.Details != b.Details {
		return a.Details < b.Details
	}
	return !a.Cancelled && b.Cancelled
}

// occurrence is an event as it counts for a subject, with the rows of which it is made.
type occurrence struct {
	Event
	rows []Event // own ones
}

// naiveOccurrences returns the events of a subject, and the goals without exposures, as they count.
func naiveOccurrences(subject schema.Subject, kept []Event) []occurrence {
	var found []occurrence
	ids := map[uint64]bool{}
	for _, e := range kept {
		ids[e.ID] = true
	}
	for id := range ids {
		var goals, own []Event
		isOther := false
		for _, e := range kept {
			switch {
			case e.ID != id:
			case e.Subject == subject && e.Kind != moments.Goal:
				isOther = true
				found = append(found, occurrence{e, []Event{e}})
			case e.Subject == subject && e.Acquired == 0:
				own = append(own, e)
			}
		}
		goals = slices.Clone(own)
		for _, e := range kept {
			mayAdd := subject != noSubject || e.Acquired != 0 && len(own) > 0
			if e.ID == id && e.Subject == noSubject && mayAdd && !isOther {
				goals = append(goals, e)
			}
		}
		acquired, isOwn := int64(0), false
		for _, e := range goals {
			isOwn = isOwn || e.Acquired == 0
			if e.Acquired > 0 && (acquired == 0 || e.Acquired < acquired) {
				acquired = e.Acquired
			}
		}
		if !isOwn && acquired == 0 { // nothing, or revisions of what is not there
			continue
		}
		state, at := goals[0], goals[0].At
		for _, e := range goals {
			at = min(at, e.At)
			isPreferred := naiveRank(e, subject) >= naiveRank(state, subject)
			if e.Revision > state.Revision || e.Revision == state.Revision && isPreferred {
				state = e
			}
		}
		state.At = at
		state.IsRevised = isOwn && state.Acquired != 0
		state.Acquired = acquired
		if isOwn {
			state.Acquired = 0
		}
		found = append(found, occurrence{state, own})
	}
	return found
}

// naiveRank says which of two rows of the same revision counts: that with exposures, then that of the visitor.
func naiveRank(e Event, subject schema.Subject) int {
	switch {
	case e.Acquired != 0:
		return 0
	case e.Subject == subject:
		return 2
	}
	return 1
}

func naiveGroupsOf(subject schema.Subject, kept []Event) []group {
	var first *Event
	for _, e := range kept {
		if e.Subject == subject && e.Kind == moments.View && (first == nil || naiveViewBefore(e, *first)) {
			first = &e
		}
	}
	counted, rest := group{subject: subject, first: first}, group{subject: subject}
	for _, o := range naiveOccurrences(subject, kept) {
		of := &rest
		isSince := first != nil && o.At >= first.At && (o.Acquired == 0 || o.Acquired >= first.At)
		if isSince {
			of = &counted
		} else if len(o.rows) == 0 {
			continue
		}
		if of.rows = append(of.rows, o.rows...); !o.Cancelled {
			of.events = append(of.events, o.Event)
		}
	}
	var groups []group
	if len(rest.rows) > 0 {
		from := rest.events
		if len(from) == 0 {
			from = rest.rows
		}
		rest.from = from[0].At
		for _, e := range from {
			rest.from = min(rest.from, e.At)
		}
		naiveSort(rest.events)
		groups = append(groups, rest)
	}
	if first != nil {
		naiveSort(counted.events)
		counted.from = first.At
		counted.variation = strconv.FormatInt(first.Variation, 10)
		if slices.ContainsFunc(counted.events,
			func(e Event) bool { return e.Kind == moments.View && e.Variation != first.Variation }) {
			counted.variation += "+"
		}
		groups = append(groups, counted)
	}
	return groups
}

func naiveViewBefore(a, b Event) bool {
	if a.At != b.At {
		return a.At < b.At
	}
	if a.Variation != b.Variation {
		return a.Variation < b.Variation
	}
	return a.ID < b.ID
}

// naiveSort sorts events by time, kind and id.
func naiveSort(events []Event) {
	before := func(a, b Event) bool {
		if a.At != b.At {
			return a.At < b.At
		}
		if a.Kind != b.Kind {
			return a.Kind < b.Kind
		}
		return a.ID < b.ID
	}
	for i := range events {
		for j := i; j > 0 && before(events[j], events[j-1]); j-- {
			events[j], events[j-1] = events[j-1], events[j]
		}
	}
}
