package api_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lifthouse/api"
	"lifthouse/loadgen/population"
	"lifthouse/schema/schematest/check"
	"lifthouse/schema/schematest/must"
)

// listening returns a server with default options and a client with persistent connections. Logs are discarded.
func listening(b *testing.B) (*server, func(path string, headers ...string) int) {
	b.Helper()
	s := newServer(b, func(o *api.Options) { o.TokenRate = 0 })
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	b.Cleanup(client.CloseIdleConnections)
	return s, func(path string, headers ...string) int {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL+path, http.NoBody)
		if !check.OK(b, err) {
			return 0
		}
		request.Header.Set("Authorization", "Bearer "+s.token)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := client.Do(request)
		if !check.OK(b, err) {
			return 0
		}
		defer func() { _ = response.Body.Close() }()
		must.Get(io.Copy(io.Discard, response.Body))(b)
		return response.StatusCode
	}
}

func (s *server) plantOne(b *testing.B) {
	b.Helper()
	simulated := population.SimpleCampaign{
		WebsiteID: 1, CampaignID: 12, GoalID: 3, Visitors: 20_000, Start: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Days: 14, Seed: 1,
		Variations: []population.SimpleVariation{{ID: 0, Share: 50, ConversionRate: 0.06, MeanValue: 50}, {ID: 1, Share: 50, ConversionRate: 0.066, MeanValue: 50}},
	}
	must.OK(b, s.writer.WriteEvents(b.Context(), slices.Collect(simulated.GenerateEvents())))
}

// BenchmarkCachedResultsOpenLoop sends 200 requests per second without waiting for responses, and reports the latency
// from the scheduled time. Run it with
// -benchtime 4000x. The requirement is p99 below 5 ms.
func BenchmarkCachedResultsOpenLoop(b *testing.B) {
	s, get := listening(b)
	s.plantOne(b)
	get(bannerResults)
	took := make([]time.Duration, b.N)
	var running sync.WaitGroup
	b.ResetTimer()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for i := range b.N {
		due := <-tick.C
		running.Go(func() {
			check.Equal(b, get(bannerResults), http.StatusOK)
			took[i] = time.Since(due)
		})
	}
	running.Wait()
	reportPercentiles(b, took)
}

// BenchmarkNotModified sends conditional requests. The requirement is below 1 ms.
func BenchmarkNotModified(b *testing.B) {
	s, get := listening(b)
	s.plantOne(b)
	tag := s.poll(bannerResults).Get("ETag")
	oneByOne(b, func() {
		must.Equal(b, get(bannerResults, "If-None-Match", tag), http.StatusNotModified)
	})
}

// BenchmarkCampaignList lists 500 campaigns. The requirement is below 5 ms.
func BenchmarkCampaignList(b *testing.B) {
	s, get := listening(b)
	var campaigns strings.Builder
	for id := 1; id <= 500; id++ {
		fmt.Fprintf(&campaigns, "\n          - {id: %d, name: Campaign %d, type: experiment, primaryGoalId: 3, controlShare: 50, variations: [{id: 1, name: New, share: 100}]}", id, id)
	}
	s.apply("accounts:\n  - id: 1\n    name: Shop\n    websites:\n      - id: 1\n        domain: shop.example.com\n        goals: [{id: 3, name: Purchase}]\n        campaigns:" + campaigns.String())
	s.plantOne(b)
	oneByOne(b, func() {
		must.Equal(b, get("/v1/campaigns?limit=500"), http.StatusOK)
	})
}

func oneByOne(b *testing.B, do func()) {
	b.Helper()
	do()
	var took []time.Duration
	for b.Loop() {
		started := time.Now()
		do()
		took = append(took, time.Since(started))
	}
	reportPercentiles(b, took)
}

func reportPercentiles(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for _, percentile := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*percentile/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", percentile))
	}
}
