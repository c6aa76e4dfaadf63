package schema_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// TestUsersAreValidSQL checks that ClickHouse can parse the statements of deploy. The embedded engine has no users, so it
// cannot execute them.
func TestUsersAreValidSQL(t *testing.T) {
	conn := schematest.OpenEmpty(t)
	for name, onCluster := range map[string]bool{"users.sql": false, "users.cluster.sql": true} {
		for statement := range strings.SplitSeq(string(must.Get(os.ReadFile("../deploy/"+name))(t)), ";\n\n") {
			var formatted string
			if err := conn.QueryRow(t.Context(), "SELECT formatQuery({q:String})", clickhouse.Named("q", statement)).Scan(&formatted); err != nil {
				t.Errorf("%v\n%s", err, statement)
			}
			if strings.Contains(formatted, " ON CLUSTER lift") != onCluster {
				t.Errorf("ON CLUSTER is missing, or is not expected:\n%s", formatted)
			}
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
