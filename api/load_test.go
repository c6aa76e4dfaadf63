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
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/schema/catalogue"
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
	check.That(t, response.status == http.StatusTooManyRequests && after >= 50 && after <= 100 && body["code"] == "rate_limited",
		"the second: %d, Retry-After %q, %s", response.status, response.Get("Retry-After"), text)
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
		check.That(t, response.status == http.StatusTooManyRequests && after >= 1 && after <= 12 && body["code"] == "rate_limited",
			"failure %d: %d, Retry-After %q, %s", n, response.status, response.Get("Retry-After"), text)
		s.wants(http.StatusOK, "GET", "/v1/campaigns", s.token)
		s.wants(http.StatusUnauthorized, "GET", "/v1/campaigns", "")
	}
	check.Equal(t, strings.Count(log.String(), "too many unknown tokens"), 1, "lines of %s", log.String())
}

func TestNoRateIsNoBound(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.TokenRate = 0 })
	for range 50 {
		if response, _, _ := s.do("HEAD", "/v1/campaigns", s.token); response.status != http.StatusOK {
			t.Fatal(response.status)
		}
	}
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
		check.That(t, p.status == http.StatusServiceUnavailable && p.Get("Retry-After") != "", "%s: %d, Retry-After %q", path, p.status, p.Get("Retry-After"))
	}
	s.wants(http.StatusOK, "GET", "/v1/campaigns", s.token)
	check.Equal(t, s.poll(bannerResults).text, good.text, "what is kept needs no turn")
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
	check.That(t, response.status == http.StatusServiceUnavailable && strings.Contains(text, `"code":"busy"`), "%d %s", response.status, text)
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
			if err != nil {
				t.Error(err)
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
	check.That(t, len(requests) == 2 && requests[0]["status"] == 499.0 && requests[1]["status"] == 499.0 && len(lines(t, log.String(), "request failed")) == 0,
		"the log says\n%s", log)
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
