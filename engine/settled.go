package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/big"
	"slices"
	"time"

	"lifthouse/schema"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
)

// errUnsettled says that a report cannot be had from what is settled, now or
// ever: the events have to be counted.
var errUnsettled = errors.New("not settled")

// settledHolds is for how long reports are given as of the last settlement
// while none follows; after it they are counted from the events.
const settledHolds = 10 * time.Second

// settledState is what the state of a generation says.
type settledState struct {
	generation      uint64
	complete        bool
	sharesSince     int64
	through, newest time.Time
}

// settledSlots are what differs between reports in sql/settled.sql.
type settledSlots struct {
	slots
	Bucket bool
	Window bool
	Top    bool // only some values of the dimension
}

// settledColumn is where an attribute is.
func settledColumn(attribute string) string { return string(columns[attribute]) }

// facetFor returns the facet with the fewest cells that tells what the report
// asks for: of the visitors' attributes, and by day of its window and series.
func (p *Plan) facetFor(byDay, broken bool) *schema.Facet {
	needed := p.filteredColumns()
	if broken && p.Dimension != "" {
		needed = append(needed, settledColumn(string(p.Dimension)))
	}
	for i := range schema.Facets {
		f := &schema.Facets[i]
		tells := !slices.ContainsFunc(needed, func(column string) bool { return !f.Keeps(column) })
		if tells && f.Day == byDay && !f.Rank && (f.FirstDay || broken && len(p.Filters.Lists)+len(p.Filters.Texts) == 0) {
			return f
		}
	}
	return nil
}

func (p *Plan) filteredColumns() []string {
	var needed []string
	for _, filter := range p.Filters.Lists {
		needed = append(needed, settledColumn(filter.Attribute))
	}
	for _, filter := range p.Filters.Texts {
		needed = append(needed, settledColumn(filter.Attribute))
	}
	return needed
}

// windowed says whether the window may leave something out of what was settled
// through the newest event.
func (p *Plan) windowed(newest time.Time) bool {
	return !p.Filters.From.IsZero() || !p.Filters.To.IsZero() && !p.Filters.To.After(newest)
}

// canSettle says whether the sums can express the report at all.
func (p *Plan) canSettle() bool {
	wholeDays := func(t time.Time) bool { return t.IsZero() || t.Equal(t.UTC().Truncate(24*time.Hour)) }
	return p.Filters.GoalValue == nil && p.Filters.ZScore == 0 &&
		wholeDays(p.Filters.From) && wholeDays(p.Filters.To) &&
		p.Interval != Hourly
}

// settledAnswer is what the sums say: the report's rows, those of its whole
// where the rows are of a breakdown only, and the steps of its series.
type settledAnswer struct {
	rows  []row
	whole []row
	steps []step
}

// settled answers the plan from the sums of a generation, of which the state
// was read before, and sets how far the data go. The error is errUnsettled
// where the sums do not do.
func (p *Plan) settled(ctx context.Context, from *store, state settledState) (*settledAnswer, error) {
	if !p.canSettle() {
		return nil, errUnsettled
	}
	const tries = 3 // a settlement may come between two statements
	for range tries {
		p.DataThrough, p.newest = state.through, state.newest
		q := &settledQuery{plan: p, state: state, byDay: p.windowed(state.newest)}
		answer, err := q.answer(ctx, from)
		if err != nil {
			return nil, err
		}
		if !q.moved {
			return answer, nil
		}
		state = q.state
	}
	return nil, errUnsettled
}

// results makes the body.
func (a *settledAnswer) results(ctx context.Context, p *Plan, from *store) (*Results, error) {
	whole := a.whole
	if whole == nil {
		whole = a.rows
	}
	results := newResults(p, a.rows, whole)
	var err error
	if p.Interval != "" {
		results.Series, err = p.points(ctx, from, a.steps)
	}
	return results, err
}

