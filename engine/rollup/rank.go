package rollup

import (
	"context"
	"slices"
	"sync"

	"lifthouse/engine/generation"
	"lifthouse/engine/plan"
	"lifthouse/engine/source"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// maxRanked is the number of values in a ranking. It is much larger than the
// number of values in a report, so that a ranking remains useful while events
// are added.
const maxRanked = 1_000

// ranks has the rankings of dimensions with very many values, by subject.
type ranks struct {
	access sync.Mutex
	of     map[ranked]*ranking
}

// ranked is the key of a ranking.
type ranked struct {
	plan.Subject
	cube string
}

// ranking has the most frequent values of a dimension at some number of events.
// It is immutable.
type ranking struct {
	generation uint64
	events     uint64 // in the rollup when the ranking was read
	values     []string
	visitors   []int64
	frequent   map[string]bool // values of the frequent cube of the generation
}

// candidates returns the values that may be among the most frequent ones after
// a refresh. It returns false if other values may be, too.
//
// One event moves at most one visitor to a value or away from it. After d more
// events, the values at the top have at least as many visitors as the last of
// the previous top had minus d. So they had at least that number minus 2 d.
func (r *ranking) candidates(state State, top int) ([]string, bool) {
	if r.generation != state.Generation.Number || r.events > state.Events {
		return nil, false
	}
	since, others := int64(state.Events-r.events), int64(0) //nolint:gosec // fewer than 2^62
	if len(r.values) == maxRanked {
		others = r.visitors[maxRanked-1]
	}
	if len(r.values) <= top {
		return r.values, since == 0
	}
	atLeast := r.visitors[top-1] - 2*since
	if atLeast <= others {
		return nil, false
	}
	among := slices.IndexFunc(r.visitors, func(visitors int64) bool { return visitors < atLeast })
	if among < 0 {
		among = len(r.values)
	}
	return r.values[:among], true
}

// names returns the names under which the cells of the values are stored.
func (r *ranking) names(of *cube, values []string) []string {
	apart := 0
	for _, value := range values {
		if r.frequent[value] {
			apart++
		}
	}
	switch apart {
	case 0:
		return []string{of.name}
	case len(values):
		return []string{of.frequentName()}
	}
	return []string{of.name, of.frequentName()}
}

// readRanking reads the most frequent values of the dimension of the cells' cube.
// last is the previous ranking, or nil. The caller sets the number of events.
func readRanking(ctx context.Context, from *source.Store, of generation.ID, cells *cube, last *ranking) (*ranking, error) {
	query := &source.Query{Params: []source.Param{{Name: "bucket", Value: of.Bucket}, {Name: "generation", Value: of.Number}, {Name: "cube", Value: cells.ranked().name}, {Name: "most", Value: uint32(maxRanked)}}}
	if err := query.RenderFrom(sqlTemplates, "rollup_top.sql", source.Slots{Dimension: source.Expr(cells.by[0])}); err != nil {
		return nil, err
	}
	r := &ranking{generation: of.Number, values: []string{}}
	err := from.Each(ctx, query, func(found driver.Rows) error {
		var value string
		var visitors int64
		err := found.Scan(&value, &visitors)
		r.values, r.visitors = append(r.values, value), append(r.visitors, visitors)
		return err
	})
	if err != nil {
		return nil, err
	}
	if last != nil && last.generation == r.generation {
		r.frequent = last.frequent
		return r, nil
	}
	r.frequent, err = readFrequentValues(ctx, from, of, cells)
	return r, err
}

func (r *ranks) get(of ranked) *ranking {
	r.access.Lock()
	defer r.access.Unlock()
	return r.of[of]
}

func (r *ranks) set(of ranked, now *ranking) {
	r.access.Lock()
	defer r.access.Unlock()
	if r.of == nil {
		r.of = map[ranked]*ranking{}
	}
	r.of[of] = now
}
