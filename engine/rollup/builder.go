package rollup

import (
	"context"
	_ "embed" // the statements
	"time"

	"lifthouse/engine/generation"
	"lifthouse/engine/plan"
	"lifthouse/engine/visit"
	"lifthouse/engine/visitors"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// builder computes the rollups of subjects from their events.
type builder struct {
	conn        driver.Conn
	shared      *shared // nil: no other process refreshes rollups
	events      events  // of the server, when the refresh began
	insists     bool    // it rebuilds although another process does
	maxFrequent int
	foldEvents  uint64                         // maximum number of events that a rebuild adds up in this process
	frequent    map[plan.Subject]knownFrequent // of the current generations
	epochs      map[plan.Subject]epoch         // of the refreshes of rows of visitors
	last        uint64                         // the last generation or epoch
	replaced    []replaced                     // generations that reports may still read, oldest first
	sweptAt     time.Time                      // zero: rows of an earlier process may be left
	recent      *recent                        // events that this process inserted
}

// epoch is a sequence of refreshes of rows of visitors. A failed refresh ends it,
// because its rows may be stored.
type epoch struct {
	generation, number uint64
}

// next returns a number that no generation or epoch has. kind is that of rollup_claims.
func (s *builder) next(ctx context.Context, kind string, of plan.Subject) (uint64, error) {
	if s.shared != nil {
		return s.shared.claim(ctx, kind, of.String())
	}
	s.last = max(s.last+1, uint64(time.Now().UnixMilli())) //nolint:gosec // after 1970
	return s.last, nil
}

// newGeneration returns a new generation without rows.
func (s *builder) newGeneration(ctx context.Context, kind string, of plan.Subject, large bool) (generation.ID, error) {
	number, err := s.next(ctx, kind, of)
	switch {
	case err != nil:
		return generation.ID{}, err
	case s.shared != nil:
		return generation.NewShared(number, large), nil
	}
	return generation.New(ctx, s.conn, number, large)
}

func newBuilder(conn driver.Conn, of *shared) *builder {
	return &builder{conn: conn, shared: of, maxFrequent: maxFrequent, foldEvents: foldEvents, frequent: map[plan.Subject]knownFrequent{}, epochs: map[plan.Subject]epoch{}}
}

const (
	// rangeEvents is the approximate number of events that a rebuild reads at
	// once. It needs about 300 bytes of memory per event.
	rangeEvents = 3_000_000
	// stepEvents is the maximum number of new events of a step. A step also
	// reads the earlier events of their visitors.
	stepEvents = 500_000
	// foldEvents is the number of events up to which a rebuild in this process is
	// faster than a statement, which takes 0.7 s for few events.
	foldEvents = 100_000
	// maxAmount is the maximum sum of a visitor's absolute amounts, in
	// 1/schema.MoneyScale: a hundred of the largest events. The sum of squares
	// of 10^8 such visitors fits into 128 bits.
	maxAmount = 1_000_000_000_000_000
	// maxFrequent is the number of values that a frequent cube stores separately: four times the
	// number in a report, so that the values of a report remain among them for
	// long.
	maxFrequent = 200
)

// catchUp refreshes in steps of limited size.
func (s *builder) catchUp(ctx context.Context, d *backlog, through position) error {
	switch {
	case d.size() <= stepEvents:
		return s.step(ctx, d, through)
	case d.order == generation.BySet:
		return s.rebuild(ctx, d, through) // positions between two sets of blocks are not known
	}
	var ends []position
	var taken uint64
	err := schema.EachRow(ctx, s.conn, d.statements().accepted, func(row driver.Rows) error {
		var number int64
		var events uint64
		err := row.Scan(&number, &events)
		if taken += events; taken >= stepEvents {
			ends, taken = append(ends, positionAt(d.order, number)), 0
		}
		return err
	}, d.sinceParams(d.state.position(), through)...)
	if err != nil {
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
func (s *builder) step(ctx context.Context, d *backlog, through position) error {
	state := *d.state
	values, err := s.frequentOf(ctx, d)
	if err != nil {
		return err
	}
	rows, changes, err := s.fold(ctx, d, &state, through, values)
	if err != nil {
		return err
	}
	if rows.Full() {
		return s.rebuild(ctx, d, through)
	}
	if err := s.insert(ctx, d.subject, rows, changes, &state); err != nil {
		delete(s.epochs, d.subject)
		return err
	}
	*d.state = state
	return s.compactIfSparse(ctx, d)
}

// fold computes the changes by the events accepted after those of the state, up
// to through, and adds these events to the state.
func (s *builder) fold(ctx context.Context, d *backlog, state *State, through position, values frequent) (*visitors.Changes, cells, error) {
	if known := s.known(d, state.position(), through); known != nil {
		next := *state
		rows, changes, err := s.foldOf(ctx, d, &next, through, values, known)
		if err != nil || next.Events == d.stored {
			*state = next
			return rows, changes, err
		}
	}
	return s.foldOf(ctx, d, state, through, values, nil)
}

// foldOf is fold with the visitors of the new events; nil: they are not known.
func (s *builder) foldOf(ctx context.Context, d *backlog, state *State, through position, values frequent, known []uint64) (*visitors.Changes, cells, error) {
	changes, rows := cells{}, visitors.NewChanges(&state.Visitors)
	err := s.touched(ctx, d, state.position(), through, known, func(visitor uint64, events []eventRow) error {
		for i := range events {
			if e := &events[i]; e.fresh {
				state.Events++
				state.Through = schema.Later(state.Through, time.UnixMilli(e.accepted).UTC())
				state.Newest = schema.Later(state.Newest, time.UnixMilli(e.At).UTC())
			}
		}
		if state.Visitors.Number != 0 {
			rows.Update(visitor, eventsOf(earlier(events)), eventsOf(events))
		}
		return changes.update(events, d.sharesSince, values)
	})
	s.stamp(state, through)
	return rows, changes, err
}

// insert inserts the rows of visitors, then the cells with the new state.
func (s *builder) insert(ctx context.Context, of plan.Subject, rows *visitors.Changes, changes cells, state *State) error {
	if g := &state.Visitors; g.Number != 0 {
		current := s.epochs[of]
		if current.generation != g.Number || g.Refreshes[current.number] == visitors.MaxRefreshes {
			number, err := s.next(ctx, "rows", of)
			if err != nil {
				return err
			}
			current = epoch{g.Number, number}
			s.epochs[of] = current
		}
		if err := rows.Insert(ctx, s.conn, current.number, g.AddRefresh(current.number, rows)); err != nil {
			return err
		}
	}
	return s.publish(ctx, state, func(ctx context.Context) error { return changes.insert(ctx, s.conn, of, state, false) })
}

func eventsOf(rows []eventRow) []visitors.Event {
	events := make([]visitors.Event, len(rows))
	for i := range rows {
		events[i] = rows[i].Event
	}
	return events
}

// touched calls update with all events of each visitor that has new events. The visitors
// are nil if they are not known.
func (s *builder) touched(ctx context.Context, d *backlog, since, through position, known []uint64, update func(visitor uint64, events []eventRow) error) error {
	statement, params := d.statements().touched, d.sinceParams(since, through)
	if known != nil {
		statement, params = d.statements().touchedKnown, append(d.sinceParams(since, through), clickhouse.Named("visitor_ids", known))
	}
	rows, err := s.conn.Query(ctx, statement, params...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var events []eventRow
	var visitor, last uint64
	for rows.Next() {
		e := eventRow{Event: visitors.Event{Attributes: make([]string, len(visitors.Attributes))}}
		to := []any{&visitor, &e.At, &e.ID, &e.Variation, (*uint8)(&e.Kind), &e.Goal, &e.Amounts[0], &e.Amounts[1], &e.Amounts[2], &e.accepted, &e.number, &e.fresh}
		for i := range e.Attributes {
			to = append(to, &e.Attributes[i])
		}
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if e.Kind != visit.View {
			clear(e.Attributes) // only those of views count
		}
		if visitor != last && len(events) > 0 {
			if err := update(last, s.withoutCopies(events)); err != nil {
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
	return update(last, s.withoutCopies(events))
}
