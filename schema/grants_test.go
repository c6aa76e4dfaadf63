package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
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
			if err := conn.QueryRow(t.Context(), "SELECT formatQuery({q:String})", clickhouse.Named("q", statement)).Scan(&formatted); err != nil {
				t.Errorf("%v\n%s", err, statement)
			}
			if strings.Contains(formatted, " ON CLUSTER lift") != (cluster != "") {
				t.Errorf("ON CLUSTER is missing, or is not expected:\n%s", formatted)
			}
		}
		got := strings.Join(statements, ";\n\n") + ";\n"
		if strings.Contains(got, "-secret") {
			t.Errorf("contains a password:\n%s", got)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			must.OK(t, os.WriteFile(golden, []byte(got), 0o600))
		}
		want, err := os.ReadFile(golden)
		if err != nil || got != string(want) {
			t.Errorf("the statements differ from %s (go test -update writes it), %v:\n%s", golden, err, got)
		}
	}
}

// TestMigrateOfCurrentStoreChangesNothing checks that the serving user, who may
// not create tables, can open a store without pending migrations.
func TestMigrateOfCurrentStoreChangesNothing(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	left := 1 // one query, of the recorded migrations
	if _, err := schema.Migrate(t.Context(), schematest.KilledConn{Conn: conn, Left: &left}); err != nil || left != 0 {
		t.Errorf("Migrate executed %d statements more than one query, want none; %v", -left, err)
	}
}
