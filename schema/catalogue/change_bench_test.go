package catalogue_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// BenchmarkChange starts and stops campaigns of catalogues of several sizes: one after the other, and by 50 clients at
// the same time. It reports the CPU time of the process, which includes the embedded engine.
func BenchmarkChange(b *testing.B) {
	for _, campaigns := range []int{5, 500, 5000} {
		c := openWith(b, campaigns)
		for _, clients := range []int{1, 50} {
			b.Run(fmt.Sprintf("campaigns=%d/clients=%d", campaigns, clients), func(b *testing.B) {
				var next atomic.Int64
				var group sync.WaitGroup
				before, started := cpuTime(b), time.Now()
				b.ResetTimer()
				for range clients {
					group.Go(func() {
						for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
							id := 1 + n%int64(campaigns)
							active := !c.Snapshot().AccountResources(1).Campaigns[id].Active
							if _, found, err := c.Switch(b.Context(), 1, 0, schema.SubjectCampaign, id,
								active); err != nil || !found {
								b.Errorf("campaign %d: %v, %v", id, found, err)
								return
							}
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/change")
				b.ReportMetric(float64(b.N)/time.Since(started).Seconds(), "changes/s")
			})
		}
	}
}

// openWith returns a catalogue with campaigns 1 to n of account 1.
func openWith(tb testing.TB, n int) *catalogue.Catalogue {
	tb.Helper()
	conn := schematest.OpenMigrated(tb)
	c := must.Get(catalogue.Open(tb.Context(), conn))(tb)
	site := catalogue.Website{ID: 1, Domain: "example.com"}
	for id := range n {
		campaign := catalogue.Campaign{
			ID: int64(id + 1), Name: fmt.Sprint("Campaign ", id+1), Type: "experiment", ControlShare: 50, TrafficAllocation: 100,
			SignificanceLevel: 95, Methodology: "frequentist", Power: 80, MDE: 10, WebsiteID: 1, TargetMode: "all",
		}
		for v := range 3 {
			campaign.Variations = append(campaign.Variations, catalogue.Variation{ID: int64(v + 1), Name: fmt.Sprint("Variation ", v+1), Share: []int{33, 33, 34}[v]})
		}
		site.Campaigns = append(site.Campaigns, campaign)
	}
	file := catalogue.File{Accounts: []catalogue.Account{{ID: 1, Name: "Shop", Websites: []catalogue.Website{site}}}}
	must.Get(c.ApplyFile(tb.Context(), file, false))(tb)
	return c
}

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	must.OK(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
