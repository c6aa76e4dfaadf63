package reconcile

import (
	"context"
	"slices"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
)

// orderOf identifies an order of a customer.
type orderOf struct{ customer, event uint64 }

// customersAtOnce is the number of customers whose orders are read at once.
const customersAtOnce = 10_000

// findBuyers finds the visitors for which the orders of the export count that name none, by the stored orders of their
// customers: the visitor that another row of the order names, or else the one whose order won the customer.
func (c *Comparison) findBuyers(ctx context.Context, shards facts.Shards) error {
	byOrder := map[orderOf]*ExportedOrder{}
	var customers []uint64
	for _, row := range c.Rows {
		if row.Line == open && row.customer != 0 {
			byOrder[orderOf{row.customer, row.Event}] = row
			customers = append(customers, row.customer)
		}
	}
	slices.Sort(customers)
	for some := range slices.Chunk(slices.Compact(customers), customersAtOnce) {
		stored, err := shards.ReadCustomers(ctx, c.plan.Subject.WebsiteID, some)
		if err != nil {
			return err
		}
		fold.EachCustomer(stored, func(of *fold.CustomerOrders) {
			for _, o := range of.Orders {
				row := byOrder[orderOf{of.Customer, o.ID}]
				if row != nil && c.isGoal(of.Goal) {
					row.setBuyer(of, o)
				}
			}
		})
	}
	return nil
}

// setBuyer sets the visitor for which a stored order of a customer counts.
func (row *ExportedOrder) setBuyer(of *fold.CustomerOrders, o *fold.CustomerOrder) {
	switch {
	case o.Visitor != 0:
		row.Visitor = o.Visitor
	case of.Home != 0:
		row.Visitor = of.Home
		row.isCarried = true
	case o.State().Cancelled:
		row.Line = CancelledHere
	default:
		row.Line = NoHome
	}
}
