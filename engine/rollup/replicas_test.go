package rollup_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/plan"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// member is a process on a cluster.
type member struct {
	*shop
	all      rollup.Refreshers
	replicas [][]driver.Conn
}

// newMember returns a process on a cluster, which reads and writes any replica of a shard. wrap
// changes the connections to the replicas.
func newMember(t *testing.T, seed uint64, address string, wrap func(driver.Conn) driver.Conn) *member {
	t.Helper()
	parsed, err := schema.ParseAddress(address, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if seed > 0 {
		parsed.Options.Settings = clickhouse.Settings{"load_balancing": "random", "insert_quorum": 0}
	}
	conn, err := schema.Reach(t.Context(), parsed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := schema.Migrate(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	m := &member{shop: newShopOn(t, seed, conn)}
	if err := m.writer.Share(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.replicas, err = schema.OpenReplicas(t.Context(), conn, parsed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = schema.CloseReplicas(m.replicas) })
	wrapped := make([][]driver.Conn, len(m.replicas))
	for i, shard := range m.replicas {
		for _, replica := range shard {
			wrapped[i] = append(wrapped[i], wrap(replica))
		}
	}
	m.engine.Rollups.SetReplicas(wrapped, source.DefaultLimits, m.catalogue)
	m.writer.AfterWrite(func(subjects []ingest.Subject) {
		var changed []plan.Subject
		for _, of := range subjects {
			changed = append(changed, plan.Subject(of))
		}
		m.engine.Written(changed)
	})
	m.all = rollup.NewRefreshers(m.writer, m.engine.Rollups)
	return m
}

func asIs(conn driver.Conn) driver.Conn { return conn }

// everywhere executes a statement on some replicas.
func (m *member) everywhere(statement string, of ...driver.Conn) {
	m.t.Helper()
	for _, replica := range of {
		if err := replica.Exec(m.t.Context(), statement); err != nil {
			m.t.Fatal(statement, err)
		}
	}
}

func (m *member) refreshAll() {
	m.t.Helper()
	if err := m.all.RefreshAll(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
}

// catchUp waits until the replicas have the same events, and removes copies.
func (m *member) catchUp() {
	m.t.Helper()
	m.everywhere("SYSTEM START FETCHES events_local", slices.Concat(m.replicas...)...)
	if err := schema.SyncReplicas(m.t.Context(), m.conn); err != nil {
		m.t.Fatal(err)
	}
	if _, err := m.writer.Sweep(m.t.Context(), time.Now().Add(-time.Hour)); err != nil {
		m.t.Fatal(err)
	}
	if err := schema.SyncReplicas(m.t.Context(), m.conn); err != nil {
		m.t.Fatal(err)
	}
}

// compareReplicas compares reports from the rollups of each replica with the events.
func (m *member) compareReplicas(reports int, paths map[string]int) {
	m.t.Helper()
	m.catchUp()
	m.refreshAll()
	for replica := range m.replicas[0] {
		all := m.engine.Rollups.Only(replica)
		m.compareAll(reports, paths)
		all()
	}
	m.compareAll(reports, paths)
}

// copyTo inserts copies of recent events on a replica, as another process does that has not seen
// them there.
func (m *member) copyTo(from, to driver.Conn, most int) {
	m.t.Helper()
	var columns []string
	err := schema.EachRow(m.t.Context(), to, "SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'events_local' AND default_kind = '' AND name NOT IN ('writer', 'ingested_at') ORDER BY position", func(row driver.Rows) error {
		var name string
		err := row.Scan(&name)
		columns = append(columns, name)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	var address string
	if err := from.QueryRow(m.t.Context(), "SELECT concat('127.0.0.1:', toString(tcpPort()))").Scan(&address); err != nil {
		m.t.Fatal(err)
	}
	list := strings.Join(columns, ", ")
	m.everywhere(fmt.Sprintf("INSERT INTO events_local (%[1]s, writer, ingested_at) SELECT %[1]s, 'another', now64(3) FROM remote('%[2]s', currentDatabase(), 'events_local', 'admin', 'secret') WHERE subject != 'none' ORDER BY ingested_at DESC LIMIT %[3]d",
		list, address, most), to)
}

// TestRollupsOfReplicas refreshes the rollups of the replicas of a cluster, and compares those of
// each replica with the events.
func TestRollupsOfReplicas(t *testing.T) {
	cluster := schematest.NewCluster(t)
	admin := schematest.Reach(t, strings.Replace(cluster.Address, "/lifthouse?", "/default?", 1))
	for name, test := range map[string]func(*testing.T, string){
		"copies": copiesBecomeVisibleFirst, "order": blocksBecomeVisibleInAnyOrder, "kills": refreshesAreKilled, "pauses": refreshesArePaused, "tables": tablesAreReplicated,
	} {
		t.Run(name, func(t *testing.T) {
			if err := admin.Exec(t.Context(), "CREATE DATABASE "+name+" ON CLUSTER lift"); err != nil {
				t.Fatal(err)
			}
			test(t, strings.Replace(cluster.Address, "/lifthouse?", "/"+name+"?", 1))
		})
	}
}

// copiesBecomeVisibleFirst counts a copy of an event on a replica that has not fetched the first
// one. The copy is removed then.
func copiesBecomeVisibleFirst(t *testing.T, address string) {
	t.Helper()
	m := newMember(t, 0, address, asIs)
	m.more(100)
	m.catchUp()
	m.refreshAll()
	paths := map[string]int{}
	for range rounds(1) {
		second := []driver.Conn{m.replicas[0][1], m.replicas[1][1]}
		m.everywhere("SYSTEM STOP FETCHES events_local", second...)
		m.more(30)
		for shard := range m.replicas {
			m.copyTo(m.replicas[shard][0], second[shard], 8)
		}
		m.refreshAll() // the second replicas count the copies
		m.everywhere("SYSTEM START FETCHES events_local", second...)
		if err := schema.SyncReplicas(t.Context(), m.conn); err != nil {
			t.Fatal(err)
		}
		if m.IntN(2) == 0 {
			m.refreshAll() // both copies are visible
		}
		m.compareReplicas(10, paths)
	}
	if paths[source.NameRollup] == 0 || paths[source.NameVisitors] == 0 {
		t.Error(paths)
	}
	t.Log(paths)
}

// blocksBecomeVisibleInAnyOrder lets processes write, refresh and erase on a cluster whose replicas
// fetch blocks late, in any order.
func blocksBecomeVisibleInAnyOrder(t *testing.T, address string) {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any
	if given, err := strconv.ParseUint(os.Getenv("LIFTHOUSE_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Log("LIFTHOUSE_SEED", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
	members := []*member{newMember(t, seed|1, address, asIs), newMember(t, seed|1+2, address, asIs)}
	paths := map[string]int{}
	for round := range rounds(6) {
		for range 6 {
			m, shard, replica := members[random.IntN(2)], random.IntN(2), random.IntN(2)
			of := m.replicas[shard][replica]
			switch random.IntN(9) {
			case 0:
				m.everywhere("SYSTEM STOP FETCHES events_local", of)
			case 1:
				m.everywhere("SYSTEM START FETCHES events_local", of)
			case 2:
				m.copyTo(m.replicas[shard][1-replica], of, 1+random.IntN(10))
			case 3, 4:
				m.refreshAll()
			case 5:
				m.everywhere("OPTIMIZE TABLE events_local", of)
			case 6:
				if round%5 == 0 {
					m.everywhere("SYSTEM START FETCHES events_local", slices.Concat(m.replicas...)...)
					if _, err := m.writer.Forget(t.Context(), []string{visitorName(random.IntN(110))}, nil); err != nil {
						t.Fatal(err)
					}
				}
			default:
				var writing sync.WaitGroup
				for _, m := range members {
					writing.Go(func() { m.more(20) })
				}
				writing.Wait()
			}
		}
		members[round%2].compareReplicas(2, paths)
	}
	if paths[source.NameRollup] == 0 || paths[source.NameVisitors] == 0 {
		t.Error(paths)
	}
	t.Log(paths)
}

// tablesAreReplicated has a table of an earlier release, which was replicated. Rollups are not used
// until it is replaced.
func tablesAreReplicated(t *testing.T, address string) {
	t.Helper()
	m := newMember(t, 0, address, asIs)
	m.more(100)
	var statement string
	if err := m.conn.QueryRow(t.Context(), "SELECT create_table_query FROM system.tables WHERE database = currentDatabase() AND name = 'rollups'").Scan(&statement); err != nil {
		t.Fatal(err)
	}
	statement = strings.Replace(statement, ".rollups (", ".rollups ON CLUSTER lift (", 1)
	statement = strings.Replace(statement, "ENGINE = Aggregating", "ENGINE = ReplicatedAggregating", 1)
	statement = strings.Replace(statement, "MergeTree ", "MergeTree('/clickhouse/earlier/{uuid}', '{shard}-{replica}') ", 1)
	m.exec("DROP TABLE rollups ON CLUSTER lift SYNC")
	m.exec(statement)
	m.refreshAll()
	paths := map[string]int{}
	m.compareAll(5, paths)
	if paths[source.NameRollup]+paths[source.NameVisitors] > 0 || len(m.engine.Rollups.Away()) != 4 {
		t.Error("rollups are used:", paths, m.engine.Rollups.Away())
	}
	if _, err := schema.Migrate(t.Context(), m.conn); err != nil {
		t.Fatal(err)
	}
	paths = map[string]int{}
	m.compareReplicas(2, paths)
	if paths[source.NameRollup]+paths[source.NameVisitors] == 0 || len(m.engine.Rollups.Away()) != 0 {
		t.Error("rollups are not used:", paths, m.engine.Rollups.Away())
	}
}

// rounds returns the number of rounds of a test: a few, or LIFTHOUSE_ROUNDS.
func rounds(few int) int {
	if given, err := strconv.Atoi(os.Getenv("LIFTHOUSE_ROUNDS")); err == nil {
		return given
	}
	return few
}

// stride is the number of statements between two kills or pauses.
func stride() int {
	if given, err := strconv.Atoi(os.Getenv("LIFTHOUSE_STRIDE")); err == nil {
		return given
	}
	return 24
}

// refreshesAreKilled kills a process after some statements of its refreshes. Another process
// continues.
func refreshesAreKilled(t *testing.T, address string) {
	t.Helper()
	steady := newMember(t, 0, address, asIs)
	steady.more(150)
	steady.refreshAll()
	paths := map[string]int{}
	for statements := 1; ; statements += stride() {
		left := statements
		killed := newMember(t, 0, address, func(conn driver.Conn) driver.Conn { return schematest.KilledConn{Conn: conn, Left: &left} })
		steady.more(10)
		err := killed.all.RefreshAll(t.Context())
		steady.refreshAll()
		steady.compareReplicas(1, paths)
		if err == nil {
			t.Log(statements, paths)
			return
		}
	}
}

// refreshesArePaused pauses a process before some statements of its refreshes, while another one
// writes, refreshes and sometimes erases. Then it continues.
func refreshesArePaused(t *testing.T, address string) {
	t.Helper()
	steady := newMember(t, 0, address, asIs)
	steady.more(150)
	steady.refreshAll()
	paths := map[string]int{}
	for statements := 1; ; statements += stride() {
		steady.more(10)
		left, paused, resume := statements, make(chan struct{}), make(chan struct{})
		sleeper := newMember(t, 0, address, func(conn driver.Conn) driver.Conn {
			return schematest.PausedConn{Conn: conn, Left: &left, Paused: paused, Resume: resume}
		})
		done := make(chan error, 1)
		go func() { done <- sleeper.all.RefreshAll(t.Context()) }()
		ended := false
		select {
		case <-paused:
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			ended = true
		}
		steady.more(10)
		switch statements % 3 {
		case 1:
			steady.refreshAll()
		case 2:
			if _, err := steady.writer.Forget(t.Context(), []string{visitorName(statements % 110)}, nil); err != nil {
				t.Fatal(err)
			}
			steady.refreshAll()
		}
		close(resume)
		if !ended {
			if err := <-done; err != nil {
				t.Error(statements, err)
			}
		}
		steady.compareReplicas(1, paths)
		if ended {
			t.Log(statements, paths)
			return
		}
	}
}
