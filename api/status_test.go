package api_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// awaitStatuses lists the campaigns, or the widgets, with their statuses until all are computed.
func (s *server) awaitStatuses(kind string) []any {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		var list []any
		response := s.Get("/v1/" + kind + "?websiteId=1&include=status").Send().RequireStatus(http.StatusOK)
		response.JSON(&list)
		computed := true
		for _, item := range list {
			switch status := item.(map[string]any)["status"].(type) {
			case map[string]any:
				computed = computed && status["computedAt"] != nil
			case []any:
				for _, of := range status {
					computed = computed && of.(map[string]any)["computedAt"] != nil
				}
			}
		}
		if computed {
			return list
		}
		must.That(s.t, !time.Now().After(deadline), "the statuses were not computed: %v", response)
	}
}

// TestListsHaveStatuses compares the statuses in the lists with the reports. Reports of some visitors, which share what
// is computed once per version, come first.
func TestListsHaveStatuses(t *testing.T) {
	s, _ := newTwoSites(t)
	var first, plain []map[string]any
	s.Get("/v1/campaigns?websiteId=1&include=status").Send().RequireStatus(http.StatusOK).JSON(&first)
	for _, campaign := range first {
		status := campaign["status"].(map[string]any)
		check.That(t, status["reason"] == "NOT_COMPUTED", "before it is computed: %v", status)
		check.That(t, status["decision"] == nil, "before it is computed: %v", status)
		s.Get(fmt.Sprintf("/v1/campaigns/%v/results?scorecard=true&filters[device]=mobile", campaign["id"])).Send()
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.listed.FollowQueue(ctx)
		close(ended)
	}()
	for _, item := range s.awaitStatuses("campaigns") {
		campaign := item.(map[string]any)
		var report map[string]any
		s.Get("/v1/campaigns/" + fmt.Sprint(campaign["id"]) + "/results?scorecard=true").Send().JSON(&report)
		status := campaign["status"].(map[string]any)
		decision, _ := report["decision"].(map[string]any)
		got, _ := status["decision"].(map[string]any)
		check.Equal(t, got["status"], decision["status"], "decision on campaign %v", campaign["id"])
		check.Equal(t, got["text"], decision["text"], "decision on campaign %v", campaign["id"])
		if want := report["totals"].(map[string]any)["visitors"]; decision != nil && status["visitors"] != want {
			t.Errorf("campaign %v: %v visitors, want %v", campaign["id"], status["visitors"], want)
		}
	}
	widgets := s.awaitStatuses("widgets")
	experiments := widgets[0].(map[string]any)["status"].([]any)
	must.That(t, len(experiments) != 0, "widgets %v", widgets)
	check.That(t, experiments[0].(map[string]any)["decision"] != nil, "widgets %v", widgets)
	s.Get("/v1/campaigns?websiteId=1").Send().JSON(&plain)
	_, has := plain[0]["status"]
	check.That(t, !has, "a list without include=status has a status")
	stop()
	<-ended
}

// TestDeliveriesAreListed lists messages and what became of them, for each account and website on its own.
func TestDeliveriesAreListed(t *testing.T) {
	s := newServer(t)
	s.apply(strings.Replace(twoAccounts, "name: Shop\n",
		"name: Shop\n    webhooks: [{id: 4, url: \"https://hooks.example.com/secret\", format: slack}]\n", 1))
	write := func(account, website, campaign int64, event string) string {
		t.Helper()
		of := schema.Subject{WebsiteID: website, Kind: schema.SubjectCampaign, ID: campaign}
		m := outbox.NewMessage(outbox.MessageID(outbox.NewIdentity(account, fmt.Sprint(event, campaign))), account,
			event, of, "", time.Now(), outbox.Data{Name: "Banner", Text: "It was stopped.", By: "Ann"})
		must.Equal(t, must.Get(s.outbox.WriteMessages(t.Context(), []outbox.Message{m}))(t), 1)
		return m.ID
	}
	write(2, 2, 12, catalogue.EventCampaignStarted)
	write(2, 3, 99, catalogue.EventCampaignStarted)
	id := write(1, 1, 12, catalogue.EventCampaignStopped)
	for _, outcome := range []outbox.Outcome{outbox.Retrying, outbox.Delivered} {
		d := outbox.Delivery{AccountID: 1, WebhookID: 4, MessageID: id, At: time.Now(), Outcome: outcome, Status: 204}
		must.OK(t, s.outbox.RecordDeliveries(t.Context(), d))
	}
	response := s.Get("/deliveries").Send().CheckStatus(http.StatusOK)
	check.Contains(t, response.Text, `"path":"/?campaign=12","deliveries":[{"webhookId":4`, "%v", response)
	check.Contains(t, response.Text, `"outcome":"delivered","status":204,"attempts":2,"host":"hooks.example.com"`, "%v", response)
	check.That(t, !strings.Contains(response.Text, "secret"), "%v", response)
	check.Equal(t, strings.Count(response.Text, "msg_"), 1, "%v", response)
	other := s.newToken(2, 3, catalogue.ScopeRead)
	theirs := s.Get("/deliveries").Token(other).Send().Text
	check.Equal(t, strings.Count(theirs, "msg_"), 1, "a token of website 3: %s", theirs)
	check.Contains(t, theirs, `"campaignId":99`, "a token of website 3")
	limited := s.Get("/deliveries?limit=1").Send().CheckStatus(http.StatusBadRequest)
	check.Contains(t, limited.Text, `"name":"limit"`)
	s.Get("/deliveries").Token(s.newToken(1, 1, catalogue.ScopeIngest)).Send().CheckStatus(http.StatusForbidden)
}
