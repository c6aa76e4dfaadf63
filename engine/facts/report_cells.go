package facts

import (
	"context"
	"math/big"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/fold"
	"lifthouse/engine/moments"
	"lifthouse/engine/query"
	"lifthouse/engine/source"
	"lifthouse/schema"
)

// A report about all visitors is read from cells: hundreds of rows in place of millions.

// hasCells reports whether cells have the sums of the report, and whether these are the cells by
// day. Subjects with fewer visitors than leastVisitorsByDay have none by day.
func (x part) hasCells() (byDay, has bool) {
	switch f := &x.Filters; {
	case len(f.Lists) > 0, len(f.Texts) > 0, f.GoalValue != nil, f.ZScore != 0:
		return false, false
	case x.Cap != nil, x.Dimension != "", len(x.SharePeriods) > 1:
		return false, false
	case f.From.IsZero() && f.To.IsZero() && x.Interval == "":
		return false, true
	}
	return true, isWholeDay(x.Filters.From) && isWholeDay(x.Filters.To) && x.days && x.Interval != query.Hourly
}

// isWholeDay reports whether an end of a window is open or at midnight UTC.
func isWholeDay(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }

// readCells reads the sums from the cells.
func (s *counting) readCells(ctx context.Context, byDay bool) error {
	if !byDay {
		if err := s.addAll(); err != nil {
			return err
		}
	} else if err := s.addDays(ctx, false, false); err != nil {
		return err
	}
	if !s.Filters.From.IsZero() {
		before := key{RowKey: moments.RowKey{ExposedBefore: true}}
		if err := s.readCount(ctx, "before.sql", before, func(m *moments.Moments) any { return &m.Visitors }); err != nil {
			return err
		}
	}
	file := "recent.sql"
	if s.days {
		file = "recent_days.sql"
	}
	return s.readCount(ctx, file, key{}, func(m *moments.Moments) any { return &m.Recent })
}

// readCount reads a number of visitors of each variation. target returns where to scan it.
func (s *counting) readCount(ctx context.Context, file string, at key, target func(*moments.Moments) any) error {
	return s.runStatement(ctx, file, func(row driver.Rows) error {
		var variation string
		m := moments.NoMoments()
		if err := row.Scan(&variation, target(&m)); err != nil {
			return err
		}
		return s.addMoments(variation, at, &m)
	})
}

// addAll adds the sums of the cells of all visitors.
func (s *counting) addAll() error {
	for of, cell := range s.all {
		if of.Goal != 0 && (of.Goal != s.GoalID) {
			continue
		}
		m := s.cellMoments(of.Goal, *cell)
		if err := s.addMoments(of.Variation, key{}, &m); err != nil {
			return err
		}
	}
	return nil
}

// hasCrossers reports whether any visitor is multi-exposed.
func (s *counting) hasCrossers() bool {
	for of := range s.all {
		if strings.HasSuffix(of.Variation, fold.MultiExposed) {
			return true
		}
	}
	return false
}

// addDays adds the sums of the cells by day, by the buckets of the series if series is true. If oneVariation is true,
// it leaves out multi-exposed visitors.
func (s *counting) addDays(ctx context.Context, series, oneVariation bool) error {
	q, slots := s.newQuery()
	goals := []int64{0}
	if slots.Series = series; series {
		slots.Bucket = bucketOf(factTime)
	}
	if s.GoalID != 0 {
		goals = append(goals, s.GoalID)
	}
	q.Params = append(q.Params, source.Param{Name: "cell_goals", Value: goals})
	if err := q.RenderFrom(reportTemplates, "day_cells.sql", slots); err != nil {
		return err
	}
	return s.store.EachRow(ctx, q, func(row driver.Rows) error {
		var variation string
		var goal int64
		var at key
		var large []*big.Int
		if err := row.Scan(&variation, &goal, &at.bucket, &large); err != nil {
			return err
		}
		if oneVariation && strings.HasSuffix(strings.TrimSuffix(variation, cancels), fold.MultiExposed) {
			return nil
		}
		cell, err := cellOf(large)
		if err != nil {
			return err
		}
		m := s.cellMoments(goal, *cell)
		return s.addMoments(variation, at, &m)
	})
}

// cellMoments returns the moments of a cell that belong to the report: of visitors, and of the
// report's goal or of all goals.
func (s *counting) cellMoments(goal int64, cell fold.Cell) moments.Moments {
	if goal == 0 && s.GoalID != 0 {
		clear(cell.Sums[fold.Goals:])
	}
	if s.Subject.Kind != schema.SubjectWidget { // reports of campaigns have views and goals only
		clear(cell.Sums[fold.Clicks : fold.Conversed+1])
	}
	return cell.AsMoments()
}
