package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/remote"
	"lifthouse/engine/watch"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/outbox"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// receiver is a server that receives webhooks.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	received []request
	answer   func(http.ResponseWriter, *http.Request) // nil: 204
}

// request is a received message.
type request struct {
	id       string
	body     string
	accepted bool
}

const testKey = "lifthouse-tests-0123456789"

// newReceiver serves a receiver that verifies signatures by the text of Standard Webhooks, not by a library.
func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		id, at := req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp")
		if id != "" {
			sum := hmac.New(sha256.New, []byte(testKey))
			_, _ = fmt.Fprintf(sum, "%s.%s.%s", id, at, body)
			check.Equal(t, req.Header.Get("webhook-signature"), "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)),
				"signature")
		}
		r.mu.Lock()
		answer := r.answer
		r.received = append(r.received, request{id, string(body), answer == nil})
		r.mu.Unlock()
		if answer != nil {
			answer(w, req)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(r.Close)
	return r
}

// take returns what was received since the last call.
func (r *receiver) take() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.received
	r.received = nil
	return all
}

// responds sets the response to the next messages.
func (r *receiver) responds(answer func(http.ResponseWriter, *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// hooked is a store with webhooks.
type hooked struct {
	*house
	sender *watch.Sender
	counts map[outbox.Outcome]int
}

// newHooked declares a campaign and webhooks, as lines of a catalogue file. SECRET is the path of the key.
func newHooked(t *testing.T, allowPrivate bool, hooks ...string) *hooked {
	t.Helper()
	h := &hooked{house: newHouse(t), counts: map[outbox.Outcome]int{}}
	secret := must.WriteFile(t, "key", "whsec_"+base64.StdEncoding.EncodeToString([]byte(testKey))+"\n")
	text := "accounts:\n- id: 1\n  name: Shop\n  websites: [{id: 1, domain: shop.example.com, campaigns: [{id: 12, name: Banner}]}]\n  webhooks:\n  - " + strings.Join(hooks, "\n  - ") + "\n"
	h.input = filepath.Join(filepath.Dir(secret), "catalog.yaml")
	must.OK(t, os.WriteFile(h.input, []byte(strings.ReplaceAll(text, "SECRET", secret)), 0o600))
	h.must("apply", "-f", h.input)
	h.sender = watch.NewSender(h.store.Outbox, h.store.Catalogue, watch.SenderOptions{
		PublicURL: "https://lifthouse.example.com", Release: "v1", AllowPrivate: allowPrivate, Secrets: h.store.Secrets,
		Count: func(o outbox.Outcome) { h.counts[o]++ },
	})
	return h
}

// write stores a message and returns its id.
func (h *hooked) write(event, name string) string {
	h.t.Helper()
	m := outbox.NewMessage(outbox.MessageID(outbox.NewIdentity(1, event+name)), 1, event,
		schema.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: 12}, "", time.Now(),
		outbox.Data{Name: name, Text: "Ship <it> & go.", ReadoutID: map[string]string{catalogue.EventDecisionChanged: "7f3a"}[event]})
	must.Get(h.store.Outbox.WriteMessages(h.t.Context(), []outbox.Message{m}))(h.t)
	return m.ID
}

// deliver delivers what is due at a time, and returns when the next message is.
func (h *hooked) deliver(now time.Time) time.Time {
	h.t.Helper()
	return must.Get(h.sender.DeliverDue(h.t.Context(), now))(h.t)
}

func TestWebhooksReceiveTheirEventsInOrder(t *testing.T) {
	r, slack := newReceiver(t), newReceiver(t)
	h := newHooked(t, true, "{id: 1, url: "+r.URL+"/in, secretFile: SECRET}",
		"{id: 2, url: "+slack.URL+", format: slack, events: [decision.changed]}")
	h.write(catalogue.EventCampaignStarted, "First")
	second := h.write(catalogue.EventDecisionChanged, "Second | *bold*")
	if next := h.deliver(time.Now()); !next.IsZero() {
		t.Errorf("another message is due at %s", next)
	}
	got := r.take()
	var body struct {
		Type      string
		Timestamp time.Time
		Data      outbox.Data
	}
	must.Equal(t, len(got), 2, "%+v", got)
	must.That(t, strings.Contains(got[0].body, "First"), "%+v", got)
	must.Equal(t, got[1].id, second, "%+v", got)
	if err := json.Unmarshal([]byte(got[1].body), &body); err != nil || body.Type != "decision.changed" ||
		body.Data.CampaignID != 12 || body.Data.URL != "https://lifthouse.example.com/?campaign=12" ||
		body.Data.ReadoutURL != "https://lifthouse.example.com/readouts/7f3a" {
		t.Errorf("%s: %+v, %v", got[1].body, body, err)
	}
	want := `{"text":"*Decision: \u003chttps://lifthouse.example.com/?campaign=12|Second | *bold*\u003e*\nShip \u0026lt;it\u0026gt; \u0026amp; go.\n\u003chttps://lifthouse.example.com/readouts/7f3a|Readout\u003e"}`
	if got := slack.take(); len(got) != 1 || got[0].body != want || got[0].id != "" {
		t.Errorf("Slack got %+v, want %s", got, want)
	}
	h.deliver(time.Now().Add(time.Hour))
	if got := append(r.take(), slack.take()...); len(got) > 0 {
		t.Errorf("again: %+v", got)
	}
	out := h.must("webhook", "list")
	check.Contains(t, out, "slack", "list:\n%s", out)
	check.That(t, !strings.Contains(out, "/in"), "list:\n%s", out)
	check.Contains(t, h.must("webhook", "resend", second, "--webhook", "1"), "1 of 2 webhooks")
	h.deliver(time.Now().Add(time.Minute))
	if got := r.take(); len(got) != 1 || got[0].id != second {
		t.Errorf("resent: %+v", got)
	}
	started := h.write(catalogue.EventCampaignStarted, "Third") // Slack does not take it, but it may be sent on request
	h.must("webhook", "resend", started, "--webhook", "2")
	slack.responds(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	next := h.deliver(time.Now().Add(time.Minute))
	slack.responds(nil)
	h.deliver(next.Add(time.Second))
	if got := slack.take(); len(got) != 2 || !strings.Contains(got[1].body, "Third") {
		t.Errorf("resent and refused once: %+v", got)
	}
	check.Equal(t, strings.Count(h.must("webhook", "deliveries"), "delivered"), 5, "deliveries")
	code, _, complaints := h.run("webhook", "resend", "msg_0")
	check.Equal(t, code, exitFailed, "exit %d, %s", code, complaints)
	check.Contains(t, complaints, `no message "msg_0"`, "exit %d, %s", code, complaints)
}

// TestWebhooksAreTriedForADay refuses a message for an hour, another one for more than a day, and accepts the next.
func TestWebhooksAreTriedForADay(t *testing.T) {
	r := newReceiver(t)
	h := newHooked(t, true, "{id: 1, url: "+r.URL+", secretFile: SECRET}")
	first, second := h.write(catalogue.EventDecisionChanged, "First"), h.write(catalogue.EventDecisionChanged, "Second")
	r.responds(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) })
	start := time.Now()
	now, attempts := start, 0
	for now.Before(start.Add(time.Hour)) {
		next := h.deliver(now)
		pause := next.Sub(now)
		must.That(t, pause >= 5*time.Second, "pause %s after %d attempts", pause, attempts)
		must.That(t, pause <= time.Hour+time.Minute, "pause %s after %d attempts", pause, attempts)
		now, attempts = next.Add(time.Millisecond), attempts+1
	}
	got := r.take()
	must.Equal(t, len(got), attempts, "%d requests in an hour", len(got))
	check.Equal(t, got[attempts-1].id, first, "%d requests in an hour", len(got))
	check.That(t, attempts >= 8, "%d requests in an hour", len(got))
	check.That(t, attempts <= 12, "%d requests in an hour", len(got))
	r.responds(nil)
	h.deliver(now)
	got = r.take()
	must.Equal(t, len(got), 2, "after the hour: %+v", got)
	check.Equal(t, got[0].id, first, "after the hour: %+v", got)
	check.Equal(t, got[1].id, second, "after the hour: %+v", got)
	third := h.write(catalogue.EventDecisionChanged, "Third")
	r.responds(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) })
	for now = time.Now(); ; {
		next := h.deliver(now)
		if next.IsZero() {
			break
		}
		now = next.Add(time.Millisecond)
	}
	spent := now.Sub(start)
	check.That(t, spent >= 24*time.Hour, "given up after %s", spent)
	check.That(t, spent <= 26*time.Hour, "given up after %s", spent)
	check.Equal(t, h.counts[outbox.Failed], 1, "%v", h.counts)
	check.Equal(t, h.counts[outbox.Delivered], 2, "%v", h.counts)
	fourth := h.write(catalogue.EventDecisionChanged, "Fourth")
	r.responds(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	r.take()
	h.deliver(now)
	got = r.take()
	must.Equal(t, len(got), 1, "410: %+v, %v", got, h.counts)
	check.Equal(t, got[0].id, fourth, "410: %+v, %v", got, h.counts)
	check.Equal(t, h.counts[outbox.Failed], 2, "410: %+v, %v", got, h.counts)
	out := h.must("webhook", "deliveries")
	check.Contains(t, out, third, "deliveries:\n%s", out)
	check.Equal(t, strings.Count(out, "failed"), 2, "deliveries:\n%s", out)
	check.Contains(t, out, "no", "deliveries:\n%s", out)
}

