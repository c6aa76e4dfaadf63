package catalogue_test

import (
	_ "embed"
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

func mustApply(t *testing.T, c *catalogue.Catalogue, text string) {
	t.Helper()
	must.Get(apply(t, c, text))(t)
}

// TestCopy copies a catalogue with states and tokens, and follows its changes until the copy is changed itself.
func TestCopy(t *testing.T) {
	conn := schematest.OpenMigrated(t)
	first := must.Get(catalogue.Open(t.Context(), conn))(t)
	second := open(t)
	mustApply(t, first, valid)
	secret, _, err := first.CreateToken(t.Context(),
		catalogue.Token{AccountID: 1, Name: "dashboard", Scopes: []catalogue.Scope{catalogue.ScopeRead}})
	must.OK(t, err)
	mustCopy := func(want int) {
		t.Helper()
		must.Equal(t, must.Get(second.CopyFrom(t.Context(), conn))(t), want, "rows")
		check.Equal(t, export(t, second), export(t, first))
	}
	mustCopy(10) // definitions of account, website, goal, target, campaign and widget; states of three; a token
	mustCopy(0)
	tokens := second.Snapshot().AccountTokens(1)
	must.Equal(t, len(tokens), 1, "tokens %+v", tokens)
	check.Equal(t, tokens[0].Digest, catalogue.DigestOf(secret), "tokens %+v", tokens)

	if _, _, err := first.Switch(t.Context(), 1, 1, schema.SubjectCampaign, 12, false); err != nil {
		t.Fatal(err)
	}
	mustApply(t, first, strings.Replace(valid, "name: Shop", "name: Store", 1))
	mustCopy(2)

	mustApply(t, second, strings.Replace(valid, "name: Shop", "name: Outlet", 1))
	mustApply(t, first, strings.Replace(valid, "name: Newsletter", "name: Letter", 1))
	before := export(t, second)
	if _, err := second.CopyFrom(t.Context(), conn); err == nil ||
		!strings.Contains(err.Error(), "differ, nothing was copied: definition of account 1;") {
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
	if _, err := second.CopyFrom(t.Context(), conn); err == nil ||
		!strings.Contains(err.Error(), "do not go together") {
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
		"shop.example.com", "example.com", "com", "", ".", "a.b", "a.bc", "a..bc", "a.bc.", ".a.bc", "-a.bc", "a-.bc",
		"a--b.bc", "a-b.bc", "A.bc", "a_b.bc", "xn--bcher-kva.de",
		"xn--.de", "xn--a.de", "xn--a-.de", "xn---a.de", "1.2.3.44", "1.co", "a.c0m", "a b.com", "a.com\n", "ä.com",
		"a.com:80", "https://a.com", "a.com/",
		strings.Repeat("a", 63) + ".com", strings.Repeat("a", 64) + ".com", "xn--" + strings.Repeat("a", 59) + ".com",
		"xn--" + strings.Repeat("a", 60) + ".com",
		"a." + strings.Repeat("b", 63), "a." + strings.Repeat("b", 64), strings.Repeat("a-", 31) + "a.com",
		strings.Repeat("a-", 32) + "a.com",
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
	check.That(t, !catalogue.ValidDomain(long), "a domain that is too long is accepted")
	check.That(t, !catalogue.ValidDomain(strings.Repeat("a-", 10_000_000)), "a domain that is too long is accepted")
}

// TestNamesAreUTF8 checks what no file in YAML can have. What it can have is in the scripts.
func TestNamesAreUTF8(t *testing.T) {
	file := must.Get(catalogue.ReadYAML(strings.NewReader(whole)))(t)
	file.Accounts[0].Websites[0].Targets[0].Name = "\xff"
	_, err := open(t).ApplyFile(t.Context(), file, true)
	must.That(t, err != nil, "%v", err)
	check.Contains(t, err.Error(), "accounts[0].websites[0].targets[0].name: ", "%v", err)
}
