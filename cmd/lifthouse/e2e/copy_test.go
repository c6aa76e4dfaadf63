package e2e

import (
	"strings"
	"testing"

	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestCopyAStore copies an embedded store to a server, in two tries with changes in between, and the server's to
// another embedded store. The oracles are the reports and the tokens of the first store.
func TestCopyAStore(t *testing.T) {
	tier.OnlyLong(t)
	server := schematest.SharedServer(t)
	first, last := "--store=embedded:"+t.TempDir(), "--store=embedded:"+t.TempDir()
	address := server.DatabaseAddress(server.CreateDatabase(t))
	onServer := "--store=" + address
	from := "--from=" + strings.TrimPrefix(first, "--store=embedded:")
	do := func(args ...string) string {
		t.Helper()
		out, _ := succeed(t, nil, args...)
		return out
	}
	do("apply", "-f", "../testdata/thirty.catalog.yaml", first)
	do("import", "../testdata/thirty.ndjson", first)
	do("token", "create", "--name=dashboard", first)
	want := map[string]string{}
	asked := [][]string{{"report", "campaign", "1", "--json"}, {"token", "list"}, {"export"}}
	answer := func(args []string, store string) string {
		t.Helper()
		out := do(append(args, store)...)
		if args[0] == "report" {
			return timeless(t, out)
		}
		return out
	}
	for _, args := range asked {
		want[args[0]] = answer(args, first)
	}
	equal := func(store string) {
		t.Helper()
		for _, args := range asked {
			check.Equal(t, answer(args, store), want[args[0]], "%s of %s", args, store)
		}
	}

	do("copy", from, onServer)
	do("facts", onServer)
	equal(onServer)
	do("forget", "--visitor=v1", "--visitor=v2", "--yes", onServer) // as if the copy had been interrupted
	for range 2 {                                                   // the second changes nothing
		do("copy", from, onServer)
		do("facts", "--verify", onServer)
		equal(onServer)
	}
	do("check", "--deep", onServer)
	do("copy", "--from="+address, last)
	equal(last)
	do("check", "--deep", last)
}

// TestCopyRefusesAnotherCatalogue copies into a store that has other definitions of the same ids.
func TestCopyRefusesAnotherCatalogue(t *testing.T) {
	tier.OnlyLong(t)
	server := schematest.SharedServer(t)
	first := t.TempDir()
	store := "--store=" + server.DatabaseAddress(server.CreateDatabase(t))
	succeed(t, nil, "apply", "-f", "../testdata/thirty.catalog.yaml", "--store=embedded:"+first)
	succeed(t, nil, "import", "../testdata/thirty.ndjson", "--store=embedded:"+first)
	conn := schematest.OpenConnection(t, strings.TrimPrefix(store, "--store="))
	succeed(t, nil, "apply", "-f", "../testdata/thirty.catalog.yaml", store)
	must.OK(t, conn.Exec(t.Context(), "INSERT INTO catalogue (account_id, kind, id, facet, version, body) SELECT account_id, kind, id, facet, version + 1, replace(body, '\"power\":80', '\"power\":90') FROM catalogue WHERE kind = 'campaign' AND facet = 'definition'"))
	code, out, complaints := other(t, nil, "copy", "--from="+first, store)
	check.That(t, code == exitFailed && strings.Contains(complaints, "definition of campaign 1 of account 1"), "exit %d\n%s%s", code, out, complaints)
	var events uint64
	err := conn.QueryRow(t.Context(), "SELECT count() FROM events").Scan(&events)
	check.That(t, err == nil && events == 0, "%d events were copied, %v", events, err)
}
