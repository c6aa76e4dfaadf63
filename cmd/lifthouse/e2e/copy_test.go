package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

// TestABackupAnswersAsTheStoreDid backs up a served store and compares the reports of the restored store.
func TestABackupAnswersAsTheStoreDid(t *testing.T) {
	tier.OnlyLong(t)
	t.Parallel()
	at := t.TempDir()
	stored, restored := "--store=embedded:"+filepath.Join(at, "data"), "--store=embedded:"+filepath.Join(at, "restored")
	backup := filepath.Join(at, `a back'up \ here`)
	do := func(args ...string) string { return run(t, args...) }
	do("apply", "-f", "../testdata/thirty.catalog.yaml", stored)
	do("import", "../testdata/thirty.ndjson", stored)
	token := strings.TrimSpace(do("token", "create", stored))
	served := start(t, "serve", stored)
	do("backup", backup, stored)
	do("restore", backup, restored)
	for _, args := range [][]string{
		{"report", "campaign", "1", "--json", "--dimension=device"},
		{"report", "campaign", "1", "--json", "--interval=day", "--metric=valuePerVisitor"},
		{"export"},
		{"token", "list"},
	} {
		generated := regexp.MustCompile(`"generatedAt": .*`)
		check.Equal(t, generated.ReplaceAllString(do(append(args, restored)...), ""),
			generated.ReplaceAllString(do(append(args, stored)...), ""), "%q of the restored store", args)
	}
	again := start(t, "serve", restored)
	if got, want := again.results(token), served.results(token); fmt.Sprint(got.Totals) != fmt.Sprint(want.Totals) ||
		got.Totals.Visitors == 0 {
		t.Errorf("totals %+v, want %+v", got.Totals, want.Totals)
	}
	do("import", "../testdata/thirty.ndjson", restored)
	if got, want := again.results(token), served.results(token); fmt.Sprint(got.Totals) != fmt.Sprint(want.Totals) {
		t.Errorf("imported again: totals %+v, want %+v", got.Totals, want.Totals)
	}
	do("check", "--deep", restored)
	do("apply", "-f", "../testdata/thirty.catalog.yaml", "--store=embedded:"+filepath.Join(at, "third"))
	for _, c := range []struct{ name, dir, store, want string }{
		{"backup", backup, "third", "exists already"},
		{"restore", backup, "third", "has files already"},
		{"restore", at, "fourth", "is not a backup"},
	} {
		code, _, complaints := other(t, nil, c.name, c.dir, "--store=embedded:"+filepath.Join(at, c.store))
		check.Equal(t, code, exitFailed, "%s %s: exit %d, %s; want %q", c.name, c.dir, code, complaints, c.want)
		check.Contains(t, complaints, c.want, "%s %s: exit %d, %s; want %q", c.name, c.dir, code, complaints, c.want)
	}
}

// TestTablesOfDifferentBackups restores events and facts that ClickHouse backed up at different times.
func TestTablesOfDifferentBackups(t *testing.T) {
	tier.OnlyLong(t)
	server := schematest.SharedServer(t)
	for _, c := range []struct {
		name          string
		events, facts int // backup that each table is restored from: the first or the second
		visitors      int64
		lost          bool
	}{
		{"facts behind events", 2, 1, 30, false},
		{"facts ahead of events", 1, 2, 30, true},
		{"of the first backup", 1, 1, 10, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			database := server.CreateMigrated(t)
			store, conn := "--store="+server.DatabaseAddress(database), schematest.OpenConnection(t,
				server.DatabaseAddress(database))
			do := onStore(t, store)
			exec := func(statement string, args ...any) {
				t.Helper()
				must.OK(t, conn.Exec(t.Context(), fmt.Sprintf(statement, args...)))
			}
			reports := func(visitors int64) {
				t.Helper()
				var r result.Report
				err := json.Unmarshal([]byte(do("report", "campaign", "1", "--json")), &r)
				must.That(t, err == nil, "the report counts %d visitors, %v; want %d", r.Totals.Visitors, err, visitors)
				check.Equal(t, r.Totals.Visitors, visitors, "the report counts %d visitors, %v; want %d",
					r.Totals.Visitors, err, visitors)
			}
			do("apply", "-f", "../testdata/thirty.catalog.yaml")
			for backup, visitors := range []int{10, 30} {
				lines := must.WriteFile(t, "events", exposedVisitors(0, visitors))
				do("import", lines)
				do("facts")
				for _, table := range []string{"events", "facts"} {
					exec("BACKUP TABLE %[1]s.%[2]s TO File('%[1]s %[2]s %[3]d')", database, table, backup+1)
				}
			}
			for table, backup := range map[string]int{"events": c.events, "facts": c.facts} {
				exec("DROP TABLE %s SYNC", table)
				exec("RESTORE TABLE %[1]s.%[2]s FROM File('%[1]s %[2]s %[3]d')", database, table, backup)
			}
			do("facts")
			reports(c.visitors)
			code, out, complaints := other(t, nil, "check", "--deep", store)
			lost := strings.Contains(out, "stored events of 20 visitors are lost")
			check.Equal(t, lost, c.lost, "check --deep: exit %d\n%s%s", code, out, complaints)
			check.That(t, (code == exitOK) != c.lost, "check --deep: exit %d\n%s%s", code, out, complaints)
			do("import", must.WriteFile(t, "events", exposedVisitors(0, 40)))
			do("facts", "--verify")
			reports(40)
			do("check", "--deep")
		})
	}
}

// TestCopyAStore copies an embedded store to a server, in two tries with changes in between, and the server's to
// another embedded store. The oracles are the reports and the tokens of the first store.
func TestCopyAStore(t *testing.T) {
	tier.OnlyLong(t)
	server := schematest.SharedServer(t)
	first, last := "--store=embedded:"+t.TempDir(), "--store=embedded:"+t.TempDir()
	address := server.DatabaseAddress(server.CreateDatabase(t))
	onServer := "--store=" + address
	from := "--from=" + strings.TrimPrefix(first, "--store=embedded:")
	do := func(args ...string) string { return run(t, args...) }
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
	check.Equal(t, code, exitFailed, "exit %d\n%s%s", code, out, complaints)
	check.Contains(t, complaints, "definition of campaign 1 of account 1", "exit %d\n%s%s", code, out, complaints)
	var events uint64
	err := conn.QueryRow(t.Context(), "SELECT count() FROM events").Scan(&events)
	must.That(t, err == nil, "%d events were copied, %v", events, err)
	check.Equal(t, events, 0, "%d events were copied, %v", events, err)
}
