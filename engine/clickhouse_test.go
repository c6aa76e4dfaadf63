package engine

import (
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

// TestReportsOfAClickHouseServer checks migrations, grants, both protocols and
// reports on a real ClickHouse server against the plain fold.
func TestReportsOfAClickHouseServer(t *testing.T) {
	server := schematest.Server(t)
	admin := schematest.Reach(t, server.Address("default"))
	if err := admin.Exec(t.Context(), "CREATE DATABASE "+schematest.Granted); err != nil {
		t.Fatal(err)
	}
	migrating := schematest.Reach(t, server.UserAddress(schematest.Migrating))
	if _, err := schema.Migrate(t.Context(), migrating); err != nil {
		t.Fatal(err)
	}
	holdAgainstFold(t, schematest.Reach(t, server.UserAddress(schematest.Serving)))
}
