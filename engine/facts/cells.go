package facts

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/cache"
	"lifthouse/engine/fold"
	"lifthouse/schema"
)

// cells has the part of the stored cells that refreshes need.
type cells struct {
	leastByDay int64                         // number of visitors from which a subject has cells by day
	byDay      map[schema.Subject]bool       // subjects with cells by day
	all        map[schema.Subject]fold.Cells // cells of the grain fold.OfAll
	days       *cache.Cache                  // cells of the grain fold.OfDay that were needed last, by firstDay
}

// firstDay identifies the cells by day of a goal of a subject whose visitors had their first view on a day.
type firstDay struct {
	schema.Subject
	goal, first int64
}

// leastVisitorsByDay is the number of visitors from which a subject has cells by day. Smaller subjects do not need
// them: their reports over days are fast anyway.
const leastVisitorsByDay = 20_000

// allOf returns the cells of the grain fold.OfAll of a subject.
func (c *cells) allOf(subject schema.Subject) fold.Cells {
	if c.all[subject] == nil {
		c.all[subject] = fold.Cells{}
	}
	return c.all[subject]
}

// anyDay is the first changed day of a subject if it is not known.
const anyDay int64 = 0

// appendSumChanges appends the changes of the cells if the rows of visitors change from had to want, and updates the
// cells in memory. It adds the subjects of these rows to subjects, each with the first day whose sums change, in days
// since 1970. Sums of multi-exposed visitors may change on any day.
func (c *cells) appendSumChanges(
	ctx context.Context, from *server, subjects map[schema.Subject]int64, changes []fold.Change,
	had, want []fold.FactRow,
) ([]fold.Change, error) {
	added := addedCells(subjects, had, want)
	maps.DeleteFunc(added, func(key fold.CellKey, _ *fold.Cell) bool {
		return key.Grain == fold.OfDay && !c.byDay[key.Subject]
	})
	stored, err := c.cellsByDay(ctx, from, added)
	if err != nil {
		return nil, err
	}
	if err := c.divideByDay(ctx, from, subjects, added, had, want); err != nil {
		return nil, err
	}
	for key, cell := range added {
		of := c.allOf(key.Subject)
		if key.Grain == fold.OfDay {
			day := firstDayOf(&key)
			if stored[day] == nil {
				stored[day] = fold.Cells{}
			}
			of = stored[day]
		}
		changes = appendCellChange(changes, of, key, cell)
	}
	const cellBytes = 700 // of a cell and its key
	for day, cells := range stored {
		c.days.StoreValue(day, nil, cells, int64(len(cells))*cellBytes)
	}
	return changes, nil
}

// addedCells returns what is added to cells if the rows of visitors change from had to want, and adds their subjects to
// subjects, see appendSumChanges.
func addedCells(subjects map[schema.Subject]int64, had, want []fold.FactRow) fold.Cells {
	added := fold.Cells{}
	eachChanged(had, want, func(rows []fold.FactRow, sign int64) {
		subject := rows[0].Subject
		if _, has := subjects[subject]; !has {
			subjects[subject] = math.MaxInt64
		}
		for i := range rows {
			if fold.IsMultiExposed(rows[i].Variation) {
				subjects[subject] = anyDay
			}
		}
		added.AddRows(rows, sign, true)
	})
	for key, cell := range added {
		if key.Grain == fold.OfDay && cell.CellSums != (fold.CellSums{}) {
			subjects[key.Subject] = min(subjects[key.Subject], key.First+key.Day)
		}
	}
	return added
}

