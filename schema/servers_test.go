package schema_test

import (
	"strings"
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
	check.Equal(t, got[0], want, "%+v, want %+v", got[0], want)
	check.That(t, got[0].Bytes != 0, "%+v, want %+v", got[0], want)
	check.Equal(t, got[0].String(), want.Machine, "%+v, want %+v", got[0], want)
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
			check.Equal(t, s.Shard, shard, "%+v", s)
			check.Equal(t, s.Replica, replica, "%+v", s)
			check.Equal(t, s.Port%100, shard*10+replica, "%+v", s)
			check.Equal(t, s.Answers, is, "%+v", s)
			check.Equal(t, is, schema.IsVerified(s.Version), "%+v", s)
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

func none(string) string { return "" }

func TestConcurrencyOfConnections(t *testing.T) {
	store := must.Get(schema.ParseAddress("clickhouse://u:p%40@a/db", none))(t)
	store.SetConcurrency(20)
	o := store.Options
	check.Equal(t, o.MaxOpenConns, 20+schema.SpareConns, "connections = %d, %d, password %s", o.MaxOpenConns,
		o.MaxIdleConns, o.Auth.Password)
	check.Equal(t, o.MaxIdleConns, o.MaxOpenConns, "connections = %d, %d, password %s", o.MaxOpenConns, o.MaxIdleConns,
		o.Auth.Password)
	check.Equal(t, o.Auth.Password, "p@", "connections = %d, %d, password %s", o.MaxOpenConns, o.MaxIdleConns,
		o.Auth.Password)
}

// TestCredentialsFromEnvironment checks the environment variables, which keep secrets out of lists of processes.
func TestCredentialsFromEnvironment(t *testing.T) {
	environment := map[string]string{"CLICKHOUSE_USER": "someone", "CLICKHOUSE_PASSWORD": "secret"}
	getenv := func(name string) string { return environment[name] }
	store, err := schema.ParseAddress("clickhouse://h/db", getenv)
	must.That(t, err == nil, "auth = %+v, %v", store.Options.Auth, err)
	check.Equal(t, store.Options.Auth.Username, "someone", "auth = %+v, %v", store.Options.Auth, err)
	check.Equal(t, store.Options.Auth.Password, "secret", "auth = %+v, %v", store.Options.Auth, err)
	store, err = schema.ParseAddress("clickhouse://u:own@h/db", getenv)
	must.That(t, err == nil, "auth = %+v, %v", store.Options.Auth, err)
	check.Equal(t, store.Options.Auth.Username, "u", "auth = %+v, %v", store.Options.Auth, err)
	check.Equal(t, store.Options.Auth.Password, "own", "auth = %+v, %v", store.Options.Auth, err)
	environment["CLICKHOUSE_PASSWORD"], environment["CLICKHOUSE_PASSWORD_FILE"] = "", "testdata/none"
	if _, err := schema.ParseAddress("clickhouse://h/db", getenv); err == nil ||
		!strings.Contains(err.Error(), "CLICKHOUSE_PASSWORD_FILE: open testdata/none") {
		t.Errorf("error = %v", err)
	}
}
