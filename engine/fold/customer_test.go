package fold

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lifthouse/engine/moments"
	"lifthouse/schema"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// shopWorld has the events of a few visitors, some of which share customers, as they are stored.
type shopWorld struct {
	world
	visitors map[uint64][]Event // events of visitors
	rows     []Event            // rows of customers
}

const (
	customersOfWorld = 3
	visitorsOfWorld  = 3
)

// newShopWorld draws a world in which goals name customers, and orders name no visitor.
func newShopWorld(w world) *shopWorld {
	s := &shopWorld{world: w, visitors: map[uint64][]Event{}}
	for v := uint64(1); v <= visitorsOfWorld; v++ {
		s.visitors[v] = w.visitor(v)
	}
	for v := uint64(1); v <= visitorsOfWorld; v++ {
		for i := range s.visitors[v] {
			e := &s.visitors[v][i]
			if e.Kind == moments.Goal && w.IntN(2) == 0 {
				s.name(e, 1+w.Uint64N(customersOfWorld))
				s.rows = append(s.rows, rowOf(e, v))
			}
		}
	}
	for range w.IntN(20) {
		e := w.revision(w.content(Event{
			Subject: noSubject, ID: 1 + w.Uint64N(40), Accepted: w.start + w.Int64N(4),
		}, 0, 1))
		s.name(&e, 1+w.Uint64N(customersOfWorld))
		s.rows = append(s.rows, rowOf(&e, 0))
	}
	for customer := range uint64(customersOfWorld) {
		if w.IntN(4) == 0 {
			past := Event{Subject: noSubject, Kind: moments.Goal, At: w.at(), Accepted: w.start, OfCustomer: true}
			past.Customer = customer + 1
			s.rows = append(s.rows, past)
		}
	}
	return s
}

// name gives a goal a customer.
func (s *shopWorld) name(e *Event, customer uint64) {
	e.Customer = customer
	e.Details = fmt.Sprintf("%s customer %d", e.Details, customer)
}

// rowOf returns the row of a customer for a goal.
func rowOf(e *Event, visitor uint64) Event {
	row := *e
	row.Subject, row.Visitor, row.Variation, row.Attributes = noSubject, 0, 0, ""
	row.OfCustomer, row.Buyer = true, visitor
	return row
}

// eventsOf returns all that the fold gets of a visitor, in any order and with copies.
func (s *shopWorld) eventsOf(visitor uint64) []Event {
	events := slices.Clone(s.visitors[visitor])
	named := map[uint64]bool{}
	for _, e := range events {
		named[e.Customer] = true
	}
	for _, row := range s.rows {
		if named[row.Customer] {
			row.Visitor = visitor
			events = append(events, row)
			if s.IntN(3) == 0 {
				events = append(events, row)
			}
		}
	}
	return s.shuffled(events)
}

// naiveCarried returns the rows without a visitor that a visitor gets, by loops over all rows.
func (s *shopWorld) naiveCarried(visitor uint64) (carried []Event) {
	named := map[string]bool{}
	for _, e := range naiveDistinct(s.visitors[visitor]) {
		named[fmt.Sprint(e.Customer, " ", e.Goal)] = true
	}
	var kept []Event
	for i, r := range s.rows {
		isFirst := r.Goal != 0 && named[fmt.Sprint(r.Customer, " ", r.Goal)]
		for j, o := range s.rows {
			isCopy := o.Customer == r.Customer && o.Goal == r.Goal && o.ID == r.ID && o.Buyer == r.Buyer &&
				o.Revision == r.Revision
			if isCopy && (naiveArrivesBefore(o, r) || reflect.DeepEqual(o, r) && j < i) {
				isFirst = false
			}
		}
		if isFirst {
			kept = append(kept, r)
		}
	}
	for _, r := range kept {
		if r.Buyer != 0 {
			continue
		}
		_, owner := s.naiveOwner(kept, r.Customer, r.Goal, r.ID)
		firstAt, home := s.naiveHome(kept, r.Customer, r.Goal)
		switch {
		case owner == visitor:
			r.Acquired = -1
		case owner == 0 && home == visitor:
			r.Acquired = firstAt
		default:
			continue
		}
		r.OfCustomer, r.Visitor = false, visitor
		carried = append(carried, r)
	}
	// of rows of an order that several customers have, that of the last one counts
	slices.SortStableFunc(carried, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Customer, b.Customer), cmp.Compare(a.Goal, b.Goal))
	})
	return carried
}

