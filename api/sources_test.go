package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// sources returns the answer to GET /v1/sources.
func (s *server) sources(token string) (list api.Sources) {
	s.t.Helper()
	response, text := s.send(http.MethodGet, "/v1/sources", http.NoBody, "Authorization", "Bearer "+token)
	must.Equal(s.t, response.status, http.StatusOK, text)
	must.OK(s.t, json.Unmarshal([]byte(text), &list))
	return list
}

// TestTheListOfSources compares the list with what was sent, item by item.
func TestTheListOfSources(t *testing.T) {
	s := newServer(t)
	must.Equal(t, len(s.sources(s.token).Sources), 0, "sources of a new store")
	growthbook := s.sourceKey("growthbook", catalogue.Sender{})
	crm := s.sourceKey("crm", catalogue.Sender{Mapping: "extends: segment"})
	s.sourceKey("shopify", catalogue.Sender{})
	purchase := `{"event_name":"purchase","properties_json":{"order_id":"1","revenue":5},"device_id":"anon-1"}`
	for _, body := range []string{
		`[` + growthbookView + `,` + purchase +
			`,{"event_name":"page"},{"event_name":"page"},{"event_name":"scroll"},{"event_name":"purchase"},7]`,
	} {
		response, text := s.in(growthbook, body, nil)
		must.Equal(t, response.status, http.StatusOK, text)
	}
	list := s.sources(s.token)
	must.Equal(t, len(list.Sources), 3, "sources")
	got := list.Sources[0]
	check.Equal(t, fmt.Sprint(got.Name, got.WebsiteID, got.Mapping, got.Accepted, got.Purchases, got.NoVisitor,
		got.Rejected, got.Ignored),
		"growthbook1growthbook2 1 1 1 map[page:2 scroll:1]", "the source that sent")
	check.That(t, got.LastRequest != nil, "the source that sent has no time of its last request")
	check.Equal(t, list.Sources[1].Mapping, "own", "mapping of crm")
	check.That(t, list.Sources[2].LastRequest == nil, "shopify sent nothing, last request %s", list.Sources[2].LastRequest)
	// One of three has no visitor, which is more than 30 %.
	must.Equal(t, len(list.Warnings), 1, fmt.Sprint(list.Warnings))
	check.Contains(t, list.Warnings[0].Message, "1 of 3 of growthbook have no visitor", "warning")

	response, text := s.in(crm,
		`{"batch":[{"type":"track","event":"Order Completed","anonymousId":"a","messageId":"m","timestamp":"2026-05-01T12:00:00Z","properties":{"order_id":"2","revenue":5}}]}`, nil)
	must.Equal(t, response.status, http.StatusOK, text)
	list = s.sources(s.token)
	must.Equal(t, len(list.Warnings), 2, fmt.Sprint(list.Warnings))
	check.Contains(t, list.Warnings[1].Message,
		"Purchases of website 1 come from several sources, growthbook, crm", "warning")
	check.Equal(t, list.Warnings[1].WebsiteID, 1, "its website")

	// Names after the first 200 count together.
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf(`{"event_name":"event %d"}`, i))
	}
	s.in(growthbook, "["+strings.Join(many, ",")+"]", nil)
	got = s.sources(s.token).Sources[0]
	check.Equal(t, len(got.Ignored), 201, "names")
	check.Equal(t, got.Ignored["others"], 102, "items with other names")
}

// TestSourcesOfAnotherWebsiteOrAccount checks that a token sees the sources of its own websites.
func TestSourcesOfAnotherWebsiteOrAccount(t *testing.T) {
	s, _ := newTwoSites(t)
	s.sourceKey("growthbook", catalogue.Sender{})
	for token, want := range map[string]int{
		s.newToken(1, 0, catalogue.ScopeRead): 1, s.newToken(1, 1, catalogue.ScopeRead): 1,
		s.newToken(1, 2, catalogue.ScopeRead): 0, s.newToken(2, 0, catalogue.ScopeRead): 0,
	} {
		check.Equal(t, len(s.sources(token).Sources), want, "sources")
	}
}

// TestTheSendersAreThoseOfTheShippedMappings checks that there is a text for each shipped mapping of a sender, with
// everything replaced but the key, and the addresses that browsers need.
func TestTheSendersAreThoseOfTheShippedMappings(t *testing.T) {
	s := newServer(t)
	files := must.Get(os.ReadDir("../schema/ingest/shipped"))(t)
	senders := s.sources(s.token).Senders
	check.Equal(t, len(senders), len(files)-1, "senders: all but the files of GA4")
	for _, sender := range senders {
		must.Get(os.Stat("../schema/ingest/shipped/" + sender.Name + ".yaml"))(t)
		check.That(t, strings.Contains(sender.Text, "/in/{KEY}") && !strings.Contains(sender.Text, "{HOST}") && !strings.Contains(sender.Text, "{ADDRESS}"),
			"the text of %s is %s", sender.Name, sender.Text)
	}
	for sender, want := range map[string]string{ // browsers run these in the tests of cmd/lifthouse/e2e
		"tag": `<script src="https://l.example.com/in/KEY.js" async>`, "segment": `apiHost: "l.example.com/in/KEY"`,
	} {
		check.Contains(t, api.PasteText(sender, "https://l.example.com", "KEY"), want, sender)
	}
}
