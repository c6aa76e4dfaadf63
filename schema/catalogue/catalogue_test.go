package catalogue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) { schematest.Main(m) }

func now() time.Time { return time.Now() }

const shop = `
accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        goals: [{id: 3, name: Purchase}]
        targets: [{id: 5, name: Everyone}]
        campaigns:
          - id: 12
            name: Banner
            primaryGoalId: 3
            targetId: 5
            controlShare: 50
            active: true
            variations: [{id: 1, name: New, share: 100}]
        widgets:
          - id: 7
            name: Newsletter
            type: popup
            variations: [{id: 1, name: Plain}]
            experiments:
              - {id: 2, name: Wording, primaryMetric: submits, variations: [{id: 1, name: Short}]}
`

func open(t *testing.T) *catalogue.Catalogue {
	t.Helper()
	c := must.Get(catalogue.Open(t.Context(), schematest.OpenMigrated(t)))(t)
	return c
}

func apply(t *testing.T, c *catalogue.Catalogue, text string) ([]catalogue.Change, error) {
	t.Helper()
	file, err := catalogue.ReadYAML(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return c.ApplyFile(t.Context(), file, false)
}

func mustApply(t *testing.T, c *catalogue.Catalogue, text string) []catalogue.Change {
	t.Helper()
	changes := must.Get(apply(t, c, text))(t)
	return changes
}

var valid = strings.Replace(shop, "submits", "goalsReached", 1)

func TestApply(t *testing.T) {
	c := open(t)
	if changes := mustApply(t, c, valid); len(changes) != 6 {
		t.Errorf("%d changes, want 6: %+v", len(changes), changes)
	}
	campaign := c.Snapshot().AccountResources(1).Campaigns[12]
	if campaign.Type != "personalization" || campaign.SignificanceLevel != 90 || campaign.MDE != 20 || campaign.Power != 80 {
		t.Errorf("defaults differ from the contract: %+v", campaign.Campaign)
	}
	if !campaign.Active || campaign.StartDate == nil || campaign.CurrentShares(0)[0] != 50 {
		t.Errorf("state = %+v, want active, started, shares recorded", campaign.State)
	}

	if changes := mustApply(t, c, valid); len(changes) != 0 {
		t.Errorf("applying again changes %+v", changes)
	}

	changes := mustApply(t, c, strings.NewReplacer("controlShare: 50", "controlShare: 20", "active: true", "active: false").Replace(valid))
	if len(changes) != 1 || len(changes[0].Fields) != 1 || changes[0].Fields[0] != (catalogue.FieldChange{Field: "controlShare", Before: "50", After: "20"}) {
		t.Errorf("changes = %+v, want controlShare 50 to 20", changes)
	}
	after := c.Snapshot().AccountResources(1).Campaigns[12]
	if !after.Active || len(after.ShareHistory[0]) != 2 || after.CurrentShares(0)[0] != 20 || !after.CreateDate.Equal(campaign.CreateDate) {
		t.Errorf("state = %+v, want still active, with a second entry of shares", after.State)
	}
}

func TestShareHistory(t *testing.T) {
	c := open(t)
	shares := func(correct bool, control int, weights string) int {
		t.Helper()
		file := must.Get(catalogue.ReadYAML(strings.NewReader(fmt.Sprintf(`
accounts:
  - id: 1
    name: Shop
    websites: [{id: 1, domain: shop.example.com, campaigns: [{id: 12, name: Banner, controlShare: %d, variations: [%s]}]}]
`, control, weights))))(t)
		file.CorrectShares = correct
		changes := must.Get(c.ApplyFile(t.Context(), file, false))(t)
		return len(changes)
	}
	const thirds, halves, other = "{id: 1, name: A, share: 33}, {id: 2, name: B, share: 33}",
		"{id: 1, name: A, share: 50}, {id: 2, name: B, share: 50}", "{id: 1, name: A, share: 50}, {id: 2, name: B, share: 51}"
	for _, step := range []struct {
		correct          bool
		control          int
		weights          string
		changes, history int
	}{
		{false, 34, thirds, 3, 1},
		{false, 34, halves, 1, 1},
		{false, 34, halves + ", {id: 3, name: C, share: 0}", 1, 1},
		{false, 34, other, 1, 2},
		{false, 50, other, 1, 3},
		{true, 34, halves, 1, 1},
		{false, 34, other, 1, 2},
		{true, 34, other, 1, 1}, // its definition is already stored
		{true, 34, other, 0, 1},
	} {
		changes := shares(step.correct, step.control, step.weights)
		state := c.Snapshot().AccountResources(1).Campaigns[12].State
		if changes != step.changes || len(state.ShareHistory[0]) != step.history {
			t.Errorf("%+v: %d changes, history %+v", step, changes, state.ShareHistory)
		}
		if step.correct && state.CurrentShares(0)[0] != step.control {
			t.Errorf("%+v: history %+v", step, state.ShareHistory)
		}
	}
}

// TestLaterApplyIsDatedNow applies a file without the date of start of a campaign that runs since January: the changes
// of its plan and shares, and the start of a new campaign after it in the file, are dated at the time of each call.
func TestLaterApplyIsDatedNow(t *testing.T) {
	c := open(t)
	file := func(level, control int, start, others string) string {
		return fmt.Sprintf(`
accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        campaigns:
          - {id: 12, name: Banner, active: true, significanceLevel: %d, controlShare: %d%s, variations: [{id: 1, name: A, share: 50}]}
%s`, level, control, start, others)
	}
	const other = "          - {id: 13, name: New, active: true, controlShare: 50, variations: [{id: 1, name: A, share: 50}]}\n"
	began := time.Now().Truncate(time.Millisecond)
	mustApply(t, c, file(95, 50, ", startDate: 2026-01-05", ""))
	mustApply(t, c, file(80, 40, "", other))
	live := c.Snapshot().AccountResources(1).Campaigns
	state, added := live[12].State, live[13].State
	if want := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC); !state.StartDate.Equal(want) || !state.Runs[0].From.Equal(want) || !state.Runs[0].Declared {
		t.Errorf("start %v, runs %+v; want the declared date", state.StartDate, state.Runs)
	}
	for name, at := range map[string]time.Time{
		"update": state.UpdateDate, "plan": state.PlanHistory[0][1].Since, "shares": state.ShareHistory[0][1].Since,
		"start of the new campaign": *added.StartDate, "run of the new campaign": added.Runs[0].From,
	} {
		if at.Before(began) {
			t.Errorf("%s is dated %s, before %s", name, at, began)
		}
	}

	archive := must.Get(catalogue.ReadYAML(strings.NewReader("accounts: [{id: 1, name: Shop}]")))(t)
	archive.Prune = true
	must.Get(c.ApplyFile(t.Context(), archive, false))(t)
	declared := time.Now().Truncate(time.Millisecond)
	mustApply(t, c, file(90, 50, "", ""))
	again := c.Snapshot().AccountResources(1).Campaigns[12].State
	if n := len(again.PlanHistory[0]); n != 3 || again.PlanHistory[0][2].Since.Before(declared) || again.ShareHistory[0][2].Since.Before(declared) {
		t.Errorf("declared again: plans %+v, shares %+v", again.PlanHistory, again.ShareHistory)
	}
}

