package schema_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// clusterStatements returns the statements that create the tables of a cluster.
func clusterStatements(t *testing.T) []string {
	t.Helper()
	return must.Get(schema.Statements("lift-1", false))(t)
}

// TestClusterStatementsEqualGoldenFile also checks that ClickHouse can parse the statements.
func TestClusterStatementsEqualGoldenFile(t *testing.T) {
	conn := schematest.OpenEmpty(t)
	var got strings.Builder
	for _, statement := range clusterStatements(t) {
		var formatted string
		err := conn.QueryRow(t.Context(), "SELECT formatQuery({q:String})",
			clickhouse.Named("q", statement)).Scan(&formatted)
		check.That(t, err == nil, "%v\n%s", err, statement)
		check.Contains(t, formatted, " ON CLUSTER `lift-1`")
		got.WriteString(formatted + "\n\n")
	}
	golden := filepath.Join("testdata", "cluster.sql")
	if *update {
		must.OK(t, os.WriteFile(golden, []byte(got.String()), 0o600))
	}
	want := must.Get(os.ReadFile(golden))(t)
	check.Equal(t, got.String(), string(want), "%s; go test -update writes it", golden)
}

var (
	onCluster   = regexp.MustCompile(" ON CLUSTER `[^`]+`")
	replicated  = regexp.MustCompile(`Replicated(\w+)\('[^']+', '[^']+'(?:, )?([^)]*)\)`)
	distributed = regexp.MustCompile(`Distributed\('[^']+', currentDatabase\(\), '(\w+)', [^\n]+\)`)
)

// TestClusterTablesHaveSameColumns creates the tables of a cluster on a single server, without replicas and with Merge
// instead of Distributed tables. It compares their columns with the tables of a single server.
func TestClusterTablesHaveSameColumns(t *testing.T) {
	one, cluster := schematest.OpenMigrated(t), schematest.OpenEmpty(t)
	for _, statement := range clusterStatements(t) {
		statement = onCluster.ReplaceAllString(statement, "")
		statement = replicated.ReplaceAllString(statement, "$1($2)")
		statement = distributed.ReplaceAllString(statement, "Merge(currentDatabase(), '^$1$$')")
		must.OK(t, cluster.Exec(t.Context(), statement), "%v", statement)
	}
	for _, table := range strings.Fields("events facts catalogue audit rejects looks events_inbox migrations") {
		want := columnsOf(t, one, table)
		got := columnsOf(t, cluster, table)
		check.Equal(t, got, want, "%s is\n%s\nwant\n%s", table, got, want)
		check.That(t, want != "", "%s is\n%s\nwant\n%s", table, got, want)
	}
	check.Equal(t, columnsOf(t, cluster, schema.LocalTable("events")), columnsOf(t, one, "events"), "events_local is")
	must.OK(t, cluster.Exec(t.Context(), "INSERT INTO events_local (website_id, event, visitor_id) SELECT 1, 'view', number FROM numbers(3)"))
	var events uint64
	err := cluster.QueryRow(t.Context(), "SELECT count() FROM events").Scan(&events)
	must.That(t, err == nil, "%d events, %v; want 3", events, err)
	check.Equal(t, events, 3, "%d events, %v; want 3", events, err)
}

func columnsOf(t *testing.T, conn driver.Conn, table string) string {
	t.Helper()
	var columns string
	must.OK(t, conn.QueryRow(t.Context(), "SELECT arrayStringConcat(groupArray(name || ' ' || type || ' ' || comment), '\n') FROM (SELECT * FROM system.columns WHERE database = currentDatabase() AND table = {t:String} ORDER BY position)",
		clickhouse.Named("t", table)).Scan(&columns))
	return columns
}

// execs records statements.
type execs struct {
	driver.Conn
	statements []string
}

func (e *execs) Exec(_ context.Context, statement string, _ ...any) error {
	e.statements = append(e.statements, statement)
	return nil
}

