package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"

	"github.com/spf13/cobra"
)

func (p *program) webhookListCommand() *cobra.Command {
	cmd := newCommand("webhook-list", noArgs, nil)
	return p.onAccount(cmd, func(_ context.Context, s ownedStore, _ []string) error {
		rows := [][]any{{"ID", "HOST", "FORMAT", "EVENTS", "SINCE"}}
		for _, hook := range catalogue.ByID(s.owned.Webhooks) {
			rows = append(rows, []any{
				hook.ID, hook.Host(), hook.Format, cmp.Or(strings.Join(hook.Events, ","), "all"),
				hook.CreateDate.Format(time.RFC3339),
			})
		}
		return p.printList(rows, "Account %d has no webhook; declare one in the catalogue (lifthouse webhook --help).",
			s.owned.ID)
	})
}

func (p *program) webhookTestCommand() *cobra.Command {
	cmd := newCommand("webhook-test", oneArg, nil)
	cmd.Flags().BoolVar(&p.serving.PrivateWebhooks, privateWebhooks, false, privateWebhooksHelp)
	p.publicURLFlag(cmd.Flags())
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		id, err := strconv.ParseInt(args[0], 10, 64)
		hook, known := s.owned.Webhooks[id]
		if err != nil || !known {
			return fmt.Errorf("account %d has no webhook %q; lifthouse webhook list prints its webhooks", s.owned.ID,
				args[0])
		}
		d := s.WebhookSender(watch.SenderOptions{
			PublicURL:    p.publicURL(),
			Release:      buildVersion(),
			AllowPrivate: p.serving.PrivateWebhooks || p.server.PrivateWebhooks,
		}).SendTest(ctx, s.owned.ID, &hook)
		if d.Outcome != outbox.Delivered {
			return fmt.Errorf("webhook %d (%s) did not accept the message: %s", hook.ID, hook.Host(), d.Detail)
		}
		p.printLine("Webhook %d (%s) accepted the message with status %d.", hook.ID, hook.Host(), d.Status)
		return nil
	})
}

func (p *program) webhookDeliveriesCommand() *cobra.Command {
	var limit int
	var asJSON bool
	cmd := newCommand("webhook-deliveries", noArgs, nil)
	bounds.Var(cmd.Flags(), &limit, "limit", 50, 1, 10_000, "maximum number of messages")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the bodies of the messages")
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, _ []string) error {
		sent, err := s.Outbox.RecentMessages(ctx, s.owned.ID, 0, limit)
		if err != nil {
			return err
		}
		if asJSON {
			return p.writeJSON(sent)
		}
		rows := [][]any{{"recorded", "message", "event", "about", "webhook", "outcome", "attempts", "detail"}}
		for i := range sent {
			m := &sent[i]
			message := []any{
				m.RecordedAt.Format(time.RFC3339), m.ID, m.Event,
				fmt.Sprintf("%s %d", m.Subject.Kind, m.Subject.ID),
			}
			if len(m.Deliveries) == 0 {
				rows = append(rows, append(slices.Clone(message), "-", "-", 0, ""))
			}
			for _, d := range m.Deliveries {
				rows = append(rows, append(slices.Clone(message), d.WebhookID, d.Outcome, d.Attempts, d.Detail))
			}
		}
		return p.printList(rows, "There are no messages yet.")
	})
}

func (p *program) webhookResendCommand() *cobra.Command {
	var only int64
	cmd := newCommand("webhook-resend", oneArg, nil)
	bounds.Var(cmd.Flags(), &only, "webhook", 0, 0, bounds.MaxID, "id of the only webhook; 0: all that take the event")
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		found, err := s.Outbox.ReadMessages(ctx, 0, schema.Subject{}, args[0])
		if err != nil {
			return err
		}
		if len(found) == 0 || found[0].AccountID != s.owned.ID {
			return fmt.Errorf("account %d has no message %q; lifthouse webhook deliveries prints the messages",
				s.owned.ID, args[0])
		}
		var requests []outbox.Delivery
		for _, hook := range catalogue.ByID(s.owned.Webhooks) {
			if only == hook.ID || only == 0 && slices.Contains(hook.EventsTaken(), found[0].Event) {
				requests = append(requests, outbox.Delivery{
					AccountID: s.owned.ID, WebhookID: hook.ID, MessageID: args[0], At: time.Now().UTC(),
					Outcome: outbox.Requested,
					Detail:  "lifthouse webhook resend",
				})
			}
		}
		if len(requests) == 0 {
			return errors.New("no webhook takes the message; lifthouse webhook list prints the webhooks")
		}
		p.printLine("The message will be delivered again to %d of %d webhooks when a server runs.", len(requests),
			len(s.owned.Webhooks))
		return s.Outbox.RecordDeliveries(ctx, requests...)
	})
}
