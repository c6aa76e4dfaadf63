package catalogue_test

import (
	"strings"
	"testing"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestCopy copies a catalogue with states and tokens, and follows its changes until the copy is changed itself.
func TestCopy(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	first := must.Get(catalogue.Open(t.Context(), conn))(t)
	second := open(t)
	mustApply(t, first, valid)
	secret, _, err := first.CreateToken(t.Context(), catalogue.Token{AccountID: 1, Name: "dashboard", Scopes: []catalogue.Scope{catalogue.ScopeRead}})
	must.OK(t, err)
	mustCopy := func(want int) {
		t.Helper()
		must.Equal(t, must.Get(second.CopyFrom(t.Context(), conn))(t), want, "rows")
		check.Equal(t, export(t, second), export(t, first))
	}
	mustCopy(10) // definitions of account, website, goal, target, campaign and widget; states of three; a token
	mustCopy(0)
	tokens := second.Snapshot().AccountTokens(1)
	check.That(t, len(tokens) == 1 && tokens[0].Digest == catalogue.DigestOf(secret), "tokens %+v", tokens)

	if _, _, err := first.Switch(t.Context(), 1, 1, schema.SubjectCampaign, 12, false); err != nil {
		t.Fatal(err)
	}
	mustApply(t, first, strings.Replace(valid, "name: Shop", "name: Store", 1))
	mustCopy(2)

	mustApply(t, second, strings.Replace(valid, "name: Shop", "name: Outlet", 1))
	mustApply(t, first, strings.Replace(valid, "name: Newsletter", "name: Letter", 1))
	before := export(t, second)
	if _, err := second.CopyFrom(t.Context(), conn); err == nil || !strings.Contains(err.Error(), "differ, nothing was copied: definition of account 1;") {
		t.Errorf("a changed copy: %v", err)
	}
	check.Equal(t, export(t, second), before, "after a refused copy")
}

// TestCopyRefusesAWebsiteOfAnotherAccount checks constraints over all accounts.
func TestCopyRefusesAWebsiteOfAnotherAccount(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	first := must.Get(catalogue.Open(t.Context(), conn))(t)
	second := open(t)
	mustApply(t, first, valid)
	mustApply(t, second, strings.Replace(valid, "id: 1\n    name: Shop", "id: 2\n    name: Shop", 1))
	before := export(t, second)
	if _, err := second.CopyFrom(t.Context(), conn); err == nil || !strings.Contains(err.Error(), "do not go together") {
		t.Error(err)
	}
	check.Equal(t, export(t, second), before, "after a refused copy")
}
