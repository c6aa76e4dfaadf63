package app_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine/plan"
	"lifthouse/engine/rollup"
	"lifthouse/engine/source"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
)

// Campaigns for benchmarks, with 3.1 events per visitor: one with a rollup, and one without.
const (
	largeCampaign, largeVisitors = 12, 60_000
	smallCampaign, smallVisitors = 13, 10_000
	fewEvents                    = 100_000
)

// benchStore returns an embedded store with the campaigns, as a server has it.
func benchStore(b *testing.B) *app.Store {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	limits := source.DefaultLimits
	limits.InProcessEvents = fewEvents
	conn := schematest.Open(b)
	s, err := app.On(b.Context(), conn, schema.Address{}, app.Options{Limits: limits})
	must(err)
	must(s.Writer.LoadLastAccepted(b.Context()))
	s.Own(schema.NewManifest(conn, b.TempDir(), false))
	must(s.Writer.LoadIDs(b.Context()))
	website := catalogue.Website{ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{{ID: 3, WebsiteID: 1, Name: "Purchase"}}}
	for id, visitors := range map[int64]int{largeCampaign: largeVisitors, smallCampaign: smallVisitors} {
		website.Campaigns = append(website.Campaigns, catalogue.Campaign{
			ID: id, WebsiteID: 1, Name: "c", Type: "experiment", TargetMode: "live", Methodology: catalogue.Frequentist, PrimaryGoalID: 3,
			ControlShare: 50, SignificanceLevel: 95, Power: 80, MDE: 20, Variations: []catalogue.Variation{{ID: 1, Name: "v", Share: 50}},
		})
		simulated := population.SimpleCampaign{
			WebsiteID: 1, CampaignID: id, GoalID: 3, Visitors: visitors, Start: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Days: 28, Seed: 1,
			Variations: []population.SimpleVariation{{ID: 0, Share: 50, ConversionRate: 0.06, MeanValue: 50}, {ID: 1, Share: 50, ConversionRate: 0.066, MeanValue: 50}},
		}
		for part := range slices.Chunk(slices.Collect(simulated.Events()), 100_000) {
			err := s.Writer.Write(b.Context(), part)
			must(err)
		}
	}
	_, err = s.Catalogue.Apply(b.Context(), catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{website}}}}, false)
	must(err)
	s.Refresher = rollup.NewRefreshers(s.Writer, s.Engine.Rollups)
	must(s.Refresher.RefreshAll(b.Context()))
	return s
}

// BenchmarkLoneEvent measures the CPU time of a write of one event with the refresh of the
// rollup of its campaign, of the write alone, and of the totals that follow it.
func BenchmarkLoneEvent(b *testing.B) {
	s := benchStore(b)
	written := uint64(0)
	for _, of := range []struct {
		name     string
		campaign int64
	}{{"small", smallCampaign}, {"large", largeCampaign}} {
		subject := plan.Subject{WebsiteID: 1, Kind: schema.SubjectCampaign, ID: of.campaign}
		b.Run(of.name, func(b *testing.B) {
			var spent [3]time.Duration
			for b.Loop() {
				written++
				event := schema.Event{
					EventID: schema.Hash("bench") + written, Time: time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC), WebsiteID: 1, Subject: subject.Kind,
					SubjectID: subject.ID, VisitorID: written, Kind: schema.KindView, Attributes: schema.Attributes{Device: "mobile"},
				}
				mark := cpuTime(b)
				lap := func(step int) {
					now := cpuTime(b)
					spent[step] += now - mark
					mark = now
				}
				if err := s.Writer.Write(b.Context(), []schema.Event{event}); err != nil {
					b.Fatal(err)
				}
				lap(0)
				if err := s.Engine.Totals.RefreshIfOld(b.Context()); err != nil {
					b.Fatal(err)
				}
				lap(1)
				if err := s.Refresher[0].RefreshSubject(b.Context(), subject); err != nil {
					b.Fatal(err)
				}
				lap(2)
			}
			for step, name := range []string{"write", "totals", "refresh"} {
				b.ReportMetric(float64(spent[step].Microseconds())/float64(b.N), name+"-cpu-µs/op")
			}
		})
	}
}

// cpuTime returns the CPU time of this process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
