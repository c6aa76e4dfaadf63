package rollup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// expr is trusted SQL, made of constants only.
type expr string

// slots are the slots of sql/rebuild.sql and sql/frequent.sql.
type slots struct {
	Attributes expr
	Columns    []expr // attributes of the first view of a visitor
	Shown      expr   // attributes of a view in one string
	Sets       []expr
	Ranked     expr // attribute of the ranked cube
}

var (
	rebuildQuery  = mustRender("rebuild.sql", newSlots())
	frequentQuery = mustRender("frequent.sql", newSlots())
	touchedQuery  = mustRender("touched.sql", struct {
		Columns []string
		Threads int
	}{attributeColumns, threads})
)

// threads is the number of threads of a step. The other cores are left for
// reports and writes.
const threads = 1

func newSlots() slots {
	var s slots
	shown := make([]string, 0, len(attributeColumns))
	for i, column := range attributeColumns {
		s.Columns = append(s.Columns, expr(fmt.Sprintf("shown[%d] AS %s", i+1, column)))
		shown = append(shown, column)
	}
	s.Attributes = expr(strings.Join(attributeColumns, ", "))
	s.Shown = expr(strings.Join(shown, `, '\0', `))
	for i := range cubes {
		cube := &cubes[i]
		s.Sets = append(s.Sets, expr(", "+strings.Join(cube.columns(), ", ")))
		if cube.rank {
			s.Ranked = expr(cube.by[0])
		}
	}
	return s
}

// masks returns the result of the SQL function grouping for each cube: one bit
// per column that is not a dimension of the cube, the first column in the
// highest bit.
func masks() (masks []uint64, names []string) {
	columns := slices.Concat([]string{"first_day", "day", "variation_id", "multi_exposed"}, attributeColumns)
	for i := range cubes {
		kept := cubes[i].columns()
		var mask uint64
		for _, column := range columns {
			mask <<= 1
			if !slices.Contains(kept, column) {
				mask |= 1
			}
		}
		masks, names = append(masks, mask), append(names, cubes[i].name)
	}
	return masks, names
}

// untilParams returns the parameters for the events of the subject accepted up
// to through. sinceParams restricts them to the events that are not in the
// rollup.
func (d *backlog) untilParams(through time.Time) []any {
	return []any{
		clickhouse.Named("website_id", d.subject.WebsiteID), clickhouse.Named("subject", string(d.subject.Kind)),
		clickhouse.Named("subject_id", d.subject.ID), clickhouse.Named("experiment_id", d.subject.ExperimentID),
		clickhouse.DateNamed("through", through, clickhouse.MilliSeconds),
	}
}

func (d *backlog) sinceParams(through time.Time) []any {
	return append(d.untilParams(through), clickhouse.DateNamed("since", d.state.Through, clickhouse.MilliSeconds))
}

// rangeParams returns the parameters of a rebuild of a range of visitors.
func (d *backlog) rangeParams(generation uint64, through time.Time, frequent []string, visitors [2]uint64) []any {
	masks, names := masks()
	return append(d.untilParams(through),
		clickhouse.Named("first_visitor", visitors[0]),
		clickhouse.Named("last_visitor", visitors[1]),
		clickhouse.Named("generation", generation),
		clickhouse.Named("shares_since", d.sharesSince),
		clickhouse.Named("attributes", uint8(len(attributeColumns))), //nolint:gosec // few
		clickhouse.Named("most", int64(maxAmount)),
		clickhouse.Named("masks", masks),
		clickhouse.Named("cubes", names),
		clickhouse.Named("frequent", frequent))
}