// answer makes the statements of one answer.
func (q *settledQuery) answer(ctx context.Context, from *store) (*settledAnswer, error) {
	p := q.plan
	facet, whole := p.facetFor(q.byDay, true), p.facetFor(q.byDay, false)
	if facet == nil || whole == nil {
		return nil, errUnsettled
	}
	var answer settledAnswer
	var err error
	switch {
	case p.Interval != "" && p.Dimension == "": // the steps add up to the rows
		whole = nil
	case facet.FirstDay:
		answer.rows, err = q.moments(ctx, from, facet, p.Dimension != "")
	default:
		answer.rows, answer.whole, err = q.top(ctx, from, facet, whole)
	}
	if err != nil || p.Interval == "" {
		return &answer, err
	}
	byDay := p.facetFor(true, false)
	if byDay == nil {
		return nil, errUnsettled
	}
	var rows []row
	if answer.steps, rows, err = q.steps(ctx, from, byDay); whole == nil {
		answer.rows = rows
	}
	return &answer, err
}

// settledQuery reads one generation, and notices when it moved meanwhile.
type settledQuery struct {
	plan  *Plan
	state settledState
	byDay bool // the window leaves something out
	moved bool

	hashes  []int64 // of the dimension's values that are asked for; nil: all
	ranking string  // the facet that they are of
}

// settledRow is one line of an answer of sql/settled.sql.
type settledRow struct {
	isState                bool
	bucket                 int64
	dimension              string
	variationID            int64
	crossover              bool
	kind                   schema.Kind
	visitors, since, views count
	recent                 count
	squares, times         big.Int
	value, profit, extra   scannedAmounts
	through, newest        time.Time
}

// kindSeen is a visitor on a later day: what tells who was active in a window.
const kindSeen schema.Kind = "seen"

func (q *settledQuery) compile(facet *schema.Facet, broken, bucketed bool) (*Query, error) {
	p := q.plan
	query := &Query{Params: append(p.subjectParams(), Param{"generation", q.state.generation}, Param{"facet", facet.Name})}
	s := settledSlots{slots: slots{Filters: "true"}, Bucket: bucketed, Window: q.byDay}
	query.visitorFilters(&p.Filters, &s.slots)
	if broken {
		s.Dimension = columns[string(p.Dimension)]
		if s.Top = q.hashes != nil; s.Top {
			query.Params = append(query.Params, Param{"hashes", q.hashes}, Param{"ranked", q.ranking})
		}
	}
	kinds := []string{string(schema.KindView), string(schema.KindGoal)}
	if p.Subject.Kind == schema.SubjectWidget {
		kinds = append(kinds, string(schema.KindClick), string(schema.KindSubmit), string(schema.KindCompletion), string(schema.KindConversion), string(schema.KindContact))
	}
	if s.Window {
		kinds = append(kinds, string(kindSeen))
	}
	var goal int64
	if p.Goal != nil {
		goal = p.Goal.ID
	}
	recentFrom, recentTo := p.recent()
	query.Params = append(query.Params, Param{"kinds", kinds}, Param{"goal_id", goal}, Param{"recent_from", recentFrom}, Param{"recent_to", recentTo})
	if s.Window {
		query.Params = append(query.Params, Param{"from", p.from()}, Param{"to", p.to()})
	}
	if bucketed {
		width, shift := p.Interval.grid()
		query.Params = append(query.Params, Param{"width", width.Milliseconds()}, Param{"shift", shift.Milliseconds()})
	}
	return query, query.render("settled.sql", s)
}

