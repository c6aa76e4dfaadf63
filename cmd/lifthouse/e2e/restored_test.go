package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lifthouse/engine/result"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
	"lifthouse/schema/schematest/tier"
)

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
			store, conn := "--store="+server.DatabaseAddress(database), schematest.OpenConnection(t, server.DatabaseAddress(database))
			do := func(args ...string) string {
				t.Helper()
				out, _ := succeed(t, nil, append(args, store)...)
				return out
			}
			exec := func(statement string, args ...any) {
				t.Helper()
				must.OK(t, conn.Exec(t.Context(), fmt.Sprintf(statement, args...)))
			}
			reports := func(visitors int64) {
				t.Helper()
				var r result.Report
				err := json.Unmarshal([]byte(do("report", "campaign", "1", "--json")), &r)
				check.That(t, err == nil && r.Totals.Visitors == visitors, "the report counts %d visitors, %v; want %d", r.Totals.Visitors, err, visitors)
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
			check.That(t, lost == c.lost && (code == exitOK) != c.lost, "check --deep: exit %d\n%s%s", code, out, complaints)
			do("import", must.WriteFile(t, "events", exposedVisitors(0, 40)))
			do("facts", "--verify")
			reports(40)
			do("check", "--deep")
		})
	}
}