func TestApplyKeepsOtherResources(t *testing.T) {
	c := open(t)
	mustApply(t, c, valid)
	mustApply(t, c, `
accounts:
  - id: 1
    name: Shop
    websites:
      - id: 1
        domain: shop.example.com
        campaigns: [{id: 13, name: Second, primaryGoalId: 3}]
`)
	owned := c.Snapshot().AccountResources(1)
	if len(owned.Campaigns) != 2 || len(owned.Widgets) != 1 || len(owned.Goals) != 1 {
		t.Errorf("owned = %+v, want both campaigns, the widget and the goal", owned)
	}
}

func TestApplyReportsAllFaultsAndChangesNothing(t *testing.T) {
	c := open(t)
	mustApply(t, c, valid)
	for _, test := range []struct {
		name, from, to string
		want           []string
	}{
		{"several", "name: Banner", "name: \"\"\n            power: 12\n            mde: 0.5\n            significanceLevel: 91", []string{"campaigns[0].name", "power: \"12\"", "mde: \"0.5\"", "significanceLevel: \"91\": must be one of 80, 90, 95, 100"}},
		{"domain", "shop.example.com", "Shop_1", []string{"domain"}},
		{"long label", "shop.example.com", strings.Repeat("a", 64) + ".com", []string{"domain"}},
		{"reference", "primaryGoalId: 3", "primaryGoalId: 4", []string{"primaryGoalId: \"4\": the website has no such goal"}},
		{"control declared", "variations: [{id: 1, name: New", "variations: [{id: 0, name: New", []string{"variations[0].id: \"0\""}},
		{"twice", "name: New, share: 100}", "name: New, share: 100}, {id: 1, name: Newer, share: 1}", []string{"variations[1].id: \"1\": is not unique"}},
		{"metric", "goalsReached", "submits", []string{"primaryMetric: \"submits\": must be one of conversions"}},
		{"fraction", "controlShare: 50", "controlShare: 33.3", []string{"controlShare: \"33.3\": must be an integer"}},
		{"end before start", "active: true", "startDate: 2026-05-02\n            endDate: 2026-05-01T12:00:00+02:00", []string{"campaigns[0].endDate: \"2026-05-01T10:00:00Z\": must not be before startDate"}},
		{"date out of range", "active: true", "createDate: 1969-12-31", []string{"createDate: \"1969-12-31T00:00:00Z\": must be in a year"}},
		{"another account's website", "- id: 1\n    name: Shop", "- id: 2\n    name: Thief", []string{"belongs to another account"}},
		{"another website", "- id: 1\n        domain: shop", "- id: 2\n        domain: shop", []string{"belongs to website 1; a resource cannot move"}},
		{"prior of a frequentist campaign", "controlShare: 50", "controlShare: 50\n            prior: flat", []string{"campaigns[0].prior: \"flat\": must be omitted unless methodology is bayesian"}},
		{"prior out of range", "controlShare: 50", "controlShare: 50\n            methodology: bayesian\n            prior: {mean: -95, standardDeviation: 0}", []string{"prior.mean: \"-95\"", "prior.standardDeviation: \"0\": must be"}},
		{"prior of another form", "controlShare: 50", "controlShare: 50\n            prior: none", []string{"prior", "must be flat, or have mean and standardDeviation"}},
		{"unknown field of a prior", "controlShare: 50", "controlShare: 50\n            methodology: bayesian\n            prior: {sd: 3}", []string{"unknown field \"sd\""}},
		{"cap of another form", "name: Purchase", "name: Purchase, valueCap: p40", []string{"valueCap: \"p40\": must be a percentile from p50 to p99.9"}},
		{"cap of 0", "name: Purchase", "name: Purchase, valueCap: 0", []string{"valueCap: \"0\": must be a percentile"}},
		{"unknown field", "controlShare: 50", "controlshare: 50", []string{"unknown field \"controlshare\""}},
		{"name too long", "name: Banner", "name: " + strings.Repeat("é", 256), []string{"must have 1 to 255 characters, has 256"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := apply(t, c, strings.Replace(valid, test.from, test.to, 1))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
			if c.Snapshot().AccountResources(1).Campaigns[12].Name != "Banner" || len(c.Snapshot().AllAccounts()) != 1 {
				t.Error("something was changed")
			}
		})
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	c := open(t)
	file := must.Get(catalogue.ReadYAML(strings.NewReader(valid)))(t)
	changes, err := c.ApplyFile(t.Context(), file, true)
	if err != nil || len(changes) != 6 || len(c.Snapshot().AllAccounts()) != 0 {
		t.Errorf("dry run: %d changes, %v, %d accounts; want 6, nil, 0", len(changes), err, len(c.Snapshot().AllAccounts()))
	}
}

func TestTokens(t *testing.T) {
	c := open(t)
	mustApply(t, c, valid)
	now := time.Now()
	past := now.Add(-time.Second)
	secret, token, err := c.CreateToken(t.Context(), catalogue.Token{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeWrite}})
	if err != nil || !strings.HasPrefix(secret, "lh_") || len(secret) < 43 {
		t.Fatalf("CreateToken = %q, %v", secret, err)
	}
	found, known := c.Snapshot().FindToken(catalogue.DigestOf(secret), now)
	if !known || found.AccountID != 1 || !found.HasScope(catalogue.ScopeRead) || found.HasScope(catalogue.ScopeIngest) {
		t.Errorf("Token = %+v, %v; want a token of account 1 with the scopes read and write", found, known)
	}
	if _, known := c.Snapshot().FindToken(catalogue.DigestOf(secret+"x"), now); known {
		t.Error("a wrong token is accepted")
	}
	expired, _, err := c.CreateToken(t.Context(), catalogue.Token{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeRead}, ExpiresAt: &past})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := c.Snapshot().FindToken(catalogue.DigestOf(expired), now); known {
		t.Error("an expired token is accepted")
	}
	if revoked, err := c.RevokeToken(t.Context(), 1, token.ID); !revoked || err != nil {
		t.Errorf("RevokeToken = %v, %v", revoked, err)
	}
	if _, known := c.Snapshot().FindToken(catalogue.DigestOf(secret), now); known {
		t.Error("a revoked token is accepted")
	}
	for _, wrong := range []catalogue.Token{
		{AccountID: 2, Scopes: []catalogue.Scope{catalogue.ScopeRead}},
		{AccountID: 1},
		{AccountID: 1, Scopes: []catalogue.Scope{"owner"}},
		{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeIngest}},
		{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeRead}, WebsiteID: 9},
	} {
		if _, _, err := c.CreateToken(t.Context(), wrong); err == nil {
			t.Errorf("CreateToken(%+v) gives no error", wrong)
		}
	}
}

// TestRefresh has two catalogues of one store.
func TestRefresh(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	one := must.Get(catalogue.Open(t.Context(), conn))(t)
	other := must.Get(catalogue.Open(t.Context(), conn))(t)
	mustApply(t, one, valid)
	must.OK(t, other.RefreshSnapshot(t.Context()))
	if len(other.Snapshot().AccountResources(1).Campaigns) != 1 {
		t.Error("the other catalogue does not have the campaign")
	}
}

func TestReadErrors(t *testing.T) {
	for _, text := range []string{"accounts: 5", "accounts:\n  - id: one", "{", "accounts: [{id: 1, id: 2}]"} {
		if _, err := catalogue.ReadYAML(strings.NewReader(text)); err == nil {
			t.Errorf("Read(%q) gives no error", text)
		}
	}
	file := must.Get(catalogue.ReadYAML(strings.NewReader("")))(t)
	var faults faults.List
	if _, err := open(t).ApplyFile(t.Context(), file, false); !errors.As(err, &faults) {
		t.Errorf("an empty file gives %v, want faults", err)
	}
}
