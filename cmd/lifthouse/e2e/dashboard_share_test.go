package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestTheDashboardSharesAPage creates a share link on the page and opens it, and then one of the command. A link shows
// one page without a token, until it is revoked.
func TestTheDashboardSharesAPage(t *testing.T) {
	v := newViewer(t)
	v.open("/?campaign=12")
	v.signIn(v.newToken("write"))
	v.until(allThere)
	check.That(t, !evaluated[bool](v, `document.querySelector("#share") !== null`), "a token of the scope write is offered to share")
	v.click(".top .sign-out")
	v.signIn(v.token)
	v.until(allThere)
	v.click("#share")
	v.shows("Share “Free delivery banner”")
	v.choose("[name=expires]", "7")
	v.click("#create-link")
	v.until(`document.querySelectorAll(".shares li").length === 1`)
	link := evaluated[string](v, `document.querySelector("#link").value`)
	must.That(t, strings.HasPrefix(link, v.server.url+"/?campaign=12#currency=EUR&share=lh_"), "the link is %s", link)
	v.look("share-dialog")

	v.click("dialog .buttons:last-child button")
	v.openAll("/?campaign=12&goal=3&filters%5Bdevice%5D%5B%5D=mobile&filters%5BdateFrom%5D=2026-01-01&dimension=country")
	v.click("#share")
	v.shows("Share “Free delivery banner”")
	v.until(`document.querySelectorAll(".shares li").length === 1`)
	v.click("#create-link")
	v.until(`document.querySelector("#link")`)
	viewed := evaluated[string](v, `document.querySelector("#link").value`)
	check.That(t, strings.HasPrefix(viewed, v.server.url+"/?campaign=12&goal=3&filters%5Bdevice%5D%5B%5D=mobile&filters%5BdateFrom%5D=2026-01-01&dimension=country#currency=EUR&share=lh_"),
		"the link with a view is %s", viewed)
	got := evaluated[string](v, `document.querySelector(".printed").textContent`)
	check.That(t, strings.Contains(got, "from 2025-12-31T23:00:00Z · Device: mobile · by Country"), "the print says %q",
		got)
	v.revokeLast()
	v.click("dialog .buttons:last-child button")

	before := len(v.requests())
	v.open(link[len(v.site):]) // the page is open: only the fragment is new
	v.showsSharedPage()
	v.numbersAreTheAPIs("/v1/campaigns/12/results", "%.2f %%")
	v.shows("EUR of value")
	v.choose("[name=goal]", "3")
	v.until(`location.search === "?campaign=12&goal=3"`)
	v.until(allThere)
	v.look("shared")
	v.open("/")
	v.until(`location.search === "?campaign=12"`)
	v.showsSharedPage()
	v.open("/?campaign=13")
	v.shows("campaign 13 not found")
	v.requestsOnly(v.requests()[before:])

	v.open("/?campaign=12")
	v.showsSharedPage()
	v.revokeLast()
	v.shows("This link has ended")
	v.click("#main button")
	v.until(`document.querySelector("[name=token]") && location.search === ""`)

	out, said := succeed(t, nil, "share", "experiment", "7/2", "--expires", "30d", v.store)
	must.That(t, strings.HasPrefix(out, v.server.url+"/?experiment=2&widget=7#"), "the command says %q and %q", out,
		said)
	must.That(t, strings.Contains(said, "the link expires at "), "the command says %q and %q", out, said)
	must.That(t, !strings.Contains(said, "--public-url"), "the command says %q and %q", out, said)
	v.open(strings.TrimSpace(out[len(v.server.url):]))
	v.showsSharedPage()
	v.numbersAreTheAPIs("/v1/widgets/7/experiments/2/results", "%.1f %%")
}

// showsSharedPage waits for the page of a share link, and checks that it offers nothing else and that its address has
// no token.
func (v *viewer) showsSharedPage() {
	v.Helper()
	v.shows("Shared page, read-only")
	v.until(allThere)
	if evaluated[bool](v, `location.hash !== "" || document.querySelector("#switch, #share, .top button, .top a, .subject a") !== null`) {
		v.Errorf("the shared page at %s has links or actions", evaluated[string](v, `location.href`))
	}
	check.That(v, evaluated[bool](v, `sessionStorage.getItem("lifthouse.token").startsWith("lh_") && localStorage.length === 0 && document.querySelector("meta[name=robots]").content === "noindex"`),
		"the token is not in the session of the tab, or the page may be indexed")
}

// requestsOnly checks that a shared page requests its campaign only, and that no request has the token in its address
// or names the page that it comes from.
func (v *viewer) requestsOnly(asked []*network.Request) {
	v.Helper()
	for _, request := range asked {
		path := strings.TrimPrefix(request.URL, v.server.url)
		own := slices.ContainsFunc([]string{"/v1/campaigns/12", "/v1/campaigns/13", "/dashboard/", "/?campaign="}, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) || path == "/"
		referer, _ := request.Headers["Referer"].(string)
		check.That(v, (own || strings.HasPrefix(request.URL, "data:")),
			"the shared page requests %s, with the headers %v", request.URL, request.Headers)
		check.That(v, !strings.Contains(request.URL, "lh_"), "the shared page requests %s, with the headers %v",
			request.URL, request.Headers)
		check.Equal(v, referer, "", "the shared page requests %s, with the headers %v", request.URL, request.Headers)
	}
}

// revokeLast revokes the token that was created last.
func (v *viewer) revokeLast() {
	v.Helper()
	listed, _ := succeed(v.T, nil, "token", "list", v.store)
	lines := strings.Split(strings.TrimSpace(listed), "\n")
	succeed(v.T, nil, "token", "revoke", strings.Fields(lines[len(lines)-1])[0], v.store)
}

// TestTheDashboardRemembersAToken signs in on a device, whose storage keeps the token until the reader signs out, also
// if a share link is opened in between. Without the choice, and with a link that signs in, only the tab keeps it.
func TestTheDashboardRemembersAToken(t *testing.T) {
	const onDevice = `localStorage.getItem("lifthouse.token")`
	v := newViewer(t)
	v.open("/")
	v.click("[name=remember]")
	v.signIn(v.token)
	v.shows("To decide")
	check.Equal(v, evaluated[string](v, onDevice), v.token, "the token on the device")
	evaluated[bool](v, `sessionStorage.clear() || true`) // as another tab
	v.open("/?campaign=12")
	v.until(allThere)

	out, said := succeed(t, nil, "share", "campaign", "12", v.store)
	must.That(t, strings.HasPrefix(out, v.server.url), "the command says %q and %q", out, said)
	v.open(strings.TrimSpace(out[len(v.server.url):]))
	v.shows("Shared page, read-only")
	check.Equal(v, evaluated[string](v, onDevice), v.token, "the token on the device beside a share link")
	evaluated[bool](v, `sessionStorage.clear() || true`)
	v.open("/?campaign=13")
	v.until(allThere)
	v.click(".top .sign-out")
	v.until(`document.querySelector("[name=token]")`)
	check.That(v, evaluated[bool](v, onDevice+" === null"), "the device keeps the token after the reader signed out")

	link, _ := succeed(t, nil, "token", "create", "--link", v.store)
	v.open(strings.TrimSpace(link[len(v.server.url):]))
	v.shows("To decide")
	check.That(v, evaluated[bool](v, `location.hash === "" && `+onDevice+` === null`), "the token is in the address, or on the device")
}
