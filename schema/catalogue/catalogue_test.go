package catalogue_test

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestMain(m *testing.M) { schematest.Main(m) }

func now() time.Time { return time.Now() }

//go:embed testdata/shop.yaml
var valid string

func open(t *testing.T) *catalogue.Catalogue {
	t.Helper()
	return must.Get(catalogue.Open(t.Context(), schematest.OpenMigrated(t)))(t)
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
	return must.Get(apply(t, c, text))(t)
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
		check.That(t, changes == step.changes && len(state.ShareHistory[0]) == step.history, "%+v: %d changes, history %+v", step, changes, state.ShareHistory)
		check.That(t, !step.correct || state.CurrentShares(0)[0] == step.control, "%+v: history %+v", step, state.ShareHistory)
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
	want := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	check.That(t, state.StartDate.Equal(want) && state.Runs[0].From.Equal(want) && state.Runs[0].Declared,
		"start %v, runs %+v; want the declared date", state.StartDate, state.Runs)
	for name, at := range map[string]time.Time{
		"update": state.UpdateDate, "plan": state.PlanHistory[0][1].Since, "shares": state.ShareHistory[0][1].Since,
		"start of the new campaign": *added.StartDate, "run of the new campaign": added.Runs[0].From,
	} {
		check.That(t, !at.Before(began), "%s is dated %s, before %s", name, at, began)
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

// contractDomain is the anchored regular expression of the API contract.
var contractDomain = regexp2.MustCompile(`^(?:((?=[a-z0-9-]{1,63}\.)(xn--)?[a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,63})$`, regexp2.None)

// TestDomainsEqualContract compares validDomain, which takes linear time, with the contract's expression, which needs a
// look-ahead. Names that are too long for the DNS must be rejected too.
func TestDomainsEqualContract(t *testing.T) {
	contractDomain.MatchTimeout = 10 * time.Second
	random := rand.New(rand.NewPCG(1, 2))
	domains := []string{
		"shop.example.com", "example.com", "com", "", ".", "a.b", "a.bc", "a..bc", "a.bc.", ".a.bc", "-a.bc", "a-.bc", "a--b.bc", "a-b.bc", "A.bc", "a_b.bc", "xn--bcher-kva.de",
		"xn--.de", "xn--a.de", "xn--a-.de", "xn---a.de", "1.2.3.44", "1.co", "a.c0m", "a b.com", "a.com\n", "ä.com", "a.com:80", "https://a.com", "a.com/",
		strings.Repeat("a", 63) + ".com", strings.Repeat("a", 64) + ".com", "xn--" + strings.Repeat("a", 59) + ".com", "xn--" + strings.Repeat("a", 60) + ".com",
		"a." + strings.Repeat("b", 63), "a." + strings.Repeat("b", 64), strings.Repeat("a-", 31) + "a.com", strings.Repeat("a-", 32) + "a.com",
	}
	parts := []string{"a", "b1", "c", "d.", "e", "-", ".", "xn--", "com", "Z", "0", strings.Repeat("c", 62), "é", "_"}
	for range 3_000 {
		var domain strings.Builder
		for range 1 + random.IntN(7) {
			domain.WriteString(parts[random.IntN(len(parts))])
		}
		if random.IntN(2) == 0 {
			domain.WriteString(".com")
		}
		domains = append(domains, domain.String())
	}
	allowed := 0
	for _, domain := range domains {
		want := must.Get(contractDomain.MatchString(domain))(t)
		// $ of .NET matches before a final newline; $ of the contract's dialect does not.
		want = want && len(domain) <= 253 && !strings.HasSuffix(domain, "\n")
		check.Equal(t, catalogue.ValidDomain(domain), want, "%v", domain)
		if want {
			allowed++
		}
	}
	check.That(t, allowed >= 100, "only %d of %d domains are valid, which are too few for the comparison", allowed, len(domains))
	long := strings.Repeat("a.", 126) + "aa" // 254 bytes, which the contract's expression allows
	check.That(t, !catalogue.ValidDomain(long) && !catalogue.ValidDomain(strings.Repeat("a-", 10_000_000)), "a domain that is too long is accepted")
}

// TestNamesAreUTF8 checks what no file in YAML can have. What it can have is in the scripts.
func TestNamesAreUTF8(t *testing.T) {
	file := must.Get(catalogue.ReadYAML(strings.NewReader(whole)))(t)
	file.Accounts[0].Websites[0].Targets[0].Name = "\xff"
	_, err := open(t).ApplyFile(t.Context(), file, true)
	check.That(t, err != nil && strings.Contains(err.Error(), "accounts[0].websites[0].targets[0].name: "), "%v", err)
}
