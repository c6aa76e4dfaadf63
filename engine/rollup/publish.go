package rollup

import (
	"cmp"
	"context"
	_ "embed" // the statements
	"errors"
	"fmt"
	"maps"
	"slices"

	"lifthouse/engine/generation"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// stamp records in a state up to where its events were read.
func (s *builder) stamp(state *State, through position) {
	if s.shared != nil {
		state.Block, state.Blocks, state.Removal, state.Mutation = through.block, through.blocks, s.events.Removal, s.events.Mutation
		seen := map[string]bool{s.events.key(0): true}
		maps.Copy(seen, state.Seen)
		state.Seen = seen
	}
}

// publish calls insert, which inserts the next state of a generation. If other processes
// refresh rollups, it returns errLost if one of them has inserted this state already, and
// errMoved if the replica has changed events that the refresh may have read.
func (s *builder) publish(ctx context.Context, state *State, insert func(context.Context) error) error {
	if s.shared == nil {
		return insert(ctx)
	}
	if err := s.shared.unchanged(ctx, &s.events); err != nil {
		return err
	}
	token := fmt.Sprint(state.Generation.Number, " ", state.Inserts+1)
	if err := insert(clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"insert_deduplicate": 1, "insert_deduplication_token": token}))); err != nil {
		return err
	}
	now, err := readState(ctx, s.conn, state.Generation)
	if err == nil && !now.same(state) {
		err = errLost
	}
	return err
}

//go:embed sql/state.sql
var stateQuery string

// readState returns the state of a generation. Its inserts are 0 if it lacks rows, or has
// rows of a failed insert.
func readState(ctx context.Context, conn driver.Conn, of generation.ID) (State, error) {
	var state map[string]int64
	var inserts int64
	err := conn.QueryRow(ctx, stateQuery, clickhouse.Named("bucket", of.Bucket), clickhouse.Named("generation", of.Number)).Scan(&state, &inserts)
	if err != nil {
		return State{}, fmt.Errorf("read the state of a rollup: %w", err)
	}
	s := decodedState(of, state)
	if s.Inserts != uint64(inserts) { //nolint:gosec // not negative
		s.Inserts = 0
	}
	return s, nil
}

// withoutCopies returns the events of a visitor without later copies of the same event, which
// several writers may have stored.
func (s *builder) withoutCopies(events []eventRow) []eventRow {
	if s.shared == nil || len(events) < 2 {
		return events
	}
	slices.SortFunc(events, func(a, b eventRow) int {
		switch {
		case a.fresh != b.fresh && b.fresh: // the copy that is in the rollup is the first, although its number may be larger
			return -1
		case a.fresh != b.fresh:
			return 1
		}
		return cmp.Compare(a.number, b.number)
	})
	first := make(map[uint64]bool, len(events))
	return slices.DeleteFunc(events, func(e eventRow) bool {
		is := first[e.ID]
		first[e.ID] = true
		return is
	})
}

// confirm makes a state valid that was stored before the server was started, if the server
// has the same events: it may have lost some, and use the numbers of their blocks again.
func (s *builder) confirm(ctx context.Context, d *backlog) error {
	if s.shared == nil || d.state == nil || d.valid || d.lostSome || !s.events.mayKnow(d.state) {
		return nil
	}
	var stored uint64
	if err := s.conn.QueryRow(ctx, d.statements().stored, d.untilParams(d.state.position())...).Scan(&stored); err != nil {
		return fmt.Errorf("count the events of a rollup: %w", err)
	}
	d.valid = stored == d.state.Events
	return nil
}

// errCopies says that events have copies, which are about to be removed.
var errCopies = errors.New("events have copies that another process must remove: lifthouse check --remove-copies removes them")

// mayRebuild returns an error if the rollup of a subject cannot be rebuilt now: another
// process does, or the events have copies, which the statements of a rebuild would count.
func (s *builder) mayRebuild(ctx context.Context, d *backlog, through position) error {
	if s.shared == nil {
		return nil
	}
	if !s.insists {
		switch busy, err := s.shared.isRebuilt(ctx, d); {
		case err != nil:
			return err
		case busy:
			return errBusy
		}
	}
	if d.stored <= s.foldEvents {
		return nil // the events are added up in this process, without copies
	}
	for _, bounds := range visitorRanges(d.stored) {
		var copies uint64
		if err := s.conn.QueryRow(ctx, d.statements().copies, d.visitorParams(through, bounds)...).Scan(&copies); err != nil {
			return fmt.Errorf("look for copies of events: %w", err)
		}
		if copies > 0 {
			return errCopies
		}
	}
	return nil
}
