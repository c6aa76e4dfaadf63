package rollup

import (
	"context"
	_ "embed" // the statement
	"errors"

	"lifthouse/engine/generation"
	"lifthouse/schema"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Each replica of a cluster has rollups of the events that it has, in tables that are not
// replicated. So a refresh reads and writes one server only, as on a single server, and a report
// reads one replica of each shard. What differs:
//
//   - Blocks become visible in any order. The position of a state is the set of the blocks that
//     were visible: a block that becomes visible later is new, whatever its number.
//   - Of two copies of an event, the first one that became visible is in the rollup, and may be
//     the one that is removed. Other processes also remove events while a replica cannot be
//     reached. So states have the mutations of the replica. After others, a state is compared
//     with the number of the events at its position, and is built again if some are missing.
//   - While a mutation is not executed on all parts, nothing is refreshed. A refresh is published
//     only if the replica knows no other mutation than before the refresh read its events:
//     otherwise they may have changed meanwhile.

// mutations identify the mutations of the events of a replica.
type mutations struct {
	last     uint32 // number of the last one
	versions uint32 // sum of the last versions of the partitions
}

// ShareReplica declares that the store is a replica of a cluster, whose events other processes
// write. It must be called before the first use.
func (x *Index) ShareReplica() { x.shared = newShared(x.conn, generation.BySet) }

//go:embed sql/look_replica.sql
var lookReplicaQuery string

// errNoTables says that a server of a cluster cannot have rollups yet.
var errNoTables = errors.New("the server has no tables for rollups of its own: run lifthouse migrate")

// isUnusable reports whether an error says that the rollups of a replica cannot be used for a
// while: it cannot be reached, or has no tables for them.
func isUnusable(err error) bool {
	var exception *clickhouse.Exception
	const unknownTable, unknownDatabase, accessDenied = 60, 81, 497
	if errors.As(err, &exception) {
		return exception.Code == unknownTable || exception.Code == unknownDatabase || exception.Code == accessDenied
	}
	return errors.Is(err, errNoTables) || schema.Unreachable(err)
}

// readReplica reads which events a replica has.
func (s *shared) readReplica(ctx context.Context) (now events, err error) {
	var firsts, lasts, merged []uint64
	var own bool
	err = s.conn.QueryRow(ctx, lookReplicaQuery).Scan(&firsts, &lasts, &merged, &now.Mutation.last, &now.Mutation.versions, &now.Mutating, &now.Table, &now.Numbered, &own, &now.Removal, &now.Left, &now.Removing)
	switch {
	case err != nil:
		return now, err
	case !own:
		return now, errNoTables
	}
	intervals := make([]generation.Interval, len(firsts))
	for i := range firsts {
		intervals[i] = generation.Interval{First: firsts[i], Last: lasts[i]}
	}
	now.Last.blocks = generation.NewBlocks(intervals)
	firstBlocks := make([]generation.Interval, len(merged))
	for i, block := range merged {
		firstBlocks[i] = generation.Interval{First: block, Last: block}
	}
	now.Merged.blocks = generation.NewBlocks(firstBlocks)
	return now, nil
}

// errMoved says that a replica may have changed events while a refresh read them.
var errMoved = errors.New("events were removed during the refresh")

// unchanged returns errMoved if a replica has not kept all events since a look.
func (s *shared) unchanged(ctx context.Context, since *events) error {
	if s.order != generation.BySet {
		return nil
	}
	now, err := s.readReplica(ctx)
	if err == nil && (now.Mutating || !now.follows(since)) {
		err = errMoved
	}
	return err
}