// naiveOwner returns the least time of an order, and the visitor of its earliest row that names one.
func (s *shopWorld) naiveOwner(kept []Event, customer uint64, goal int64, id uint64) (at int64, owner uint64) {
	var named []Event
	at = 1 << 62
	for _, r := range kept {
		if r.Customer == customer && r.Goal == goal && r.ID == id {
			at = min(at, r.At)
			if r.Buyer != 0 {
				named = append(named, r)
			}
		}
	}
	slices.SortFunc(named, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Buyer, b.Buyer))
	})
	if len(named) > 0 {
		owner = named[0].Buyer
	}
	return at, owner
}

// naiveHome returns the time of the first order of a customer, and its visitor; 0: none, or the customer is old.
func (s *shopWorld) naiveHome(kept []Event, customer uint64, goal int64) (firstAt int64, home uint64) {
	ids := map[uint64]bool{}
	for _, r := range kept {
		if r.Customer == customer && r.Goal == goal {
			ids[r.ID] = true
		}
	}
	firstAt = 1 << 62
	var first uint64
	for id := range ids {
		at, owner := s.naiveOwner(kept, customer, goal, id)
		isBefore := at < firstAt
		if at == firstAt {
			isBefore = owner != 0 && home == 0 || (owner != 0) == (home != 0) && id < first
		}
		if isBefore {
			firstAt, home, first = at, owner, id
		}
	}
	for _, r := range s.rows {
		if r.Customer == customer && r.Goal == 0 && r.At < firstAt-hour {
			return firstAt, 0
		}
	}
	return firstAt, home
}

// naiveRowsWith returns the rows of a visitor with the rows of customers that the visitor gets, without digests.
func naiveRowsWith(events, carried []Event) []FactRow {
	var rows []FactRow
	for _, g := range naiveGroupsWith(events, carried) {
		rows = append(rows, naiveVisitorRow(g))
		for goal := int64(1); goal <= goalsOfWorld; goal++ {
			rows = append(rows, naiveGoalRows(g, goal)...)
		}
	}
	return rows
}

func TestOrdersOfCustomersEqualThePlainLoops(t *testing.T) {
	var carried, revised, own int
	checkWorlds(t, tier.Of(300, 5000), func(t *rapid.T, w world) {
		s := newShopWorld(w)
		for v := uint64(1); v <= visitorsOfWorld; v++ {
			events := s.eventsOf(v)
			got := bySubject(withoutDigests(rowsOf(events)))
			want := bySubject(naiveRowsWith(s.visitors[v], s.naiveCarried(v)))
			for i := range got {
				got[i].Visitor, want[i].Visitor = 0, 0 // of plain loops, it is always the same
			}
			must.That(t, reflect.DeepEqual(got, want), "events %+v\ncarried %+v\nrows %+v\nwant %+v", events,
				s.naiveCarried(v), got, want)
			digests := rowsOf(events)
			for range 2 {
				must.That(t, reflect.DeepEqual(rowsOf(s.eventsOf(v)), digests), "rows depend on the order or on copies")
			}
			for i := range got {
				carried += int(oneIf(got[i].Marks&CarriedMark != 0))
				revised += int(oneIf(got[i].Marks&RevisedMark != 0))
				own += int(oneIf(got[i].Grain == OfGoal && got[i].Marks == 0))
			}
		}
	})
	check.That(t, min(carried, revised, own) >= 100, "the worlds are one-sided: %d carried, %d revised, %d others",
		carried, revised, own)
}

