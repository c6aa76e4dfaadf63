package rollup

import (
	"context"
	_ "embed" // the statements
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/visitors"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// layout is the version of the layout of the table rollups. Generations of
// another layout are not read. It must change whenever cubes changes.
const layout = 3

// State is the state of a generation.
type State struct {
	Generation      uint64
	SharesSince     int64 // start of the traffic shares that apply to it, in Unix milliseconds
	Events          uint64
	Through, Newest time.Time // last acceptance time and latest event time
	Visitors        visitors.Generation
}

// same reports whether the states are equal.
func (s *State) same(o *State) bool {
	return s.Generation == o.Generation && s.SharesSince == o.SharesSince && s.Events == o.Events &&
		s.Through.Equal(o.Through) && s.Newest.Equal(o.Newest) && s.Visitors.Equal(&o.Visitors)
}

// layoutKey is the key of the layout in the column state. The row that completes
// a generation has it.
const layoutKey = "layout"

// encoded returns the value of the column state without the layout. The state of
// a generation is the maximum of each key over its rows.
func (s *State) encoded() map[string]int64 {
	state := map[string]int64{
		"shares_since": s.SharesSince, "events": int64(s.Events), //nolint:gosec // fewer than 2^63 events
		"through": s.Through.UnixMilli(), "newest": s.Newest.UnixMilli(),
	}
	s.Visitors.Encode(state)
	return state
}

func decodedState(generation uint64, state map[string]int64) State {
	return State{
		Generation: generation, SharesSince: state["shares_since"], Events: uint64(state["events"]), //nolint:gosec // not negative
		Through: time.UnixMilli(state["through"]).UTC(), Newest: time.UnixMilli(state["newest"]).UTC(),
		Visitors: visitors.Decode(state),
	}
}

// generation identifies a generation of a subject's rollup, which is a partition
// of the table. Rows of different generations must not be added up.
type generation struct {
	plan.Subject
	number uint64
}

// kindsOfSubjects are the kinds of subjects by their enum values in the table.
var kindsOfSubjects = []schema.Subject{schema.SubjectNone, schema.SubjectCampaign, schema.SubjectWidget}

// partitionFormat is the format that ClickHouse uses for the id of a partition
// whose key consists of integers.
const partitionFormat = "%d-%d-%d-%d-%d"

// partition returns the id of the partition.
func (g generation) partition() string {
	return fmt.Sprintf(partitionFormat, g.WebsiteID, slices.Index(kindsOfSubjects, g.Kind), g.ID, g.ExperimentID, g.number)
}

//go:embed sql/states.sql
var statesQuery string

// readStates returns the state of the latest complete generation of each
// subject.
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
		var number uint64
		var state map[string]int64
		if err := rows.Scan(&of.WebsiteID, &kind, &of.ID, &of.ExperimentID, &number, &state); err != nil {
			return nil, fmt.Errorf("read the states of rollups: %w", err)
		}
		of.Kind = schema.Subject(kind)
		states[of] = decodedState(number, state)
	}
	return states, rows.Err()
}

// complete publishes a generation: it inserts its state with the layout.
func complete(ctx context.Context, conn driver.Conn, of plan.Subject, s *State) error {
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO rollups (website_id, subject, subject_id, experiment_id, generation, cube_name, state)")
	if err != nil {
		return fmt.Errorf("complete a rollup: %w", err)
	}
	defer func() { _ = batch.Close() }()
	state := s.encoded()
	state[layoutKey] = layout
	if err := batch.Append(of.WebsiteID, string(of.Kind), of.ID, of.ExperimentID, s.Generation, stateName, state); err != nil {
		return fmt.Errorf("complete a rollup: %w", err)
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("complete a rollup: %w", err)
	}
	return nil
}

//go:embed sql/frequent_values.sql
var frequentValuesQuery string

// readFrequentValues returns the frequent values of the cube in a complete
// generation.
func readFrequentValues(ctx context.Context, conn driver.Conn, g generation, c *cube) (map[string]bool, error) {
	values, err := schema.QueryNames(ctx, conn, fmt.Sprintf(frequentValuesQuery, c.by[0]),
		clickhouse.Named("partition", g.partition()), clickhouse.Named("cube", c.frequentName()))
	if err != nil {
		return nil, fmt.Errorf("read frequent values: %w", err)
	}
	frequent := make(map[string]bool, len(values))
	for _, value := range values {
		frequent[value] = true
	}
	return frequent, nil
}

// generations returns all stored generations, complete or not.
func generations(ctx context.Context, conn driver.Conn) ([]generation, error) {
	partitions, err := schema.QueryNames(ctx, conn, "SELECT DISTINCT partition_id FROM system.parts WHERE database = currentDatabase() AND table = 'rollups' AND active AND rows > 0")
	if err != nil {
		return nil, fmt.Errorf("list rollups: %w", err)
	}
	all := make([]generation, len(partitions))
	for i, partition := range partitions {
		g := &all[i]
		var kind int
		if _, err := fmt.Sscanf(partition, partitionFormat, &g.WebsiteID, &kind, &g.ID, &g.ExperimentID, &g.number); err != nil {
			return nil, fmt.Errorf("list rollups: partition %q: %w", partition, err)
		}
		g.Kind = kindsOfSubjects[kind]
	}
	return all, nil
}

// drop drops the generations for which of returns true, and reports whether there
// were any. Each generation is dropped atomically, so a concurrent reader sees
// all of it or no state.
func drop(ctx context.Context, conn driver.Conn, of func(generation) bool) (dropped bool, err error) {
	all, err := generations(ctx, conn)
	if err != nil {
		return false, err
	}
	for _, g := range all {
		if !of(g) {
			continue
		}
		dropped = true
		if err := conn.Exec(ctx, "ALTER TABLE rollups DROP PARTITION ID {id:String}", clickhouse.Named("id", g.partition())); err != nil {
			return true, fmt.Errorf("drop rollups: %w", err)
		}
	}
	return dropped, nil
}

// merge merges the parts of a generation, which makes it faster to read.
func merge(ctx context.Context, conn driver.Conn, g generation) error {
	return conn.Exec(ctx, "OPTIMIZE TABLE rollups PARTITION ID {id:String} FINAL", clickhouse.Named("id", g.partition()))
}

// sweep deletes the rows of visitors that belong neither to a current generation
// nor to one of those that are kept.
func sweep(ctx context.Context, conn driver.Conn, kept []visitors.Generation) error {
	states, err := readStates(ctx, conn)
	if err != nil {
		return err
	}
	for _, s := range states {
		kept = append(kept, s.Visitors)
	}
	return visitors.Sweep(ctx, conn, kept)
}
