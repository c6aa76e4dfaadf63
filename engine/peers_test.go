package engine

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"lifthouse/schema/catalogue"
	"lifthouse/schema/schematest"
)

// standardVisitors is the size of the standard benchmark's campaign: with its
// events a visitor, about 28 million rows.
const standardVisitors = 5_000_000

// makeStandard fills a table of events with one campaign of the standard
// shape: two variations, 1 % crossovers, 1 to 80 events a visitor over 60 days,
// most gaps minutes and some days, 22 % of the later events goals of five
// kinds, log-normal revenue on the first, 150,000 referrers.
const makeStandard = `
INSERT INTO events (website_id, subject, subject_id, visitor_id, time, event_id, variation_id, event, goal_id, value, profit,
    device, browser, os, country, channel, referrer, utm_source, visitor_type, ingested_at)
WITH
    sipHash64(n, 1)                                            AS own,
    sipHash64(n, i, 2)                                         AS draw,
    draw / 18446744073709551616                                AS uniform,
    i > 0 AND draw %% 100 < 22                                 AS is_goal,
    if(is_goal, 1 + sipHash64(n, i, 3) %% 5, 0)                AS goal
SELECT
    1, 'campaign', 12,
    sipHash64(n),
    toDateTime64('2026-03-01 00:00:00', 3, 'UTC') + toIntervalMillisecond(own %% 4320000000
        + i * (60000 + draw %% 600000) + if(draw %% 10 < 7, 0, i * 86400000)),
    sipHash64(n, i, 4),
    if(i > 0 AND NOT is_goal AND own %% 100 = 0, 1 - own %% 2, own %% 2),
    if(is_goal, 'goal', 'view'),
    goal,
    if(goal = 1, toInt64(exp(3 + 0.9 * sqrt(-2 * log(1 - uniform * 0.999999)) * cos(6.283185307 * (own %% 1000) / 1000)) * 100) * 100, 0),
    if(goal = 1, toInt64(exp(2 + 0.9 * sqrt(-2 * log(1 - uniform * 0.999999)) * cos(6.283185307 * (own %% 1000) / 1000)) * 100) * 100, 0),
    ['mobile', 'mobile', 'desktop', 'tablet'][1 + own %% 4],
    ['chrome', 'chrome', 'safari', 'firefox', 'edge'][1 + own %% 5],
    ['android', 'ios', 'windows'][1 + own %% 3],
    ['US', 'US', 'US', 'GB', 'GB', 'DE', 'FR', 'NL', 'ES', 'IT', 'CA', 'JP', 'SE', 'PL', 'AT', 'CH', 'BE', 'DK', 'NO', 'FI'][1 + own %% 20],
    ['organic', 'organic', 'paid', 'direct', 'email'][1 + own %% 5],
    concat('https://example.com/', toString(intDiv(own, 11) %% 150000)),
    concat('source', toString((own + (draw %% 100 < 3)) %% 8)),
    if(own %% 3 = 0, 'returning', 'new'),
    now64(3, 'UTC')
FROM (
    SELECT number AS n, 1 + toUInt32(least(-log(1 - sipHash64(number, 5) / 18446744073709551616) * 5.1, 79)) AS k
    FROM numbers_mt(%d, %d)
)
ARRAY JOIN range(k) AS i
SETTINGS max_insert_threads = 2`

const createByTime = `
CREATE TABLE events_by_time AS events
ENGINE = MergeTree PARTITION BY toYYYYMM(time) ORDER BY (website_id, subject, subject_id, time)`

// The peers' computations, in our words: what GrowthBook and PostHog have a
// warehouse do for one metric. %[1]s is the table, %[2]s the value of a goal
// event, %[3]s and %[4]s a dimension in the units and in the end.
const (
	growthbook = `
WITH
    exposures AS (SELECT visitor_id, toString(variation_id) AS variation, time, %[3]s AS dimension FROM %[1]s WHERE website_id = 1 AND subject = 'campaign' AND subject_id = 12 AND event = 'view' AND time >= '2026-01-01' AND time < '2027-01-01'),
    units AS (SELECT visitor_id, if(count(DISTINCT variation) > 1, '__multiple__', max(variation)) AS variation, min(time) AS first_exposure, argMin(dimension, time) AS dimension FROM exposures GROUP BY visitor_id),
    metric AS (SELECT visitor_id, time, %[2]s AS value FROM %[1]s WHERE website_id = 1 AND subject = 'campaign' AND subject_id = 12 AND event = 'goal' AND goal_id = 1 AND time >= '2026-01-01' AND time < '2027-01-01'),
    joined AS (SELECT u.visitor_id AS visitor_id, u.variation AS variation, u.dimension AS dimension, if(m.time >= u.first_exposure, m.value, NULL) AS value FROM units AS u LEFT JOIN metric AS m ON m.visitor_id = u.visitor_id),
    per_unit AS (SELECT variation, dimension, visitor_id, sum(coalesce(value, 0)) AS value FROM joined GROUP BY variation, dimension, visitor_id)
SELECT variation, dimension, count() AS users, sum(value) AS main_sum, sum(value * value) AS main_sum_squares FROM per_unit GROUP BY variation, dimension`
	posthog = `
WITH
    exposures AS (SELECT visitor_id, if(uniqExact(variation_id) > 1, '$multiple', any(toString(variation_id))) AS variation, min(time) AS first_exposure, argMin(%[3]s, time) AS dimension FROM %[1]s WHERE website_id = 1 AND subject = 'campaign' AND subject_id = 12 AND event = 'view' AND time >= '2026-01-01' AND time < '2027-01-01' GROUP BY visitor_id),
    metric AS (SELECT visitor_id, time, %[2]s AS value FROM %[1]s WHERE website_id = 1 AND subject = 'campaign' AND subject_id = 12 AND event = 'goal' AND goal_id = 1 AND time >= '2026-01-01' AND time < '2027-01-01'),
    per_visitor AS (SELECT e.visitor_id AS visitor_id, any(e.variation) AS variation, any(e.dimension) AS dimension, sum(coalesce(m.value, 0)) AS value FROM exposures AS e LEFT JOIN metric AS m ON m.visitor_id = e.visitor_id AND m.time >= e.first_exposure GROUP BY e.visitor_id)
SELECT variation, dimension, count() AS users, sum(value) AS total, sum(power(value, 2)) AS total_squares FROM per_visitor GROUP BY variation, dimension`
)

