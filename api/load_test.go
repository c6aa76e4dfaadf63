package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

func TestEachTokenHasItsRate(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.TokenRate = 0.01 })
	other := s.newToken(1, 0, catalogue.ScopeRead)
	for range 2 {
		s.wants(http.StatusUnauthorized, "GET", "/v1/campaigns", "lh_unknown")
	}
	s.wants(http.StatusOK, "GET", "/v1/campaigns", s.token)
	response, body, text := s.do("GET", "/v1/campaigns", s.token)
	after, _ := strconv.Atoi(response.Get("Retry-After"))
	check.Equal(t, response.status, http.StatusTooManyRequests, "the second: %d, Retry-After %q, %s", response.status,
		response.Get("Retry-After"), text)
	check.That(t, after >= 50, "the second: %d, Retry-After %q, %s", response.status, response.Get("Retry-After"), text)
	check.That(t, after <= 100, "the second: %d, Retry-After %q, %s", response.status, response.Get("Retry-After"),
		text)
	check.That(t, body["code"] == "rate_limited", "the second: %d, Retry-After %q, %s", response.status,
		response.Get("Retry-After"), text)
	s.wants(http.StatusOK, "GET", "/v1/campaigns", other)
	check.Equal(t, s.counted("lifthouse_rate_limited_total"), 1)
}

// TestAnAddressMayNotTryTokensForEver checks that unknown tokens get 429 after many failures from an address, and that
// valid tokens never do.
func TestAnAddressMayNotTryTokensForEver(t *testing.T) {
	var log bytes.Buffer // what is logged comes before its answer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	defer slog.SetDefault(before)
	const most = 5
	s := newServer(t, func(o *api.Options) { o.AuthFailures = most })
	for n := range 3 * most {
		response, body, text := s.do("GET", "/v1/campaigns", fmt.Sprint("lh_unknown", n))
		if n < most {
			check.Equal(t, response.status, http.StatusUnauthorized, "failure %d: %s", n, text)
			continue
		}
		after, _ := strconv.Atoi(response.Get("Retry-After"))
		check.Equal(t, response.status, http.StatusTooManyRequests, "failure %d: %d, Retry-After %q, %s", n,
			response.status, response.Get("Retry-After"), text)
		check.That(t, after >= 1, "failure %d: %d, Retry-After %q, %s", n, response.status, response.Get("Retry-After"),
			text)
		check.That(t, after <= 12, "failure %d: %d, Retry-After %q, %s", n, response.status,
			response.Get("Retry-After"), text)
		check.That(t, body["code"] == "rate_limited", "failure %d: %d, Retry-After %q, %s", n, response.status,
			response.Get("Retry-After"), text)
		s.wants(http.StatusOK, "GET", "/v1/campaigns", s.token)
		s.wants(http.StatusUnauthorized, "GET", "/v1/campaigns", "")
	}
	check.Equal(t, strings.Count(log.String(), "too many unknown tokens"), 1, "lines of %s", log.String())
}

func TestABusyStoreTurnsRequestsAway(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.StoreSlots, o.StoreQueue, o.StoreWait = 1, 1, time.Minute })
	good := s.poll(bannerResults)
	release := must.Get(s.api.Occupy(t.Context()))(t)
	queued := make(chan polled)
	go func() { queued <- s.poll("/v1/campaigns/13/results") }()
	for s.api.Waiting() < 1 {
		runtime.Gosched()
	}
	for _, path := range []string{"/v1/campaigns/14/results", bannerResults + "?dimension=device"} {
		p, _ := s.send("GET", path, http.NoBody, s.withToken()...)
		check.Equal(t, p.status, http.StatusServiceUnavailable, "%s: %d, Retry-After %q", path, p.status,
			p.Get("Retry-After"))
		check.That(t, p.Get("Retry-After") != "", "%s: %d, Retry-After %q", path, p.status, p.Get("Retry-After"))
	}
	s.wants(http.StatusOK, "GET", "/v1/campaigns", s.token)
	check.Equal(t, s.poll(bannerResults).withoutClock(), good.withoutClock(), "what is kept needs no turn")
	if p := s.poll(bannerResults, "Cache-Control", "no-cache"); !p.Stale || p.Get("Warning") == "" {
		t.Errorf("the last good answer is better than none: %d %v", p.status, p.Header)
	}
	check.Equal(t, s.counted("lifthouse_shed_total"), 3, "requests turned away")
	writes := s.newToken(1, 0, catalogue.ScopeWrite)
	for _, path := range []string{"/v1/campaigns/12/stop", "/v1/campaigns/12/start"} {
		p, text := s.send("POST", path, http.NoBody, "Authorization", "Bearer "+writes)
		check.That(t, p.status == http.StatusOK, "%s behind reports: %d %s", path, p.status, text)
	}
	release()
	check.Equal(t, (<-queued).status, http.StatusOK, "who waited")
}

func TestWaitingForTheStoreEnds(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.StoreSlots, o.StoreQueue, o.StoreWait = 1, 1, time.Millisecond })
	release := must.Get(s.api.Occupy(t.Context()))(t)
	defer release()
	response, text := s.send(http.MethodGet, bannerResults, http.NoBody, s.withToken()...)
	check.Equal(t, response.status, http.StatusServiceUnavailable, "%d %s", response.status, text)
	check.Contains(t, text, `"code":"busy"`, "%d %s", response.status, text)
}