// TestMessagesOutliveADayWithoutAServer sends a message for the first time when it is older than a day.
func TestMessagesOutliveADayWithoutAServer(t *testing.T) {
	r := newReceiver(t)
	h := newHooked(t, true, "{id: 1, url: "+r.URL+", secretFile: SECRET}")
	h.write(catalogue.EventDecisionChanged, "First")
	r.responds(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) })
	next := h.deliver(time.Now().Add(30 * time.Hour))
	next = h.deliver(next.Add(time.Millisecond))
	r.responds(nil)
	h.deliver(next.Add(time.Millisecond))
	check.Equal(t, h.counts[outbox.Failed], 0, "%v, want one delivery", h.counts)
	check.Equal(t, h.counts[outbox.Delivered], 1, "%v, want one delivery", h.counts)
}

// TestHostileReceiversCostNothing lets receivers hang, redirect, and send without end.
func TestHostileReceiversCostNothing(t *testing.T) {
	hung := make(chan struct{})
	var hooks, details []string
	for _, test := range []struct {
		answer func(http.ResponseWriter, *http.Request)
		detail string
	}{
		{func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "http://169.254.169.254/", http.StatusFound)
		}, "redirects"},
		{func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "500"},
		{func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 1<<20))
		}, "header"},
		{func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		r := newReceiver(t)
		r.responds(test.answer)
		hooks, details = append(hooks,
			fmt.Sprintf("{id: %d, url: %s, secretFile: SECRET}", len(hooks)+1, r.URL)), append(details, test.detail)
	}
	h := newHooked(t, true, hooks...)
	h.write(catalogue.EventDecisionChanged, "First")
	h.deliver(time.Now())
	out := h.must("webhook", "deliveries")
	check.Equal(t, strings.Count(out, "retrying"), len(hooks), "%s", out)
	for _, detail := range details {
		check.Contains(t, out, detail)
	}
	t.Run("one that hangs does not delay another", func(t *testing.T) {
		slow, fast := newReceiver(t), newReceiver(t)
		slow.responds(func(_ http.ResponseWriter, req *http.Request) {
			select {
			case <-hung:
			case <-req.Context().Done():
			}
		})
		h := newHooked(t, true, "{id: 1, url: "+slow.URL+", secretFile: SECRET}",
			"{id: 2, url: "+fast.URL+", secretFile: SECRET}")
		h.write(catalogue.EventDecisionChanged, "First")
		ctx, cancel := context.WithCancel(t.Context())
		fast.responds(func(http.ResponseWriter, *http.Request) { cancel() }) // the other one still hangs
		_, err := h.sender.DeliverDue(ctx, time.Now())
		check.That(t, err != nil, "not cancelled")
		check.Equal(t, len(fast.take()), 1, "messages to the other webhook")
		close(hung)
	})
}