// TestDeleteEventsOnCluster checks that deletions change the local tables, and wait for the replicas.
func TestDeleteEventsOnCluster(t *testing.T) {
	const deletion = "-- why\nALTER TABLE events{{.Local}}{{.On}} DELETE\nWHERE x = 1\nSETTINGS mutations_sync = {{if .Cluster}}1{{else}}2{{end}}"
	for cluster, want := range map[string]string{
		"":  "-- why\nALTER TABLE events DELETE\nWHERE x = 1\nSETTINGS mutations_sync = 2",
		"c": "-- why\nALTER TABLE events_local ON CLUSTER `c` DELETE\nWHERE x = 1\nSETTINGS mutations_sync = 1; SYSTEM SYNC REPLICA ON CLUSTER `c` `default`.events_local",
	} {
		conn := &execs{}
		must.OK(t, schema.DeleteEvents(t.Context(), schema.Clustered(conn, cluster), deletion))
		check.Equal(t, strings.Join(conn.statements, "; "), want, "cluster %q", cluster)
	}
}

// TestConcurrentMigrate runs migrations at the same time, as several processes that start together do.
func TestConcurrentMigrate(t *testing.T) {
	together, alone := schematest.OpenEmpty(t), schematest.OpenMigrated(t)
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			_, err := schema.Migrate(t.Context(), together)
			return err
		})
	}
	must.OK(t, group.Wait())
	pending, err := schema.PendingMigrations(t.Context(), together)
	must.That(t, err == nil, "pending = %v, %v", pending, err)
	check.Equal(t, len(pending), 0, "pending = %v, %v", pending, err)
	for _, table := range strings.Fields("events facts catalogue audit rejects looks events_inbox migrations") {
		check.Equal(t, columnsOf(t, together, table), columnsOf(t, alone, table), "%s is", table)
	}
}

func TestCheckTableForm(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	must.OK(t, schema.CheckTableForm(t.Context(), conn))
	err := schema.CheckTableForm(t.Context(), schema.Clustered(conn, "c"))
	must.That(t, err != nil, "error = %v", err)
	check.Contains(t, err.Error(), "remove cluster=c from the address", "error = %v", err)
	must.OK(t, schema.CheckTableForm(t.Context(), schema.Clustered(schematest.OpenEmpty(t), "c")))
}

// TestReplicatedEngine checks that only the engine changes. The database sets the Keeper path.
func TestReplicatedEngine(t *testing.T) {
	single := must.Get(schema.Statements("", false))(t)
	replicated, err := schema.Statements("", true)
	must.That(t, err == nil, "%d statements, want %d; %v", len(replicated), len(single), err)
	must.Equal(t, len(replicated), len(single), "%d statements, want %d; %v", len(replicated), len(single), err)
	for i, statement := range single {
		check.Equal(t, strings.Replace(statement, "\nENGINE = ", "\nENGINE = Replicated", 1), replicated[i])
	}
}

// TestUsersAreValidSQL checks that ClickHouse can parse the statements of deploy. The embedded engine has no users, so it
// cannot execute them.
func TestUsersAreValidSQL(t *testing.T) {
	conn := schematest.OpenEmpty(t)
	for name, onCluster := range map[string]bool{"users.sql": false, "users.cluster.sql": true} {
		for statement := range strings.SplitSeq(string(must.Get(os.ReadFile("../deploy/"+name))(t)), ";\n\n") {
			var formatted string
			err := conn.QueryRow(t.Context(), "SELECT formatQuery({q:String})",
				clickhouse.Named("q", statement)).Scan(&formatted)
			check.That(t, err == nil, "%v\n%s", err, statement)
			check.That(t, strings.Contains(formatted, " ON CLUSTER lift") == onCluster,
				"ON CLUSTER is missing, or is not expected:\n%s", formatted)
		}
	}
}

// TestMigrateOfCurrentStoreChangesNothing checks that the serving user, who may
// not create tables, can open a store without pending migrations.
func TestMigrateOfCurrentStoreChangesNothing(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	left := 1 // one query, of the recorded migrations
	_, err := schema.Migrate(t.Context(), schematest.KilledConn{Conn: conn, Left: &left})
	must.That(t, err == nil, "Migrate executed %d statements more than one query, want none; %v", -left, err)
	check.Equal(t, left, 0, "Migrate executed %d statements more than one query, want none; %v", -left, err)
}
