package fold

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// An order without a visitor counts for the visitor whose order acquired its customer. The rule depends on orders and
// their visitors only, never on a log-in: a treatment that makes more people log in, and no one buy more, changes no
// report. It is a minimum and counts over sets, so it depends neither on the order of arrival nor on copies.

// The limits above which a customer has no home: it is a till or a test account.
const (
	maxOrders     = 1000
	maxBuyers     = 50     // visitors
	maxOrderRows  = 10_000 // revisions of the orders
	oldAfter      = int64(time.Hour / time.Millisecond)
	revisesAnOwn  = -1 // Event.Acquired of a row that revises an order of the visitor
	neverAcquired = math.MinInt64
)

// SharedLimits are the numbers of orders, visitors and rows of a customer and goal above which the orders without a
// visitor count for nobody.
type SharedLimits struct{ Orders, Buyers, Rows int64 }

// LimitsOfCustomers are the limits of a customer.
var LimitsOfCustomers = SharedLimits{maxOrders, maxBuyers, maxOrderRows}

// CustomerOrder is an order of a customer: all rows of one event id.
type CustomerOrder struct {
	ID      uint64
	At      int64  // the least time of its rows, in milliseconds since 1970
	Visitor uint64 // of its earliest row that names one; 0: none does
	Rows    []*Event

	namedAt int64 // time of that row
}

// State returns the row whose state counts: that of the highest revision, and of equal ones that of a visitor.
func (o *CustomerOrder) State() *Event {
	return slices.MaxFunc(o.Rows, func(a, b *Event) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(oneIf(a.Buyer != 0), oneIf(b.Buyer != 0)),
			cmp.Compare(b.Buyer, a.Buyer))
	})
}

// CustomerOrders are the orders of a customer of a goal.
type CustomerOrders struct {
	Customer uint64
	Goal     int64
	Orders   []*CustomerOrder // by id
	First    *CustomerOrder   // the first order
	Before   int64            // when the customer had bought before, at the latest; 0: not known
	IsShared bool             // there are too many orders or visitors: the customer has no home
	// Home is the visitor for which the orders without a visitor count: that of the first order, unless the customer
	// had bought before; 0: nobody.
	Home uint64
}

// IsOld reports whether the customer had bought more than an hour before the first order.
func (c *CustomerOrders) IsOld() bool { return c.Before != 0 && c.Before < c.First.At-oldAfter }

// ordersOf returns the orders in the rows of a customer and a goal, without copies.
func ordersOf(rows []*Event) *CustomerOrders {
	c := &CustomerOrders{Customer: rows[0].Customer, Goal: rows[0].Goal}
	buyers := map[uint64]bool{}
	for of := range SplitRuns(rows, func(a, b **Event) bool { return (*a).ID == (*b).ID }) {
		o := &CustomerOrder{ID: of[0].ID, At: of[0].At, Rows: of}
		for _, r := range of {
			o.At = min(o.At, r.At)
			if r.Buyer == 0 {
				continue
			}
			buyers[r.Buyer] = true
			if o.Visitor == 0 || cmp.Or(cmp.Compare(r.At, o.namedAt), cmp.Compare(r.Buyer, o.Visitor)) < 0 {
				o.Visitor = r.Buyer
				o.namedAt = r.At
			}
		}
		c.Orders = append(c.Orders, o)
	}
	c.First = slices.MinFunc(c.Orders, func(a, b *CustomerOrder) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(oneIf(a.Visitor == 0), oneIf(b.Visitor == 0)),
			cmp.Compare(a.ID, b.ID))
	})
	c.IsShared = len(c.Orders) > maxOrders || len(buyers) > maxBuyers || len(rows) > maxOrderRows
	return c
}

// compareOrder orders the rows of customers by customer, goal, order and revision. Equal rows are copies.
func (e *Event) compareOrder(o *Event) int {
	return cmp.Or(
		cmp.Compare(e.Customer, o.Customer), cmp.Compare(e.Goal, o.Goal), cmp.Compare(e.ID, o.ID),
		cmp.Compare(e.Revision, o.Revision), cmp.Compare(e.Buyer, o.Buyer),
	)
}

