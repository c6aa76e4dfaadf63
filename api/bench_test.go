package api_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"lifthouse/loadgen"
)

// BenchmarkResults times a request for results of a million events over HTTP,
// from the client's side. engine's BenchmarkReport says where the time goes.
func BenchmarkResults(b *testing.B) {
	s := newServer(b)
	population := loadgen.Population{
		WebsiteID: 1, CampaignID: 12, GoalID: 3, Visitors: 330_000, Start: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Days: 28, Crossovers: 0.01, Seed: 1,
		Variations: []loadgen.Variation{{ID: 0, Share: 50, ConversionRate: 0.06, MeanValue: 50}, {ID: 1, Share: 50, ConversionRate: 0.066, MeanValue: 50}},
	}
	for part := range slices.Chunk(slices.Collect(population.Events()), 100_000) {
		if _, err := s.writer.Write(b.Context(), part); err != nil {
			b.Fatal(err)
		}
	}
	for _, query := range []string{"?compareMetric=valuePerVisitor", "?compareMetric=valuePerVisitor&dimension=device"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				if response, _, text := s.do("GET", "/v1/campaigns/12/results"+query, s.token); response.status != http.StatusOK {
					b.Fatalf("%d %s", response.status, text)
				}
			}
		})
	}
}
