package schema_test

import (
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestServersOfAServer checks the only server of a store, as the serving user too. The oracles are functions of
// ClickHouse and a count.
func TestServersOfAServer(t *testing.T) {
	server := schematest.SharedServer(t)
	conn := server.OpenMigrated(t)
	must.OK(t, conn.Exec(t.Context(), "INSERT INTO events (time, event, event_id) SELECT '2026-01-01', 'view', number FROM numbers(3)"))
	var want schema.Server
	must.OK(t, conn.QueryRow(t.Context(), "SELECT hostName(), version()").Scan(&want.Machine, &want.Version))
	got, err := schema.ReadServers(t.Context(), conn)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	want.Answers, want.Events, want.Bytes = true, 3, got[0].Bytes
	check.That(t, got[0] == want && got[0].Bytes != 0 && got[0].String() == want.Machine, "%+v, want %+v", got[0], want)
}

// TestServersOfACluster checks the servers of a cluster, one of which is killed. Their ports have the numbers of the
// shard and the replica.
func TestServersOfACluster(t *testing.T) {
	cluster := schematest.NewCluster(t)
	conn := schematest.OpenConnection(t, cluster.Address)
	must.Get(schema.Migrate(t.Context(), conn))(t)
	must.OK(t, conn.Exec(t.Context(), "INSERT INTO events (time, event, visitor_id, event_id) SELECT '2026-01-01', 'view', number % 2, number FROM numbers(3)"))
	schematest.SyncReplicas(t, cluster.Address)
	check := func(silent uint32) {
		t.Helper()
		servers, err := schema.ReadServers(t.Context(), conn)
		if err != nil || len(servers) != 4 {
			t.Fatal(servers, err)
		}
		for i, s := range servers {
			shard, replica := uint32(i/2+1), uint32(i%2+1)
			is := s.Port%100 != silent
			check.That(t, s.Shard == shard && s.Replica == replica && s.Port%100 == shard*10+replica && s.Answers == is && is == schema.IsVerified(s.Version), "%+v", s)
			rows := []uint64{2, 1}[i/2]
			check.That(t, !is || s.Events == rows, "%s has %d events, want %d", &s, s.Events, rows)
		}
	}
	check(0)
	cluster.KillReplica(2, 2)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); { // the process may still end
		if servers, err := schema.ReadServers(t.Context(), conn); err != nil || !servers[3].Answers {
			break
		}
	}
	check(22)
}
