package engine

import (
	"context"
	"slices"
	"sync"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// mostRanked is how many of a dimension's values are remembered, the most
// visited first: many more than are shown, so that they do for a long time.
const maxRanked = 1_000

// ranks are the most visited values of dimensions that have very many, by
// subject. They are as many as there are settled subjects.
type ranks struct {
	access sync.Mutex
	of     map[ranked]*ranking
}

// ranked is what a ranking is of.
type ranked struct {
	Subject
	cube string
}

// ranking is the order of the values as of some settled events. It does not change.
type ranking struct {
	generation uint64
	events     uint64 // that were settled then
	values     []string
	visitors   []int64
	frequent   map[string]bool // those that lie apart in the generation
}

// candidates returns those that may be among the top most visited values after
// more events were settled. False: others may be, too, or too many.
//
// An event moves one visitor at most to a value, or from it. So after d events
// more a value among the top has at least as many visitors as the last of the
// top had, less d; and had at least that, less d once more.
func (r *ranking) candidates(state rollupState, top int) ([]string, bool) {
	if r.generation != state.generation || r.events > state.events {
		return nil, false
	}
	since, others := int64(state.events-r.events), int64(0) //nolint:gosec // fewer than 2^62
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

// mayBeTop sets which values of the report's dimension may be among the most
// visited, and which facets have them, where it has so many that they are
// ranked. The error is errUnsettled where too many are as visited as the last
// of the top.
//
// Its statement need not see the state: it saw that or a later one, of which the
// same holds.
func (q *rollupQuery) findTop(ctx context.Context, from *store) error {
	cube := q.rankedCube()
	if cube == nil {
		return nil
	}
	key := ranked{q.plan.Subject, cube.Name}
	order, known := from.ranks.get(key), false
	if order != nil {
		q.top, known = order.candidates(q.state, q.plan.top)
	}
	if !known {
		var err error
		if order, err = q.rank(ctx, from, cube, order); err != nil {
			return err
		}
		from.ranks.set(key, order)
		if q.top, known = order.candidates(q.state, q.plan.top); !known {
			return errNoRollup
		}
	}
	q.frequentCubes = order.cubes(q.cubes.cells, q.top)
	return nil
}

// facets are those that have the cells of the values.
func (r *ranking) cubes(of *schema.Cube, values []string) []string {
	apart := 0
	for _, value := range values {
		if r.frequent[value] {
			apart++
		}
	}
	switch apart {
	case 0:
		return []string{of.Name}
	case len(values):
		return []string{schema.FrequentCube(of.Name)}
	}
	return []string{of.Name, schema.FrequentCube(of.Name)}
}

// rankedFacet is the one that ranks the dimension's values; nil: there is none.
func (q *rollupQuery) rankedCube() *schema.Cube {
	if q.cubes.cells == nil {
		return nil
	}
	at := slices.IndexFunc(schema.Cubes, func(f schema.Cube) bool { return f.Rank && slices.Equal(f.By, q.cubes.cells.By) })
	if at < 0 {
		return nil
	}
	return &schema.Cubes[at]
}

// rank reads the order of the values. last is the order before; nil: there is
// none.
func (q *rollupQuery) rank(ctx context.Context, from *store, cube *schema.Cube, last *ranking) (*ranking, error) {
	query := &Query{Params: []Param{{"partition", q.generation().Partition()}, {"cube", cube.Name}, {"most", uint32(maxRanked)}}}
	if err := query.render("rollup_top.sql", slots{Dimension: columns[string(q.plan.Dimension)]}); err != nil {
		return nil, err
	}
	r := &ranking{generation: q.state.generation, events: q.state.events, values: []string{}}
	err := from.each(ctx, query, func(found driver.Rows) error {
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
	r.frequent, err = schema.FrequentValues(ctx, from, q.generation(), q.cubes.cells)
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
