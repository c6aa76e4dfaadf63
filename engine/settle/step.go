package settle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// expr is trusted SQL, made of constants only.
type expr string

// slots are what differs between the statements that sql/settle.sql makes.
type slots struct {
	Attributes expr
	Columns    []expr // of a visitor: each attribute of the first view
	Shown      expr   // of a view: its attributes in one string
	Sets       []expr
	Ranked     expr // the attribute whose values are ranked
}

var (
	settleQuery   = mustRender("settle.sql", newSlots())
	frequentQuery = mustRender("frequent.sql", newSlots())
	touchedQuery  = mustRender("touched.sql", struct {
		Columns []string
		Threads int
	}{schema.SettledAttributes, threads})
)

// threads is how many a step has: others have the machine.
const threads = 1

func newSlots() slots {
	var s slots
	shown := make([]string, 0, len(schema.SettledAttributes))
	for i, column := range schema.SettledAttributes {
		s.Columns = append(s.Columns, expr(fmt.Sprintf("shown[%d] AS %s", i+1, column)))
		shown = append(shown, column)
	}
	s.Attributes = expr(strings.Join(schema.SettledAttributes, ", "))
	s.Shown = expr(strings.Join(shown, `, '\0', `))
	for i := range schema.Facets {
		facet := &schema.Facets[i]
		s.Sets = append(s.Sets, expr(", "+strings.Join(facet.Columns(), ", ")))
		if facet.Rank {
			s.Ranked = expr(facet.By[0])
		}
	}
	return s
}

// masks are what the function grouping says of each facet: of the columns, a
// bit for each that it does not keep, the first the highest.
func masks() (masks []uint64, names []string) {
	columns := slices.Concat([]string{"first_day", "day", "variation_id", "crossover"}, schema.SettledAttributes)
	for i := range schema.Facets {
		kept := schema.Facets[i].Columns()
		var mask uint64
		for _, column := range columns {
			mask <<= 1
			if !slices.Contains(kept, column) {
				mask |= 1
			}
		}
		masks, names = append(masks, mask), append(names, schema.Facets[i].Name)
	}
	return masks, names
}

// until names the events of the subject that were accepted until then, and
// since those that are not settled of them.
func (d *due) until(through time.Time) []any {
	return []any{
		clickhouse.Named("website_id", d.subject.WebsiteID), clickhouse.Named("subject", string(d.subject.Kind)),
		clickhouse.Named("subject_id", d.subject.ID), clickhouse.Named("experiment_id", d.subject.ExperimentID),
		clickhouse.DateNamed("through", through, clickhouse.MilliSeconds),
	}
}

func (d *due) since(through time.Time) []any {
	return append(d.until(through), clickhouse.DateNamed("since", d.settled.Through, clickhouse.MilliSeconds))
}

// lane is what a rebuild settles at once: a range of visitors.
func (d *due) lane(generation uint64, through time.Time, frequent []string, visitors [2]uint64) []any {
	masks, names := masks()
	return append(d.until(through),
		clickhouse.Named("first_visitor", visitors[0]),
		clickhouse.Named("last_visitor", visitors[1]),
		clickhouse.Named("generation", generation),
		clickhouse.Named("shares_since", d.sharesSince),
		clickhouse.Named("attributes", uint8(len(schema.SettledAttributes))), //nolint:gosec // few
		clickhouse.Named("most", int64(mostAmount)),
		clickhouse.Named("masks", masks),
		clickhouse.Named("facets", names),
		clickhouse.Named("frequent", frequent))
}