// isPast reports whether the row of a customer says that the customer had bought at its time.
func (e *Event) isPast() bool { return e.Goal == 0 }

// EachCustomer calls each for each customer and goal of rows of customers, in order.
func EachCustomer(rows []*Event, each func(*CustomerOrders)) {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b *Event) int { return cmp.Or(a.compareOrder(b), a.compareArrival(b)) })
	for of := range SplitRuns(rows, func(a, b **Event) bool { return (*a).Customer == (*b).Customer }) {
		before := int64(0)
		goals := of
		for len(goals) > 0 && goals[0].isPast() { // these are first
			if before == 0 || goals[0].At < before {
				before = goals[0].At
			}
			goals = goals[1:]
		}
		goals = slices.CompactFunc(goals, func(a, b *Event) bool { return a.compareOrder(b) == 0 })
		for own := range SplitRuns(goals, func(a, b **Event) bool { return (*a).Goal == (*b).Goal }) {
			c := ordersOf(own)
			c.Before = before
			if !c.IsShared && !c.IsOld() {
				c.Home = c.First.Visitor
			}
			each(c)
		}
	}
}

// customerGoal identifies the orders of a customer of a goal.
type customerGoal struct {
	customer uint64
	goal     int64
}

// carriedOf returns the rows without a visitor that a visitor gets, of the customers that the visitor's events of their
// goal name: revisions of the visitor's own orders, and orders of the customers that the visitor's order acquired. They
// are ordered by id and revision. The events are without copies, so that it does not matter whether merges have removed
// these. An event of another goal, such as a log-in, adds no row.
func carriedOf(events, rows []*Event) (carried []*Event) {
	if len(events) == 0 || len(rows) == 0 {
		return nil
	}
	visitor := events[0].Visitor
	named := map[customerGoal]bool{}
	for _, e := range events {
		named[customerGoal{e.Customer, e.Goal}] = true
	}
	rows = slices.DeleteFunc(rows, func(r *Event) bool {
		return !r.isPast() && !named[customerGoal{r.Customer, r.Goal}]
	})
	EachCustomer(rows, func(c *CustomerOrders) {
		if c.IsShared {
			return
		}
		for _, o := range c.Orders {
			acquired := int64(neverAcquired)
			switch {
			case o.Visitor == visitor:
				acquired = revisesAnOwn
			case o.Visitor == 0 && c.Home == visitor:
				acquired = c.First.At
			}
			for _, r := range o.Rows {
				if r.Buyer == 0 && acquired != neverAcquired {
					of := *r
					of.OfCustomer = false
					of.Acquired = acquired
					carried = append(carried, &of)
				}
			}
		}
	})
	slices.SortStableFunc(carried, compareRevision)
	return carried
}

// compareRevision orders rows without exposures by id and revision. Of rows with the same revision, that of the visitor
// is last: its state counts.
func compareRevision(a, b *Event) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision),
		cmp.Compare(oneIf(a.Acquired == 0), oneIf(b.Acquired == 0)))
}

// withCarried returns the goals without exposures of a visitor together with the rows of customers that the visitor
// gets. Both are ordered by id and revision.
func withCarried(bare, carried []*Event) []*Event {
	if len(carried) == 0 {
		return bare
	}
	all := slices.Concat(carried, bare)
	slices.SortStableFunc(all, compareRevision)
	return all
}

// acquiredAt returns when the customer of an order that names no visitor was acquired, by all rows of the order; 0: the
// order is one of the visitor.
func acquiredAt(own, bare []*Event) int64 {
	if len(own) > 0 {
		return 0
	}
	acquired := int64(0)
	for _, e := range bare {
		switch {
		case e.Acquired == 0:
			return 0
		case e.Acquired > 0 && (acquired == 0 || e.Acquired < acquired):
			acquired = e.Acquired
		}
	}
	return acquired
}

// revisesOnly reports whether rows only revise an order that is not among them.
func revisesOnly(rows []*Event) bool {
	return !slices.ContainsFunc(rows, func(e *Event) bool { return e.Acquired != revisesAnOwn })
}
