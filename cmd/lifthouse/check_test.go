package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"lifthouse/schema/schematest/must"
)

func TestCheckOfTablesOfAnotherRelease(t *testing.T) {
	h := newHouse(t)
	must.OK(t, h.store.Conn.Exec(t.Context(), "INSERT INTO migrations (name, checksum) VALUES ('9999_newer.sql', '')"))
	if code, out, _ := h.run("check"); code != exitFailed || !strings.Contains(out, "WRONG    the store was written by a newer release, which ran the migration 9999_newer.sql: use that release or a later one, or restore a backup from before the upgrade\n") {
		t.Errorf("newer: exit %d\n%s", code, out)
	}
	must.OK(t, h.store.Conn.Exec(t.Context(), "TRUNCATE TABLE migrations"))
	if code, out, _ := h.run("check"); code != exitOK || !strings.Contains(out, "pending migrations: audit.sql, ") {
		t.Errorf("older: exit %d\n%s", code, out)
	}
}

// TestCheckOfACatalogueThatApplyWouldRefuse checks rows that another program
// inserted into the catalogue.
func TestCheckOfACatalogueThatApplyWouldRefuse(t *testing.T) {
	h := newHouse(t)
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	if code, out, _ := h.run("check"); code != exitOK {
		t.Fatalf("exit %d before anything is wrong\n%s", code, out)
	}
	insert := "INSERT INTO catalogue (account_id, kind, id, facet, version, body) SELECT account_id, kind, %d, facet, version + 1, replace(replace(body, '\"id\":1,\"w', '\"id\":%[1]d,\"w'), '%s', '%s') FROM catalogue WHERE kind = 'campaign' AND id = 1 AND facet = 'definition'"
	for _, row := range []struct {
		id           int
		before, then string
	}{{1, `"power":80`, `"power":59`}, {77, `"websiteId":1`, `"websiteId":5`}} {
		must.OK(t, h.store.Conn.Exec(t.Context(), fmt.Sprintf(insert, row.id, row.before, row.then)))
	}
	code, out, _ := h.run("check")
	for _, want := range []string{
		`catalogue +WRONG +accounts\[0\]\.websites\[0\]\.campaigns\[0\]\.power: "59": must be from 60 to 99`,
		`catalogue +WRONG +account 1, campaign 77, websiteId: "5": the account has no such website`,
		`catalogue +note +lifthouse export writes the catalogue`,
	} {
		if code != exitFailed || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("exit %d, want %d and %s:\n%s", code, exitFailed, want, out)
		}
	}
}
