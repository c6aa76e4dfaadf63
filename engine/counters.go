package engine

import (
	"context"
	"math/big"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Counters are what a campaign has gathered since it exists: all events, also
// those that a report leaves out. Goals and value are of the primary goal.
type Counters struct {
	Views, GoalsReached, Value int64
}

// Counters returns the counters of the given campaigns by id. A campaign
// without events has none.
func (e *Engine) Counters(ctx context.Context, campaigns []catalogue.LiveCampaign) (map[int64]Counters, error) {
	primary := make(map[int64]int64, len(campaigns))
	websites := map[int64]bool{}
	query := &Query{Params: []Param{{"subject", string(schema.SubjectCampaign)}}}
	var ids []int64
	for _, c := range campaigns {
		primary[c.ID] = c.PrimaryGoalID
		if !websites[c.WebsiteID] {
			websites[c.WebsiteID] = true
			ids = append(ids, c.WebsiteID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	query.Params = append(query.Params, Param{"website_ids", ids})
	if err := query.render("counters.sql", struct{}{}); err != nil {
		return nil, err
	}
	counters := map[int64]Counters{}
	err := e.store.each(ctx, query, func(row driver.Rows) error {
		var campaign, goal int64
		var event string
		var events uint64
		var value big.Int
		if err := row.Scan(&campaign, &event, &goal, &events, &value); err != nil {
			return err
		}
		c := counters[campaign]
		switch {
		case event == string(schema.KindView):
			c.Views += int64(events)
		case event == string(schema.KindGoal) && goal == primary[campaign]:
			c.GoalsReached, c.Value = int64(events), wholeMoney(&value)
		}
		counters[campaign] = c
		return nil
	})
	return counters, err
}

// wholeMoney rounds an amount to whole units, halves away from zero.
func wholeMoney(units *big.Int) int64 {
	half := big.NewInt(schema.MoneyScale / 2)
	if units.Sign() < 0 {
		half.Neg(half)
	}
	return new(big.Int).Quo(new(big.Int).Add(units, half), big.NewInt(schema.MoneyScale)).Int64()
}