func (q *settledQuery) each(ctx context.Context, from *store, query *Query, add func(*settledRow)) error {
	var state *settledState
	err := from.each(ctx, query, func(found driver.Rows) error {
		var r settledRow
		var crossover, isState uint8
		var kind string
		to := slices.Concat(
			[]any{&isState, &r.bucket, &r.dimension, &r.variationID, &crossover, &kind, &r.visitors, &r.since, &r.recent, &r.views, &r.squares},
			r.value.targets(), []any{&r.times}, r.profit.targets(), r.extra.targets(), []any{&r.through, &r.newest})
		if err := found.Scan(to...); err != nil {
			return err
		}
		r.isState, r.crossover, r.kind = isState == 1, crossover == 1, schema.Kind(kind)
		if r.isState {
			state = &settledState{generation: q.state.generation, complete: r.visitors == 1, sharesSince: r.value.sum.Int64(), through: r.through.UTC(), newest: r.newest.UTC()}
			return nil
		}
		add(&r)
		return nil
	})
	if err != nil {
		return err
	}
	return q.sees(state)
}

// sees compares the state that a statement saw with the one before it.
func (q *settledQuery) sees(state *settledState) error {
	switch {
	case state == nil || !state.complete || state.sharesSince != q.plan.SharesSince.UnixMilli():
		return errUnsettled
	case *state != q.state:
		q.state, q.moved = *state, true
	}
	return nil
}

// cellKey is where the sums of a row belong.
type cellKey struct {
	bucket             int64
	dimension          string
	variationID        int64
	crossover, earlier bool
}

func (q *settledQuery) gather(ctx context.Context, from *store, facet *schema.Facet, broken, bucketed bool) (map[cellKey]*Moments, error) {
	query, err := q.compile(facet, broken, bucketed)
	if err != nil {
		return nil, err
	}
	cells := map[cellKey]*Moments{}
	err = q.each(ctx, from, query, func(r *settledRow) {
		key := cellKey{bucket: r.bucket, dimension: r.dimension, variationID: r.variationID, crossover: r.crossover, earlier: r.kind == kindSeen}
		if cells[key] == nil {
			m := noMoments()
			cells[key] = &m
		}
		r.addTo(cells[key])
	})
	return cells, err
}

func (r *settledRow) addTo(m *Moments) {
	visitors, events := int64(r.visitors), int64(r.views)
	switch r.kind {
	case schema.KindView:
		m.Visitors, m.SinceShares, m.Recent, m.Views = visitors, int64(r.since), int64(r.recent), events
	case kindSeen:
		m.Visitors = visitors
	case schema.KindClick:
		m.Clicks = events
	case schema.KindSubmit:
		m.Submits = events
	case schema.KindCompletion:
		m.Completions, m.Completed = events, visitors
	case schema.KindConversion:
		m.Conversions, m.Conversion = events, visitors
	case schema.KindContact:
		m.Contacts = events
	case schema.KindGoal:
		m.Converted = visitors
		m.Goals = stats.Sums{Sum: big.NewInt(events), Squares: &r.squares}
		m.Value, m.Profit, m.ExtraValue = r.value.amounts(), r.profit.amounts(), r.extra.amounts()
		m.ValueGoals = &r.times
	}
}

func (q *settledQuery) moments(ctx context.Context, from *store, facet *schema.Facet, broken bool) ([]row, error) {
	cells, err := q.gather(ctx, from, facet, broken, false)
	rows := make([]row, 0, len(cells))
	for key, m := range cells {
		if m.Visitors != 0 {
			rows = append(rows, row{variationID: key.variationID, dimension: key.dimension, earlier: key.earlier, crossover: key.crossover, Moments: *m})
		}
	}
	return rows, err
}

