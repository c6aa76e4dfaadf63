package e2e

import (
	"strings"
	"testing"

	"lifthouse/schema/schematest"
)

// TestCheckFindsRestoredEvents restores merged events by ClickHouse, and follows the remedy that
// lifthouse check prints.
func TestCheckFindsRestoredEvents(t *testing.T) {
	server := schematest.Server(t)
	database := server.Migrated(t)
	store, conn := "--store="+server.Address(database), schematest.Reach(t, server.Address(database))
	must := func(args ...string) {
		t.Helper()
		succeed(t, nil, append(args, store)...)
	}
	exec := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(statement, err)
			}
		}
	}
	check := func(want int) string {
		t.Helper()
		code, out, complaints := other(t, nil, "check", store)
		if code != want {
			t.Errorf("check: exit %d, want %d\n%s%s", code, want, out, complaints)
		}
		return out
	}
	must("apply", "-f", "../testdata/thirty.catalog.yaml")
	must("import", "../testdata/thirty.ndjson")
	one := "INSERT INTO events (website_id, time, event, event_id) SELECT 1, '2026-05-01', 'view', rand64()"
	exec(one, one, "OPTIMIZE TABLE events FINAL")
	check(exitOK)
	exec("BACKUP TABLE "+database+".events TO File('"+database+"')", "DROP TABLE events SYNC", "RESTORE TABLE "+database+".events FROM File('"+database+"')")
	out := check(exitFailed)
	if code, _, complaints := other(t, nil, "rollup", store); code != exitFailed || !strings.Contains(complaints, "OPTIMIZE TABLE events FINAL") {
		t.Errorf("rollup: exit %d, %s", code, complaints)
	}
	_, remedy, found := strings.Cut(out, "execute ")
	remedy, _, _ = strings.Cut(remedy, "; then lifthouse rollup --rebuild")
	if !found {
		t.Fatal(out)
	}
	exec(strings.Split(remedy, "; ")...)
	must("rollup", "--rebuild", "--verify")
	check(exitOK)
}
