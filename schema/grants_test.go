package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestGrantsEqualGoldenFile also checks that ClickHouse can parse the statements. The embedded engine has no users, so
// it cannot execute them.
func TestGrantsEqualGoldenFile(t *testing.T) {
	conn := schematest.OpenEmpty(t)
	for name, cluster := range map[string]string{"grants.sql": "", "grants.cluster.sql": "lift"} {
		statements := must.Get(schema.Grants{
			Database: "lifthouse", Cluster: cluster,
			Serving: schema.User{Name: "o`dd", Password: "serving-secret"}, Migrating: schema.User{Name: "migrating", Password: "migrating-secret"},
		}.SQLStatements())(t)
		for _, statement := range statements {
			var formatted string
			err := conn.QueryRow(t.Context(), "SELECT formatQuery({q:String})", clickhouse.Named("q", statement)).Scan(&formatted)
			check.That(t, err == nil, "%v\n%s", err, statement)
			check.That(t, strings.Contains(formatted, " ON CLUSTER lift") == (cluster != ""), "ON CLUSTER is missing, or is not expected:\n%s", formatted)
		}
		got := strings.Join(statements, ";\n\n") + ";\n"
		check.That(t, !strings.Contains(got, "-secret"), "contains a password:\n%s", got)
		golden := filepath.Join("testdata", name)
		if *update {
			must.OK(t, os.WriteFile(golden, []byte(got), 0o600))
		}
		want, err := os.ReadFile(golden)
		check.That(t, err == nil && got == string(want), "the statements differ from %s (go test -update writes it), %v:\n%s", golden, err, got)
	}
}

// TestMigrateOfCurrentStoreChangesNothing checks that the serving user, who may
// not create tables, can open a store without pending migrations.
func TestMigrateOfCurrentStoreChangesNothing(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	left := 1 // one query, of the recorded migrations
	_, err := schema.Migrate(t.Context(), schematest.KilledConn{Conn: conn, Left: &left})
	check.That(t, err == nil && left == 0, "Migrate executed %d statements more than one query, want none; %v", -left, err)
}
