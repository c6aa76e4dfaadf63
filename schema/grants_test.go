package schema_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

// TestGrantsAreAsRecorded, and ClickHouse understands each of them. The
// embedded engine has no users to give them to.
func TestGrantsAreAsRecorded(t *testing.T) {
	conn := schematest.Empty(t)
	for name, cluster := range map[string]string{"grants.sql": "", "grants.cluster.sql": "lift"} {
		statements, err := schema.Grants{
			Database: "lifthouse", Cluster: cluster,
			Serving: schema.User{Name: "o`dd", Password: "serving-secret"}, Migrating: schema.User{Name: "migrating", Password: "migrating-secret"},
		}.Statements()
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range statements {
			var formatted string
			if err := conn.QueryRow(t.Context(), "SELECT formatQuery({q:String})", clickhouse.Named("q", statement)).Scan(&formatted); err != nil {
				t.Errorf("%v\n%s", err, statement)
			}
			if strings.Contains(formatted, " ON CLUSTER lift") != (cluster != "") {
				t.Errorf("is not for all servers, or for more than one:\n%s", formatted)
			}
		}
		got := strings.Join(statements, ";\n\n") + ";\n"
		if strings.Contains(got, "-secret") {
			t.Errorf("tells a password:\n%s", got)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || got != string(want) {
			t.Errorf("the statements differ from %s (go test -update writes it), %v:\n%s", golden, err, got)
		}
	}
}

// TestWhoServesMakesNoTable: a store that is up to date is opened without a
// statement that its user may not give.
func TestWhoServesMakesNoTable(t *testing.T) {
	conn := schematest.Open(t)
	left := 1 // it asks for what was recorded; the next statement would be one that changes something
	if _, err := schema.Migrate(t.Context(), schematest.Dying{Conn: conn, Left: &left}); err != nil {
		t.Error(err)
	}
	if left != 1 {
		t.Errorf("%d statements that change something, want none", 1-left)
	}
}
