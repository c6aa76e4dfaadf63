package rollup

import (
	"cmp"
	"context"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"
)

// NoCubes is the reason why a rollup cannot serve a report that its cubes do not
// express.
const NoCubes = "no cube has the attributes and days"

// isDeleted is the reason why a report cannot be read while the rows of the
// generation are deleted.
const isDeleted = "the rows of the rollup are being deleted"

// Source reads a report from the cubes of one generation of each shard.
type Source struct {
	*source.Execution
	Current *Current
}

// Name returns the name of the source.
func (x Source) Name() string { return source.NameRollup }

// Read reads the report again if a refresh runs between its statements.
func (x Source) Read(ctx context.Context) (found *visit.Rows, declined string, err error) {
	declined, err = x.read(func(q *reading) (declined string, err error) {
		found, declined, err = q.answer(ctx, x.Store)
		return declined, err
	})
	if err != nil || declined != "" {
		return nil, declined, err
	}
	return found, "", nil
}

// read calls answer until no refresh runs between its statements.
func (x Source) read(answer func(*reading) (declined string, err error)) (declined string, err error) {
	const tries = 3
	shards := x.Current.Shards
	for range tries {
		q, expressible := newReading(x.Plan, shards)
		if !expressible {
			return NoCubes, nil
		}
		if declined, err = answer(q); err != nil || declined != "" {
			return declined, err
		}
		var moved bool
		if shards, moved = q.shards(); !moved {
			return "", nil
		}
	}
	return "the rollup is refreshed all the time", nil
}

// reading reads a report from one generation of each shard, and detects a refresh between its
// statements.
type reading struct {
	plan     *plan.Plan
	cubes    cubeSet
	portions []*portion
	through  time.Time // of all shards
	newest   time.Time
	byDays   bool    // the window excludes visitors or events
	goals    []int64 // read instead of the goal of the plan; nil: only that

	top       []string // values that may be among the most frequent; nil: all values are read
	cellNames []string // names under which their cells are stored; nil: that of the cube
}

// portion reads from one shard.
type portion struct {
	*reading
	Shard
	moved bool // the state has changed since
}

// newReading returns false if the cubes cannot express the report.
func newReading(p *plan.Plan, shards []Shard) (*reading, bool) {
	all := NewCurrent(shards...)
	byDays := windowed(p, all.Newest)
	cubes, expressible := cubesFor(p, byDays)
	q := &reading{plan: p, cubes: cubes, through: all.Through, newest: all.Newest, byDays: byDays}
	for _, shard := range shards {
		q.portions = append(q.portions, &portion{reading: q, Shard: shard})
	}
	return q, expressible
}

// shards returns the states that the last statements saw, and whether any is another than the
// one that the reading began with.
func (q *reading) shards() (seen []Shard, moved bool) {
	for _, p := range q.portions {
		seen, moved = append(seen, p.Shard), moved || p.moved
	}
	return seen, moved
}

// answer runs the statements of a report. declined is the reason why the rollup
// cannot serve it.
func (q *reading) answer(ctx context.Context, from *source.Store) (found *visit.Rows, declined string, err error) {
	if declined, err = q.findTop(ctx, from); err != nil || declined != "" {
		return nil, declined, err
	}
	sums, declined, err := q.read(ctx, from)
	if err != nil || declined != "" {
		return nil, declined, err
	}
	return q.found(sums), "", nil
}

// found returns the rows of a report.
func (q *reading) found(sums map[cellKey]*visit.Moments) *visit.Rows {
	found := &visit.Rows{Through: q.through, Newest: q.newest}
	found.Whole = rowsOf(merged(sums, q.cubes.whole, func(k *cellKey) { k.bucket, k.Dimension = 0, "" }))
	if q.cubes.cells != nil {
		found.Cells = rowsOf(merged(sums, q.cubes.cells, func(k *cellKey) { k.bucket = 0 }))
	}
	if q.top != nil {
		found.Cells = visit.WithOthers(found.Cells, found.Whole, q.plan.Top)
	}
	if q.cubes.steps != nil {
		found.Steps = stepsOf(merged(sums, q.cubes.steps, func(k *cellKey) { k.Dimension = "" }))
	}
	return found
}

// findTop finds the values of the dimension that may be among the most frequent
// ones, and the names under which their cells are stored. It only applies to
// dimensions with a ranked cube. declined says that there are too many
// candidates.
//
// Its query may see a later state than the report. The bound of candidates
// holds for later states.
func (q *reading) findTop(ctx context.Context, from *source.Store) (declined string, err error) {
	cells := q.cubes.cells
	if cells == nil || cells.ranked() == nil {
		return "", nil
	}
	if len(q.portions) > 1 {
		return "a shard does not know which values of the dimension are most frequent on the others", nil
	}
	of := q.portions[0]
	from, ranks, key := of.store(from), &of.index.ranks, ranked{q.plan.Subject, cells.ranked().name}
	order, known := ranks.get(key), false
	if order != nil {
		q.top, known = order.candidates(of.State, q.plan.Top)
	}
	if !known {
		if order, err = readRanking(ctx, from, of.Generation, cells, order); err != nil {
			return "", err
		}
		order.events = of.Events
		ranks.set(key, order)
		if q.top, known = order.candidates(of.State, q.plan.Top); !known {
			return "too many values of the dimension have about equally many visitors", nil
		}
	}
	q.cellNames = order.names(cells, q.top)
	return "", nil
}

// namesOfCells returns the names under which the cells of the breakdown are
// stored.
func (q *reading) namesOfCells() []string {
	if q.cellNames != nil {
		return q.cellNames
	}
	return []string{q.cubes.cells.name}
}

