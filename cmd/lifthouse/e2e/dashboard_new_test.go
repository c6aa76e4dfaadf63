package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"lifthouse/api"
	"lifthouse/engine"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// sends posts views of an experiment to the address of a source for GrowthBook, of as many visitors as counts says.
func (v *viewer) sends(address, experiment string, counts map[string]int) {
	v.Helper()
	var items []map[string]any
	for variation, visitors := range counts {
		for i := range visitors {
			items = append(items, map[string]any{
				"event_name": "Experiment Viewed", "device_id": fmt.Sprint(experiment, variation, i),
				"properties_json": map[string]string{"experimentId": experiment, "variationId": variation},
			})
		}
	}
	body := string(must.Get(json.Marshal(items))(v))
	response, err := http.Post(address, "text/plain", strings.NewReader(body)) //nolint:noctx // the test has a deadline
	must.OK(v, err)
	must.OK(v, response.Body.Close())
	must.Equal(v, response.StatusCode, http.StatusOK, "status of a request to the source")
}

// TestTheDashboardOfANewStore starts with a page without an event: it makes a source, sends to it, sees the events and
// the experiments arrive, declares them, and opens a report.
func TestTheDashboardOfANewStore(t *testing.T) {
	v := newViewerOf(t, "accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com}]}]\n")
	v.openSignedIn("/", `document.querySelector("#waiting")?.innerText === "Waiting for the first event"`)
	v.shows("0 events have arrived.")
	check.That(t, !evaluated[bool](v, `document.body.innerText.includes("Needs attention")`), "an empty store needs attention")
	v.until(`document.querySelector(".senders")`)
	titles := evaluated[[]string](v, `[...document.querySelectorAll(".senders summary")].map((e) => e.innerText)`)
	check.Equal(t, strings.Join(titles, ", "),
		"GrowthBook, Segment, RudderStack, PostHog, Google Analytics, or any page, Shopify, WooCommerce", "senders")
	v.click("[data-sender=growthbook] summary")
	v.look("new-store")
	v.click("[data-sender=growthbook] button")
	v.shows("Copy this now: the key cannot be shown again.")
	pasted := evaluated[string](v, `document.querySelector("[data-sender=growthbook] pre").innerText`)
	address := regexp.MustCompile(`http://[^"]*/in/lh_[\w-]+`).FindString(pasted)
	must.Equal(t, pasted, api.PasteText("growthbook", "", v.server.url, address[strings.LastIndex(address, "/")+1:]),
		"text to paste")

	// Events arrive on the open page.
	v.sends(address, "checkout-layout", map[string]int{"control": 150, "b": 150})
	v.shows("300 events have arrived.")
	v.shows("1 experiment arrived that is not declared")
	v.sends(address, "hero image", map[string]int{"old": 800, "new": 400})
	v.sends(address, "internal", map[string]int{"control": 1, "1": 1})
	v.shows("3 experiments arrived that are not declared")
	v.shows("1,502 events have arrived.")

	// Exposures are the API's; nothing is said of goals.
	v.click(".undeclared summary")
	var found []engine.Discovered
	v.server.get("/v1/undeclared", v.token, &found)
	must.Equal(t, len(found), 3, "undeclared experiments")
	for _, d := range found {
		want := []float64{float64(d.Visitors)}
		for _, variation := range d.Variations {
			want = append(want, variation.Share)
		}
		v.rowIs(fmt.Sprintf(`[data-undeclared=%q]`, d.Name()), want...)
	}

	// A form asks for control if it is not known, and for the planned shares if the split is not equal.
	v.click(`[data-undeclared="hero image"] button`)
	v.click(`[data-undeclared="checkout-layout"] button`)
	v.until(`document.querySelectorAll(".declare").length === 2`)
	v.look("undeclared")
	check.Equal(t,
		evaluated[int](v,
			`document.querySelectorAll('[data-undeclared="checkout-layout"] [type=radio], [data-undeclared="checkout-layout"] [name^=share]').length`), 0, "questions about checkout-layout")
	hero := func(rest string) string { return `[data-undeclared="hero image"] ` + rest }
	v.enter(hero("[name=goal]"), "purchase")
	v.click(hero("[type=submit]"))
	v.until(`document.querySelector(".declare :invalid")`) // control and shares are required
	v.click(hero("[value=old]"))
	evaluated[bool](v,
		fmt.Sprintf(`[...document.querySelectorAll(%q)].forEach((e, i) => { e.value = [67, 34][i]; }), true`,
			hero("[name^=share]")))
	v.click(hero("[type=submit]"))
	v.shows("must be 2 numbers in percent with the sum 100, control first")
	evaluated[bool](v,
		fmt.Sprintf(`[...document.querySelectorAll(%q)].forEach((e, i) => { e.value = [67, 33][i]; }), true`,
			hero("[name^=share]")))
	v.click(hero("[type=submit]"))
	v.shows("2 experiments arrived that are not declared")
	v.enter(`[data-undeclared="checkout-layout"] [name=goal]`, "purchase")
	v.click(`[data-undeclared="checkout-layout"] [type=submit]`)
	v.until(`document.querySelectorAll("[data-id]").length === 2 && !document.querySelector("#waiting")`)
	v.click(`[data-undeclared="internal"] .link`) // the line stays open
	v.until(`!document.querySelector(".undeclared")`)

	// Keys are shown in the place of computed ids.
	if text := evaluated[string](v,
		`document.querySelector("main").innerText`); regexp.MustCompile(`\d{16}`).MatchString(text) {
		t.Errorf("the list shows a computed id: %s", text)
	}
	v.enter("[name=search]", "hero")
	v.until(`document.querySelectorAll("[data-id]").length === 1`)
	v.click("[data-id] a")
	v.until(`document.querySelector("h1")?.innerText === "hero image" && document.querySelectorAll("[data-variation]").length === 2`)
	v.shows("Experiment hero image")

	// An address may have the key, or one that nothing has.
	v.open("/?campaign=no+such+key")
	v.shows("no campaign has the key no such key")
	v.open("/?campaign=hero+image&interval=day")
	v.until(`document.querySelector("h1")?.innerText === "hero image" && /campaign=\d{16}&interval=day/.test(location.search)`)
	r := v.report("/v1/campaigns/" + evaluated[string](v,
		`new URLSearchParams(location.search).get("campaign")`) + "/results")
	check.Equal(t, r.Totals.Visitors, 1200, "visitors of the report")
	v.until(`document.querySelector("[data-variation] data")`)
	v.rowIs(fmt.Sprintf(`[data-variation="%d"]`, r.Variations[0].ID), 800)
	check.Equal(t, r.Variations[0].Name, "old", "control")
	v.choose("[name=autoStop]", "both") // the catalogue has no id of a campaign with a key
	var campaign struct{ AutoStop string }
	v.until(`document.querySelector("[name=autoStop]").value === "both" && !document.querySelector("[name=autoStop]").disabled`)
	v.server.get(fmt.Sprintf("/v1/campaigns/%d", r.CampaignID), v.token, &campaign)
	check.Equal(t, campaign.AutoStop, "both", "auto-stop")

	v.open("/?websiteId=1&view=sources")
	var list api.Sources
	v.server.get("/v1/sources", v.token, &list)
	v.until(`document.querySelector("[data-source]")`)
	v.rowIs("[data-source]", float64(list.Sources[0].Accepted), 0, 0, 0)
	v.look("sources")
	v.click(`[aria-labelledby=add] .quiet a`)
	v.shows("Mapping reference")
	v.look("guide")
}

// TestTheDashboardOfAReaderSaysWhichCommandsToRun checks that a token that may only read gets no buttons but commands.
func TestTheDashboardOfAReaderSaysWhichCommandsToRun(t *testing.T) {
	v := newViewerOf(t, "accounts: [{id: 1, name: Shop, websites: [{id: 1, domain: shop.example.com}]}]\n")
	_, address, _ := other(t, nil, "source", "add", "growthbook", v.store)
	v.open("/")
	v.signIn(v.newToken("read"))
	v.click("[data-sender=segment] summary")
	v.shows("lifthouse source add segment --domain shop.example.com")
	v.sends(strings.TrimSpace(address), "it's new", map[string]int{"control": 2, "b": 2})
	v.click(".undeclared summary")
	v.shows(`lifthouse discover 'it'\''s new' --goal purchase`)
	_, listed, _ := other(t, nil, "source", "list", v.store)
	check.That(t, regexp.MustCompile(`\n2 +growthbook +1 +\S+Z +4 +0 +0 +0 +0\n`).MatchString(listed), "source list prints\n%s", listed)
	check.That(t, !evaluated[bool](v, `document.querySelector(".senders button, .undeclared button") !== null`),
		"a token that may only read is offered to make a source, or to declare")
}
