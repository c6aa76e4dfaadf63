package facts

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// customerOf identifies a customer of a website.
type customerOf struct {
	website int64
	id      uint64
}

// limitParams are the parameters with the limits above which a customer has no home.
func limitParams() []any {
	most := fold.LimitsOfCustomers
	return []any{
		clickhouse.Named("orders", most.Orders), clickhouse.Named("buyers", most.Buyers),
		clickhouse.Named("rows", most.Rows),
	}
}

// readCustomers calls each for the rows of some customers that were accepted until a time. If all is false, only the
// goals with orders that name no visitor are read: the others change the facts of nobody but their visitor.
func (s *server) readCustomers(
	ctx context.Context, customers map[customerOf]bool, through int64, all bool, each func(customerOf, *fold.Event),
) error {
	websites := map[int64]bool{}
	var ids []uint64
	for of := range customers {
		websites[of.website] = true
		ids = append(ids, of.id)
	}
	kept := s.currentBooks()
	most := int64(math.MaxInt64)
	if all { // a shared customer may have any number of orders; these suffice to know that it is shared
		most = int64(len(ids)) * 2 * fold.LimitsOfCustomers.Rows
	}
	params := append(limitParams(), clickhouse.Named("most", most),
		clickhouse.Named("websites", slices.Sorted(maps.Keys(websites))), clickhouse.Named("customers", ids),
		clickhouse.Named("through", through), clickhouse.Named("all", all))
	err := schema.EachRow(ctx, s, s.render("customers.sql", ""), func(row driver.Rows) error {
		e := fold.Event{Kind: moments.Goal, OfCustomer: true}
		var of customerOf
		var details string
		err := row.Scan(&of.website, &of.id, &e.Goal, &e.ID, &e.Buyer, &e.Revision, &e.Cancelled, &e.At, &e.Amounts[0],
			&e.Amounts[1], &e.Amounts[2], &e.Accepted, &e.Version, &details)
		if err != nil || !customers[of] {
			return err
		}
		e.Subject = schema.Subject{WebsiteID: of.website, Kind: schema.SubjectNone}
		decoded, err := schema.DecodeDetails(details)
		if details != "" {
			e.SetDetails(details, &decoded, kept.of[of.website])
		}
		e.Customer = of.id
		each(of, &e)
		return err
	}, params...)
	return schema.WrapError(err, "read the orders of customers")
}

// addCustomers appends to the events of visitors the rows of the customers that they name, for each of these visitors:
// orders without a visitor may count for them.
func (s *server) addCustomers(ctx context.Context, events []fold.Event, through int64) ([]fold.Event, error) {
	visitors := map[customerOf]map[uint64]bool{}
	asked := map[customerOf]bool{}
	for i := range events {
		e := &events[i]
		if e.Customer == 0 {
			continue
		}
		of := customerOf{e.Subject.WebsiteID, e.Customer}
		if visitors[of] == nil {
			visitors[of] = map[uint64]bool{}
			asked[of] = true
		}
		visitors[of][e.Visitor] = true
	}
	if len(asked) == 0 {
		return events, nil
	}
	err := s.readCustomers(ctx, asked, through, false, func(of customerOf, row *fold.Event) {
		for visitor := range visitors[of] {
			row.Visitor = visitor
			events = append(events, *row)
		}
	})
	return events, err
}

// ReadCustomers returns all rows of customers of a website that are folded.
func (s Shards) ReadCustomers(ctx context.Context, website int64, ids []uint64) (rows []*fold.Event, err error) {
	if len(ids) == 0 || len(s) == 0 {
		return nil, nil
	}
	asked := map[customerOf]bool{}
	for _, id := range ids {
		asked[customerOf{website, id}] = true
	}
	at, err := s[0].StoredPosition(ctx) // each server has the orders of all customers
	if err != nil {
		return nil, err
	}
	err = s[0].currentServer().readCustomers(ctx, asked, at.Through, true, func(_ customerOf, row *fold.Event) {
		own := *row
		rows = append(rows, &own)
	})
	if err != nil {
		return nil, fmt.Errorf("look up customers: %w", err)
	}
	return rows, nil
}

// readCarried returns the orders without a visitor that count for visitors that the report counts.
func (s *sums) readCarried(ctx context.Context) (found moments.Carried, err error) {
	for i := range s.states {
		for of, cell := range s.states[i].all {
			orders := cell.CountAt(fold.CarriedGoals)
			revised := cell.CountAt(fold.RevisedGoals)
			isExcluded := fold.IsMultiExposed(of.Variation) && s.MultipleExposures != catalogue.FirstVariation
			id, notCounted := strconv.ParseInt(strings.TrimSuffix(of.Variation, fold.MultiExposed), 10, 64)
			isAsked := of.Goal == s.GoalID && notCounted == nil && !isExcluded
			if !isAsked || orders+revised == 0 {
				continue
			}
			if found.Of == nil {
				found.Of = map[int64]moments.CarriedOrders{}
			}
			n := found.Of[id]
			n.Orders += orders
			n.Revised += revised
			if n.Value == nil {
				n.Value = new(big.Int)
			}
			n.Value.Add(n.Value, cell.CellSums[fold.CarriedValue].BigInt())
			found.Of[id] = n
		}
	}
	if found.Of == nil {
		return found, nil
	}
	on := s.Shards[0].currentServer()
	row := on.QueryRow(ctx, on.render("first_history.sql", ""),
		clickhouse.Named("website", s.Subject.WebsiteID))
	if err := row.Scan(&found.FirstHistory); err != nil {
		return found, fmt.Errorf("read since when customers are known: %w", err)
	}
	found.FirstHistory = found.FirstHistory.UTC()
	return found, nil
}
