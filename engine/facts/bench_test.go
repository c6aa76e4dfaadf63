package facts_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/facts"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
)

// cpu returns the CPU time of the process.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// sendCampaign stores the events of a campaign with some visitors.
func sendCampaign(b *testing.B, conn driver.Conn, campaign int64, visitors int) (events int) {
	b.Helper()
	simulated := population.SimpleCampaign{
		WebsiteID: 1, CampaignID: campaign, GoalID: 3, Visitors: visitors, Start: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Days: 28, MultipleExposures: 0.01, Seed: 1,
		Variations: []population.SimpleVariation{{ID: 0, Share: 50, ConversionRate: 0.06, MeanValue: 50}, {ID: 1, Share: 50, ConversionRate: 0.066, MeanValue: 50}},
	}
	accepted := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	all := slices.Collect(simulated.Events())
	for part := range slices.Chunk(all, 100_000) {
		accepted = accepted.Add(time.Millisecond)
		if err := schema.InsertSent(b.Context(), conn, part, accepted); err != nil {
			b.Fatal(err)
		}
	}
	return len(all)
}

// BenchmarkRefresh measures the CPU time of refreshes: of a million events, of one event, and of a thousand.
func BenchmarkRefresh(b *testing.B) {
	conn := schematest.Empty(b)
	if err := schema.CreateFacts(b.Context(), conn); err != nil {
		b.Fatal(err)
	}
	started := cpu()
	events := sendCampaign(b, conn, 12, 330_000)
	b.Logf("insert of %d events: %.1f s of CPU", events, (cpu() - started).Seconds())
	r := facts.NewRefresher(conn)
	b.Run("all", func(b *testing.B) {
		started, began := cpu(), time.Now()
		if _, err := r.Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((cpu()-started).Seconds()*1e6/float64(events), "cpu-s/M-events")
		b.ReportMetric(float64(events)/time.Since(began).Seconds(), "events/s")
	})
}
