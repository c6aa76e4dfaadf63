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
const mostRanked = 1_000

// ranks are the most visited values of dimensions that have very many, by
// subject. They are as many as there are settled subjects.
type ranks struct {
	access sync.Mutex
	of     map[ranked]*ranking
}

// ranked is what a ranking is of.
type ranked struct {
	Subject
	facet string
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
func (r *ranking) candidates(state settledState, top int) ([]string, bool) {
	if r.generation != state.generation || r.events > state.events {
		return nil, false
	}
	since, others := int64(state.events-r.events), int64(0) //nolint:gosec // fewer than 2^62
	if len(r.values) == mostRanked {
		others = r.visitors[mostRanked-1]
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
func (q *settledQuery) mayBeTop(ctx context.Context, from *store) error {
	facet := q.rankedFacet()
	if facet == nil {
		return nil
	}
	key := ranked{q.plan.Subject, facet.Name}
	order, known := from.ranks.get(key), false
	if order != nil {
		q.top, known = order.candidates(q.state, q.plan.top)
	}
	if !known {
		var err error
		if order, err = q.rank(ctx, from, facet, order); err != nil {
			return err
		}
		from.ranks.set(key, order)
		if q.top, known = order.candidates(q.state, q.plan.top); !known {
			return errUnsettled
		}
	}
	q.apart = order.facets(q.cut.cells, q.top)
	return nil
}

// facets are those that have the cells of the values.
func (r *ranking) facets(of *schema.Facet, values []string) []string {
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
		return []string{schema.FrequentFacet(of.Name)}
	}
	return []string{of.Name, schema.FrequentFacet(of.Name)}
}

// rankedFacet is the one that ranks the dimension's values; nil: there is none.
func (q *settledQuery) rankedFacet() *schema.Facet {
	if q.cut.cells == nil {
		return nil
	}
	at := slices.IndexFunc(schema.Facets, func(f schema.Facet) bool { return f.Rank && slices.Equal(f.By, q.cut.cells.By) })
	if at < 0 {
		return nil
	}
	return &schema.Facets[at]
}

// rank reads the order of the values. last is the order before; nil: there is
// none.
func (q *settledQuery) rank(ctx context.Context, from *store, facet *schema.Facet, last *ranking) (*ranking, error) {
	query := &Query{Params: []Param{{"partition", q.generation().Partition()}, {"facet", facet.Name}, {"most", uint32(mostRanked)}}}
	if err := query.render("settled_top.sql", slots{Dimension: columns[string(q.plan.Dimension)]}); err != nil {
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
	r.frequent, err = schema.FrequentValues(ctx, from, q.generation(), q.cut.cells)
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
