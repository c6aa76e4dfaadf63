package facts

import (
	"context"
	"fmt"
	"math"
	"slices"

	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Order is a counted goal event, or, with negative numbers, one that a refresh has replaced.
type Order struct {
	Visitor               uint64
	Variation             string // as in rows
	Number, Value, Profit int64  // Number is 1 or -1
}

// EachOrder calls each for the counted goal events of a question's subject and goal, whose own time is in its window,
// and whose age in its conversion window. Only visitors first exposed until mature count.
func (s Shards) EachOrder(ctx context.Context, q *plan.Question, mature int64, each func(*Order)) error {
	var order Order
	ages := q.ConversionWindow
	if !ages.IsSet() {
		ages.To = math.MaxInt64
	}
	return s.eachServer(ctx, "orders.sql", func(row driver.Rows) error {
		err := row.Scan(&order.Visitor, &order.Variation, &order.Number, &order.Value, &order.Profit)
		each(&order)
		return err
	}, clickhouse.Named("section", SectionOf(q.Subject, fold.OfGoal)), clickhouse.Named("goal_id", q.GoalID),
		clickhouse.Named("from_ms", q.WindowStart().UnixMilli()), clickhouse.Named("to_ms", q.WindowEnd().UnixMilli()),
		clickhouse.Named("age_from_ms", ages.From.Milliseconds()),
		clickhouse.Named("age_to_ms", ages.To.Milliseconds()), clickhouse.Named("mature_ms", mature))
}

// FindGoalIDs returns which of some event ids a website has stored goals with.
func (s Shards) FindGoalIDs(ctx context.Context, website int64, ids []uint64) (map[uint64]bool, error) {
	found := map[uint64]bool{}
	for some := range slices.Chunk(ids, visitorsAtOnce) {
		if err := s.eachServer(ctx, "goal_ids.sql", func(row driver.Rows) error {
			var id uint64
			err := row.Scan(&id)
			found[id] = true
			return err
		}, clickhouse.Named("website_id", website), clickhouse.Named("ids", some)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// eachServer calls each for each row of a statement on each shard.
func (s Shards) eachServer(ctx context.Context, file string, each func(driver.Rows) error, params ...any) error {
	for _, shard := range s {
		on := shard.currentServer()
		if err := schema.EachRow(ctx, on, on.render(file, ""), each, params...); err != nil {
			return fmt.Errorf("read orders: %w", err)
		}
	}
	return nil
}

// EachVisitorsEvents calls each for the folded events of each visitor of a website.
func (s Shards) EachVisitorsEvents(ctx context.Context, website int64, ids []uint64, each func([]fold.Event)) error {
	for _, shard := range s {
		at, err := shard.StoredPosition(ctx)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(ids, visitorsAtOnce) {
			visitors := make([]schema.Visitor, len(some))
			for i, id := range some {
				visitors[i] = schema.Visitor{WebsiteID: website, ID: id}
			}
			events, err := shard.currentServer().readEvents(ctx, visitors, at.Through)
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