func TestAClientThatLeftIsInTheLogOnly(t *testing.T) {
	log := logged(t)
	s := newServer(t, func(o *api.Options) { o.StoreSlots, o.StoreQueue, o.StoreWait = 1, 8, time.Minute })
	if _, err := s.facts.AwaitNoted(t.Context()); err != nil { // both requests would wait for one fold
		t.Fatal(err)
	}
	release := must.Get(s.api.Occupy(t.Context()))(t)
	ctx, leave := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for _, path := range []string{"/v1/campaigns/14/results", bannerResults} {
		clients.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, http.NoBody)
			if !check.OK(t, err) {
				return
			}
			request.Header.Set("Authorization", "Bearer "+s.token)
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				_ = response.Body.Close()
				t.Errorf("it was answered: %s", response.Status)
			}
		})
	}
	for s.api.Waiting() < 2 {
		runtime.Gosched()
	}
	leave()
	clients.Wait()
	for s.api.Waiting() > 0 {
		runtime.Gosched()
	}
	release()
	s.Close() // the log is written
	requests := lines(t, log.String(), "request")
	must.Equal(t, len(requests), 2, "the log says\n%s", log)
	check.That(t, requests[0]["status"] == 499.0, "the log says\n%s", log)
	check.That(t, requests[1]["status"] == 499.0, "the log says\n%s", log)
	check.Equal(t, len(lines(t, log.String(), "request failed")), 0, "the log says\n%s", log)
}

// TestConcurrentChangesAreTaken starts and stops campaigns by 50 clients. None of them may have to wait for a slot.
func TestConcurrentChangesAreTaken(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.StoreQueue, o.TokenRate = 0, 0 })
	writes := s.newToken(1, 0, catalogue.ScopeWrite)
	var clients sync.WaitGroup
	for client := range 50 {
		clients.Go(func() {
			for _, verb := range []string{"start", "stop"} {
				path := fmt.Sprintf("/v1/campaigns/%d/%s", 12+client%3, verb)
				p, text := s.send("POST", path, http.NoBody, "Authorization", "Bearer "+writes)
				check.That(t, p.status == http.StatusOK, "%s: %d %s", path, p.status, text)
			}
		})
	}
	clients.Wait()
}

// TestNoRequestOutlivesItsTime checks that every operation that needs the store is answered within
// --query-timeout with 503 or 504 and Retry-After if the store hangs, also with
// many requests.
func TestNoRequestOutlivesItsTime(t *testing.T) {
	const timeout = 300 * time.Millisecond
	const late = 20 * time.Second // without its time, a request waits a minute for a slot, or for ever
	ended, end := context.WithCancel(context.Background())
	var stuck atomic.Bool // the store does not answer
	store := schematest.HookedConn{Conn: schematest.OpenMigrated(t), Before: func(ctx context.Context, _ string) error {
		if !stuck.Load() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended.Done():
			return ended.Err()
		}
	}}
	s := newServerOn(t, store,
		func(o *api.Options) { o.Timeout, o.ResultsAge, o.StoreSlots, o.StoreWait = timeout, 0, 4, time.Minute })
	t.Cleanup(end)
	s.apply(twoAccounts)
	reads, writes, ingests := s.newToken(1, 0, catalogue.ScopeRead), s.newToken(1, 0,
		catalogue.ScopeWrite), s.newToken(1, 1, catalogue.ScopeIngest)
	stuck.Store(true)
	const event = `{"eventId":"e1","time":"2026-05-01T12:00:00Z","websiteId":1,"visitor":"v","event":"view","campaignId":12,"variationId":1}`
	var group errgroup.Group
	for _, request := range []struct{ method, path, token, body, header string }{
		{"GET", bannerResults, reads, "", ""},
		{"GET", bannerResults, reads, "", "Cache-Control: no-cache"},
		{"GET", bannerResults + "?filters%5BzScore%5D=2&interval=day", reads, "", "Cache-Control: no-cache"},
		{"GET", bannerResults, reads, "", "Accept: text/csv"},
		{"GET", "/v1/campaigns/12/dimensions/device", reads, "", ""},
		{"POST", "/v1/campaigns/12/stop", writes, "", ""},
		{"POST", "/v1/campaigns/12/start", writes, "", ""},
		{"POST", "/events", ingests, event, ""},
		{"POST", "/events", ingests, event, "Idempotency-Key: k"},
	} {
		for range 6 {
			group.Go(func() error {
				name, value, _ := strings.Cut(request.header, ": ")
				headers := []string{"Authorization", "Bearer " + request.token}
				if name != "" {
					headers = append(headers, name, value)
				}
				began := time.Now()
				response, text := s.send(request.method, request.path, strings.NewReader(request.body), headers...)
				took := time.Since(began)
				check.That(t, (response.status == http.StatusServiceUnavailable || response.status == http.StatusGatewayTimeout), "%s %s (%s): %d after %v, Retry-After %q: %.300s", request.method, request.path, request.header, response.status, took, response.Get("Retry-After"), text)
				check.That(t, response.Get("Retry-After") != "", "%s %s (%s): %d after %v, Retry-After %q: %.300s", request.method, request.path, request.header, response.status, took, response.Get("Retry-After"), text)
				check.That(t, took <= late, "%s %s (%s): %d after %v, Retry-After %q: %.300s", request.method, request.path, request.header, response.status, took, response.Get("Retry-After"), text)
				return nil
			})
		}
	}
	for _, path := range []string{"/v1/campaigns", "/v1/campaigns/12"} { // are kept in memory
		s.wants(http.StatusOK, "GET", path, reads)
	}
	_ = group.Wait()
	stuck.Store(false)
	eventually(t, "a store that answers again", func() bool {
		response, _, _ := s.do("GET", bannerResults, reads)
		return response.status == http.StatusOK
	})
}
