package check

import (
	"context"
	"fmt"
	"time"

	"lifthouse/cmd/internal/terminal"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
)

// The messages in which failed deliveries are looked for.
const (
	checkedMessages = 1000
	checkedDays     = 7
)

// checkWebhooks checks that the webhooks received the messages of the last week.
func (r *Report) checkWebhooks(ctx context.Context, box *outbox.Outbox, snapshot *catalogue.Snapshot) {
	for _, owned := range snapshot.AllAccounts() {
		if len(owned.Webhooks) == 0 {
			continue
		}
		sent, err := box.RecentMessages(ctx, owned.ID, 0, checkedMessages)
		if err != nil {
			r.Fault("webhooks", err)
			continue
		}
		failed := map[int64]int{}
		for i := range sent {
			for _, d := range sent[i].Deliveries {
				if d.Outcome == outbox.Failed && time.Since(d.At) < checkedDays*24*time.Hour {
					failed[d.WebhookID]++
				}
			}
		}
		for _, hook := range catalogue.ByID(owned.Webhooks) {
			if n := failed[hook.ID]; n > 0 {
				r.Fault("webhooks", fmt.Errorf("account %d: webhook %d (%s) did not receive %s in the last %d days: lifthouse webhook deliveries has the reasons, lifthouse webhook resend sends them again",
					owned.ID, hook.ID, hook.Host(), terminal.CountWithNoun(n, "message"), checkedDays))
				continue
			}
			r.OK("webhooks", "account %d: webhook %d (%s)", owned.ID, hook.ID, hook.Host())
		}
	}
}
