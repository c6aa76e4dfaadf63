package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
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
		s.Get("/v1/campaigns").Token("lh_unknown").Send().CheckStatus(http.StatusUnauthorized)
	}
	s.Get("/v1/campaigns").Send().CheckStatus(http.StatusOK)
	response := s.Get("/v1/campaigns").Send()
	after, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	check.Equal(t, response.Status, http.StatusTooManyRequests, "the second: %v", response)
	check.That(t, after >= 50, "the second: %v", response)
	check.That(t, after <= 100, "the second: %v", response)
	check.Equal(t, response.Code(), "rate_limited", "the second: %v", response)
	s.Get("/v1/campaigns").Token(other).Send().CheckStatus(http.StatusOK)
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
		response := s.Get("/v1/campaigns").Token(fmt.Sprint("lh_unknown", n)).Send()
		if n < most {
			check.Equal(t, response.Status, http.StatusUnauthorized, "failure %d: %s", n, response.Text)
			continue
		}
		after, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		check.Equal(t, response.Status, http.StatusTooManyRequests, "failure %d: %v", n, response)
		check.That(t, after >= 1, "failure %d: %v", n, response)
		check.That(t, after <= 12, "failure %d: %v", n, response)
		check.Equal(t, response.Code(), "rate_limited", "failure %d: %v", n, response)
		s.Get("/v1/campaigns").Send().CheckStatus(http.StatusOK)
		s.Get("/v1/campaigns").Token("").Send().CheckStatus(http.StatusUnauthorized)
	}
	check.Equal(t, strings.Count(log.String(), "too many unknown tokens"), 1, "lines of %s", log.String())
}

func TestABusyStoreTurnsRequestsAway(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.StoreSlots, o.StoreQueue, o.StoreWait = 1, 1, time.Minute })
	good := s.Get(bannerResults).PollReport()
	release := must.Get(s.api.Occupy(t.Context()))(t)
	queued := make(chan polled)
	go func() { queued <- s.Get("/v1/campaigns/13/results").PollReport() }()
	for s.api.Waiting() < 1 {
		runtime.Gosched()
	}
	for _, path := range []string{"/v1/campaigns/14/results", bannerResults + "?dimension=device"} {
		p := s.Get(path).Send()
		check.Equal(t, p.Status, http.StatusServiceUnavailable, "%v", p)
		check.That(t, p.Header.Get("Retry-After") != "", "%v", p)
	}
	s.Get("/v1/campaigns").Send().CheckStatus(http.StatusOK)
	check.Equal(t, s.Get(bannerResults).PollReport().withoutClock(), good.withoutClock(), "what is kept needs no turn")
	last := s.Get(bannerResults).Header("Cache-Control", "no-cache").PollReport()
	check.That(t, last.Stale, "the last good answer is better than none: %v", last)
	check.That(t, last.Header.Get("Warning") != "", "the last good answer is better than none: %v", last)
	check.Equal(t, s.counted("lifthouse_shed_total"), 3, "requests turned away")
	writes := s.newToken(1, 0, catalogue.ScopeWrite)
	for _, path := range []string{"/v1/campaigns/12/stop", "/v1/campaigns/12/start"} {
		p := s.Post(path, "").Token(writes).Send()
		check.Equal(t, p.Status, http.StatusOK, "behind reports: %v", p)
	}
	release()
	check.Equal(t, (<-queued).Status, http.StatusOK, "who waited")
}

func TestWaitingForTheStoreEnds(t *testing.T) {
	s := newServer(t, func(o *api.Options) { o.StoreSlots, o.StoreQueue, o.StoreWait = 1, 1, time.Millisecond })
	release := must.Get(s.api.Occupy(t.Context()))(t)
	defer release()
	response := s.Get(bannerResults).Send().CheckStatus(http.StatusServiceUnavailable)
	check.Equal(t, response.Code(), "busy")
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
			response, err := http.DefaultClient.Do(s.Get(path).Build().WithContext(ctx))
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
				s.Post(path, "").Token(writes).Send().CheckStatus(http.StatusOK)
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
	outOfTime := []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	noCache := func(b *requestBuilder) *requestBuilder { return b.Header("Cache-Control", "no-cache") }
	for _, request := range []*requestBuilder{
		s.Get(bannerResults).Token(reads),
		noCache(s.Get(bannerResults).Token(reads)),
		noCache(s.Get(bannerResults + "?filters%5BzScore%5D=2&interval=day").Token(reads)),
		s.Get(bannerResults).Token(reads).Header("Accept", "text/csv"),
		s.Get("/v1/campaigns/12/dimensions/device").Token(reads),
		s.Post("/v1/campaigns/12/stop", "").Token(writes),
		s.Post("/v1/campaigns/12/start", "").Token(writes),
		s.Post("/events", event).Token(ingests),
		s.Post("/events", event).Token(ingests).Header("Idempotency-Key", "k"),
	} {
		for range 6 {
			group.Go(func() error {
				began := time.Now()
				response := request.Send()
				took := time.Since(began)
				check.That(t, slices.Contains(outOfTime, response.Status), "%v", response)
				check.That(t, response.Header.Get("Retry-After") != "", "%v", response)
				check.That(t, took <= late, "after %v: %v", took, response)
				return nil
			})
		}
	}
	for _, path := range []string{"/v1/campaigns", "/v1/campaigns/12"} { // are kept in memory
		s.Get(path).Token(reads).Send().CheckStatus(http.StatusOK)
	}
	_ = group.Wait()
	stuck.Store(false)
	eventually(t, "a store that answers again", func() bool {
		return s.Get(bannerResults).Token(reads).Send().Status == http.StatusOK
	})
}
