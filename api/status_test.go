package api_test

import (
	"context"
	"encoding/json"
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

// statuses lists the campaigns, or the widgets, with their statuses until all are computed.
func (s *server) statuses(kind string) []any {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		response, _, text := s.do("GET", "/v1/"+kind+"?websiteId=1&include=status", s.token)
		must.Equal(s.t, response.status, http.StatusOK, "%v", text)
		list := listOf(s.t, text)
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
		must.That(s.t, !time.Now().After(deadline), "the statuses were not computed: %s", text)
	}
}

func listOf(tb testing.TB, text string) (list []any) {
	tb.Helper()
	must.OK(tb, json.Unmarshal([]byte(text), &list), "%v", text)
	return list
}

// TestListsHaveStatuses compares the statuses in the lists with the reports. Reports of some visitors, which share what
// is computed once per version, come first.
func TestListsHaveStatuses(t *testing.T) {
	s, _ := newTwoSites(t)
	first, _, text := s.do("GET", "/v1/campaigns?websiteId=1&include=status", s.token)
	must.Equal(t, first.status, http.StatusOK, "%v", text)
	for _, item := range listOf(s.t, text) {
		status := item.(map[string]any)["status"].(map[string]any)
		check.That(t, status["reason"] == "NOT_COMPUTED", "before it is computed: %v", status)
		check.That(t, status["decision"] == nil, "before it is computed: %v", status)
		s.do("GET", fmt.Sprintf("/v1/campaigns/%v/results?scorecard=true&filters[device]=mobile", item.(map[string]any)["id"]), s.token)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.listed.FollowQueue(ctx)
		close(ended)
	}()
	for _, item := range s.statuses("campaigns") {
		campaign := item.(map[string]any)
		_, report, _ := s.do("GET", "/v1/campaigns/"+fmt.Sprint(campaign["id"])+"/results?scorecard=true", s.token)
		status := campaign["status"].(map[string]any)
		decision, _ := report["decision"].(map[string]any)
		if got, _ := status["decision"].(map[string]any); got["status"] != decision["status"] ||
			got["text"] != decision["text"] {
			t.Errorf("campaign %v: %v, want %v", campaign["id"], got, decision)
		}
		if want := report["totals"].(map[string]any)["visitors"]; decision != nil && status["visitors"] != want {
			t.Errorf("campaign %v: %v visitors, want %v", campaign["id"], status["visitors"], want)
		}
	}
	widgets := s.statuses("widgets")
	experiments := widgets[0].(map[string]any)["status"].([]any)
	must.That(t, len(experiments) != 0, "widgets %v", widgets)
	check.That(t, experiments[0].(map[string]any)["decision"] != nil, "widgets %v", widgets)
	_, _, plain := s.do("GET", "/v1/campaigns?websiteId=1", s.token)
	_, has := listOf(t, plain)[0].(map[string]any)["status"]
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
	response, _, text := s.do(http.MethodGet, "/deliveries", s.token)
	check.Equal(t, response.status, http.StatusOK, "%d %s", response.status, text)
	check.Contains(t, text, `"path":"/?campaign=12","deliveries":[{"webhookId":4`, "%d %s", response.status, text)
	check.Contains(t, text, `"outcome":"delivered","status":204,"attempts":2,"host":"hooks.example.com"`, "%d %s", response.status, text)
	check.That(t, !strings.Contains(text, "secret"), "%d %s", response.status, text)
	check.Equal(t, strings.Count(text, "msg_"), 1, "%d %s", response.status, text)
	if _, _, text := s.do(http.MethodGet, "/deliveries", s.newToken(2, 3, catalogue.ScopeRead)); strings.Count(text, "msg_") != 1 || !strings.Contains(text, `"campaignId":99`) {
		t.Errorf("a token of website 3: %s", text)
	}
	check.Contains(t, s.wants(http.StatusBadRequest, http.MethodGet, "/deliveries?limit=1", s.token), `"name":"limit"`)
	s.wants(http.StatusForbidden, http.MethodGet, "/deliveries", s.newToken(1, 1, catalogue.ScopeIngest))
}
