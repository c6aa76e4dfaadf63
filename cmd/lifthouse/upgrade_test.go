package main

import (
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// TestAStoreOfBeforeFactsIsRefused has a store with the migrations of a release before facts.
func TestAStoreOfBeforeFactsIsRefused(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	must.OK(t, conn.Exec(t.Context(), "INSERT INTO migrations (name, checksum) SELECT '0001_catalogue.sql', 'x'"))
	if _, err := schema.Migrate(t.Context(), conn); err == nil || !strings.Contains(err.Error(), "use a new folder or database, and import the files again") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v; want a sentence with the remedy", err)
	}
	h := houseOn(t, conn)
	if code, out, _ := h.run("check"); code != exitFailed || !strings.Contains(out, "WRONG    the store has the tables of a release before facts") {
		t.Errorf("check: exit %d\n%s", code, out)
	}
}
