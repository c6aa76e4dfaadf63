package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/must"
)

func TestAuditSaysWhoChangedWhat(t *testing.T) {
	h := newHouse(t)
	if out := h.must("audit"); !strings.Contains(out, "There are no changes") {
		t.Errorf("of an empty store: %q", out)
	}
	h.must("apply", "-f", "testdata/thirty.catalog.yaml")
	h.must("token", "create", "--scope", "read", "--name", "\x1b[2Jevil")
	h.must("token", "revoke", "--account", "1", "1")
	var changes []catalogue.AuditEntry
	must.OK(t, json.Unmarshal([]byte(h.must("audit", "--json")), &changes))
	if len(changes) < 5 {
		t.Fatalf("%d changes: %v", len(changes), changes)
	}
	for i, want := range []string{"token 1 revoked lifthouse token revoke", "token 1 created lifthouse token create"} {
		c := &changes[i]
		if got := fmt.Sprint(c.Kind, " ", c.ID, " ", c.Change, " ", c.By); !strings.HasPrefix(got, want) || c.AccountID != 1 || c.At.IsZero() {
			t.Errorf("%s of account %d at %s, want %s", got, c.AccountID, c.At, want)
		}
	}
	for _, c := range changes[2:] {
		if !strings.HasPrefix(c.By, "lifthouse apply") || !json.Valid(c.After) {
			t.Errorf("%+v, want it by lifthouse apply", c)
		}
	}
	table := h.must("audit", "--limit", "2")
	if lines := strings.Split(strings.TrimSpace(table), "\n"); len(lines) != 3 || !strings.Contains(lines[1], "revoked") || strings.Contains(table, "\x1b") {
		t.Errorf("the table:\n%s", table)
	}
	for want, args := range map[string][]string{
		`--limit "0": must be an integer from 1`: {"audit", "--limit", "0"},
		`--since "-1h": must be a duration`:      {"audit", "--since", "-1h"},
		`--account "-1": must be`:                {"audit", "--account", "-1"},
	} {
		if code, out, complaints := h.run(args...); code != exitUsage || !strings.Contains(out+complaints, want) {
			t.Errorf("%v: exit %d, %s", args, code, out+complaints)
		}
	}
}
