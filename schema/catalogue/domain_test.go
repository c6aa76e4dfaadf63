package catalogue_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

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
