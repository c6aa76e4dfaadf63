package api_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"lifthouse/api"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestTheSendersAreThoseOfTheShippedMappings checks that there is a text for each shipped mapping of a sender, with
// everything replaced but the key, and the addresses that browsers need.
func TestTheSendersAreThoseOfTheShippedMappings(t *testing.T) {
	s := newServer(t)
	files := must.Get(os.ReadDir("../schema/ingest/shipped/senders"))(t)
	var list api.Sources
	s.Get("/v1/sources").Send().RequireStatus(http.StatusOK).JSON(&list)
	senders := list.Senders
	check.Equal(t, len(senders), len(files)-1, "senders: all but the files of GA4")
	for _, sender := range senders {
		must.Get(os.Stat("../schema/ingest/shipped/senders/" + sender.Name + ".yaml"))(t)
		check.Contains(t, sender.Text, "/in/{KEY}", "the text of %s is %s", sender.Name, sender.Text)
		check.That(t, !strings.Contains(sender.Text, "{HOST}"), "the text of %s is %s", sender.Name, sender.Text)
		check.That(t, !strings.Contains(sender.Text, "{ADDRESS}"), "the text of %s is %s", sender.Name, sender.Text)
	}
	for sender, want := range map[string]string{ // browsers run these in the tests of cmd/lifthouse/e2e
		"tag": `<script src="https://l.example.com/in/KEY.js" async>`, "segment": `apiHost: "l.example.com/in/KEY"`,
	} {
		check.Contains(t, api.PasteText(sender, "", "https://l.example.com", "KEY"), want, sender)
	}
}

// TestTheScriptsOfAShopReadTheVisitorOfTheViews checks that what to paste at Shopify names the visitors of the sender of
// the views.
func TestTheScriptsOfAShopReadTheVisitorOfTheViews(t *testing.T) {
	paste := func(sender, views string) string { return api.PasteText(sender, views, "https://l.example.com", "KEY") }
	for views, want := range map[string][2]string{
		"growthbook":  {"gbuuid=", `browser.cookie.get("gbuuid")`},
		"segment":     {"ajs_anonymous_id=", `browser.cookie.get("ajs_anonymous_id")`},
		"tag":         {"_ga=", `browser.cookie.get("_ga")`},
		"posthog":     {"$device_id", "cannot read the visitor of PostHog"},
		"rudderstack": {"getAnonymousId", "cannot read the visitor of RudderStack"},
		"":            {"_ga=", `browser.cookie.get("_ga")`},
	} {
		check.Contains(t, paste("shopify", views), want[0], "the theme with views of "+views)
		check.Contains(t, paste("tag", views), want[1], "the pixel with views of "+views)
		check.That(t, !strings.Contains(paste("tag", views)+paste("shopify", views), "{V"), "views of %s leave slots",
			views)
	}
	check.Contains(t, paste("tag", "growthbook"), "currencyCode", "the pixel")
	check.Equal(t, strings.Join(api.ViewSenders(), " "), "growthbook segment rudderstack posthog tag",
		"senders of views")
}