// divideByDay adds the cells by day of the subjects that now have enough visitors for them. The first ones of a subject
// are the sums of its stored visitors, changed from had to want.
func (c *cells) divideByDay(
	ctx context.Context, from *server, subjects map[schema.Subject]int64, added fold.Cells, had, want []fold.FactRow,
) error {
	more := visitorsOf(added)
	for subject := range subjects {
		if c.byDay[subject] || more[subject]+visitorsOf(c.all[subject])[subject] < c.leastByDay {
			continue
		}
		sums, err := from.sumRows(ctx, subject)
		if err != nil {
			return err
		}
		eachChanged(had, want, func(rows []fold.FactRow, sign int64) {
			if rows[0].Subject == subject {
				sums.AddRows(rows, sign, true)
			}
		})
		for key, cell := range sums {
			if key.Grain == fold.OfDay {
				added[key] = cell
			}
		}
		c.byDay[subject] = true
	}
	return nil
}

// appendCellChange appends the change of a cell to which another one is added, and updates the cell.
func appendCellChange(changes []fold.Change, of fold.Cells, key fold.CellKey, added *fold.Cell) []fold.Change {
	now := *added
	old := of[key]
	if old != nil {
		now.AddSigned(&old.CellSums, 1)
		now.ExtendBy(&old.Extent)
		if now == *old {
			return changes
		}
		changes = append(changes, fold.Change{FactRow: cellRow(&key, old), Cancels: true})
	}
	if now.CellSums == (fold.CellSums{}) {
		delete(of, key)
		return changes
	}
	of[key] = &now
	return append(changes, fold.Change{FactRow: cellRow(&key, &now)})
}

func firstDayOf(key *fold.CellKey) firstDay { return firstDay{key.Subject, key.Goal, key.First} }

// eachChanged calls each for the rows of each visitor of each subject: with the sign -1 for the old rows, and with 1
// for the wanted rows.
func eachChanged(had, want []fold.FactRow, each func(rows []fold.FactRow, sign int64)) {
	isSame := func(a, b *fold.FactRow) bool { return a.Subject == b.Subject && a.Visitor == b.Visitor }
	for rows := range fold.SplitRuns(had, isSame) {
		each(rows, -1)
	}
	for rows := range fold.SplitRuns(want, isSame) {
		each(rows, 1)
	}
}

// cellsByDay returns the stored cells by day that the added cells change. It reads those that are not kept.
func (c *cells) cellsByDay(ctx context.Context, from *server, added fold.Cells) (map[firstDay]fold.Cells, error) {
	found := map[firstDay]fold.Cells{}
	subjects, goals, firsts := map[schema.Subject]bool{}, map[int64]bool{}, map[int64]bool{}
	for key := range added {
		if key.Grain != fold.OfDay || found[firstDayOf(&key)] != nil {
			continue
		}
		last, _ := c.days.LastValue(firstDayOf(&key))
		kept, isKept := last.(fold.Cells)
		if !isKept {
			kept = fold.Cells{}
			subjects[key.Subject], goals[key.Goal], firsts[key.First*day] = true, true, true
		}
		found[firstDayOf(&key)] = kept
	}
	if len(subjects) == 0 {
		return found, nil
	}
	const ofDays = " AND goal_id IN {goals:Array(Int64)} AND toUnixTimestamp64Milli(first_time) IN " +
		"{firsts:Array(Int64)}"
	read, err := from.readCells(ctx, inSections+ofDays,
		clickhouse.Named("sections", from.sectionsOf(maps.Keys(subjects), fold.OfDay)),
		clickhouse.Named("goals", slices.Collect(maps.Keys(goals))),
		clickhouse.Named("firsts", slices.Collect(maps.Keys(firsts))))
	for key, cell := range read {
		if of := found[firstDayOf(&key)]; of != nil { // others are read, too, and kept ones again
			of[key] = cell
		}
	}
	return found, err
}

// visitorsOf returns the number of visitors in the cells of each subject.
func visitorsOf(of fold.Cells) map[schema.Subject]int64 {
	visitors := map[schema.Subject]int64{}
	for key, cell := range of {
		if key.Grain == fold.OfAll && key.Goal == 0 && fold.IsCounted(key.Variation) {
			visitors[key.Subject] += cell.CountAt(fold.Visitors)
		}
	}
	return visitors
}

