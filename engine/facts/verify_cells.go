package facts

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/schema"
)

// comparedSums compares the stored cells with the sums of the stored rows of the visitors.
type comparedSums struct {
	byDay  map[schema.Subject]bool // subjects with cells by day
	rows   fold.Cells              // the sums of the rows
	stored fold.Cells              // less the cells that are cancelled
}

func newComparedSums(byDay map[schema.Subject]bool) *comparedSums {
	return &comparedSums{byDay: maps.Clone(byDay), rows: fold.Cells{}, stored: fold.Cells{}}
}

// addVisitor adds the rows of a visitor, who may have seen several subjects.
func (c *comparedSums) addVisitor(rows []fold.FactRow) {
	isSame := func(a, b *fold.FactRow) bool { return a.Subject == b.Subject }
	for own := range fold.SplitRuns(rows, isSame) {
		c.rows.AddRows(own, 1, c.byDay[own[0].Subject])
	}
}

// addStored adds a stored cell, or one that cancels it.
func (c *comparedSums) addStored(row *storedRow) error {
	cell, err := cellOf(row.sums)
	if err != nil {
		return err
	}
	key := fold.CellKey{
		Subject: row.Subject, Grain: row.Grain, Goal: row.Goal, Variation: row.Variation, First: row.First / day,
		Day: int64(row.Since) / day, //nolint:gosec // milliseconds
	}
	if key.Grain == fold.OfDay {
		c.byDay[key.Subject] = true
	}
	if c.stored[key] == nil {
		c.stored[key] = &fold.Cell{}
	}
	c.stored[key].AddSigned(&cell.CellSums, int64(row.sign))
	return nil
}

// differingSubjects returns the subjects with cells that are not the sums of their visitors.
func (c *comparedSums) differingSubjects() []schema.Subject {
	differ := map[schema.Subject]bool{}
	for _, cells := range []fold.Cells{c.rows, c.stored} {
		for key := range cells {
			if sumsAt(c.rows, key) != sumsAt(c.stored, key) {
				differ[key.Subject] = true
			}
		}
	}
	return slices.Collect(maps.Keys(differ))
}

// sumsAt returns the sums of a cell, which are 0 if there is none.
func sumsAt(cells fold.Cells, key fold.CellKey) fold.CellSums {
	if cell := cells[key]; cell != nil {
		return cell.CellSums
	}
	return fold.CellSums{}
}

// recheckCells compares the cells of subjects again while no refresh changes them, and returns the subjects that
// differ.
func (r *Refresher) recheckCells(ctx context.Context, subjects []schema.Subject) (wrong []schema.Subject, err error) {
	for _, subject := range subjects {
		var isWrong bool
		_, err := r.runExclusively(ctx, func(ctx context.Context) (err error) {
			isWrong, err = r.turn.on.haveWrongCells(ctx, subject, r.turn.cells.byDay)
			return err
		})
		if err != nil {
			return nil, err
		}
		if isWrong {
			wrong = append(wrong, subject)
		}
	}
	r.noteWrongCells(ctx, subjects, wrong)
	return wrong, nil
}

// haveWrongCells reports whether the stored cells of a subject are not the sums of its stored rows. All are read as of
// one moment.
func (s *server) haveWrongCells(
	ctx context.Context, subject schema.Subject, byDay map[schema.Subject]bool,
) (bool, error) {
	sums := newComparedSums(byDay)
	var sections []uint64
	for grain := fold.OfVisitor; grain < fold.OfPosition; grain++ {
		sections = append(sections, s.sectionOf(subject, grain))
	}
	err := s.eachStored(ctx, inSections, []any{clickhouse.Named("sections", sections)}, sums.addStored,
		func(rows []fold.FactRow) error {
			sums.addVisitor(rows)
			return nil
		})
	if err != nil {
		return false, fmt.Errorf("compare the cells of %s with its visitors: %w", subject, err)
	}
	return len(sums.differingSubjects()) > 0, nil
}

// ScrubCells compares the cells of a part of the subjects with the sums of their visitors.
func (r *Refresher) ScrubCells(ctx context.Context, part, parts uint64) (wrong []schema.Subject, err error) {
	if !r.deleting.TryRLock() {
		return nil, nil
	}
	defer r.deleting.RUnlock()
	var byDay map[schema.Subject]bool
	if _, err := r.runExclusively(ctx, func(context.Context) error {
		byDay = maps.Clone(r.turn.cells.byDay)
		return nil
	}); err != nil {
		return nil, err
	}
	on, err := r.shownServer(ctx)
	if err != nil {
		return nil, err
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(reading))
	var scrubbed, suspected []schema.Subject
	for subject := range r.AllCounters() {
		if on.sectionOf(subject, fold.OfVisitor)%parts != part {
			continue
		}
		scrubbed = append(scrubbed, subject)
		isWrong, err := on.haveWrongCells(ctx, subject, byDay)
		if err != nil {
			return nil, err
		}
		if isWrong {
			suspected = append(suspected, subject)
		}
	}
	r.noteWrongCells(ctx, scrubbed, nil)
	return r.recheckCells(ctx, suspected)
}

// noteWrongCells updates the set of subjects with wrong cells, for the subjects in of.
func (r *Refresher) noteWrongCells(ctx context.Context, of, wrong []schema.Subject) {
	if found := r.published.setWrongCells(of, wrong); len(found) > 0 {
		slog.ErrorContext(ctx, "sums in the facts are not those of their visitors: rebuild the facts "+
			"(lifthouse facts --rebuild)", "subjects", len(found), "one", found[0].String())
	}
}