// BenchmarkPeers times our report and the peers' computations in turn, on the
// same data in the same run: wall time, CPU and peak memory, medians. It takes
// minutes and gigabytes: PEERS=1 runs it.
func BenchmarkPeers(b *testing.B) {
	if os.Getenv("PEERS") == "" {
		b.Skip("SKIP: PEERS=1 runs it")
	}
	conn := schematest.Open(b)
	c := standardStore(b, conn)
	e := New(conn, c, Limits{})
	peer := func(template, table, dimension string, values ...string) func(context.Context) error {
		return func(ctx context.Context) error { // a query a metric: the value of a goal event is what it sums
			for _, value := range values {
				if err := e.store.each(ctx, &Query{SQL: fmt.Sprintf(template, table, value, dimension)}, ignore); err != nil {
					return err
				}
			}
			return nil
		}
	}
	ours := func(dimension Dimension) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := e.Report(ctx, Request{AccountID: 1, SubjectID: largeCampaign, Metric: ValuePerVisitor, Dimension: dimension})
			return err
		}
	}
	const goals, value, profit, extra, none, device = "toFloat64(1)", "toFloat64(value)", "toFloat64(profit)", "toFloat64(extra_value)", "''", "toString(device)"
	for _, c := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"ours, always all metrics", ours("")},
		{"GrowthBook mean", peer(growthbook, "events", none, value)},
		{"PostHog mean", peer(posthog, "events", none, value)},
		{"GrowthBook goals", peer(growthbook, "events", none, goals)},
		{"PostHog goals", peer(posthog, "events", none, goals)},
		{"PostHog four metrics", peer(posthog, "events", none, goals, value, profit, extra)},
		{"GrowthBook mean, by time", peer(growthbook, "events_by_time", none, value)},
		{"ours by device", ours(ByDevice)},
		{"GrowthBook mean by device", peer(growthbook, "events", device, value)},
		{"PostHog mean by device", peer(posthog, "events", device, value)},
		{"ours by referrer", ours(ByReferrer)},
	} {
		b.Run(c.name, func(b *testing.B) {
			wall, cpu, memory := measure(b, conn, c.run)
			b.ReportMetric(0, "ns/op") // it has no loop
			b.ReportMetric(wall, "wall-ms")
			b.ReportMetric(cpu, "cpu-ms")
			b.ReportMetric(memory, "MB")
		})
	}
}

func standardStore(b *testing.B, conn driver.Conn) *catalogue.Catalogue {
	b.Helper()
	exec := func(sql string) {
		b.Helper()
		if err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	exec(createByTime)
	const parts = 5
	for part := range parts {
		exec(fmt.Sprintf(makeStandard, part*standardVisitors/parts, standardVisitors/parts))
	}
	exec("INSERT INTO events_by_time SELECT * FROM events SETTINGS max_insert_threads = 2")
	exec("OPTIMIZE TABLE events FINAL")
	exec("OPTIMIZE TABLE events_by_time FINAL")
	c, err := catalogue.Open(b.Context(), conn)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Apply(b.Context(), benchFile(), false); err != nil {
		b.Fatal(err)
	}
	return c
}

// measure runs the work until the store has compiled its expressions, which it
// does at their third use, and then returns medians of some more runs.
func measure(b *testing.B, conn driver.Conn, work func(context.Context) error) (wall, cpu, memory float64) {
	b.Helper()
	const warmUps, rounds = 4, 5
	var walls, cpus, memories []float64
	for round := range warmUps + rounds {
		peak, stop := watchMemory(b, conn)
		before, started := cpuTime(b), time.Now()
		if err := work(b.Context()); err != nil {
			b.Fatal(err)
		}
		took, used := time.Since(started), cpuTime(b)-before
		stop()
		if round >= warmUps {
			walls, cpus, memories = append(walls, ms(took)), append(cpus, ms(used)), append(memories, float64(peak.Load())/1e6)
		}
	}
	return median(walls), median(cpus), median(memories)
}

// watchMemory notes the most that the queries of the process hold.
func watchMemory(b *testing.B, conn driver.Conn) (peak *atomic.Int64, stop func()) {
	b.Helper()
	peak = new(atomic.Int64)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				var now int64
				if conn.QueryRow(ctx, "SELECT max(peak_memory_usage) FROM system.processes WHERE query NOT LIKE '%system.processes%'").Scan(&now) == nil {
					peak.Store(max(peak.Load(), now))
				}
			}
		}
	}()
	return peak, func() { cancel(); <-ended }
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[len(values)/2]
}
