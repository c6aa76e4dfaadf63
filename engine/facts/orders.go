package facts

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Orders selects the counted goal events of a subject in a range of times.
type Orders struct {
	Subject  schema.Subject
	GoalID   int64 // 0: all goals
	From, To time.Time
}

// OrderSums are the number of some goal events, and the sums of their amounts in 1/schema.MoneyScale.
type OrderSums struct {
	Orders        int64
	Value, Profit big.Int
}

// Add adds an order with its amounts, or other numbers of orders.
func (s *OrderSums) Add(orders int64, value, profit *big.Int) {
	s.Orders += orders
	s.Value.Add(&s.Value, value)
	s.Profit.Add(&s.Profit, profit)
}

// IsZero reports whether all sums are 0.
func (s *OrderSums) IsZero() bool {
	return s.Orders == 0 && s.Value.Sign() == 0 && s.Profit.Sign() == 0
}

// StoredPositions returns the positions of the facts of all shards.
func (s Shards) StoredPositions(ctx context.Context) (all []Position, err error) {
	for _, shard := range s {
		at, err := shard.StoredPosition(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
}

func (o *Orders) params() []any {
	return []any{
		clickhouse.Named("section", SectionOf(o.Subject, fold.OfGoal)), clickhouse.Named("goal_id", o.GoalID),
		clickhouse.Named("from_ms", o.From.UnixMilli()), clickhouse.Named("to_ms", o.To.UnixMilli()),
	}
}

// SumOrders returns the sums of the orders in the facts, by the variation of the rows.
func (s Shards) SumOrders(ctx context.Context, o *Orders) (map[string]*OrderSums, error) {
	sums := map[string]*OrderSums{}
	err := s.eachServer(ctx, "sum the orders", "order_sums.sql", func(row driver.Rows) error {
		var variation string
		var orders int64
		var value, profit *big.Int
		err := row.Scan(&variation, &orders, &value, &profit)
		if err == nil && fold.IsCounted(variation) {
			if sums[variation] == nil {
				sums[variation] = &OrderSums{}
			}
			sums[variation].Add(orders, value, profit)
		}
		return err
	}, o.params()...)
	maps.DeleteFunc(sums, func(_ string, s *OrderSums) bool { return s.IsZero() })
	return sums, err
}

// ReadOrderVisitors returns the visitors of the orders in the facts.
func (s Shards) ReadOrderVisitors(ctx context.Context, o *Orders) (visitors []uint64, err error) {
	err = s.eachServer(ctx, "read the visitors of orders", "order_visitors.sql", func(row driver.Rows) error {
		visitors = append(visitors, 0)
		return row.Scan(&visitors[len(visitors)-1])
	}, o.params()...)
	return visitors, err
}

// FindEventIDs returns which of some ids a website has stored goals with.
func (s Shards) FindEventIDs(ctx context.Context, website int64, ids []uint64) (map[uint64]bool, error) {
	found := map[uint64]bool{}
	for some := range slices.Chunk(ids, visitorsAtOnce) {
		err := s.eachServer(ctx, "find events", "events_with_ids.sql", func(row driver.Rows) error {
			var id uint64
			err := row.Scan(&id)
			found[id] = true
			return err
		}, clickhouse.Named("website_id", website), clickhouse.Named("ids", some))
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// EachVisitorsEvents calls each for the folded events of each visitor of a website.
func (s Shards) EachVisitorsEvents(
	ctx context.Context, website int64, visitors []uint64, each func(events []fold.Event),
) error {
	for some := range slices.Chunk(visitors, visitorsAtOnce) {
		of := make([]schema.Visitor, len(some))
		for i, id := range some {
			of[i] = schema.Visitor{WebsiteID: website, ID: id}
		}
		for _, shard := range s {
			at, err := shard.StoredPosition(ctx)
			if err != nil {
				return err
			}
			events, err := shard.currentServer().readEvents(ctx, of, at.Through)
			if err != nil {
				return err
			}
			for own := range splitVisitors(events) {
				each(own)
			}
		}
	}
	return nil
}

// eachServer calls each for each row of a statement on each shard.
func (s Shards) eachServer(
	ctx context.Context, action, file string, each func(driver.Rows) error, params ...any,
) error {
	for _, shard := range s {
		on := shard.currentServer()
		if err := schema.EachRow(ctx, on, on.render(file, ""), each, params...); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
	}
	return nil
}
