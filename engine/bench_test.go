package engine

import (
	"context"
	"encoding/json"
	"slices"
	"syscall"
	"testing"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"
	"lifthouse/schema/schematest"
)

// Campaigns for benchmarks, with 3.1 events per visitor. The large one has
// slightly more than a million events.
const (
	largeCampaign, largeVisitors = 12, 330_000
	smallCampaign, smallVisitors = 13, 10_000
)

func benchEngine(b *testing.B) (*Engine, *ingest.Writer) {
	b.Helper()
	conn := schematest.Open(b)
	writer := ingest.NewWriter(conn, nil)
	writer.SetExclusive()
	if err := writer.LoadIDs(b.Context()); err != nil {
		b.Fatal(err)
	}
	for campaign, visitors := range map[int64]int{largeCampaign: largeVisitors, smallCampaign: smallVisitors} {
		simulated := population.SimpleCampaign{
			WebsiteID: 1, CampaignID: campaign, GoalID: 3, Visitors: visitors, Start: start, Days: 28, MultipleExposures: 0.01, Seed: 1,
			Variations: []population.SimpleVariation{{ID: 0, Share: 50, ConversionRate: 0.06, MeanValue: 50}, {ID: 1, Share: 50, ConversionRate: 0.066, MeanValue: 50}},
		}
		events := slices.Collect(simulated.Events())
		for part := range slices.Chunk(events, 100_000) {
			if err := writer.Write(b.Context(), part); err != nil {
				b.Fatal(err)
			}
		}
		b.Logf("campaign %d: %d events of %d visitors", campaign, len(events), visitors)
	}
	c, err := catalogue.Open(b.Context(), conn)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Apply(b.Context(), benchFile(), false); err != nil {
		b.Fatal(err)
	}
	return New(conn, c, source.DefaultLimits), writer
}

// benchFile declares the campaigns for benchmarks.
func benchFile() catalogue.File {
	campaign := func(id int64) catalogue.Campaign {
		return catalogue.Campaign{
			ID: id, WebsiteID: 1, Name: "c", Type: "experiment", TargetMode: "live", Methodology: catalogue.Frequentist, PrimaryGoalID: 3,
			ControlShare: 50, SignificanceLevel: 95, Power: 80, MDE: 20, Variations: []catalogue.Variation{{ID: 1, Name: "v", Share: 50}},
		}
	}
	return catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "a", Websites: []catalogue.Website{{
		ID: 1, Domain: "a.example.com", Goals: []catalogue.Goal{{ID: 3, WebsiteID: 1, Name: "Purchase"}},
		Campaigns: []catalogue.Campaign{campaign(largeCampaign), campaign(smallCampaign)},
	}}}}}
}

// BenchmarkReport measures reports of a million events and of few events. It
// reports the time per operation of planning and compilation, the store,
// statistics and encoding.
func BenchmarkReport(b *testing.B) {
	e, _ := benchEngine(b)
	for _, report := range []struct {
		name string
		query.Request
	}{ // the first runs on a new store, so the order matters
		{"all", query.Request{SubjectID: largeCampaign}},
		{"byDevice", query.Request{SubjectID: largeCampaign, Dimension: query.ByDevice}},
		{"small", query.Request{SubjectID: smallCampaign}},
		{"smallByDevice", query.Request{SubjectID: smallCampaign, Dimension: query.ByDevice}},
	} {
		report.AccountID, report.Metric = 1, query.ValuePerVisitor
		b.Run(report.name, func(b *testing.B) { benchReport(b, e, report.Request) })
	}
}

func benchReport(b *testing.B, e *Engine, r query.Request) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go e.Follow(ctx, time.Second) // as a server does
	var spent [4]time.Duration
	for b.Loop() {
		mark := time.Now()
		lap := func(step int) {
			now := time.Now()
			spent[step] += now.Sub(mark)
			mark = now
		}
		x := executionOf(b, e, r)
		lap(0)
		found, _, err := read(b.Context(), x, stateOf(x))
		if err != nil {
			b.Fatal(err)
		}
		lap(1)
		results := result.New(x.Plan, found, nil)
		lap(2)
		if _, err := json.Marshal(results); err != nil {
			b.Fatal(err)
		}
		lap(3)
	}
	for step, name := range []string{"plan", "store", "stats", "encode"} {
		b.ReportMetric(float64(spent[step].Microseconds())/float64(b.N), name+"-µs/op")
	}
}

// BenchmarkSmallReport measures whole reports of few events and their CPU time: of events
// that a statement returns (read), of events in memory (kept), after an event was written
// (written), and after all events were dropped, with the totals (dropped).
func BenchmarkSmallReport(b *testing.B) {
	read, writer := benchEngine(b)
	kept := New(read.store.Conn, read.catalogue, source.DefaultLimits)
	kept.SetOwn()
	read.Totals.SetOwn()
	writer.AfterInsert(kept.Inserted)
	writer.AfterWrite(func(subjects []ingest.Subject) {
		for _, subject := range subjects {
			kept.Written([]plan.Subject{plan.Subject(subject)})
		}
	})
	written := uint64(0)
	write := func() {
		written++
		event := schema.Event{
			EventID: schema.Hash("bench") + written, Time: start.Add(time.Hour), WebsiteID: 1, Subject: schema.SubjectCampaign, SubjectID: smallCampaign,
			VisitorID: written, Kind: schema.KindView, Attributes: schema.Attributes{Device: "mobile"},
		}
		if err := writer.Write(b.Context(), []schema.Event{event}); err != nil {
			b.Fatal(err)
		}
	}
	nothing := func() {}
	for _, of := range []struct {
		name   string
		e      *Engine
		before func()
		query.Request
	}{
		{"read", read, nothing, query.Request{}},
		{"kept", kept, nothing, query.Request{}},
		{"written", kept, write, query.Request{}},
		{"dropped", kept, func() { kept.Written(nil) }, query.Request{}},
		{"readByDevice", read, nothing, query.Request{Dimension: query.ByDevice}},
		{"keptByDevice", kept, nothing, query.Request{Dimension: query.ByDevice}},
	} {
		of.SubjectID, of.AccountID, of.Metric = smallCampaign, 1, query.ValuePerVisitor
		b.Run(of.name, func(b *testing.B) {
			var cpu time.Duration
			for b.Loop() {
				of.before()
				started := cpuTime(b)
				p, err := of.e.Plan(of.Request)
				if err != nil {
					b.Fatal(err)
				}
				report, err := of.e.Report(b.Context(), p)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := json.Marshal(report); err != nil {
					b.Fatal(err)
				}
				cpu += cpuTime(b) - started
			}
			b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/op")
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

// BenchmarkWriter measures the writer: look-up of duplicates and insertion.
func BenchmarkWriter(b *testing.B) {
	simulated := population.SimpleCampaign{
		WebsiteID: 1, CampaignID: 12, GoalID: 3, Visitors: 30_000, Start: start, Days: 28, Seed: 1,
		Variations: []population.SimpleVariation{{ID: 0, Share: 1, ConversionRate: 0.06, MeanValue: 50}},
	}
	events := slices.Collect(simulated.Events())
	written := 0
	conn := schematest.Open(b)
	writer := ingest.NewWriter(conn, nil)
	for b.Loop() {
		fresh := slices.Clone(events)
		for i := range fresh {
			written++
			fresh[i].EventID = uint64(written)
		}
		if err := writer.Write(b.Context(), fresh); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(written)/b.Elapsed().Seconds(), "events/s")
}