// sumRows returns the cells of a subject, computed from its stored rows.
func (s *server) sumRows(ctx context.Context, subject schema.Subject) (fold.Cells, error) {
	sums := fold.Cells{}
	var rows []fold.FactRow // of one visitor
	end := func() {
		sums.AddRows(rows, 1, true)
		rows = rows[:0]
	}
	err := s.readRows(ctx, inSections, func(r *fold.FactRow) error {
		if len(rows) > 0 && rows[0].Visitor != r.Visitor {
			end()
		}
		rows = append(rows, *r)
		return nil
	}, clickhouse.Named("sections", []uint64{s.sectionOf(subject, fold.OfVisitor), s.sectionOf(subject, fold.OfGoal)}))
	if err != nil {
		return nil, fmt.Errorf("read the facts of %s: %w", subject, err)
	}
	end()
	return sums, nil
}

const day = 24 * int64(time.Hour/time.Millisecond)

// cellRow returns the row of a cell.
func cellRow(key *fold.CellKey, cell *fold.Cell) *fold.FactRow {
	return &fold.FactRow{
		Subject: key.Subject, Grain: key.Grain, Goal: key.Goal, Variation: key.Variation, First: key.First * day,
		Cell:    cell,
		Visitor: schema.HashID(key.Variation), Since: uint64(key.Day * day), //nolint:gosec // not negative
	}
}

// readCells returns the stored cells with a condition. The error may be ErrIncomplete.
func (s *server) readCells(ctx context.Context, where string, params ...any) (fold.Cells, error) {
	cells := fold.Cells{}
	err := schema.EachRow(ctx, s, s.render("cells.sql", where), func(row driver.Rows) error {
		var key fold.CellKey
		var first, copies int64
		var since uint64
		var large []*big.Int
		of := &key.Subject
		if err := row.Scan(&of.WebsiteID, (*scannedKind)(&of.Kind), &of.ID, &of.ExperimentID,
			(*uint8)(&key.Grain), &key.Goal, &key.Variation, &first, &since, &large, &copies); err != nil {
			return err
		}
		key.First, key.Day = first/day, int64(since)/day //nolint:gosec // milliseconds
		if copies != 1 || cells[key] != nil {
			return fmt.Errorf("a cell of %s is stored %d times: %w", key.Subject, copies, ErrIncomplete)
		}
		var err error
		cells[key], err = cellOf(large)
		return err
	}, params...)
	if err != nil {
		return nil, fmt.Errorf("read cells: %w", err)
	}
	return cells, nil
}

// extentTimes returns the times of the extent of a cell, in the order of the column sums.
func extentTimes(c *fold.Cell) []*int64 {
	return []*int64{&c.FirstView, &c.FirstOnTime, &c.AcceptedOnTime, &c.AcceptedLate, &c.Newest}
}

// sumsColumn returns the column sums of a cell: its sums, and its extent.
func sumsColumn(c *fold.Change) []*big.Int {
	if c.Cell == nil {
		return nil
	}
	sums := make([]*big.Int, 0, fold.NumberOfSums+len(extentTimes(c.Cell)))
	for i := range c.Cell.CellSums {
		sums = append(sums, c.Cell.CellSums[i].BigInt())
	}
	for _, at := range extentTimes(c.Cell) {
		sums = append(sums, big.NewInt(*at))
	}
	return sums
}

// cellOf returns the cell for a value of the column sums.
func cellOf(sums []*big.Int) (*fold.Cell, error) {
	c := &fold.Cell{}
	times := extentTimes(c)
	if len(sums) != fold.NumberOfSums+len(times) {
		return nil, fmt.Errorf("facts: a cell has %d sums", len(sums))
	}
	for i, at := range times {
		*at = sums[fold.NumberOfSums+i].Int64()
	}
	for i := range c.CellSums {
		c.CellSums[i] = fold.ToInt128(sums[i])
	}
	return c, nil
}