// names returns the names of everything that is read.
func (q *reading) names() []string {
	if q.cellNames == nil {
		return q.cubes.names()
	}
	names := slices.DeleteFunc(q.cubes.names(), func(name string) bool { return name == q.cubes.cells.name })
	return append(names, q.cellNames...)
}

func (q *portion) compile() (*source.Query, error) {
	p := q.plan
	query := &source.Query{Params: []source.Param{{Name: "bucket", Value: q.Generation.Bucket}, {Name: "generation", Value: q.Generation.Number}, {Name: "cubes", Value: q.names()}}}
	s := readSlots{Slots: source.Slots{Filters: "true"}, Steps: q.cubes.steps != nil, Window: q.byDays, Top: q.top != nil, ByGoal: q.goals != nil, Shares: p.SharesSince.After(plan.OpenFrom)}
	query.VisitorFilters(&p.Filters, &s.Slots)
	if q.cubes.cells != nil {
		s.Dimension = source.Columns[string(p.Dimension)]
		query.Params = append(query.Params, source.Param{Name: "cells", Value: q.namesOfCells()})
	}
	if s.Top {
		query.Params = append(query.Params, source.Param{Name: "top", Value: q.top})
	}
	query.Params = append(query.Params, q.goalParameter())
	recentFrom, recentTo := plan.Recent(q.through)
	query.Params = append(query.Params, source.Param{Name: "kinds", Value: q.kinds()}, source.Param{Name: "recent_from", Value: dayParameter(recentFrom)}, source.Param{Name: "recent_to", Value: dayParameter(recentTo)})
	if s.Window {
		query.Params = append(query.Params, source.Param{Name: "from", Value: dayParameter(p.From())}, source.Param{Name: "to", Value: dayParameter(p.To())})
	}
	if s.Steps {
		width, shift := p.Interval.Grid()
		query.Params = append(query.Params, source.Param{Name: "steps", Value: q.cubes.steps.name}, source.Param{Name: "width", Value: width.Milliseconds()}, source.Param{Name: "shift", Value: shift.Milliseconds()})
	}
	return query, query.RenderFrom(sqlTemplates, "rollup.sql", s)
}

func (q *reading) goalParameter() source.Param {
	switch {
	case q.goals != nil:
		return source.Param{Name: "goals", Value: q.goals}
	case q.plan.Goal != nil:
		return source.Param{Name: "goal_id", Value: q.plan.Goal.ID}
	}
	return source.Param{Name: "goal_id", Value: int64(0)}
}

// dayParameter formats a day as a parameter.
func dayParameter(day time.Time) string { return day.UTC().Format(time.DateOnly) }

// kinds returns the kinds of events to read, except goals.
func (q *reading) kinds() []string {
	kinds := []string{string(schema.KindView)}
	if q.plan.Subject.Kind == schema.SubjectWidget {
		kinds = append(kinds, string(schema.KindClick), string(schema.KindSubmit), string(schema.KindCompletion), string(schema.KindConversion), string(schema.KindContact))
	}
	if q.byDays {
		kinds = append(kinds, string(kindActive))
	}
	return kinds
}

// read returns the sums of all shards.
func (q *reading) read(ctx context.Context, from *source.Store) (sums map[cellKey]*visit.Moments, declined string, err error) {
	each, declines := make([]map[cellKey]*visit.Moments, len(q.portions)), make([]string, len(q.portions))
	work, ctx := errgroup.WithContext(ctx)
	for i, of := range q.portions {
		work.Go(func() (err error) {
			each[i] = map[cellKey]*visit.Moments{}
			declines[i], err = of.read(ctx, of.store(from), each[i])
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, "", err
	}
	for _, of := range each[1:] {
		for key, m := range of {
			visit.AddTo(each[0], key, m)
		}
	}
	return each[0], cmp.Or(declines...), nil
}

func (q *portion) read(ctx context.Context, from *source.Store, sums map[cellKey]*visit.Moments) (declined string, err error) {
	query, err := q.compile()
	if err != nil {
		return "", err
	}
	var state *State
	err = from.Each(ctx, query, func(found driver.Rows) error {
		var r cellRow
		var multiExposed uint8
		var name, kind string
		var encoded map[string]int64
		to := slices.Concat(
			[]any{&name, &r.bucket, &r.Dimension, &r.VariationID, &multiExposed, &kind, &r.goal, &r.visitors, &r.sinceShares, &r.recent, &r.events, &r.squares},
			[]any{&r.value, &r.valueTimesGoals, &r.profit, &r.extra, &r.signs, &encoded})
		if err := found.Scan(to...); err != nil {
			return err
		}
		if name == stateName {
			now := decodedState(q.Generation, encoded)
			if encoded[layoutKey] == layout && now.Inserts == uint64(r.visitors) { //nolint:gosec // not negative
				state = &now
			}
			return nil
		}
		if r.events == 0 {
			return nil // no events are left in the cell
		}
		r.cube = cubesByName[name]
		r.kind, r.MultiExposed = schema.Kind(kind), multiExposed == 1
		r.ExposedBefore = r.kind == kindActive
		if sums[r.cellKey] == nil {
			m := visit.NoMoments()
			sums[r.cellKey] = &m
		}
		r.addTo(sums[r.cellKey])
		return nil
	})
	if err != nil {
		return "", err
	}
	return q.checkState(state), nil
}

// checkState compares the state that a statement read with the expected state.
// It returns the reason why the generation cannot be read.
func (q *portion) checkState(state *State) (declined string) {
	switch {
	case state == nil:
		q.index.unsure.Store(true) // the states are read again
		return isDeleted
	case state.SharesSince != q.plan.SharesSince.UnixMilli():
		return "the shares changed after the rollup was built"
	case !state.same(&q.State):
		q.State, q.moved = *state, true
	}
	return ""
}
