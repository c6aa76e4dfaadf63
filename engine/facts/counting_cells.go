package facts

import (
	"context"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// sumCells returns sums of the cells of all visitors.
func (c *counting) sumCells(wanted factSums) (counts, error) {
	found := counts{}
	for at, cell := range c.on.all {
		if at.Goal != 0 && !slices.Contains(wanted.goals, at.Goal) {
			continue
		}
		m := c.cellMoments(at.Goal, *cell, wanted)
		if err := found.addVariation(key{goal: c.goalKey(at.Goal)}, at.Variation, &m); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// goalKey returns the goal in the key of sums.
func (c *counting) goalKey(goal int64) int64 {
	if c.of.goals == nil {
		return 0
	}
	return goal
}

// recentVisitors are the visitors of the recent days of a subject on a server, by variation. Without a window, they
// change only with the subject's facts and with the day, so they are kept once they are known to be read at one
// position.
type recentVisitors struct {
	version recentVersion
	counts  counts // nil: not read
	kept    bool
}

type recentVersion struct {
	facts uint64
	from  time.Time
}

// countBytes is the approximate size of the count of a variation.
const countBytes = 1000

// runsDays returns the part of the sums of cells by day, of a series by its buckets. If crossings are read, a series
// has no multi-exposed visitors.
func (c *counting) runsDays(wanted factSums, series bool) part {
	return func(ctx context.Context) (counts, error) { return c.sumDays(ctx, wanted, series) }
}

func (c *counting) sumDays(ctx context.Context, wanted factSums, series bool) (counts, error) {
	of := clauses{
		about:   "one row per variation, goal and day: sums of the cells by day",
		columns: []column{{"", "variation"}, {"", "goal_id"}, {"bucket", "toInt64(0)"}},
		from:    c.selection.Facts,
		where: append(
			[]string{"section = {days:UInt64}", "goal_id IN {cell_goals:Array(Int64)}"}, c.timesOfDays()...),
		groups: []string{"variation", "goal_id", "bucket"},
	}
	if series {
		of.columns[2].sql = bucketOf(factTime)
	}
	// The extent in a cell has no meaning in their sum.
	of.columns = append(of.columns, column{"of_cell", "sumForEach(arrayMap(x -> sign * x, sums))"})
	goals := wanted.goals
	if wanted.visitors {
		goals = append([]int64{0}, goals...)
	}
	params := slices.Clone(c.selection.params)
	params.add("cell_goals", goals)
	withCrossers := !series || !c.asked.hasCrossers
	found := counts{}
	return found, c.store.EachRow(ctx, of.withSettings(c.selection.few), params, func(row driver.Rows) error {
		var at key
		var variation string
		var goal int64
		var large []*big.Int
		if err := row.Scan(&variation, &goal, &at.bucket, &large); err != nil {
			return err
		}
		if !withCrossers && fold.IsMultiExposed(variation) {
			return nil
		}
		cell, err := cellOf(large)
		if err != nil {
			return err
		}
		at.goal = c.goalKey(goal)
		m := c.cellMoments(goal, *cell, wanted)
		return found.addVariation(at, variation, &m)
	})
}

// timesOfDays returns the conditions of the cells by day of the window of times: no first view before it, and no event
// after it.
func (c *counting) timesOfDays() (conditions []string) {
	if !c.of.Filters.From.IsZero() {
		conditions = append(conditions, firstTime+" >= {from_ms:Int64}")
	}
	if c.selection.endsEarly {
		conditions = append(conditions, factTime+" < {to_ms:Int64}")
	}
	return conditions
}

// cellMoments returns the moments of the sums of a cell that a report adds.
func (c *counting) cellMoments(goal int64, cell fold.Cell, wanted factSums) moments.Moments {
	if goal != 0 || !wanted.visitors {
		clear(cell.CellSums[:fold.Goals])
	}
	if !slices.Contains(wanted.goals, goal) {
		clear(cell.CellSums[fold.Goals:])
	}
	if !isOfWidget(c.of.Subject) { // reports of campaigns have views and goals only
		clear(cell.CellSums[fold.Clicks : fold.Conversed+1])
	}
	return cell.AsMoments()
}
