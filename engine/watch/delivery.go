package watch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
	"lifthouse/schema/secrets"

	"code.dny.dev/ssrf"
	"github.com/cenkalti/backoff/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"golang.org/x/sync/errgroup"
)

// SenderOptions configure a sender.
type SenderOptions struct {
	PublicURL    string               // base of the links in messages
	Release      string               // version of the program
	Secrets      *secrets.Folder      // files with the keys of webhooks
	AllowPrivate bool                 // whether webhooks may have private and loopback addresses
	Holder       string               // name of this process in leases; empty: no other process uses the store
	Count        func(outbox.Outcome) // called for each attempt; may be nil
}

// Sender delivers messages of the outbox to webhooks over HTTP: each message at least once, in the order in which the
// messages were recorded, with the same id in each attempt.
type Sender struct {
	SenderOptions
	outbox    *outbox.Outbox
	catalogue *catalogue.Catalogue
	client    *http.Client
	leased    time.Time // when this process last took the lease; zero: it does not hold it
	failing   sync.Map  // by account and webhook, since when this process has seen no attempt that succeeded
}

// maxDetail is the number of bytes of a response that are kept.
const maxDetail = 200

// NewSender returns a sender of the messages of a store.
func NewSender(box *outbox.Outbox, c *catalogue.Catalogue, o SenderOptions) *Sender {
	dialer := &net.Dialer{}
	if !o.AllowPrivate {
		// The address is checked when the connection is made, after DNS. So a name cannot lead to a private address.
		dialer.Control = ssrf.New(ssrf.WithAnyPort()).Safe
	}
	return &Sender{SenderOptions: o, outbox: box, catalogue: c, client: &http.Client{
		Timeout:       10 * time.Second, // of an attempt
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true,
			MaxResponseHeaderBytes: 16 << 10,
		},
	}}
}

// renewAfter is the age at which the lease is renewed, and roundTime is how long attempts are started in a round.
// Together with the last attempt, they are shorter than the lease.
const (
	renewAfter = outbox.LeaseTime / 3
	roundTime  = outbox.LeaseTime / 4
)

// FollowMessages delivers messages until the context ends.
func (s *Sender) FollowMessages(ctx context.Context) {
	longest := time.Minute // between two reads of the tables
	if s.Holder != "" {
		longest = 2 * time.Second // other processes may write messages
	}
	for {
		// Deliver what is due if there are webhooks, and if this process may. Renew the lease if it is old.
		var next time.Time
		var err error
		held := slices.ContainsFunc(s.catalogue.Snapshot().AllAccounts(),
			func(o *catalogue.AccountResources) bool { return len(o.Webhooks) > 0 })
		if taken := time.Now(); held && s.Holder != "" && taken.Sub(s.leased) > renewAfter {
			held, err = s.outbox.TakeLease(ctx, s.Holder)
			s.leased = taken
			if !held {
				s.leased = time.Time{}
			}
		}
		if held {
			next, err = s.DeliverDue(ctx, time.Now())
		}
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "deliver webhooks failed", "err", err)
		}
		wait := longest
		if !next.IsZero() {
			wait = max(0, min(longest, time.Until(next)))
		}
		select {
		case <-ctx.Done():
			return
		case <-s.outbox.Added():
		case <-time.After(wait):
		}
	}
}

// DeliverDue delivers the messages that are due at a time, and returns when the next one is due; zero: none waits.
func (s *Sender) DeliverDue(ctx context.Context, now time.Time) (time.Time, error) {
	var group errgroup.Group
	group.SetLimit(16) // receivers that do not respond are tried ever less often
	var mu sync.Mutex  // protects first
	var first time.Time
	started := time.Now()
	for _, owned := range s.catalogue.Snapshot().AllAccounts() {
		for _, hook := range catalogue.ByID(owned.Webhooks) {
			group.Go(func() error {
				next, err := s.deliverTo(ctx, owned.ID, &hook, func() time.Time { return now.Add(time.Since(started)) },
					now.Add(roundTime))
				mu.Lock()
				defer mu.Unlock()
				if first.IsZero() || !next.IsZero() && next.Before(first) {
					first = next
				}
				return err
			})
		}
	}
	err := group.Wait()
	return first, err
}

