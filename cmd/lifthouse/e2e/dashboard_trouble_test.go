package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// tabTo presses Tab until an element has the focus, and checks that the focus is visible.
func (v *viewer) tabTo(selector string) {
	v.Helper()
	v.until("document.querySelector(" + strconv.Quote(selector) + ")")
	for range 60 {
		if evaluated[bool](v, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			check.That(v, evaluated[bool](v, `getComputedStyle(document.activeElement).outlineStyle !== "none"`), "%s has the focus and does not show it", selector)
			return
		}
		v.press(kb.Tab)
	}
	v.Fatalf("no Tab leads to %s", selector)
}

func (v *viewer) press(keys string) {
	v.Helper()
	v.do(chromedp.KeyEvent(keys))
}

// TestTheDashboardByKeyboardAlone signs in, opens a campaign, changes its goal, and cancels a stop, with the keyboard
// only.
func TestTheDashboardByKeyboardAlone(t *testing.T) {
	v := newViewer(t)
	v.open("/")
	v.tabTo("[name=token]")
	v.press(v.token)
	v.press(kb.Enter)
	v.tabTo(`[data-id="12"] a`)
	v.press(kb.Enter)
	v.until(allThere)
	v.tabTo(".settings summary")
	v.press(kb.Enter)
	v.tabTo("[name=goal]")
	v.press(kb.ArrowDown)
	v.until(`location.search === "?campaign=12&goal=3"`)
	v.until(allThere)
	check.That(t, evaluated[bool](v, `document.activeElement.name === "goal"`), "the focus has left the goal that was chosen")
	for _, leave := range []func(){
		func() { v.press(kb.Escape) },
		func() { v.tabTo("dialog button:not(.strong)"); v.press(kb.Enter) },
	} {
		evaluated[bool](v, `document.getElementById("main").focus(), true`)
		v.tabTo("#switch")
		v.press(kb.Enter)
		v.shows("Stop “Free delivery banner”?")
		check.That(t, evaluated[bool](v, `document.querySelector("dialog").contains(document.activeElement)`), "the question does not have the focus")
		leave()
		v.until(`!document.querySelector("dialog")`)
		v.until(`document.activeElement.id === "switch"`)
	}
	var campaign struct{ Active bool }
	v.server.get("/v1/campaigns/12", v.token, &campaign)
	check.That(t, campaign.Active, "the campaign was stopped")
}

// TestTheDashboardWaitsWhereATokenAsksTooMuch checks that the page reports the rate limit, and shows results as soon as
// it may send requests again.
func TestTheDashboardWaitsWhereATokenAsksTooMuch(t *testing.T) {
	v := newViewer(t, "--rate-limit=10")
	v.open("/")
	v.signIn(v.token)
	v.shows("Free delivery banner")
	crowd, leaves := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer leaves()
	asking.Go(func() {
		for crowd.Err() == nil {
			v.server.status(v.token)
		}
	})
	v.open("/?campaign=12")
	v.shows("Too many requests")
	v.shows("This page retries automatically")
	v.picture("too-many")
	leaves()
	asking.Wait()
	v.until(allThere)
	v.until(`!document.querySelector("[role=alert]")`)
	v.numbersAreTheAPIs("/v1/campaigns/12/results", "%.2f %%")
}

// gateway is a proxy that changes responses of the server.
type gateway struct {
	away, stale atomic.Bool
}

