package engine

import (
	"context"
	"fmt"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
)

// datedCells are what earlier looks say about the cells of a breakdown, at a version of
// the events.
type datedCells struct {
	dated
	cells *result.EarlierCells
}

// concludeCells sets the conclusions of the cells of a breakdown. It reads what earlier
// looks say about them, unless that is kept for this version of the events. version is
// nil if it is not known.
func (d *decisions) concludeCells(ctx context.Context, x *source.Execution, s state, results *result.Report, version *uint64) error {
	cells := x.DeclaredCells()
	key := cellsKey(cells, results.LookEnd())
	now := dated{at: time.Now(), through: s.through}
	earlier := &result.EarlierCells{}
	if version != nil {
		now.version = *version
		if last, kept := d.keptCells(key); kept && (last.version == now.version || last.isRecent(&s, x.Store.Limits)) {
			now, earlier = last.dated, last.cells
		}
	}
	read, err := readEarlierCells(ctx, x, cells, s, results, earlier)
	if err != nil {
		return err
	}
	if version != nil && read != earlier {
		d.keepCells(key, datedCells{now, read})
	}
	results.Conclude(read)
	return nil
}

// readEarlierCells adds to earlier what the conclusions of the cells need: the planned
// look, and the order in which cells became large.
func readEarlierCells(ctx context.Context, x *source.Execution, cells *plan.Plan, s state, results *result.Report, earlier *result.EarlierCells) (*result.EarlierCells, error) {
	of := *x
	of.Plan, of.Outliers = cells, nil
	if results.NeedsPlannedLook(earlier, cells) {
		found, _, err := read(ctx, of.EndingAt(results.LookEnd()), s)
		if err != nil {
			return nil, err
		}
		earlier = earlier.WithPlannedLook(cells, found)
	}
	for {
		end, needed := results.NextCheckpoint(earlier)
		if !needed {
			return earlier, nil
		}
		found, _, err := read(ctx, of.EndingAt(end), s)
		if err != nil {
			return nil, err
		}
		earlier = earlier.WithCheckpoint(cells, found)
	}
}

// cellsKey identifies the breakdown of a declared question.
func cellsKey(p *plan.Plan, lookEnd time.Time) string {
	return fmt.Sprintf("%s %s %d %d %d %q %q %v", decisionKey(p), p.Dimension, p.Top, lookEnd.UnixMilli(), p.Filters.From.UnixMilli(), p.Filters.Lists, p.Filters.Texts, p.AllEvents)
}

func (d *decisions) keptCells(key string) (datedCells, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cells.Get(key)
}

func (d *decisions) keepCells(key string, cells datedCells) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cells.Add(key, cells)
}
