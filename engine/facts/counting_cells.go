package facts

import (
	"context"
	"math/big"
	"slices"
	"time"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/query"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A report about all visitors is read from cells: hundreds of rows in place of millions.

// hasCells reports whether cells have the sums of visitors and of goal events of the report, apart from what a cap
// removes, and whether these are the cells by day. Subjects with fewer visitors than leastVisitorsByDay have none by
// day. Filters of goal events do not change the sums of visitors.
func (s *counting) hasCells() (byDay, visitors, goals bool) {
	f, window := &s.Filters, s.ConversionWindow.IsSet()
	byDay = !f.From.IsZero() || !f.To.IsZero() || s.Interval != ""
	switch {
	case len(f.Lists) > 0, len(f.Texts) > 0, s.Dimension != "", len(s.SharePeriods) > 1:
		return byDay, false, false
	case byDay && (!isWholeDay(f.From) || !isWholeDay(f.To) || !s.days || s.Interval == query.Hourly):
		return byDay, false, false
	}
	isWhole := f.GoalValue == nil && f.ZScore == 0 && (!s.isCapped || s.isEveryEvent)
	return byDay, !window, !window && isWhole
}

// isWholeDay reports whether an end of a window is open or at midnight UTC.
func isWholeDay(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }

// readAll reads sums from the cells of all visitors.
func (s *counting) readAll(ctx context.Context, wanted factSums) error {
	if err := s.addAll(wanted); err != nil || !wanted.visitors {
		return err
	}
	return s.addRecent(ctx)
}

// readDays reads sums from the cells by day.
func (s *counting) readDays(ctx context.Context, wanted factSums) error {
	if err := s.addDays(ctx, wanted, false, false); err != nil || !wanted.visitors {
		return err
	}
	if !s.Filters.From.IsZero() {
		before, err := s.countVisitors(ctx, "before.sql")
		if err != nil {
			return err
		}
		for variation, n := range before {
			m := moments.NoMoments()
			m.Visitors = n
			if err := s.addMoments(variation, key{RowKey: moments.RowKey{ExposedBefore: true}}, &m); err != nil {
				return err
			}
		}
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
		if counts, err = s.countVisitors(ctx, file); err != nil {
			return err
		}
		if !hasWindow {
			s.recent.counts = counts
		}
	}
	for variation, n := range counts {
		m := moments.NoMoments()
		m.Recent = n
		if err := s.addMoments(variation, key{}, &m); err != nil {
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

// factSums are the sums that a report adds.
type factSums struct {
	visitors bool    // of visitors
	goals    []int64 // of the events of these goals; 0: of all goals
}

// addAll adds sums of the cells of all visitors.
func (s *counting) addAll(wanted factSums) error {
	for at, cell := range s.all {
		if at.Goal != 0 && !slices.Contains(wanted.goals, at.Goal) {
			continue
		}
		m := s.cellMoments(at.Goal, *cell, wanted)
		if err := s.addMoments(at.Variation, key{goal: s.goalKey(at.Goal)}, &m); err != nil {
			return err
		}
	}
	return nil
}

// goalKey returns the goal in the key of sums.
func (s *counting) goalKey(goal int64) int64 {
	if s.goals == nil {
		return 0
	}
	return goal
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
		var variation string
		var goal int64
		var at key
		var large []*big.Int
		to := []any{&variation, &goal}
		if series {
			to = append(to, &at.bucket)
		}
		if err := row.Scan(append(to, &large)...); err != nil {
			return err
		}
		if oneVariation && fold.IsMultiExposed(variation) {
			return nil
		}
		cell, err := cellOf(large)
		if err != nil {
			return err
		}
		at.goal = s.goalKey(goal)
		m := s.cellMoments(goal, *cell, wanted)
		return s.addMoments(variation, at, &m)
	})
}

// cellMoments returns the moments of the sums of a cell that a report adds.
func (s *counting) cellMoments(goal int64, cell fold.Cell, wanted factSums) moments.Moments {
	if goal != 0 || !wanted.visitors {
		clear(cell.Sums[:fold.Goals])
	}
	if !slices.Contains(wanted.goals, goal) {
		clear(cell.Sums[fold.Goals:])
	}
	if s.Subject.Kind != schema.SubjectWidget { // reports of campaigns have views and goals only
		clear(cell.Sums[fold.Clicks : fold.Conversed+1])
	}
	return cell.AsMoments()
}
