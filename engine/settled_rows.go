package engine

import (
	"cmp"
	"context"
	"math/big"
	"slices"
	"time"

	"lifthouse/schema"
	"lifthouse/stats"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// settledQuery reads one generation, and notices when it moved meanwhile.
type settledQuery struct {
	plan   *Plan
	cut    cut
	state  settledState
	byDays bool // the window leaves something out
	moved  bool

	top   []string // the dimension's values that may be the most visited; nil: all are read
	apart []string // facets that have them; nil: that of the cut
}

// settledRow is one line of an answer of sql/settled.sql.
type settledRow struct {
	settledKey
	kind                                                  schema.Kind
	visitors, sinceShares, recent, events                 count
	squares, valueTimesGoals, value, profit, extra, signs big.Int
}

// settledKey is where the sums of a row belong.
type settledKey struct {
	facet              string
	bucket             int64
	dimension          string
	variationID        int64
	crossover, earlier bool
}

// kindSeen is a visitor on a later day: what tells who was active in a window.
const kindSeen schema.Kind = "seen"

// answer makes the statements of one answer.
func (q *settledQuery) answer(ctx context.Context, from *store) (*settledAnswer, error) {
	var err error
	if err = q.mayBeTop(ctx, from); err != nil {
		return nil, err
	}
	query, err := q.compile()
	if err != nil {
		return nil, err
	}
	sums := map[settledKey]*Moments{}
	if err := q.read(ctx, from, query, sums); err != nil {
		return nil, err
	}
	var answer settledAnswer
	answer.whole = rowsOf(merged(sums, q.cut.whole, func(k *settledKey) { k.bucket, k.dimension = 0, "" }))
	if q.cut.cells != nil {
		answer.cells = rowsOf(merged(sums, q.cut.cells, func(k *settledKey) { k.bucket = 0 }))
	}
	if q.top != nil {
		answer.cells = topOf(answer.cells, answer.whole, q.plan.top)
	}
	if q.cut.steps != nil {
		answer.steps = stepsOf(merged(sums, q.cut.steps, func(k *settledKey) { k.dimension = "" }))
	}
	return &answer, nil
}

// cells are the facets that the breakdown's cells are in.
func (q *settledQuery) cells() []string {
	if q.apart != nil {
		return q.apart
	}
	return []string{q.cut.cells.Name}
}

// facets are all that are read.
func (q *settledQuery) facets() []string {
	if q.apart == nil {
		return q.cut.names()
	}
	names := slices.DeleteFunc(q.cut.names(), func(name string) bool { return name == q.cut.cells.Name })
	return append(names, q.apart...)
}

// generation is what is read.
func (q *settledQuery) generation() *schema.Settlement {
	s := q.plan.Subject
	return &schema.Settlement{WebsiteID: s.WebsiteID, Subject: s.Kind, SubjectID: s.ID, ExperimentID: s.ExperimentID, Generation: q.state.generation}
}

func (q *settledQuery) compile() (*Query, error) {
	p := q.plan
	query := &Query{Params: []Param{{"partition", q.generation().Partition()}, {"facets", q.facets()}}}
	s := settledSlots{slots: slots{Filters: "true"}, Steps: q.cut.steps != nil, Window: q.byDays, Top: q.top != nil, Shares: p.SharesSince.After(openFrom)}
	query.visitorFilters(&p.Filters, &s.slots)
	if q.cut.cells != nil {
		s.Dimension = columns[string(p.Dimension)]
		query.Params = append(query.Params, Param{"cells", q.cells()})
	}
	if s.Top {
		query.Params = append(query.Params, Param{"top", q.top})
	}
	var goal int64
	if p.Goal != nil {
		goal = p.Goal.ID
	}
	recentFrom, recentTo := p.recent()
	query.Params = append(query.Params, Param{"kinds", q.kinds()}, Param{"goal_id", goal}, Param{"recent_from", dateOf(recentFrom)}, Param{"recent_to", dateOf(recentTo)})
	if s.Window {
		query.Params = append(query.Params, Param{"from", dateOf(p.from())}, Param{"to", dateOf(p.to())})
	}
	if s.Steps {
		width, shift := p.Interval.grid()
		query.Params = append(query.Params, Param{"steps", q.cut.steps.Name}, Param{"width", width.Milliseconds()}, Param{"shift", shift.Milliseconds()})
	}
	return query, query.render("settled.sql", s)
}

// dateOf is the parameter of a day.
func dateOf(day time.Time) string { return day.UTC().Format(time.DateOnly) }

// kinds are those of the rows to read, goals apart.
func (q *settledQuery) kinds() []string {
	kinds := []string{string(schema.KindView)}
	if q.plan.Subject.Kind == schema.SubjectWidget {
		kinds = append(kinds, string(schema.KindClick), string(schema.KindSubmit), string(schema.KindCompletion), string(schema.KindConversion), string(schema.KindContact))
	}
	if q.byDays {
		kinds = append(kinds, string(kindSeen))
	}
	return kinds
}

func (q *settledQuery) read(ctx context.Context, from *store, query *Query, sums map[settledKey]*Moments) error {
	var state *settledState
	err := from.each(ctx, query, func(found driver.Rows) error {
		var r settledRow
		var crossover uint8
		var kind string
		to := slices.Concat(
			[]any{&r.facet, &r.bucket, &r.dimension, &r.variationID, &crossover, &kind, &r.visitors, &r.sinceShares, &r.recent, &r.events, &r.squares},
			[]any{&r.value, &r.valueTimesGoals, &r.profit, &r.extra, &r.signs})
		if err := found.Scan(to...); err != nil {
			return err
		}
		if r.facet == schema.SettledState {
			if r.visitors == 1 { // it is complete
				state = &settledState{q.state.generation, r.value.Int64(), uint64(r.events), time.UnixMilli(r.squares.Int64()).UTC(), time.UnixMilli(r.valueTimesGoals.Int64()).UTC()}
			}
			return nil
		}
		if r.events == 0 {
			return nil // all that was in the cell is gone
		}
		r.facet = schema.WholeFacet(r.facet)
		r.kind, r.crossover = schema.Kind(kind), crossover == 1
		r.earlier = r.kind == kindSeen
		if sums[r.settledKey] == nil {
			m := noMoments()
			sums[r.settledKey] = &m
		}
		r.addTo(sums[r.settledKey])
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
	case state == nil || state.sharesSince != q.plan.SharesSince.UnixMilli():
		return errUnsettled
	case *state != q.state:
		q.state, q.moved = *state, true
	}
	return nil
}

func (r *settledRow) addTo(m *Moments) {
	visitors, events := int64(r.visitors), int64(r.events)
	switch r.kind {
	case schema.KindView:
		m.Visitors, m.SinceShares, m.Recent, m.Views = visitors, int64(r.sinceShares), int64(r.recent), events
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
		signs := schema.UnpackSigns(&r.signs)
		for i, to := range []*Amounts{&m.Value, &m.Profit, &m.ExtraValue} {
			to.Sum, to.Squares = schema.UnpackAmounts([]*big.Int{&r.value, &r.profit, &r.extra}[i])
			to.Nonzero, to.Negative = signs[2*i], signs[2*i+1]
		}
		m.ValueGoals = &r.valueTimesGoals
	}
}

// merged adds up the sums of a facet whose keys are the same without what is
// dropped of them.
func merged(sums map[settledKey]*Moments, of *schema.Facet, drop func(*settledKey)) map[settledKey]Moments {
	all := map[settledKey]Moments{}
	for key, m := range sums {
		if key.facet == of.Name {
			drop(&key)
			if had, another := all[key]; another {
				all[key] = had.Merge(*m)
			} else {
				all[key] = *m
			}
		}
	}
	return all
}

func rowsOf(sums map[settledKey]Moments) []row {
	rows := make([]row, 0, len(sums))
	for key, m := range sums {
		if m.Visitors != 0 {
			rows = append(rows, row{variationID: key.variationID, dimension: key.dimension, earlier: key.earlier, crossover: key.crossover, Moments: m})
		}
	}
	return rows
}

func stepsOf(sums map[settledKey]Moments) []step {
	steps := make([]step, 0, len(sums))
	for key, m := range sums {
		if !key.earlier {
			steps = append(steps, step{key.bucket, row{variationID: key.variationID, crossover: key.crossover, Moments: m}})
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.bucket, b.bucket) })
	return steps
}

// topOf keeps the rows of the most visited values of the dimension, and adds
// those of the others: what the whole has more.
func topOf(cells, whole []row, top int) []row {
	visitors := map[string]int64{}
	for i := range cells {
		visitors[cells[i].dimension] += cells[i].Visitors
	}
	values := mostVisited(visitors)
	values = values[:min(len(values), top)]
	cells = slices.DeleteFunc(cells, func(r row) bool { return !slices.Contains(values, r.dimension) })
	kept := len(cells)
	for _, others := range whole {
		others.others, others.Moments = true, others.Merge(noMoments()) // the whole stays as it is
		others.Recent = 0
		for i := range cells[:kept] {
			if r := &cells[i]; r.variationID == others.variationID && r.crossover == others.crossover {
				others.takeAway(&r.Moments)
			}
		}
		if others.Visitors != 0 {
			cells = append(cells, others)
		}
	}
	return cells
}