// catchUp refreshes in steps of limited size.
func (s *Refresher) catchUp(ctx context.Context, d *backlog, through time.Time) error {
	if d.size() <= stepEvents {
		return s.step(ctx, d, through)
	}
	rows, err := s.conn.Query(ctx, accepted, d.sinceParams(through)...)
	if err != nil {
		return err
	}
	var ends []time.Time
	var taken uint64
	for rows.Next() {
		var at time.Time
		var events uint64
		if err := rows.Scan(&at, &events); err != nil {
			return errors.Join(err, rows.Close())
		}
		if taken += events; taken >= stepEvents {
			ends, taken = append(ends, at), 0
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, end := range append(ends, through) {
		if err := s.step(ctx, d, end); err != nil {
			return err
		}
	}
	return nil
}

// step adds the events accepted since the last step, up to through.
func (s *Refresher) step(ctx context.Context, d *backlog, through time.Time) error {
	state := *d.state
	frequent, err := s.frequentOf(ctx, d)
	if err != nil {
		return err
	}
	changes := cells{}
	err = s.touched(ctx, d, through, func(events []eventRow) error {
		for i := range events {
			if e := &events[i]; e.fresh {
				state.Events++
				state.Through = later(state.Through, time.UnixMilli(e.accepted).UTC())
				state.Newest = later(state.Newest, time.UnixMilli(e.At).UTC())
			}
		}
		return changes.update(events, d.sharesSince, frequent)
	})
	if err != nil {
		return err
	}
	if err := changes.insert(ctx, s.conn, d, &state); err != nil {
		return err
	}
	*d.state = state
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// update subtracts the old amounts of a visitor and adds the new ones.
func (c cells) update(events []eventRow, sharesSince int64, frequent map[string]bool) error {
	var amounts float64
	for i := range events {
		for _, amount := range events[i].Amounts {
			amounts += math.Abs(float64(amount))
		}
	}
	if amounts > maxAmount {
		return errTooLarge
	}
	var before []eventRow
	for i := range events {
		if !events[i].fresh {
			before = append(before, events[i])
		}
	}
	c.add(totalsOf(before, sharesSince), -1, frequent)
	c.add(totalsOf(events, sharesSince), 1, frequent)
	return nil
}

// errTooLarge reports a visitor whose squared amounts overflow.
var errTooLarge = errors.New("no rollup: the squares of the amounts overflow")

// touched calls update with all events of each visitor that has new events.
func (s *Refresher) touched(ctx context.Context, d *backlog, through time.Time, update func([]eventRow) error) error {
	rows, err := s.conn.Query(ctx, touchedQuery, d.sinceParams(through)...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var events []eventRow
	var visitor, last uint64
	since := d.state.Through.UnixMilli()
	for rows.Next() {
		e := eventRow{attributes: make([]string, len(attributeColumns))}
		to := []any{&visitor, &e.At, &e.ID, &e.Variation, (*uint8)(&e.Kind), &e.goal, &e.Amounts[0], &e.Amounts[1], &e.Amounts[2], &e.accepted}
		for i := range e.attributes {
			to = append(to, &e.attributes[i])
		}
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if e.fresh = e.accepted > since; visitor != last && len(events) > 0 {
			if err := update(events); err != nil {
				return err
			}
			events = events[:0]
		}
		last = visitor
		events = append(events, e)
	}
	if err := rows.Err(); err != nil || len(events) == 0 {
		return err
	}
	return update(events)
}

// rebuild computes a new generation, which replaces the previous ones.
func (s *Refresher) rebuild(ctx context.Context, d *backlog, through time.Time) error {
	next := State{Generation: uint64(time.Now().UnixMilli()), SharesSince: d.sharesSince} //nolint:gosec // after 1970
	if d.state != nil {
		next.Generation = max(next.Generation, d.state.Generation+1)
	}
	row := s.conn.QueryRow(ctx, extent, d.untilParams(through)...)
	if err := row.Scan(&next.Events, &next.Through, &next.Newest); err != nil {
		return err
	}
	if next.Events == 0 { // the events were removed, but the counters are not updated yet
		return nil
	}
	frequent, err := s.chooseFrequent(ctx, d, through)
	if err != nil {
		return err
	}
	for _, visitors := range visitorRanges(next.Events) {
		if err := s.conn.Exec(ctx, rebuildQuery, d.rangeParams(next.Generation, through, frequent, visitors)...); err != nil {
			return err
		}
	}
	if err := merge(ctx, s.conn, generation{d.subject, next.Generation}); err != nil {
		return err
	}
	if err := complete(ctx, s.conn, d.subject, &next); err != nil {
		return err
	}
	_, err = drop(ctx, s.conn, func(g generation) bool { return g.Subject == d.subject && g.number < next.Generation })
	return err
}

// visitorRanges divides the visitors into ranges of their hashed ids, with
// about rangeEvents events each.
func visitorRanges(events uint64) [][2]uint64 {
	n := 1 + events/rangeEvents
	width := math.MaxUint64/n + 1
	if n == 1 {
		return [][2]uint64{{0, math.MaxUint64}}
	}
	ranges := make([][2]uint64, n)
	for i := range ranges {
		first := uint64(i) * width //nolint:gosec // few
		ranges[i] = [2]uint64{first, first + width - 1}
	}
	ranges[n-1][1] = math.MaxUint64
	return ranges
}