// top reads the most visited values of a dimension that has very many, and
// the whole; what the whole has more are the others. The facet does not tell
// how fast visitors come in, the whole does.
func (q *settledQuery) top(ctx context.Context, from *store, facet, whole *schema.Facet) (rows, all []row, err error) {
	at := slices.IndexFunc(schema.Facets, func(f schema.Facet) bool { return f.Rank && slices.Equal(f.By, facet.By) })
	if at < 0 {
		return nil, nil, errUnsettled
	}
	beside := *q // no statement waits for the other
	var work errgroup.Group
	work.Go(func() error {
		var err error
		all, err = beside.moments(ctx, from, whole, false)
		return err
	})
	work.Go(func() error {
		var err error
		if q.hashes, err = q.ranked(ctx, from, &schema.Facets[at]); err == nil {
			q.ranking = schema.Facets[at].Name
			rows, err = q.moments(ctx, from, facet, true)
		}
		return err
	})
	if err := work.Wait(); err != nil {
		return nil, nil, err
	}
	q.moved = q.moved || beside.state != q.state
	rows = mostVisited(rows, q.plan.top)
	for _, of := range all {
		others := of
		others.others, others.Recent = true, 0
		for i := range rows {
			if r := &rows[i]; r.variationID == of.variationID && r.crossover == of.crossover {
				others.Moments = others.less(r.Moments)
			}
		}
		if others.Visitors != 0 {
			rows = append(rows, others)
		}
	}
	return rows, all, nil
}

// mostVisited keeps the rows of the most visited values of the dimension.
func mostVisited(rows []row, top int) []row {
	visitors := map[string]int64{}
	for i := range rows {
		visitors[rows[i].dimension] += rows[i].Visitors
	}
	if len(visitors) <= top {
		return rows
	}
	values := slices.Collect(maps.Keys(visitors))
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(cmp.Compare(visitors[b], visitors[a]), cmp.Compare(a, b))
	})
	return slices.DeleteFunc(rows, func(r row) bool { return !slices.Contains(values[:top], r.dimension) })
}

// mostTies is how many values may have as many visitors as the last of the top
// ones, for all of them to be read.
const mostTies = 2_000

// ranked returns the hashes of the most visited values of a dimension, and of
// those with as many visitors as the last of them.
func (q *settledQuery) ranked(ctx context.Context, from *store, facet *schema.Facet) ([]int64, error) {
	p := q.plan
	query := &Query{Params: append(p.subjectParams(), Param{"generation", q.state.generation}, Param{"facet", facet.Name}, Param{"most", uint32(p.top + 1)})} //nolint:gosec // and the state
	if err := query.render("settled_top.sql", slots{}); err != nil {
		return nil, err
	}
	var hashes []int64
	var state *settledState
	err := from.each(ctx, query, func(found driver.Rows) error {
		var r settledState
		var isState uint8
		var hash, visitors int64
		if err := found.Scan(&isState, &hash, &visitors, &r.sharesSince, &r.through, &r.newest); err != nil {
			return err
		}
		if isState == 1 {
			state = &settledState{q.state.generation, visitors == 1, r.sharesSince, r.through.UTC(), r.newest.UTC()}
			return nil
		}
		hashes = append(hashes, hash)
		return nil
	})
	if err == nil && len(hashes) > mostTies {
		err = errUnsettled
	}
	if err != nil {
		return nil, err
	}
	return hashes, q.sees(state)
}

// steps are what each bucket adds, and the rows that they add up to.
func (q *settledQuery) steps(ctx context.Context, from *store, facet *schema.Facet) ([]step, []row, error) {
	cells, err := q.gather(ctx, from, facet, false, true)
	steps, sums := make([]step, 0, len(cells)), map[cellKey]Moments{}
	for key, m := range cells {
		if !key.earlier {
			steps = append(steps, step{key.bucket, row{variationID: key.variationID, crossover: key.crossover, Moments: *m}})
		}
		key.bucket = 0
		sums[key] = sums[key].Merge(*m)
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.bucket, b.bucket) })
	rows := make([]row, 0, len(sums))
	for key, m := range sums {
		if m.Visitors != 0 {
			rows = append(rows, row{variationID: key.variationID, earlier: key.earlier, crossover: key.crossover, Moments: m})
		}
	}
	return steps, rows, err
}

// Few is how many events a subject may have whose reports are counted from
// them rather than from what is settled.
func (e *Engine) Few() uint64 { return e.store.limits.few() }