// deliverTo delivers the due messages to a webhook, in order. A message whose attempt failed delays the later ones. It
// returns when the next attempt is due; zero: no message waits. With a lease, it starts no attempt after end.
func (s *Sender) deliverTo(
	ctx context.Context, account int64, hook *catalogue.LiveWebhook, now func() time.Time, end time.Time,
) (time.Time, error) {
	for {
		pending, err := s.outbox.PendingMessages(ctx, account, hook.ID, hook.EventsTaken(), hook.CreateDate, 100)
		if err != nil || len(pending) == 0 {
			return time.Time{}, err
		}
		for i := range pending {
			p := &pending[i]
			due := p.DueSince
			if p.Retries > 0 {
				due = p.LastAt.Add(pauseAfter(p.Retries))
			}
			if due.After(now()) {
				return due, nil
			}
			if s.Holder != "" && now().After(end) {
				return now(), nil // renew the lease first
			}
			d, err := s.deliverMessage(ctx, account, hook, p, now)
			if err != nil {
				return time.Time{}, err
			}
			if d.Outcome == outbox.Retrying {
				return d.At.Add(pauseAfter(p.Retries + 1)), nil
			}
		}
	}
}

// deliverMessage sends a message once, and records the outcome. A message that was refused for a day has failed.
func (s *Sender) deliverMessage(
	ctx context.Context, account int64, hook *catalogue.LiveWebhook, p *outbox.Pending, now func() time.Time,
) (outbox.Delivery, error) {
	d := s.attemptDelivery(ctx, account, hook, &p.Message, now)
	if ctx.Err() != nil {
		return d, ctx.Err()
	}
	receiver := [2]int64{account, hook.ID}
	failing, _ := s.failing.LoadOrStore(receiver, d.At)
	refusedFor := d.At.Sub(schema.LaterTime(p.DueSince, failing.(time.Time)))
	switch {
	case d.Outcome == outbox.Delivered:
		s.failing.Delete(receiver)
	case d.Outcome == outbox.Retrying && refusedFor >= retriedFor:
		d.Outcome = outbox.Failed
	}
	if err := s.outbox.RecordDeliveries(ctx, d); err != nil {
		return d, err
	}
	if s.Count != nil {
		s.Count(d.Outcome)
	}
	if d.Outcome != outbox.Delivered {
		slog.WarnContext(ctx, "webhook failed", "account", account, "webhook", hook.ID, "message", p.ID,
			"outcome", d.Outcome, "status", d.Status, "err", d.Detail)
	}
	return d, nil
}

// A message that is refused is sent again for a day, with pauses that grow from 5 seconds to an hour. The time in which
// no server tried does not count.
const (
	retriedFor   = 24 * time.Hour
	firstPause   = 5 * time.Second
	longestPause = time.Hour
)

func pauseAfter(retries uint64) time.Duration {
	b := &backoff.ExponentialBackOff{InitialInterval: firstPause, Multiplier: 2, MaxInterval: longestPause}
	pause := firstPause
	for range min(retries, 64) {
		pause = b.NextBackOff()
	}
	return pause
}

// attemptDelivery sends a message once and returns the outcome.
func (s *Sender) attemptDelivery(
	ctx context.Context, account int64, hook *catalogue.LiveWebhook, m *outbox.Message, now func() time.Time,
) outbox.Delivery {
	d := outbox.Delivery{AccountID: account, WebhookID: hook.ID, MessageID: m.ID}
	status, err := s.sendMessage(ctx, &hook.Webhook, m)
	d.At = now().UTC().Truncate(time.Millisecond)
	d.Status = status
	d.Outcome = outbox.Delivered
	if err != nil {
		text := err.Error()
		var request *url.Error
		var lookup *net.DNSError
		switch {
		case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork):
			text = "the address is private or reserved; --webhook-private-addresses allows it"
		case errors.As(err, &lookup): // the address of the server's resolver is nobody's business
			text = "lookup " + lookup.Name + ": " + lookup.Err
		case errors.As(err, &request): // the URL may have a secret
			text = request.Err.Error()
		}
		d.Outcome = outbox.Retrying
		d.Detail = strings.ToValidUTF8(text[:min(len(text), 2*maxDetail)], "�")
	}
	if status == http.StatusGone { // the receiver does not want further messages
		d.Outcome = outbox.Failed
	}
	return d
}