// catchUp settles in steps of bounded size.
func (s *Settler) catchUp(ctx context.Context, d *due, through time.Time) error {
	if d.tail() <= stepEvents {
		return s.step(ctx, d, through)
	}
	rows, err := s.conn.Query(ctx, accepted, d.since(through)...)
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

// step settles the events accepted since the last step, until through.
func (s *Settler) step(ctx context.Context, d *due, through time.Time) error {
	state := schema.Settlement{Generation: d.settled.Generation, Through: d.settled.Through, Newest: d.settled.Newest}
	frequent, err := s.chosen(ctx, d)
	if err != nil {
		return err
	}
	changes := cells{}
	err = s.touched(ctx, d, through, func(events []event) error {
		for i := range events {
			if e := &events[i]; e.fresh {
				state.Events++
				state.Through = later(state.Through, time.UnixMilli(e.accepted).UTC())
				state.Newest = later(state.Newest, time.UnixMilli(e.at).UTC())
			}
		}
		return changes.settle(events, d.sharesSince, frequent)
	})
	if err != nil {
		return err
	}
	if err := changes.insert(ctx, s.conn, d, &state); err != nil {
		return err
	}
	d.settled.Through, d.settled.Newest = state.Through, state.Newest
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// settle takes out what the visitor had before the fresh events, and puts in
// what there is with them.
func (c cells) settle(events []event, sharesSince int64, frequent map[string]bool) error {
	var amounts float64
	for i := range events {
		for _, amount := range events[i].amounts {
			amounts += math.Abs(float64(amount))
		}
	}
	if amounts > mostAmount {
		return errTooLarge
	}
	var before []event
	for i := range events {
		if !events[i].fresh {
			before = append(before, events[i])
		}
	}
	c.add(settlePerson(before, sharesSince), -1, frequent)
	c.add(settlePerson(events, sharesSince), 1, frequent)
	return nil
}

// errTooLarge is a visitor whose amounts have squares that do not fit.
var errTooLarge = errors.New("not settled: amounts whose squares do not fit")

// touched hands over the events of each visitor of whom any came since the last
// step.
func (s *Settler) touched(ctx context.Context, d *due, through time.Time, settle func([]event) error) error {
	rows, err := s.conn.Query(ctx, touchedQuery, d.since(through)...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var events []event
	var visitor, last uint64
	since := d.settled.Through.UnixMilli()
	for rows.Next() {
		e := event{shows: make([]string, len(schema.SettledAttributes))}
		to := []any{&visitor, &e.at, &e.id, &e.variation, &e.kind, &e.goal, &e.amounts[0], &e.amounts[1], &e.amounts[2], &e.accepted}
		for i := range e.shows {
			to = append(to, &e.shows[i])
		}
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if e.fresh = e.accepted > since; visitor != last && len(events) > 0 {
			if err := settle(events); err != nil {
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
	return settle(events)
}

// rebuild makes a new generation, and puts it in the place of those before.
func (s *Settler) rebuild(ctx context.Context, d *due, through time.Time) error {
	next := schema.Settlement{
		WebsiteID: d.subject.WebsiteID, Subject: d.subject.Kind, SubjectID: d.subject.ID, ExperimentID: d.subject.ExperimentID,
		Generation: uint64(time.Now().UnixMilli()), SharesSince: d.sharesSince, //nolint:gosec // after 1970
	}
	if d.settled != nil {
		next.Generation = max(next.Generation, d.settled.Generation+1)
	}
	row := s.conn.QueryRow(ctx, extent, d.until(through)...)
	if err := row.Scan(&next.Events, &next.Through, &next.Newest); err != nil {
		return err
	}
	if next.Events == 0 { // they went, and the counters do not know yet
		return nil
	}
	frequent, err := s.choose(ctx, d, through)
	if err != nil {
		return err
	}
	for _, visitors := range lanes(next.Events) {
		if err := s.conn.Exec(ctx, settleQuery, d.lane(next.Generation, through, frequent, visitors)...); err != nil {
			return err
		}
	}
	if err := schema.MergeSettled(ctx, s.conn, &next); err != nil {
		return err
	}
	if err := schema.InsertSettlement(ctx, s.conn, &next); err != nil {
		return err
	}
	_, err = schema.DropSettled(ctx, s.conn, func(g *schema.Settlement) bool {
		return g.SameSubject(&next) && g.Generation < next.Generation
	})
	return err
}

// lanes divides all visitors into ranges of their ids, hashes, of about
// laneEvents events each.
func lanes(events uint64) [][2]uint64 {
	n := 1 + events/laneEvents
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
