package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/tier"
)

// soak returns the duration of the soak test: a minute in the long tier.
func soak() time.Duration {
	return time.Duration(tier.Of(1, 60)) * time.Second
}

// soakAge is the maximum age of cached results in the soak test.
const soakAge = 2 * time.Second

// soaking is the state that clients, writer and catalogue share.
type soaking struct {
	*server
	writes   string // a token that may
	client   *http.Client
	visitors atomic.Int64 // of campaign 12 after the last acknowledged write
	polls    atomic.Int64
	same     atomic.Int64 // answered with 304
}

func TestSoak(t *testing.T) {
	s := &soaking{
		server: newServer(t, func(o *api.Options) { o.ResultsAge, o.TokenRate, o.StoreWait = soakAge, 0, time.Minute }),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}},
	}
	s.writes = s.newToken(1, 0, catalogue.ScopeWrite)
	following, stop := context.WithCancel(t.Context())
	var background sync.WaitGroup
	background.Go(func() { s.catalogue.RefreshPeriodically(following, 400*time.Millisecond) })
	s.pollOnce(t, 0, new(string)) // what is made once is made
	s.rest()
	goroutines, heap := runtime.NumGoroutine(), heapInUse()

	ctx, end := context.WithTimeout(t.Context(), soak())
	defer end()
	var running sync.WaitGroup
	for i := range 50 {
		running.Go(func() {
			var tag string
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for n := i; ctx.Err() == nil; n++ {
				s.pollOnce(t, n, &tag)
				<-tick.C
			}
		})
	}
	running.Go(func() { s.keepWriting(ctx, t) })
	running.Go(func() { s.keepApplying(ctx, t) })
	running.Wait()

	s.rest()
	for until := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines+5 && time.Now().Before(until); {
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > goroutines+5 {
		t.Errorf("%d goroutines, were %d", now, goroutines)
	}
	now := heapInUse()
	check.That(t, now <= heap+api.DefaultOptions.ResultsMemory, "%d bytes of heap, were %d", now, heap)
	stop()
	background.Wait()
	t.Logf("%d polls, %d of them 304; %d visitors; computed %d, kept %d, shared %d; goroutines %d, were %d; heap %d KiB, was %d",
		s.polls.Load(), s.same.Load(), s.visitors.Load(), s.outcomes("miss"), s.outcomes("hit"), s.outcomes("shared"),
		runtime.NumGoroutine(), goroutines, heapInUse()>>10, heap>>10)
	stale := s.outcomes("stale")
	check.That(t, stale == 0, "%d stale answers of a store that is well", stale)
}

// rest closes idle connections.
func (s *soaking) rest() {
	s.client.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // what finalizers kept
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapInuse)
}

// pollOnce sends one of a few requests, and compares the response with the expected state at that time.
func (s *soaking) pollOnce(t *testing.T, n int, tag *string) {
	t.Helper()
	paths := []string{
		bannerResults, bannerResults + "?dimension=device",
		bannerResults + "?compareMetric=valuePerVisitor", bannerResults + "?interval=day",
	}
	path := paths[n/8%len(paths)] // a few times the same, as a dashboard does
	request := s.Get(path)
	plain := path == bannerResults
	if plain && *tag != "" {
		request.Header("If-None-Match", *tag)
	}
	if n%97 == 0 {
		request.Header("Cache-Control", "no-cache")
	}
	asked, visitors := time.Now(), s.visitors.Load()
	response, err := s.client.Do(request.Build())
	if !check.OK(t, err) {
		return
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	s.polls.Add(1)
	if response.StatusCode == http.StatusNotModified && plain {
		s.same.Add(1)
		return
	}
	var p shownReport
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(body, &p) != nil {
		t.Errorf("%s: %s, %v, %.300s", path, response.Status, err, body)
		return
	}
	if plain {
		*tag = response.Header.Get("ETag")
	}
	age := asked.Sub(p.GeneratedAt)
	check.That(t, !p.Stale, "stale %v, %v old when it was asked for", p.Stale, age)
	check.That(t, age <= soakAge+time.Second/2, "stale %v, %v old when it was asked for", p.Stale, age)
	check.That(t, int64(p.Totals.Visitors) >= visitors, "%d visitors, and %d were stored when it was asked for",
		p.Totals.Visitors, visitors)
}

// keepWriting writes events, day by day.
func (s *soaking) keepWriting(ctx context.Context, t *testing.T) {
	t.Helper()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for batch := range 1_000_000 {
		simulated := population.SimpleCampaign{
			WebsiteID: 1, CampaignID: 12, GoalID: 3, Visitors: 20, Start: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
			Days: 14, Seed: uint64(batch),
			Variations: []population.SimpleVariation{
				{ID: 0, Share: 50, ConversionRate: 0.1, MeanValue: 50},
				{ID: 1, Share: 50, ConversionRate: 0.1, MeanValue: 50},
			},
		}
		var events []schema.Event
		seen := map[uint64]bool{}
		for e := range simulated.GenerateEvents() {
			e.VisitorID = schema.HashID(fmt.Sprint(batch, " ", e.VisitorID))
			e.EventID = schema.HashID(fmt.Sprint(batch, " ", e.EventID))
			seen[e.VisitorID], events = true, append(events, e)
		}
		if !check.OK(t, s.writer.WriteEvents(t.Context(), events)) {
			return
		}
		s.visitors.Add(int64(len(seen)))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keepApplying starts, stops and changes campaigns, and creates and revokes tokens.
func (s *soaking) keepApplying(ctx context.Context, t *testing.T) {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := range 1_000_000 {
		file, err := catalogue.ReadYAML(strings.NewReader(strings.Replace(twoAccounts, "name: Basket",
			"name: Basket "+strconv.Itoa(n)+", active: "+strconv.FormatBool(n%2 == 0), 1)))
		if !check.OK(t, err) {
			return
		}
		if _, err := s.catalogue.ApplyFile(t.Context(), file, false); err != nil {
			t.Error(err)
			return
		}
		for _, action := range []string{"stop", "start"} {
			s.Post("/v1/campaigns/12/"+action, "").Token(s.writes).Send().CheckStatus(http.StatusOK)
		}
		_, token, err := s.catalogue.CreateToken(t.Context(),
			catalogue.Token{AccountID: 1, Scopes: []catalogue.Scope{catalogue.ScopeRead}})
		if err == nil {
			_, err = s.catalogue.RevokeToken(t.Context(), 1, token.ID)
		}
		if !check.OK(t, err) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
