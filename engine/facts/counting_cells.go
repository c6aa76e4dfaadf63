package facts

import (
	"context"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// readAll reads sums from the cells of all visitors.
func (s *counting) readAll(ctx context.Context, wanted factSums) error {
	for at, cell := range s.all {
		if at.Goal != 0 && !slices.Contains(wanted.goals, at.Goal) {
			continue
		}
		m := s.cellMoments(at.Goal, *cell, wanted)
		if err := s.addMoments(rowKey{key{goal: s.goalKey(at.Goal)}, at.Variation}, &m); err != nil {
			return err
		}
	}
	if !wanted.visitors {
		return nil
	}
	return s.addRecent(ctx)
}

// addRecent adds the visitors of the recent days.
func (s *counting) addRecent(ctx context.Context) (err error) {
	file := "recent.sql"
	if s.days {
		file = "recent_days.sql"
	}
	counts := s.recent.counts
	if hasWindow := !s.Filters.From.IsZero() || !s.Filters.To.IsZero(); counts == nil || hasWindow {
		counts, err = s.countVisitors(ctx, file)
		if err != nil {
			return err
		}
		if !hasWindow {
			s.recent.counts = counts
		}
	}
	for variation, n := range counts {
		m := moments.NoMoments()
		m.Recent = n
		if err := s.addMoments(rowKey{variation: variation}, &m); err != nil {
			return err
		}
	}
	return nil
}

// recentVisitors are the visitors of the recent days of a subject on a server, by variation. Without a window, they
// change only with the subject's facts and with the day, so they are kept once they are known to be read at one
// position.
type recentVisitors struct {
	version recentVersion
	counts  map[string]int64 // nil: not read
	kept    bool
}

type recentVersion struct {
	facts uint64
	from  time.Time
}

// countBytes is the approximate size of the count of a variation.
const countBytes = 64

// countVisitors reads a number of visitors of each variation.
func (s *counting) countVisitors(ctx context.Context, file string) (map[string]int64, error) {
	counts := map[string]int64{}
	err := s.runQuery(ctx, file, s.newQuery(), func(row driver.Rows) error {
		var variation string
		var n int64
		err := row.Scan(&variation, &n)
		counts[variation] = n
		return err
	})
	return counts, err
}

// addDays adds sums of the cells by day, by the buckets of the series if series is true. If oneVariation is true, it
// leaves out multi-exposed visitors.
func (s *counting) addDays(ctx context.Context, wanted factSums, series, oneVariation bool) error {
	q := s.newQuery()
	if series {
		q.Keys = []keyColumn{{"bucket", bucketOf(factTime)}}
	}
	goals := wanted.goals
	if wanted.visitors {
		goals = append([]int64{0}, goals...)
	}
	q.addParam("cell_goals", goals)
	return s.runQuery(ctx, "day_cells.sql", q, func(row driver.Rows) error {
		var at rowKey
		var goal int64
		var large []*big.Int
		to := []any{&at.variation, &goal}
		if series {
			to = append(to, &at.bucket)
		}
		if err := row.Scan(append(to, &large)...); err != nil {
			return err
		}
		if oneVariation && fold.IsMultiExposed(at.variation) {
			return nil
		}
		cell, err := cellOf(large)
		if err != nil {
			return err
		}
		at.goal = s.goalKey(goal)
		m := s.cellMoments(goal, *cell, wanted)
		return s.addMoments(at, &m)
	})
}

// cellMoments returns the moments of the sums of a cell that a report adds.
func (s *counting) cellMoments(goal int64, cell fold.Cell, wanted factSums) moments.Moments {
	if goal != 0 || !wanted.visitors {
		clear(cell.CellSums[:fold.Goals])
	}
	if !slices.Contains(wanted.goals, goal) {
		clear(cell.CellSums[fold.Goals:])
	}
	if s.Subject.Kind != schema.SubjectWidget { // reports of campaigns have views and goals only
		clear(cell.CellSums[fold.Clicks : fold.Conversed+1])
	}
	return cell.AsMoments()
}
