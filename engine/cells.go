package engine

import (
	"context"
	"fmt"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// datedCells are what earlier looks say about the cells of a breakdown, at a version of
// the events.
type datedCells struct {
	version uint64
	cells   *result.EarlierCells
	readAt  time.Time
	through time.Time // acceptance time of the last event
}

// maxBreakdowns bounds the memory of the cells: about 1 KiB a cell and variation.
const maxBreakdowns = 300

func newKeptCells() *simplelru.LRU[string, datedCells] {
	cells, err := simplelru.NewLRU[string, datedCells](maxBreakdowns, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return cells
}

// concludeCells sets the conclusions of the cells of a breakdown. It keeps what it reads
// of earlier looks as long as the events do not change, and for large subjects at least
// for maxDaysAge.
func (e *Engine) concludeCells(ctx context.Context, x *source.Execution, s state, results *result.Report) error {
	key := cellsKey(x.DeclaredCells(), results.LookEnd())
	version, known := e.Version(ctx, x.Subject)
	if x.AllEvents && s.rollup != nil && s.rollup.Through.Before(s.through) {
		known = false // the version is that of the rollup
	}
	kept := datedCells{version, &result.EarlierCells{}, time.Now(), s.through}
	if last, read := e.decisions.keptCells(key); known && read && (last.version == version || isRecent(last.readAt, last.through, &s, e.store.Limits)) {
		kept = last
	}
	cells, err := concludeCells(ctx, x, s, results, kept.cells)
	if err == nil && known && cells != kept.cells {
		kept.cells = cells
		e.decisions.keepCells(key, kept)
	}
	return err
}

// concludeCells reads what the conclusions of the cells need besides what is known of
// earlier looks: the planned look, and the order in which cells became large. It sets the
// conclusions, and returns all that is known then.
func concludeCells(ctx context.Context, x *source.Execution, s state, results *result.Report, earlier *result.EarlierCells) (*result.EarlierCells, error) {
	cells := x.DeclaredCells()
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
			results.Conclude(earlier)
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
