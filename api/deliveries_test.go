package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// TestDeliveriesAreListed lists messages and what became of them, for each account and website on its own.
func TestDeliveriesAreListed(t *testing.T) {
	s := newServer(t)
	s.apply(strings.Replace(twoAccounts, "name: Shop\n", "name: Shop\n    webhooks: [{id: 4, url: \"https://hooks.example.com/secret\", format: slack}]\n", 1))
	write := func(account, website, campaign int64, event string) string {
		t.Helper()
		of := schema.Subject{WebsiteID: website, Kind: schema.SubjectCampaign, ID: campaign}
		m := outbox.NewMessage(outbox.MessageID(account, event, campaign), account, event, of, "", time.Now(), outbox.Data{Name: "Banner", Text: "It was stopped.", By: "Ann"})
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
	check.That(t, response.status == http.StatusOK && strings.Contains(text, `"path":"/?campaign=12","deliveries":[{"webhookId":4`) && strings.Contains(text, `"outcome":"delivered","status":204,"attempts":2,"host":"hooks.example.com"`) && !strings.Contains(text, "secret") && strings.Count(text, "msg_") == 1,
		"%d %s", response.status, text)
	if _, _, text := s.do(http.MethodGet, "/deliveries", s.newToken(2, 3, catalogue.ScopeRead)); strings.Count(text, "msg_") != 1 || !strings.Contains(text, `"campaignId":99`) {
		t.Errorf("a token of website 3: %s", text)
	}
	check.Contains(t, s.wants(http.StatusBadRequest, http.MethodGet, "/deliveries?limit=1", s.token), `"name":"limit"`)
	s.wants(http.StatusForbidden, http.MethodGet, "/deliveries", s.newToken(1, 1, catalogue.ScopeIngest))
}
