package arrivals

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lifthouse/engine/books"
	"lifthouse/engine/fold"
	"lifthouse/engine/render"
	"lifthouse/schema"
)

// CustomerOrders are the orders of a customer of a website and a goal.
type CustomerOrders struct {
	WebsiteID int64
	*fold.CustomerOrders
}

// mostShown is the maximum number of orders of a customer that are printed.
const mostShown = 1000

// WriteCustomer prints the orders of a customer, and for which visitors those count that name none. It does not print
// what was sent of the customer.
func WriteCustomer(
	w io.Writer, all []CustomerOrders, money map[int64]books.Declaration, keyOf func(schema.NamedID) string,
) error {
	var out strings.Builder
	if len(all) == 0 {
		_, _ = fmt.Fprintln(&out, "No order of this customer is stored. An id is case-sensitive; an e-mail is not.")
	}
	for i, c := range all {
		if i > 0 {
			_, _ = fmt.Fprintln(&out)
		}
		goal := keyOf(schema.NamedID{WebsiteID: c.WebsiteID, Kind: schema.NameGoal, ID: c.Goal})
		_, _ = fmt.Fprintf(&out, "Website %d, goal %s, customer stored as %s: %s.\n", c.WebsiteID,
			cmp.Or(goal, strconv.FormatInt(c.Goal, 10)), schema.FormatCustomer(c.Customer),
			homeInWords(c.CustomerOrders))
		table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "  TIME (UTC)\tORDER\tVALUE\tVISITOR\tCOUNTS")
		orders := slices.SortedFunc(slices.Values(c.Orders), func(a, b *fold.CustomerOrder) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID))
		})
		for _, o := range orders[:min(len(orders), mostShown)] {
			state := o.State()
			visitor := "none"
			if o.Visitor != 0 {
				visitor = fmt.Sprintf("%016x", o.Visitor)
			}
			_, _ = fmt.Fprintf(table, "  %s\t%016x\t%s\t%s\t%s\n", formatMilliseconds(o.At), o.ID,
				amountInWords(jsonAmount(state.Amounts[0]), cmp.Or(state.Foreign, money[c.WebsiteID].Currency)),
				visitor, orderInWords(c.CustomerOrders, o))
		}
		_ = table.Flush()
		if more := len(orders) - mostShown; more > 0 {
			_, _ = fmt.Fprintf(&out, "  and %d more\n", more)
		}
	}
	_, err := io.WriteString(w, render.PrintableText(out.String()))
	return err
}

// homeInWords says whose order won a customer.
func homeInWords(c *fold.CustomerOrders) string {
	switch {
	case c.IsShared:
		return "has more orders or visitors than a person, so orders without a visitor count for nobody"
	case c.IsOld():
		return fmt.Sprintf("had bought before the first order here, at %s, so orders without a visitor count for "+
			"nobody", formatMilliseconds(c.Before))
	case c.Home == 0:
		return "the first order names no visitor, so orders without a visitor count for nobody"
	}
	return fmt.Sprintf("won by the first order of visitor %016x, at %s", c.Home, formatMilliseconds(c.First.At))
}

// orderInWords says for which visitor an order counts.
func orderInWords(c *fold.CustomerOrders, o *fold.CustomerOrder) string {
	switch {
	case o.State().Cancelled:
		return "cancelled"
	case o.Visitor != 0:
		return "for its visitor"
	case c.Home != 0:
		return "for the visitor who won the customer"
	}
	return "for nobody"
}

func formatMilliseconds(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateTime) }
