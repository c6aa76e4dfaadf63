//go:build invariants

package facts

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/engine/fold"
	"lifthouse/schema"
)

// maxCheckedVisitors is the size of a subject up to which its cells are recomputed at each change of facts.
const maxCheckedVisitors = 2_000

func init() { checkStored = panicOnViolation }

// panicOnViolation panics if a stored position is not later than the last one, or if the stored cells of a changed
// subject are not the sums of its stored rows.
func panicOnViolation(ctx context.Context, r *Refresher, next Position, changed map[schema.Subject]int64) {
	if next.Refresh <= r.turn.position.Refresh || next.Through < r.turn.position.Through {
		panic(fmt.Sprintf("facts: %+v is stored after %+v", next, r.turn.position))
	}
	if r.building > 0 { // an erasure may have dropped the build
		return
	}
	for subject := range changed {
		if visitorsOf(r.turn.cells.all[subject])[subject] > maxCheckedVisitors {
			continue
		}
		want, err := r.turn.on.sumRows(ctx, subject)
		if err != nil {
			continue // the store is damaged on purpose, or it is closing
		}
		grains := []fold.Grain{fold.OfAll}
		if r.turn.cells.byDay[subject] {
			grains = append(grains, fold.OfDay)
		}
		for _, grain := range grains {
			sections := r.turn.on.sectionsOf(maps.Keys(map[schema.Subject]bool{subject: true}), grain)
			stored, err := r.turn.on.readCells(ctx, inSections, clickhouse.Named("sections", sections))
			if err != nil {
				continue
			}
			for _, key := range slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(stored))) {
				if key.Subject != subject || key.Grain != grain {
					continue
				}
				if sumsAt(want, key) != sumsAt(stored, key) {
					panic(fmt.Sprintf("facts: the cell %+v is %+v; the sums of its rows are %+v", key, stored[key],
						want[key]))
				}
			}
		}
	}
}
