package app_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"lifthouse/engine/enginetest"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// BenchmarkLoneEvent measures the CPU time of a write of one event, and that of the refresh that folds it, into a store
// with a campaign of 60,000 visitors.
func BenchmarkLoneEvent(b *testing.B) {
	conn := schematest.OpenMigrated(b)
	c := must.Get(catalogue.Open(b.Context(), conn))(b)
	_, w, shards := enginetest.OpenWithFacts(b, conn, c)
	simulated := population.SimpleCampaign{
		WebsiteID: 1, CampaignID: 12, GoalID: 3, Visitors: 60_000, Start: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Days: 28, Seed: 1,
		Variations: []population.SimpleVariation{{ID: 0, Share: 50, ConversionRate: 0.06, MeanValue: 50}, {ID: 1, Share: 50, ConversionRate: 0.066, MeanValue: 50}},
	}
	for part := range slices.Chunk(slices.Collect(simulated.GenerateEvents()), 100_000) {
		must.OK(b, w.WriteEvents(b.Context(), part))
	}
	must.Get(shards.AwaitNoted(b.Context()))(b)
	var writing, folding time.Duration
	for written := uint64(1); b.Loop(); written++ {
		event := schema.Event{
			EventID: schema.HashID("bench") + written, Time: time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC), WebsiteID: 1, Subject: schema.SubjectCampaign,
			SubjectID: 12, VisitorID: written, Kind: schema.KindView, Attributes: schema.Attributes{Device: "mobile"},
		}
		began := cpuTime(b)
		must.OK(b, w.WriteEvents(b.Context(), []schema.Event{event}))
		stored := cpuTime(b)
		must.Get(shards.AwaitNoted(b.Context()))(b)
		writing, folding = writing+stored-began, folding+cpuTime(b)-stored
	}
	b.ReportMetric(float64(writing.Microseconds())/float64(b.N), "write-cpu-µs/op")
	b.ReportMetric(float64(folding.Microseconds())/float64(b.N), "refresh-cpu-µs/op")
}

// cpuTime returns the CPU time of this process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
