package rollup

import (
	"context"
	_ "embed" // the statements
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/plan"
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
	rows, err := conn.Query(ctx, statesQuery, clickhouse.Named("layout", uint32(layout)))
	if err != nil {
		return nil, fmt.Errorf("read the states of rollups: %w", err)
	}
	defer func() { _ = rows.Close() }()
	states := map[plan.Subject]State{}
	for rows.Next() {
		var of plan.Subject
		var kind string
		var s State
		if err := rows.Scan(&of.WebsiteID, &kind, &of.ID, &of.ExperimentID, &s.Generation, &s.SharesSince, &s.Events, &s.Through, &s.Newest); err != nil {
			return nil, fmt.Errorf("read the states of rollups: %w", err)
		}
		of.Kind, s.Through, s.Newest = schema.Subject(kind), s.Through.UTC(), s.Newest.UTC()
		states[of] = s
	}
	return states, rows.Err()
}

//go:embed sql/complete.sql
var completeQuery string

// complete publishes a generation: it inserts its state.
func complete(ctx context.Context, conn driver.Conn, of plan.Subject, s *State) error {
	err := conn.Exec(ctx, completeQuery,
		clickhouse.Named("website_id", of.WebsiteID), clickhouse.Named("subject", string(of.Kind)),
		clickhouse.Named("subject_id", of.ID), clickhouse.Named("experiment_id", of.ExperimentID),
		clickhouse.Named("generation", s.Generation), clickhouse.Named("layout", uint32(layout)),
		clickhouse.Named("shares_since", s.SharesSince), clickhouse.Named("events", int64(s.Events)),
		clickhouse.DateNamed("through", s.Through, clickhouse.MilliSeconds), clickhouse.DateNamed("newest", s.Newest, clickhouse.MilliSeconds)) //nolint:gosec // fewer than 2^63 events
	if err != nil {
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