// TestWebhooksToPrivateAddressesAreRefused tries addresses that only this machine or its network can reach, also behind
// names. The address is checked when the connection is made, so it does not matter what a name was before.
func TestWebhooksToPrivateAddressesAreRefused(t *testing.T) {
	r := newReceiver(t)
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	must.OK(t, err)
	server := newNameServer(t)
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server)
	}}
	t.Cleanup(func() { net.DefaultResolver = before })
	hosts := []string{
		"127.0.0.1", "127.1.2.3", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
		"192.0.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255",
		"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[fe80::1]", "[fd00::1]", "[64:ff9b::7f00:1]",
		"[2002:7f00:1::]", "[2001:db8::1]",
		"localhost", "private.example.com", "rebinding.example.com",
	}
	for some := range slices.Chunk(hosts, len(hosts)/2) {
		var hooks []string
		for i, host := range some {
			hooks = append(hooks, fmt.Sprintf(`{id: %d, url: "http://%s:%s/", secretFile: SECRET}`, i+1, host, port))
		}
		h := newHooked(t, false, hooks...)
		for i, hook := range hooks {
			code, _, complaints := h.run("webhook", "test", strconv.Itoa(i+1))
			check.Equal(t, code, exitFailed, "%s: exit %d: %s", hook, code, complaints)
			check.Contains(t, complaints, "private or reserved", "%s: exit %d: %s", hook, code, complaints)
		}
	}
	got := r.take()
	check.That(t, len(got) == 0, "received %+v", got)
	h := newHooked(t, false, "{id: 1, url: "+r.URL+", secretFile: SECRET}")
	if out := h.must("webhook", "test", "1", "--webhook-private-addresses"); !strings.Contains(out,
		"accepted the message with status 204") || len(r.take()) != 1 {
		t.Error(out)
	}
	out, complaints := capture(t), capture(t)
	command := remote.Command{Dir: ".", Args: []string{"webhook", "test", "1"}, Out: out.write, Err: complaints.write}
	code := runForwarded(t.Context(), command, h.store,
		app.ServerOptions{PrivateWebhooks: true}) // as the server delivers
	if said := complaints.text(); code != exitOK || len(r.take()) != 1 {
		t.Errorf("exit %d: %s%s", code, out.text(), said)
	}
}

