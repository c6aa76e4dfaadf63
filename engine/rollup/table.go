package rollup

import (
	"context"
	_ "embed" // the statements
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/engine/generation"
	"lifthouse/engine/plan"
	"lifthouse/engine/visitors"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// layout is the version of the layout of the table rollups. Generations of
// another layout are not read. It must change whenever cubes or the keys of a
// state change.
const layout = 7

// State is the state of a generation.
type State struct {
	Generation      generation.ID
	Inserts         uint64
	SharesSince     int64 // start of the traffic shares that apply to it, in Unix milliseconds
	Events          uint64
	Through, Newest time.Time // last acceptance time and latest event time
	Visitors        visitors.Generation

	// of a store that several processes write to; see shared
	Block    uint64            // number of the last block; of a server
	Blocks   generation.Blocks // all blocks; of a replica
	Mutation mutations         // of a replica: of its events
	Removal  uint64            // number of the last removal
	Seen     map[string]bool   // tables and starts of their servers that had all its events; see events.key
}

// position returns the position of the last events.
func (s *State) position() position { return position{s.Through, s.Block, s.Blocks} }

// same reports whether the states are equal.
func (s *State) same(o *State) bool {
	return s.Generation == o.Generation && s.Inserts == o.Inserts && s.SharesSince == o.SharesSince && s.Events == o.Events &&
		s.Through.Equal(o.Through) && s.Newest.Equal(o.Newest) && s.Visitors.Equal(&o.Visitors) &&
		s.Block == o.Block && slices.Equal(s.Blocks, o.Blocks) && s.Mutation == o.Mutation && s.Removal == o.Removal && maps.Equal(s.Seen, o.Seen)
}

// layoutKey is the key of the layout in the column state. The row that completes
// a generation has it.
const layoutKey = "layout"

// encoded returns the value of the column state. The state of a generation is the
// maximum of each key over its rows. Only the row that completes the generation has
// the layout.
func (s *State) encoded(completes bool) map[string]int64 {
	state := map[string]int64{
		"inserts": int64(s.Inserts), "shares_since": s.SharesSince, "events": int64(s.Events), //nolint:gosec // fewer than 2^63
		"through": s.Through.UnixMilli(), "newest": s.Newest.UnixMilli(),
	}
	if completes {
		state[layoutKey] = layout
	}
	s.Visitors.Encode(state)
	for _, b := range s.Blocks {
		state[fmt.Sprint(blocksPrefix, b.First)] = int64(s.Inserts<<blocksBits | (b.Last - b.First)) //nolint:gosec // fewer than 2^63
	}
	if len(s.Blocks) > 0 {
		state["mutation"], state["versions"] = int64(s.Inserts<<blocksBits|uint64(s.Mutation.last)), int64(s.Inserts<<blocksBits|uint64(s.Mutation.versions)) //nolint:gosec // fewer than 2^63
	}
	if s.Block > 0 || len(s.Blocks) > 0 {
		state["block"], state["removal"] = int64(s.Block), int64(s.Removal) //nolint:gosec // fewer than 2^63
		for key := range s.Seen {
			state[seenPrefix+key] = 1
		}
	}
	return state
}

const (
	seenPrefix = "seen "
	// blocksPrefix is before the first block of an interval of State.Blocks. The value has the
	// number of the insert, because the state of a generation is the maximum of each key: the
	// intervals of earlier inserts remain, and are ignored.
	blocksPrefix = "blocks "
	blocksBits   = 32 // of the number of further blocks, below the number of the insert; also of mutations
)

func decodedState(of generation.ID, state map[string]int64) State {
	s := State{
		Generation: of, Inserts: uint64(state["inserts"]), SharesSince: state["shares_since"], Events: uint64(state["events"]), //nolint:gosec // not negative
		Through: time.UnixMilli(state["through"]).UTC(), Newest: time.UnixMilli(state["newest"]).UTC(),
		Visitors: visitors.Decode(state),
		Block:    uint64(state["block"]), Removal: uint64(state["removal"]), //nolint:gosec // not negative
	}
	s.Blocks, s.Mutation = decodedBlocks(state, s.Inserts), mutations{uint32(state["mutation"]), uint32(state["versions"])}
	for key := range state {
		if seen, is := strings.CutPrefix(key, seenPrefix); is {
			if s.Seen == nil {
				s.Seen = map[string]bool{}
			}
			s.Seen[seen] = true
		}
	}
	return s
}

// decodedBlocks returns the blocks of an insert.
func decodedBlocks(state map[string]int64, insert uint64) generation.Blocks {
	var intervals []generation.Interval
	for key, value := range state {
		if of, is := strings.CutPrefix(key, blocksPrefix); is && uint64(value)>>blocksBits == insert { //nolint:gosec // as encoded
			first, _ := strconv.ParseUint(of, 10, 64)
			intervals = append(intervals, generation.Interval{First: first, Last: first + uint64(value)&(1<<blocksBits-1)}) //nolint:gosec // as encoded
		}
	}
	return generation.NewBlocks(intervals)
}

//go:embed sql/states.sql
var statesQuery string

// readStates returns the state of the latest complete generation of each
// subject. Subjects whose latest generation lacks rows, or has rows of a failed
// insert, are absent.
func readStates(ctx context.Context, conn driver.Conn) (map[plan.Subject]State, error) {
	rows, err := conn.Query(ctx, statesQuery, clickhouse.Named("layout", int64(layout)))
	if err != nil {
		return nil, fmt.Errorf("read the states of rollups: %w", err)
	}
	defer func() { _ = rows.Close() }()
	states := map[plan.Subject]State{}
	for rows.Next() {
		var of plan.Subject
		var kind string
		var id generation.ID
		var state map[string]int64
		var inserts int64
		if err := rows.Scan(&of.WebsiteID, &kind, &of.ID, &of.ExperimentID, &id.Bucket, &id.Number, &state, &inserts); err != nil {
			return nil, fmt.Errorf("read the states of rollups: %w", err)
		}
		of.Kind = schema.Subject(kind)
		if s := decodedState(id, state); s.Inserts == uint64(inserts) { //nolint:gosec // not negative
			states[of] = s
		}
	}
	return states, rows.Err()
}

// complete publishes a generation: it inserts its state with the layout.
func complete(ctx context.Context, conn driver.Conn, of plan.Subject, s *State) error {
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO rollups (bucket, generation, website_id, subject, subject_id, experiment_id, is_cell, cube_name, visitors, state)")
	if err != nil {
		return fmt.Errorf("complete a rollup: %w", err)
	}
	defer func() { _ = batch.Close() }()
	s.Inserts++
	state := s.encoded(true)
	if err := batch.Append(s.Generation.Bucket, s.Generation.Number, of.WebsiteID, string(of.Kind), of.ID, of.ExperimentID, false, stateName, int64(1), state); err != nil {
		return fmt.Errorf("complete a rollup: %w", err)
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("complete a rollup: %w", err)
	}
	return nil
}

// merge merges the parts of a generation with a bucket of its own, which makes it
// faster to read.
func merge(ctx context.Context, conn driver.Conn, of generation.ID) error {
	if !of.HasOwnBucket() {
		return nil
	}
	err := conn.Exec(ctx, "OPTIMIZE TABLE rollups PARTITION ID {bucket:String} FINAL", clickhouse.Named("bucket", strconv.Itoa(int(of.Bucket))))
	var exception *clickhouse.Exception
	const accessDenied = 497
	if errors.As(err, &exception) && exception.Code == accessDenied {
		slog.WarnContext(ctx, "the ClickHouse user may not merge rollups; reports are slower: lifthouse grants has the grant", "err", err)
		return nil
	}
	return err
}
