package facts_test

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/engine/facts"
	"lifthouse/engine/metric"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/loadgen/population"
	"lifthouse/schema"
	"lifthouse/schema/schematest"
	"lifthouse/schema/schematest/must"
)

// cpu returns the CPU time of the process.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

var campaignStart = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

// simulated returns a simulated campaign.
func simulated(campaign int64, visitors int) *population.SimpleCampaign {
	return &population.SimpleCampaign{
		WebsiteID: 1, CampaignID: campaign, GoalID: 3, Visitors: visitors, Start: campaignStart, Days: 28,
		MultipleExposures: 0.01, Seed: uint64(campaign),
		Variations: []population.SimpleVariation{
			{ID: 0, Share: 50, ConversionRate: 0.06, MeanValue: 50},
			{ID: 1, Share: 50, ConversionRate: 0.066, MeanValue: 50},
		},
	}
}

// sendCampaign stores the events of a campaign with some visitors.
func sendCampaign(b *testing.B, conn driver.Conn, accepted *time.Time, campaign int64, visitors int) (events int) {
	b.Helper()
	part := make([]schema.Event, 0, 100_000)
	send := func() {
		*accepted = accepted.Add(time.Millisecond)
		must.OK(b, schema.InsertEvents(b.Context(), conn, part, *accepted))
		events += len(part)
		part = part[:0]
	}
	for e := range simulated(campaign, visitors).GenerateEvents() {
		if part = append(part, e); len(part) == cap(part) {
			send()
		}
	}
	send()
	return events
}

// BenchmarkFacts measures the CPU time of refreshes and of reports.
func BenchmarkFacts(b *testing.B) {
	large := 330_000
	if n, err := strconv.Atoi(os.Getenv("LIFTHOUSE_BENCH_VISITORS")); err == nil {
		large = n
	}
	conn := schematest.OpenEmpty(b)
	must.Get(schema.Migrate(b.Context(), conn))(b)
	accepted := campaignStart.AddDate(0, 0, 28)
	started, began := cpu(), time.Now()
	events := sendCampaign(b, conn, &accepted, 12, large) + sendCampaign(b, conn, &accepted, 13, 10_000)
	b.Logf("insert of %d events: %.1f s of CPU, %.0f events/s", events, (cpu() - started).Seconds(),
		float64(events)/time.Since(began).Seconds())
	r := facts.NewRefresher(conn, true)
	started, began = cpu(), time.Now()
	must.Get(r.RefreshFacts(b.Context()))(b)
	b.Logf("refresh of all: %.1f s of CPU a million events, %.0f events/s", (cpu()-started).Seconds()*1e6/float64(events), float64(events)/time.Since(began).Seconds())
	awaitMerges(b, conn)
	b.Run("nothing", func(b *testing.B) {
		started := cpu()
		n := 0
		for b.Loop() {
			must.OK(b, conn.Exec(b.Context(), "SELECT 1"))
			n++
		}
		b.ReportMetric((cpu()-started).Seconds()*1000/float64(n), "cpu-ms")
	})
	for _, n := range []int{1, 100, 1000, 10_000} {
		b.Run(fmt.Sprint("refresh/", n), func(b *testing.B) { benchRefresh(b, conn, r, &accepted, large, n) })
	}
	awaitMerges(b, conn)
	for _, campaign := range []int64{12, 13} {
		for _, q := range questions() {
			b.Run(fmt.Sprint("report/", campaign, "/", q.name), func(b *testing.B) {
				benchReport(b, conn, r, campaign, q.request)
			})
		}
	}
}

// awaitMerges waits until no parts are being merged.
func awaitMerges(b *testing.B, conn driver.Conn) {
	b.Helper()
	for running := uint64(1); running > 0; {
		must.OK(b, conn.QueryRow(b.Context(), "SELECT count() FROM system.merges").Scan(&running))
	}
}

