package e2e

import (
	"strings"
	"testing"

	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestTheServingUserMayDoAllItNeeds runs the server with the grants of lifthouse grants on a ClickHouse server, and
// checks that the user cannot create tables.
func TestTheServingUserMayDoAllItNeeds(t *testing.T) {
	tier.OnlyLong(t)
	server := schematest.SharedServer(t)
	admin := schematest.OpenConnection(t, server.DatabaseAddress("default"))
	must.OK(t, admin.Exec(t.Context(), "CREATE DATABASE "+schematest.Granted))
	serving := "--store=" + server.UserAddress(schematest.Serving)
	if code, _, complaints := other(t, nil, "migrate", serving); code != exitFailed || !strings.Contains(complaints, "privileges") {
		t.Errorf("the serving user migrates: exit %d, %s", code, complaints)
	}
	ended(t, exitOK, "migrate", "--store="+server.UserAddress(schematest.Migrating))
	for _, args := range []string{
		"apply -f ../testdata/thirty.catalog.yaml", "import ../testdata/thirty.ndjson", "token create", "token list", "export", "audit", "events",
		"report campaign 1 --filter zScore=2", "forget --visitor v1 --yes", "retain --days 30 --yes", "facts --rebuild --verify", "check --deep",
	} {
		code, out, complaints := other(t, nil, append(strings.Fields(args), serving)...)
		check.That(t, code == exitOK && !strings.Contains(out, "WRONG") && !strings.Contains(out, "list the servers"), "%s: exit %d\n%s%s", args, code, out, complaints)
	}
	p := start(t, "serve", serving)
	p.interrupt()
	for _, forbidden := range []string{"DROP TABLE events", "CREATE TABLE other (x Int8) ENGINE = MergeTree ORDER BY x", "ALTER TABLE events ADD COLUMN x Int8"} {
		err := schematest.OpenConnection(t, server.UserAddress(schematest.Serving)).Exec(t.Context(), forbidden)
		check.That(t, err != nil && strings.Contains(err.Error(), "privileges"), "%s: %v", forbidden, err)
	}
}

// TestLimitsAreLoweredToTheProfiles checks a profile with lower limits, which rejects statements with higher ones.
func TestLimitsAreLoweredToTheProfiles(t *testing.T) {
	server := schematest.SharedServer(t)
	store := "--store=" + strings.Replace(server.DatabaseAddress(server.CreateDatabase(t)), "admin:", "narrow:", 1)
	for _, args := range []string{"apply -f ../testdata/thirty.catalog.yaml", "import ../testdata/thirty.ndjson", "report campaign 1"} {
		code, out, complaints := other(t, nil, append(strings.Fields(args), store)...)
		check.That(t, code == exitOK && strings.Contains(complaints, "less memory than --query-memory"), "%s: exit %d\n%s%s", args, code, out, complaints)
	}
}