func (g *gateway) before(t *testing.T, server string) string {
	t.Helper()
	target := must.Get(url.Parse(server))(t)
	through := httputil.NewSingleHostReverseProxy(target)
	through.ModifyResponse = g.aged
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.away.Load() && strings.HasPrefix(r.URL.Path, "/v1/") {
			w.Header().Set("Retry-After", "2")
			http.Error(w, "<h1>no server is up</h1>", http.StatusServiceUnavailable)
			return
		}
		if g.stale.Load() {
			r.Header.Del("If-None-Match")
			r.Header.Set("Accept-Encoding", "identity")
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// aged changes responses to those of a server whose store is away.
func (g *gateway) aged(response *http.Response) error {
	if !g.stale.Load() || !strings.Contains(response.Request.URL.Path, "/results") {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	body = bytes.Replace(body, []byte(`"stale":false`), []byte(`"stale":true`), 1)
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	response.Header.Del("ETag")
	response.Header.Set("Cache-Control", "no-store")
	response.Header.Set("Warning", `110 lifthouse "Response is Stale"`)
	return response.Body.Close()
}

// TestTheDashboardWhileTheServerIsAway checks that a page opened while the server is away reports the problem and shows
// results later, and that an open page keeps its results.
func TestTheDashboardWhileTheServerIsAway(t *testing.T) {
	v := newViewer(t)
	var g gateway
	v.site = g.before(t, v.server.url)
	v.openSignedIn("/?campaign=12", allThere)
	g.away.Store(true)
	v.shows("Service unavailable")
	v.shows("This page retries automatically in 2 seconds.")
	v.until(allThere) // what was shown stays
	v.open("/?campaign=12")
	v.shows("Service unavailable")
	v.look("away")
	g.away.Store(false)
	v.until(allThere)
	v.until(`!document.querySelector("[role=alert]")`)

	g.stale.Store(true)
	v.shows("Not up to date: the store is unavailable.")
	v.until(`document.querySelector("[aria-labelledby=health] .bad")?.innerText.includes("These are the last available results")`)
	v.look("stale")
	g.stale.Store(false)
	v.until(`!document.body.innerText.includes("Not up to date") && !document.querySelector("[aria-labelledby=health] .bad")`)
	v.numbersAreTheAPIs("/v1/campaigns/12/results", "%.2f %%")
}

// TestTheDashboardOfCampaignsInTrouble checks that a sample ratio mismatch is explained before any number, and that a
// campaign without events explains how to send some.
func TestTheDashboardOfCampaignsInTrouble(t *testing.T) {
	v := newViewer(t)
	v.declare(`          - {id: 25, name: Slow page, type: experiment, controlShare: 50, primaryGoalId: 3,
             variations: [{id: 1, name: Slow, share: 50}]}
          - {id: 26, name: Not yet, type: experiment, controlShare: 50, primaryGoalId: 3,
             variations: [{id: 1, name: Later, share: 50}]}
`)
	var lines strings.Builder
	for i := range 1000 {
		for variation := range 2 {
			if variation == 0 || i < 600 {
				fmt.Fprintf(&lines, `{"eventId":"%d-%d","time":%d,"websiteId":1,"visitor":"slow-%d-%d","event":"view","campaignId":25,"variationId":%d}`+"\n",
					variation, i, time.Now().Add(-time.Hour).UnixMilli(), variation, i, variation)
			}
		}
	}
	v.imports(lines.String())

	v.open("/?campaign=25")
	v.signIn(v.token)
	v.shows("Do not decide")
	v.shows("Sample ratio mismatch (SRM)")
	r := v.report("/v1/campaigns/25/results")
	must.That(t, r.Checks.SampleRatio.Mismatch, "600 of 1600 is no mismatch: %+v", r.Checks.SampleRatio)
	text := evaluated[string](v, `document.querySelector("[aria-labelledby=health] .bad").innerText`)
	for _, want := range []string{
		"Some visitors are lost or counted twice",
		"Control: 1,000 (800 expected); Slow: 600 (800 expected)", "needs attention",
	} {
		check.Contains(t, text, want, "health")
	}
	v.click(".not-valid summary")
	v.shows("Not enough data for a chart.")
	check.Contains(t, text, r.Checks.SplitCause.Text, "cause")
	v.look("mismatch")

	v.openAll("/?campaign=17")
	cause := v.report("/v1/campaigns/17/results").Checks.SplitCause
	v.shows(cause.Text)
	v.click("#split-cause summary")
	for i, part := range cause.Parts {
		want := []float64{*part.PValue}
		for _, n := range part.Observed {
			want = append(want, float64(n))
		}
		v.rowIs(fmt.Sprintf("#split-cause tbody tr:nth-child(%d)", i+1), want...)
	}
	v.click("#split-over-time summary")
	v.until(`document.querySelector("#split-over-time .uplot")`)
	v.look("split")

	v.open("/?campaign=26")
	v.shows("Events appear here within seconds.")
	v.until(`!document.querySelector(".loading, .uplot, [aria-labelledby=progress], [role=alert]")`)
	v.look("no-events")
}

// TestTheDashboardShowsHostileTextsAsTexts checks that markup in any text of the catalogue and of the events is shown
// and never interpreted.
func TestTheDashboardShowsHostileTextsAsTexts(t *testing.T) {
	v := newViewer(t)
	const bad = `<img src=x onerror=document.body.remove()>`
	v.declare(fmt.Sprintf(`          - {id: 27, name: "%[1]s", type: experiment, controlShare: 50, primaryGoalId: 3, hypothesis: "h %[1]s", owner: "o %[1]s", tags: ["t %[1]s"], variations: [{id: 1, name: "v %[1]s", share: 50}]}
`, bad))
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&lines, `{"eventId":"h%d","time":%d,"websiteId":1,"visitor":"hostile-%d","event":"view","campaignId":27,"variationId":%d,"device":"mobile","referrer":"https://example.com/%s"}`+"\n",
			i, time.Now().Add(-time.Hour).UnixMilli(), i, i%2, bad)
	}
	v.imports(lines.String())
	v.open("/?show=campaigns&owner=" + url.QueryEscape("o "+bad))
	v.signIn(v.token)
	v.until(`document.querySelector('[data-id="27"]')`)
	for _, want := range []string{bad, "o " + bad, "#t " + bad} {
		v.shows(want)
	}
	v.open("/?campaign=27&dimension=referrer&filters[referrer]=" + url.QueryEscape("*"+bad+"*"))
	v.until(`document.querySelector("[data-value]")`)
	for _, want := range []string{bad, "h " + bad, "#t " + bad, "v " + bad} {
		v.shows(want)
	}
	check.That(t, !evaluated[bool](v, `document.querySelector("img") !== null`), "a text was taken for markup; the browser complains: %q", v.problems)
	check.Equal(t, len(v.problems), 0, "a text was taken for markup; the browser complains: %q", v.problems)
}

// declare adds campaigns to the catalogue of the demo.
func (v *viewer) declare(campaigns string) {
	v.Helper()
	const first = "        campaigns:\n"
	v.changes(first, first+campaigns)
}

// changes replaces a text of the catalogue of the demo.
func (v *viewer) changes(was, is string) {
	v.Helper()
	_, declared, _ := other(v.T, nil, "export", v.store)
	must.That(v, strings.Contains(declared, was), "the demo has another catalogue:\n%s", declared)
	file := must.WriteFile(v, "catalog.yaml", strings.Replace(declared, was, is, 1))
	ended(v.T, exitOK, "apply", "-f", file, v.store)
}

// imports imports events into the demo.
func (v *viewer) imports(lines string) {
	v.Helper()
	file := must.WriteFile(v, "events.ndjson", lines)
	ended(v.T, exitOK, "import", file, v.store)
}