// benchRefresh refreshes after some events of known visitors.
func benchRefresh(b *testing.B, conn driver.Conn, r *facts.Refresher, accepted *time.Time, visitors, n int) {
	b.Helper()
	var used, inserting time.Duration
	var refreshes int
	for b.Loop() {
		*accepted = accepted.Add(time.Millisecond)
		var events []schema.Event
		for e := range simulated(12, visitors).GenerateEvents() {
			if e.Kind == schema.KindView {
				e.EventID ^= uint64(accepted.UnixMilli()) * 0x9e3779b97f4a7c15
				e.Time = e.Time.Add(time.Hour)
				events = append(events, e)
			}
			if len(events) == n {
				break
			}
		}
		started := cpu()
		must.OK(b, schema.InsertEvents(b.Context(), conn, events, *accepted))
		inserting += cpu() - started
		started = cpu()
		must.Get(r.RefreshFacts(b.Context()))(b)
		used += cpu() - started
		refreshes++
	}
	b.ReportMetric(used.Seconds()*1000/float64(refreshes), "cpu-ms/refresh")
	b.ReportMetric(inserting.Seconds()*1000/float64(refreshes), "cpu-ms/insert")
}

type question struct {
	name    string
	request query.Request
}

func questions() []question {
	base := query.Request{Operation: query.CampaignResults, AccountID: 1, GoalID: 3, Metric: query.GoalConversionRate}
	with := func(name string, change func(*query.Request)) question {
		r := base
		change(&r)
		return question{name, r}
	}
	capped, err := schema.ParseCap("p99")
	if err != nil {
		panic(err)
	}
	return []question{
		with("all", func(*query.Request) {}),
		with("mobile", func(r *query.Request) {
			r.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
		}),
		with("two filters", func(r *query.Request) {
			r.Filters.Lists = []query.ListFilter{
				{Attribute: "device", Values: []string{"mobile"}},
				{Attribute: "country", Values: []string{"DE", "FR"}},
			}
		}),
		with("by device", func(r *query.Request) { r.Dimension = "device" }),
		with("by city", func(r *query.Request) { r.Dimension = "city" }),
		with("first week", func(r *query.Request) { r.Filters.To = campaignStart.AddDate(0, 0, 7) }),
		with("second week", func(r *query.Request) {
			r.Filters.From, r.Filters.To = campaignStart.AddDate(0, 0, 7), campaignStart.AddDate(0, 0, 14)
		}),
		with("z-score", func(r *query.Request) { r.Filters.ZScore = 3 }),
		with("cap", func(r *query.Request) { r.Cap = &capped }),
		with("all goals", func(r *query.Request) { r.GoalID = 0 }),
		with("within 7 days",
			func(r *query.Request) { r.ConversionWindow = &schema.ConversionWindow{To: 7 * 24 * time.Hour} }),
		with("in days 1 to 7", func(r *query.Request) {
			r.ConversionWindow = &schema.ConversionWindow{From: 24 * time.Hour, To: 7 * 24 * time.Hour}
		}),
		with("by age", func(r *query.Request) { r.Curve = true }),
		with("by day", func(r *query.Request) { r.Interval = "day" }),
		with("mobile by day", func(r *query.Request) {
			r.Filters.Lists = []query.ListFilter{{Attribute: "device", Values: []string{"mobile"}}}
			r.Interval = "day"
		}),
		with("metric", writeMetric),
		with("metric by day", func(r *query.Request) {
			writeMetric(r)
			r.Interval = "day"
		}),
	}
}

// writeMetric makes a request one about a metric without a name.
func writeMetric(r *query.Request) {
	r.GoalID = 0
	r.Metric = ""
	r.Expression = "sum(#3.value where value > 0)"
	r.Names = &metric.Names{AcceptsUnknownGoals: true}
}

func benchReport(b *testing.B, conn driver.Conn, of *facts.Refresher, campaign int64, r query.Request) {
	b.Helper()
	r.SubjectID = campaign
	report := requested(b, conn, of, r)
	var used time.Duration
	reports := 0
	ages := report.Question // as engine.readAges
	ages.ConversionWindow = schema.ConversionWindow{To: 14 * 24 * time.Hour}
	ages.Timing, ages.Interval = plan.ByAge, query.Daily
	for b.Loop() {
		started := cpu()
		var err error
		if r.Curve {
			_, err = report.ReadSteps(b.Context(), ages, []facts.Measure{{Measure: ages.Measure()}})
		} else {
			_, err = report.ReadRows(b.Context(), report.Question)
		}
		must.OK(b, err)
		used += cpu() - started
		reports++
	}
	b.ReportMetric(used.Seconds()*1000/float64(reports), "cpu-ms/report")
}
