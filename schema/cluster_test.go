package schema_test

import (
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
)

// clusterStatements returns the statements that create the tables of a cluster.
func clusterStatements(t *testing.T) []string {
	t.Helper()
	statements, err := schema.Statements()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, statement := range statements {
		all = append(all, schema.OnCluster("lift-1", statement)...)
	}
	return all
}

// TestClusterStatementsEqualGoldenFile also checks that ClickHouse can parse the
// statements.
func TestClusterStatementsEqualGoldenFile(t *testing.T) {
	conn := schematest.OpenEmpty(t)
	var got strings.Builder
	for _, statement := range clusterStatements(t) {
		var formatted string
		if err := conn.QueryRow(t.Context(), "SELECT formatQuery({q:String})", clickhouse.Named("q", statement)).Scan(&formatted); err != nil {
			t.Errorf("%v\n%s", err, statement)
		}
		if !strings.Contains(formatted, " ON CLUSTER `lift-1`") {
			t.Errorf("ON CLUSTER is missing:\n%s", formatted)
		}
		got.WriteString(formatted + "\n\n")
	}
	golden := filepath.Join("testdata", "cluster.sql")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the statements differ from %s (go test -update writes it):\n%s", golden, got.String())
	}
}

var (
	onCluster   = regexp.MustCompile(" ON CLUSTER `[^`]+`")
	replicated  = regexp.MustCompile(`Replicated(\w+)\('[^']+', '[^']+'(?:, )?([^)]*)\)`)
	distributed = regexp.MustCompile(`Distributed\('[^']+', currentDatabase\(\), '(\w+)', [^\n]+\)`)
)

// TestClusterTablesHaveSameColumns creates the tables of a cluster on a single
// server, without replicas and with Merge instead of Distributed tables. It
// compares their columns with the tables of a single server.
func TestClusterTablesHaveSameColumns(t *testing.T) {
	one, cluster := schematest.OpenMigrated(t), schematest.OpenEmpty(t)
	for _, statement := range clusterStatements(t) {
		statement = onCluster.ReplaceAllString(statement, "")
		statement = replicated.ReplaceAllString(statement, "$1($2)")
		statement = distributed.ReplaceAllString(statement, "Merge(currentDatabase(), '^$1$$')")
		if err := cluster.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%v\n%s", err, statement)
		}
	}
	for _, table := range strings.Fields("events facts catalogue audit rejects looks events_inbox migrations") {
		want := columnsOf(t, one, table)
		if got := columnsOf(t, cluster, table); got != want || want == "" {
			t.Errorf("%s is\n%s\nwant\n%s", table, got, want)
		}
	}
	if got, want := columnsOf(t, cluster, schema.LocalTable("events")), columnsOf(t, one, "events"); got != want {
		t.Errorf("events_local is\n%s\nwant\n%s", got, want)
	}
	if err := cluster.Exec(t.Context(), "INSERT INTO events_local (website_id, event, visitor_id) SELECT 1, 'view', number FROM numbers(3)"); err != nil {
		t.Fatal(err)
	}
	var events uint64
	if err := cluster.QueryRow(t.Context(), "SELECT count() FROM events").Scan(&events); err != nil || events != 3 {
		t.Errorf("%d events, %v; want 3", events, err)
	}
}

func columnsOf(t *testing.T, conn driver.Conn, table string) string {
	t.Helper()
	var columns string
	if err := conn.QueryRow(t.Context(), "SELECT arrayStringConcat(groupArray(name || ' ' || type || ' ' || comment), '\n') FROM (SELECT * FROM system.columns WHERE database = currentDatabase() AND table = {t:String} ORDER BY position)",
		clickhouse.Named("t", table)).Scan(&columns); err != nil {
		t.Fatal(err)
	}
	return columns
}

// TestOnClusterAlter checks that ALTER statements change the local tables.
func TestOnClusterAlter(t *testing.T) {
	for statement, want := range map[string]string{
		"-- why\nALTER TABLE events DELETE\nWHERE x = 1": "-- why\nALTER TABLE events_local ON CLUSTER `c` DELETE\nWHERE x = 1",
		"ALTER TABLE events_inbox DROP PART {p:String}":  "ALTER TABLE events_inbox DROP PART {p:String}", // replicated
		"INSERT INTO events SELECT 1":                    "INSERT INTO events SELECT 1",
	} {
		if got := strings.Join(schema.OnCluster("c", statement), "; "); got != want {
			t.Errorf("%q becomes %q, want %q", statement, got, want)
		}
	}
}

// TestConcurrentMigrate runs migrations at the same time, as several processes
// that start together do.
func TestConcurrentMigrate(t *testing.T) {
	together, alone := schematest.OpenEmpty(t), schematest.OpenMigrated(t)
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			_, err := schema.Migrate(t.Context(), together)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if pending, err := schema.PendingMigrations(t.Context(), together); err != nil || len(pending) > 0 {
		t.Errorf("pending = %v, %v", pending, err)
	}
	for _, table := range strings.Fields("events facts catalogue audit rejects looks events_inbox migrations") {
		if got, want := columnsOf(t, together, table), columnsOf(t, alone, table); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", table, got, want)
		}
	}
}

func TestCheckTableForm(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	if err := schema.CheckTableForm(t.Context(), conn); err != nil {
		t.Error(err)
	}
	if err := schema.CheckTableForm(t.Context(), schema.Clustered(conn, "c")); err == nil || !strings.Contains(err.Error(), "remove cluster=c from the address") {
		t.Errorf("error = %v", err)
	}
	if err := schema.CheckTableForm(t.Context(), schema.Clustered(schematest.OpenEmpty(t), "c")); err != nil {
		t.Error(err)
	}
}

// TestReplicatedEngine checks that only the engine changes. The database sets the
// Keeper path.
func TestReplicatedEngine(t *testing.T) {
	files, err := filepath.Glob("tables/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	created := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := schema.ReplicatedEngine(string(text))
		want := regexp.MustCompile(`(?m)^ENGINE = `).ReplaceAllString(string(text), "ENGINE = Replicated")
		if got != want {
			t.Errorf("%s:\n%s", file, got)
		}
		if got != string(text) {
			created++
		}
	}
	if created < 5 {
		t.Errorf("%d statements create tables, want at least 5", created)
	}
}
