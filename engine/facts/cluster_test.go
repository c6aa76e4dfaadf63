package facts_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// member is a process that refreshes the facts of all shards of a cluster.
type member []*facts.Refresher

func newMember(t *testing.T, address string) (m member) {
	t.Helper()
	for _, replicas := range openReplicas(t, address) {
		m = append(m, facts.NewShardRefresher(replicas))
	}
	return m
}

// openReplicas returns connections to the replicas of each shard.
func openReplicas(t *testing.T, address string) [][]driver.Conn {
	t.Helper()
	parsed := must.Get(schema.ParseAddress(address, func(string) string { return "" }))(t)
	shards, err := schema.OpenReplicas(t.Context(), schematest.OpenConnection(t, address), parsed)
	must.That(t, err == nil, "%d shards: %v", len(shards), err)
	must.Equal(t, len(shards), 2, "%d shards: %v", len(shards), err)
	t.Cleanup(func() { _ = schema.CloseReplicas(shards) })
	return shards
}

// refresh refreshes all shards until none has events after a time that are not folded.
func (m member) refresh(ctx context.Context) error {
	var errs []error
	for _, shard := range m {
		_, err := shard.RefreshFacts(ctx)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// TestFactsOfACluster lets three processes refresh the facts of a cluster while events arrive, and one of its replicas
// is killed and comes back. In the end the facts are those of all events, on each replica.
func TestFactsOfACluster(t *testing.T) {
	c := schematest.NewCluster(t)
	conn := schematest.OpenConnection(t, c.Address)
	w := newWorldOn(t, 8, conn)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var members sync.WaitGroup
	for range 3 {
		m := newMember(t, c.Address)
		members.Go(func() {
			for ctx.Err() == nil {
				_ = m.refresh(ctx) // fails while a replica is away
			}
		})
	}
	for round := range 12 {
		w.sendRetried(t, 40)
		switch round {
		case 4:
			c.KillReplica(1, 1)
		case 8:
			c.RestartReplica(1, 1)
		}
	}
	stop()
	members.Wait()
	shards := openReplicas(t, c.Address)
	// last refreshes once, and a refresh finds the events that its replica has
	for _, replica := range slices.Concat(shards...) {
		awaitNoError(t, func() error { return replica.Exec(t.Context(), "SYSTEM SYNC REPLICA events_local") })
	}
	last := newMember(t, c.Address)
	awaitNoError(t, func() error { return last.refresh(t.Context()) })
	w.checkReplicas(t, shards)
	for _, shard := range last { // ClickHouse knows the tokens of the first refreshes
		must.Get(shard.RebuildFacts(t.Context()))(t)
	}
	w.checkReplicas(t, shards)
}

// checkReplicas is like check, for each replica.
func (w *world) checkReplicas(t *testing.T, shards [][]driver.Conn) {
	t.Helper()
	for _, replica := range slices.Concat(shards...) {
		awaitNoError(t, func() error { return w.checkReplica(t, replica) })
	}
}

// awaitNoError calls work until it succeeds. The test fails after a minute.
func awaitNoError(t *testing.T, work func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := work()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// sendRetried is like send, and repeats an insert that fails.
func (w *world) sendRetried(t *testing.T, n int) {
	t.Helper()
	w.at = time.Now().UTC().Truncate(time.Millisecond)
	events := w.batch(n)
	awaitNoError(t, func() error { return schema.InsertEvents(t.Context(), w.conn, events, w.at) })
}

var errDiffers = errors.New("the facts of a replica are not those of the events")

// checkReplica compares the facts of a replica with those of the events of its shard.
func (w *world) checkReplica(t *testing.T, conn driver.Conn) error {
	t.Helper()
	stored, cells, err := readShard(t.Context(), conn)
	if err != nil {
		return err
	}
	var visitors []uint64
	if err := conn.QueryRow(t.Context(),
		"SELECT groupUniqArray(visitor_id) FROM events_local").Scan(&visitors); err != nil {
		return err
	}
	want := slices.DeleteFunc(w.wanted(), func(r fold.FactRow) bool { return !slices.Contains(visitors, r.Visitor) })
	if len(fold.AppendChanges(nil, stored, want)) > 0 || !equalCells(cells, want) {
		return errDiffers
	}
	return nil
}

func readShard(ctx context.Context, conn driver.Conn) ([]fold.FactRow, fold.Cells, error) {
	rows, err := facts.ReadAllOfShard(ctx, conn)
	if err != nil {
		return nil, nil, err
	}
	cells, err := facts.ReadAllCellsOfShard(ctx, conn)
	return rows, cells, err
}

func equalCells(found fold.Cells, rows []fold.FactRow) bool {
	want := fold.Cells{}
	for from, to := 0, 0; from < len(rows); from = to {
		for to = from + 1; to < len(rows) && rows[to].Subject == rows[from].Subject &&
			rows[to].Visitor == rows[from].Visitor; to++ {
		}
		want.AddRows(rows[from:to], 1, false)
	}
	for key, cell := range want {
		if found[key] == nil || found[key].CellSums != cell.CellSums {
			return false
		}
	}
	return len(want) == len(found)
}
