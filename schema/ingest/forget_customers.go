package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// ErasedCustomers counts the stored data of customers.
type ErasedCustomers struct {
	Orders   uint64 // and times at which they had bought
	Visitors int    // that the orders name
}

// CountCustomers counts the stored data of customers.
func (w *Writer) CountCustomers(ctx context.Context, customers []schema.Customer) (found ErasedCustomers, err error) {
	of := namedCustomers(customers)
	if err := w.conn.QueryRow(ctx, statements["count_orders"], of...).Scan(&found.Orders); err != nil {
		return found, fmt.Errorf("count the orders of customers: %w", err)
	}
	visitors, err := w.visitorsOf(ctx, customers)
	found.Visitors = len(visitors)
	return found, err
}

// visitorsOf returns the visitors that the orders of customers name.
func (w *Writer) visitorsOf(ctx context.Context, customers []schema.Customer) ([]schema.Visitor, error) {
	visitors, err := schema.QueryRows(ctx, w.conn, statements["visitors_of_customers"], scanVisitor,
		namedCustomers(customers)...)
	return visitors, schema.WrapError(err, "look up the visitors of customers")
}

func scanVisitor(row driver.Rows, v *schema.Visitor) error { return row.Scan(&v.WebsiteID, &v.ID) }

// ForgetCustomers deletes the orders of customers, and all data of the visitors that these name. If keepVisitors is
// set, it deletes of the visitors only the events that name the customers. texts are the customers as they were sent.
// Writes wait until it returns. To finish an interrupted deletion, call ForgetCustomers again.
func (w *Writer) ForgetCustomers(
	ctx context.Context, customers []schema.Customer, texts []string, keepVisitors bool,
) (erased ErasedCustomers, err error) {
	err = w.PauseWrites(ctx, func() error {
		ctx := context.WithoutCancel(ctx)
		defer w.facts.HoldScrubs()()
		erased, err = w.CountCustomers(ctx, customers)
		if err != nil {
			return err
		}
		visitors, err := w.visitorsOf(ctx, customers)
		if err != nil {
			return err
		}
		gone := visitors
		if keepVisitors {
			gone = nil
		}
		related, err := w.relatedVisitors(ctx, gone)
		if err != nil {
			return err
		}
		of := append(namedCustomers(customers), namedPairs(gone)...)
		inInbox := append(namedPairs(gone), clickhouse.Named("texts", lowerTexts(texts)))
		err = w.conn.Exec(ctx, statements["forget_inbox_customers"], inInbox...)
		if err == nil {
			err = schema.DeleteEvents(ctx, w.conn, statements["forget_buyers"], of...)
		}
		if err == nil {
			err = w.conn.Exec(ctx, statements["forget_orders"], of...)
		}
		if err != nil {
			return fmt.Errorf("erase customers: %w", err)
		}
		if keepVisitors {
			return w.facts.RefoldVisitors(ctx, visitors)
		}
		return w.eraseFacts(ctx, gone, related)
	})
	return erased, err
}

// DropOldCustomers deletes the orders of customers whose last order is older than a time and of whose visitors no event
// is left. It returns their number. No visitor has facts of these orders.
func (w *Writer) DropOldCustomers(ctx context.Context, before time.Time) (dropped int, err error) {
	err = w.PauseWrites(ctx, func() error {
		old, err := schema.QueryRows(ctx, w.conn, statements["old_customers"],
			func(row driver.Rows, c *schema.Customer) error { return row.Scan(&c.WebsiteID, &c.ID) },
			clickhouse.DateNamed("before", before, clickhouse.MilliSeconds))
		if err != nil || len(old) == 0 {
			return schema.WrapError(err, "look up old customers")
		}
		for some := range slices.Chunk(old, customersAtOnce) {
			err := w.conn.Exec(ctx, statements["forget_orders"], append(namedCustomers(some), namedPairs(nil)...)...)
			if err != nil {
				return fmt.Errorf("drop old customers: %w", err)
			}
			dropped += len(some)
		}
		return nil
	})
	return dropped, err
}

// customersAtOnce is the number of customers whose rows are deleted at once.
const customersAtOnce = 10_000

// relatedVisitors returns the visitors that the customers of some visitors name besides: orders that name no visitor
// may count for others of them when the orders of these visitors are deleted.
func (w *Writer) relatedVisitors(ctx context.Context, of []schema.Visitor) ([]schema.Visitor, error) {
	if len(of) == 0 {
		return nil, nil
	}
	related, err := schema.QueryRows(ctx, w.conn, statements["related_visitors"], scanVisitor, namedPairs(of)...)
	return related, schema.WrapError(err, "look up the visitors of customers")
}

// forgetOrders deletes the rows of customers that name visitors, whose ids are given as they were sent. It returns the
// related visitors.
func (w *Writer) forgetOrders(ctx context.Context, visitors []string, websites []int64) ([]schema.Visitor, error) {
	found, err := schema.QueryRows(ctx, w.conn, statements["visitors_of_orders"], scanVisitor,
		namedVisitors(visitors, websites)...)
	if err != nil || len(found) == 0 {
		return nil, schema.WrapError(err, "look up the orders of visitors")
	}
	related, err := w.relatedVisitors(ctx, found)
	if err != nil {
		return nil, err
	}
	err = w.conn.Exec(ctx, statements["forget_orders"], append(namedCustomers(nil), namedPairs(found)...)...)
	return related, schema.WrapError(err, "erase the orders of visitors")
}

// eraseFacts deletes the facts of visitors whose events are deleted, and computes those of related visitors again.
func (w *Writer) eraseFacts(ctx context.Context, gone, related []schema.Visitor) error {
	if len(gone) > 0 {
		slices.SortFunc(gone, schema.Visitor.Compare)
		if err := w.facts.EraseVisitors(ctx, slices.Compact(gone)); err != nil {
			return err
		}
	}
	return w.facts.RefoldVisitors(ctx, related)
}

// lowerTexts returns texts without white space around them and in lower case.
func lowerTexts(texts []string) []string {
	lower := make([]string, len(texts))
	for i, text := range texts {
		lower[i] = strings.ToLower(strings.TrimSpace(text))
	}
	return lower
}

// namedCustomers returns the parameters of customers.
func namedCustomers(customers []schema.Customer) []any {
	websites := make([]int64, len(customers))
	ids := make([]uint64, len(customers))
	names := make([]string, len(customers))
	for i, c := range customers {
		websites[i] = c.WebsiteID
		ids[i] = c.ID
		names[i] = schema.FormatCustomer(c.ID)
	}
	return []any{
		clickhouse.Named("customer_websites", websites), clickhouse.Named("customer_ids", ids),
		clickhouse.Named("customer_names", names),
	}
}

// namedPairs returns the parameters of visitors of websites.
func namedPairs(visitors []schema.Visitor) []any {
	websites := make([]int64, len(visitors))
	ids := make([]uint64, len(visitors))
	for i, v := range visitors {
		websites[i] = v.WebsiteID
		ids[i] = v.ID
	}
	return []any{clickhouse.Named("visitor_websites", websites), clickhouse.Named("visitor_ids", ids)}
}