// contentsOf returns what is stored of the rows that differ.
func contentsOf(before, after []FactRow) (all []string) {
	for _, c := range AppendChanges(nil, before, after) {
		all = append(all, fmt.Sprintf("%v %+v", c.Cancels, c.content()))
	}
	return all
}

// TestLogInsChangeNoOrder adds log-ins, which are goals that name a customer, to the visitors of one variation. The
// purchases of all visitors stay as they are.
func TestLogInsChangeNoOrder(t *testing.T) {
	const purchase, logIn = 1, 3
	purchases := func(s *shopWorld, v uint64) (rows []FactRow) {
		for _, r := range rowsOf(s.eventsOf(v)) {
			if r.Grain == OfGoal && r.Goal == purchase && IsCounted(r.Variation) {
				rows = append(rows, r)
			}
		}
		return bySubject(rows)
	}
	compared := 0
	checkWorlds(t, tier.Of(100, 500), func(t *rapid.T, w world) {
		s := newShopWorld(w)
		isLogIn := func(r Event) bool { return r.Goal == logIn && r.Buyer == 0 }
		s.rows = slices.DeleteFunc(s.rows, isLogIn) // a log-in has a visitor, and no order has its id
		before := map[uint64][]FactRow{}
		for v := uint64(1); v <= visitorsOfWorld; v++ {
			before[v] = purchases(s, v)
			compared += len(before[v])
		}
		for v := uint64(1); v <= visitorsOfWorld; v++ {
			events := s.visitors[v]
			isTreated := slices.ContainsFunc(events, func(e Event) bool { return e.Variation == 1 })
			for n := range w.IntN(4) {
				if !isTreated {
					break
				}
				e := Event{
					Subject: noSubject, Visitor: v, ID: 1000*v + uint64(n), Kind: moments.Goal, Goal: logIn,
					At: w.at(), Accepted: w.start + 10,
				}
				s.name(&e, 1+w.Uint64N(customersOfWorld))
				s.visitors[v] = append(s.visitors[v], e)
				s.rows = append(s.rows, rowOf(&e, v))
			}
		}
		for v := uint64(1); v <= visitorsOfWorld; v++ {
			after := purchases(s, v)
			must.That(t, reflect.DeepEqual(before[v], after), "visitor %d: %d purchases, and after log-ins %d, which differ: %+v",
				v, len(before[v]), len(after), contentsOf(before[v], after))
		}
	})
	check.That(t, compared >= 200, "%d purchases", compared)
}

// orderOf returns the rows of an order of customer 1 of goal 1, one for each revision.
func orderOf(id, buyer uint64, at int64, values ...int64) (rows []*Event) {
	for i, value := range values {
		rows = append(rows, &Event{
			Subject: noSubject, ID: id, Buyer: buyer, Revision: uint64(i), At: at, //nolint:gosec // few
			Kind: moments.Goal, Goal: 1, Amounts: [3]int64{value}, OfCustomer: true, Customer: 1,
		})
	}
	return rows
}

func TestHomesOfCustomers(t *testing.T) {
	past := func(at int64) []*Event {
		return []*Event{{Subject: noSubject, Kind: moments.Goal, At: at, OfCustomer: true, Customer: 1}}
	}
	for _, c := range []struct {
		name string
		rows [][]*Event
		home uint64
	}{
		{"first order names a visitor", [][]*Event{orderOf(1, 7, 10*hour, 5), orderOf(2, 8, 11*hour, 5)}, 7},
		{"first order names none", [][]*Event{orderOf(1, 0, 10*hour, 5), orderOf(2, 8, 11*hour, 5)}, 0},
		{"a later row names a visitor", [][]*Event{orderOf(1, 0, 10*hour, 5), orderOf(1, 9, 10*hour, 5)}, 9},
		{"orders of the same time", [][]*Event{orderOf(1, 0, 10*hour, 5), orderOf(2, 8, 10*hour, 5)}, 8},
		{"an old customer", [][]*Event{orderOf(1, 7, 10*hour, 5), past(9*hour - 1)}, 0},
		{"history of the order itself", [][]*Event{orderOf(1, 7, 10*hour, 5), past(9 * hour)}, 7},
		{"a later history", [][]*Event{orderOf(1, 7, 10*hour, 5), past(20 * hour)}, 7},
	} {
		var homes []uint64
		EachCustomer(slices.Concat(c.rows...), func(of *CustomerOrders) { homes = append(homes, of.Home) })
		check.That(t, slices.Equal(homes, []uint64{c.home}), "%s: homes %v, want %d", c.name, homes, c.home)
	}
}

