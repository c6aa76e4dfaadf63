package facts_test

import (
	"math"
	"testing"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// customersWorld has a visitor whose order won a customer, and what arrives later.
type customersWorld struct {
	*world
	r        *facts.Refresher
	campaign schema.Subject
}

// customer is that of the orders of a customersWorld.
const customer = 77

func newCustomersWorld(t *testing.T) *customersWorld {
	t.Helper()
	w := &customersWorld{world: newWorld(t, 16)}
	w.r = facts.NewRefresher(w.conn, false)
	w.campaign = schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}
	view := schema.Event{
		WebsiteID: 1, VisitorID: 7, EventID: 1, Time: w.at, Kind: schema.KindView, Subject: schema.SubjectCampaign,
		SubjectID: 12, VariationID: 1,
	}
	w.store(t, view, w.order(2, 7, time.Hour))
	return w
}

// order returns an order of the customer, which names a visitor or none, some time after the start.
func (w *customersWorld) order(id, visitor uint64, after time.Duration) schema.Event {
	e := schema.Event{
		WebsiteID: 1, VisitorID: visitor, EventID: id, Time: w.at.Add(after), Kind: schema.KindGoal,
		Subject: schema.SubjectNone, GoalID: 1, Value: 10_000,
	}
	e.Customer = schema.FormatCustomer(customer)
	return e
}

// store stores events and refreshes the facts.
func (w *customersWorld) store(t *testing.T, events ...schema.Event) (accepted time.Time) {
	t.Helper()
	accepted = w.at.Add(time.Duration(len(w.all)) * time.Minute).UTC()
	must.OK(t, schema.InsertEvents(t.Context(), w.conn, events, accepted))
	for i := range events {
		w.all = append(w.all, acceptedEvent{events[i], accepted.UnixMilli()})
	}
	refresh(t, w.r, accepted.UnixMilli())
	w.check(t)
	return accepted
}

// carried returns the number of orders without a visitor in the facts of the campaign.
func (w *customersWorld) carried(t *testing.T) (n int) {
	t.Helper()
	for _, r := range must.Get(facts.ReadAll(t.Context(), w.conn))(t) {
		if r.Subject == w.campaign && r.Marks&fold.CarriedMark != 0 {
			n++
		}
	}
	return n
}

// TestAnOrderWithoutAVisitorIsAChange checks that a refresh finds an order without a visitor, and that the results of the
// campaign are said to have changed when it was accepted.
func TestAnOrderWithoutAVisitorIsAChange(t *testing.T) {
	w := newCustomersWorld(t)
	var newest facts.Acceptances
	shards := facts.Shards{w.r}
	must.Get(newest.ReadNewest(t.Context(), shards))(t)
	for i := range 3 {
		accepted := w.store(t, w.order(uint64(3+i), 0, time.Duration(2+i)*time.Hour)) //nolint:gosec // few
		check.Equal(t, w.carried(t), i+1, "orders without a visitor")
		read := must.Get(newest.ReadNewest(t.Context(), shards))(t)
		check.Equal(t, read[w.campaign], accepted, "the newest order")
		var first facts.Acceptances
		read = must.Get(first.ReadNewest(t.Context(), shards))(t)
		check.Equal(t, read[w.campaign], accepted, "the newest order, read for the first time")
	}
}

// TestHomesMove checks that all visitors of a customer are folded again if an earlier order arrives later, and if the
// customer turns out to have bought before.
func TestHomesMove(t *testing.T) {
	w := newCustomersWorld(t)
	w.store(t, w.order(3, 0, 20*time.Hour))
	check.Equal(t, w.carried(t), 1, "orders without a visitor")
	w.store(t, w.order(4, 8, time.Minute)) // of a visitor without a view
	check.Equal(t, w.carried(t), 0, "orders without a visitor, won by another visitor")
	merge(t, w.conn)
	w.check(t)
	w = newCustomersWorld(t)
	w.store(t, w.order(3, 0, 20*time.Hour))
	past := schema.Event{WebsiteID: 1, Kind: schema.KindCustomer, Subject: schema.SubjectNone}
	past.Time = w.at.AddDate(0, -1, 0)
	past.Revision = uint64(past.Time.UnixMilli()) //nolint:gosec // positive
	past.Customer = schema.FormatCustomer(customer)
	w.store(t, past)
	check.Equal(t, w.carried(t), 0, "orders without a visitor of an old customer")
}

// TestLateRowsOfCustomersAreFound stores an order without a visitor that was accepted before the facts were folded, as
// a replica may show it late. A scrub finds the facts that lack it.
func TestLateRowsOfCustomersAreFound(t *testing.T) {
	w := newCustomersWorld(t)
	last := w.store(t, w.order(3, 0, 20*time.Hour))
	late := w.order(4, 0, 21*time.Hour)
	accepted := last.Add(-30 * time.Second)
	must.OK(t, schema.InsertEvents(t.Context(), w.conn, []schema.Event{late}, accepted))
	w.all = append(w.all, acceptedEvent{late, accepted.UnixMilli()})
	check.Equal(t, w.carried(t), 1, "orders without a visitor before the scrub")
	found := must.Get(w.r.ScrubFacts(t.Context(), 0, math.MaxUint64))(t)
	check.Equal(t, found.Wrong, 1, "visitors whose facts are wrong")
	check.Equal(t, len(found.Lost), 0, "visitors who lost events")
	w.check(t)
	check.Equal(t, w.carried(t), 2, "orders without a visitor after the scrub")
}

// TestStoresWithoutCustomersReadNone counts the statements of a refresh: without a customer, it has no other ones.
func TestStoresWithoutCustomersReadNone(t *testing.T) {
	statements := func(name string) int {
		w := newWorld(t, 17)
		w.Customers = 0
		left := math.MaxInt
		r := facts.NewRefresher(schematest.KilledConn{Conn: w.conn, Left: &left}, true)
		_, through := w.send(t, 50)
		refresh(t, r, through)
		e := schema.Event{
			WebsiteID: 1, VisitorID: 3, EventID: 4, Time: w.at, Kind: schema.KindGoal, Subject: schema.SubjectNone,
			GoalID: 1,
		}
		e.Customer = name
		w.at = w.at.Add(time.Minute)
		must.OK(t, schema.InsertEvents(t.Context(), w.conn, []schema.Event{e}, w.at))
		before := left
		refresh(t, r, w.at.UnixMilli())
		return before - left
	}
	check.Equal(t, statements(schema.FormatCustomer(customer)), statements("")+1, "statements with a customer")
}