// newNameServer answers that private.example.com is 10.0.0.1, and that rebinding.example.com is another private address
// after each query. It returns its address.
func newNameServer(t *testing.T) string {
	t.Helper()
	var listen net.ListenConfig
	conn := must.Get(listen.ListenPacket(t.Context(), "udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer, asked := make([]byte, 1500), 0
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response = true
			if q.Type == dnsmessage.TypeA {
				ip := [4]byte{10, 0, 0, 1}
				if strings.HasPrefix(q.Name.String(), "rebinding") {
					ip = [4]byte{127, 0, 0, byte(asked%2 + 1)}
					asked++
				}
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{
					Name: q.Name, Type: q.Type,
					Class: q.Class,
				}, Body: &dnsmessage.AResource{A: ip}}}
			}
			m.Additionals = nil
			if reply, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}

// TestOneProcessMayDeliver lets processes take the lease at once. At most one may deliver at a time, and soon it is the
// one with the least name. When that one ends, the next one may.
func TestOneProcessMayDeliver(t *testing.T) {
	h := newHouse(t)
	takeAll := func(names ...string) (held []string) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, name := range names {
			all.Go(func() {
				is, err := h.store.Outbox.TakeLease(t.Context(), name)
				check.OK(t, err)
				if mu.Lock(); is {
					held = append(held, name)
				}
				mu.Unlock()
			})
		}
		all.Wait()
		must.That(t, len(held) <= 1, "held by %q at the same time", held)
		return held
	}
	takeUntil := func(want string, names ...string) {
		t.Helper()
		for range 5 {
			if slices.Equal(takeAll(names...), []string{want}) {
				return
			}
		}
		t.Fatalf("%s did not get the lease", want)
	}
	takeUntil("c", "c")
	takeUntil("a", "d", "c", "b", "a")
	held := takeAll("b", "c", "d")
	must.That(t, held == nil, "%q took the lease of another", held)
	must.OK(t,
		h.store.Conn.Exec(t.Context(),
			"INSERT INTO leases SELECT 'a', now64(3), now64(3)")) // as if its time had passed
	takeUntil("b", "b", "c", "d")
}
