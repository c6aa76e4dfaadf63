package api

import (
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"

	"github.com/gin-gonic/gin"
)

// sentMessage is a message with the state of its deliveries.
type sentMessage struct {
	outbox.Message
	Path       string            `json:"path"` // of the page of the subject
	Deliveries []webhookDelivery `json:"deliveries"`
}

// webhookDelivery is the state of the delivery of a message to a webhook.
type webhookDelivery struct {
	outbox.Delivery
	Host string `json:"host"` // of the webhook; the rest of its URL may be a secret
}

// listedMessages is the number of messages in the list of deliveries.
const listedMessages = 100

// listDeliveries returns the latest messages, the latest first.
func (s *API) listDeliveries(c *gin.Context) (any, error) {
	token := tokenOf(c)
	sent, err := s.Outbox.RecentMessages(c.Request.Context(), token.AccountID, token.WebsiteID, listedMessages)
	if err != nil {
		return nil, source.StoreFailure(c.Request.Context(), err)
	}
	owned, _ := s.accountResources(c)
	list := make([]sentMessage, len(sent))
	for i := range sent {
		m := &sent[i]
		list[i] = sentMessage{m.Message, catalogue.PagePath(&m.Data.SubjectIDs), []webhookDelivery{}}
		for _, d := range m.Deliveries {
			if hook, known := owned.Webhooks[d.WebhookID]; known {
				list[i].Deliveries = append(list[i].Deliveries, webhookDelivery{d, hook.Host()})
			}
		}
	}
	return list, nil
}