// TestSharedCustomersHaveNoHome checks the limits: a till has more orders or visitors than a person.
func TestSharedCustomersHaveNoHome(t *testing.T) {
	for name, c := range map[string]struct {
		orders, visitors int
		home             uint64
	}{
		"at the limits": {maxOrders, maxBuyers, 1}, "too many orders": {maxOrders + 1, 1, 0},
		"too many visitors": {maxBuyers + 1, maxBuyers + 1, 0},
	} {
		var rows []*Event
		for i := range c.orders {
			buyer := uint64(0)
			if i < c.visitors {
				buyer = uint64(i + 1) //nolint:gosec // few
			}
			rows = append(rows, orderOf(uint64(i+1), buyer, int64(i), 1)...) //nolint:gosec // few
		}
		EachCustomer(rows, func(of *CustomerOrders) {
			check.Equal(t, of.Home, c.home, "%s: home", name)
			check.Equal(t, of.IsShared, c.home == 0, "%s: shared", name)
		})
	}
}

// TestOrdersBeforeTheFirstViewAcquireNobody checks that an order counts only for subjects that the visitor saw before
// the first order of the customer.
func TestOrdersBeforeTheFirstViewAcquireNobody(t *testing.T) {
	view := func(subject schema.Subject, at int64) Event {
		return Event{Subject: subject, Visitor: 7, ID: 1, At: at, Kind: moments.View}
	}
	first := Event{Subject: noSubject, Visitor: 7, ID: 2, At: 5 * hour, Kind: moments.Goal, Goal: 1, Customer: 1}
	events := []Event{view(subjects[0], 4*hour), view(subjects[1], 6*hour), first}
	for _, r := range slices.Concat(orderOf(2, 7, 5*hour, 1), orderOf(3, 0, 9*hour, 1000)) {
		row := *r
		row.Visitor = 7
		events = append(events, row)
	}
	found := map[schema.Subject]int64{}
	for _, r := range rowsOf(events) {
		if r.Marks&CarriedMark != 0 {
			found[r.Subject] += r.Amounts[0]
		}
	}
	check.That(t, reflect.DeepEqual(found, map[schema.Subject]int64{subjects[0]: 1000}), "carried orders %v", found)
	var reasons []Reason
	ExplainVisitor(events, MaxVisitorEvents, nil, func(x Explained) {
		if x.Event.ID == 3 {
			reasons = append(reasons, x.Reason)
		}
	})
	check.That(t, slices.Equal(reasons, []Reason{SinceFirstView, AcquiredBefore}), "reasons %v", reasons)
}

// TestLostEventsLeaveCarriedOrders checks that orders without a visitor are not taken for lost events.
func TestLostEventsLeaveCarriedOrders(t *testing.T) {
	checkWorlds(t, tier.Of(200, 2000), func(t *rapid.T, w world) {
		s := newShopWorld(w)
		for v := uint64(1); v <= visitorsOfWorld; v++ {
			events := s.eventsOf(v)
			lost := LostEvents(rowsOf(events), events, func(schema.Subject) bool { return true })
			must.Equal(t, len(lost), 0, "events %+v\nlost %+v", events, lost)
		}
	})
}