// SendTest sends a test message to a webhook at once, and returns the outcome. The message is not stored.
func (s *Sender) SendTest(ctx context.Context, account int64, hook *catalogue.LiveWebhook) outbox.Delivery {
	of := outbox.NewIdentity(account, "webhook.test")
	of.AddInteger("webhook", hook.ID)
	of.AddInteger("sentAt", time.Now().UnixNano())
	m := outbox.NewMessage(outbox.MessageID(of), account, "webhook.test", schema.Subject{Kind: schema.SubjectNone},
		"", time.Now(), outbox.Data{Name: "Test", Text: "This is a test message of Lifthouse."})
	return s.attemptDelivery(ctx, account, hook, &m, time.Now)
}

// sendMessage sends a message. It returns the status of the response, or 0. Every status but 2xx is an error.
func (s *Sender) sendMessage(
	ctx context.Context, hook *catalogue.Webhook, m *outbox.Message,
) (status uint16, err error) {
	body, err := s.encodeBody(hook.Format, m)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "Lifthouse/"+s.Release)
	if hook.Format == catalogue.FormatStandard {
		// The headers of Standard Webhooks: the id of the message, the time of the attempt, and the signature
		// HMAC-SHA256 of "id.time.body".
		key, err := hook.ReadKey(s.Secrets)
		if err != nil {
			return 0, err
		}
		signer, err := standardwebhooks.NewWebhook(key)
		if err != nil {
			return 0, err
		}
		now := time.Now()
		signature, err := signer.Sign(m.ID, now, body)
		if err != nil {
			return 0, err
		}
		request.Header.Set(standardwebhooks.HeaderWebhookID, m.ID)
		request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
		request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	status = uint16(response.StatusCode) //nolint:gosec // three digits
	switch {
	case status >= 200 && status < 300:
		return status, nil
	case status >= 300 && status < 400:
		return status, errors.New("the receiver redirects, which is not followed; enter the final URL")
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxDetail))
	return status, fmt.Errorf("the receiver returned %s: %s", response.Status, text)
}

// encodeBody returns the body of a request. In Slack's markup, a message is a line with a link to the page, and the
// sentences.
func (s *Sender) encodeBody(format string, m *outbox.Message) ([]byte, error) {
	data := m.Data
	data.URL = s.PublicURL + catalogue.PagePath(&data.SubjectIDs)
	if data.ReadoutID != "" {
		data.ReadoutURL = s.PublicURL + "/readouts/" + data.ReadoutID
	}
	if format != catalogue.FormatSlack {
		return json.Marshal(struct {
			Type      string       `json:"type"`
			Timestamp time.Time    `json:"timestamp"` // when the message was recorded
			Data      *outbox.Data `json:"data"`
		}{m.Event, m.RecordedAt, &data})
	}
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	lines := []string{fmt.Sprintf("*%s: <%s|%s>*", cmp.Or(slackHeadings[m.Event], "Test"), escape(data.URL),
		strings.ReplaceAll(escape(data.Name), "\n", " ")), escape(data.Text)}
	if data.Sentence != "" {
		lines = append(lines, escape(data.Sentence))
	}
	var worth result.WorthItem
	if err := json.Unmarshal(data.Worth, &worth); err == nil {
		lines = append(lines, escape(worth.InWords()))
	}
	if data.ReadoutURL != "" {
		lines = append(lines, fmt.Sprintf("<%s|Readout>", escape(data.ReadoutURL)))
	}
	return json.Marshal(map[string]string{"text": strings.Join(lines, "\n")})
}

// slackHeadings are the first words of messages to Slack.
var slackHeadings = map[string]string{
	catalogue.EventCheckFailed: "Check failed", catalogue.EventCheckCleared: "Check passed again",
	catalogue.EventCampaignStarted: "Started", catalogue.EventCampaignStopped: "Stopped",
	catalogue.EventDecisionChanged: "Decision", catalogue.EventFollowUp: "Later orders",
}
