package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Bar is a measured value with the highest allowed one.
type Bar struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Most  float64 `json:"most"`
	Unit  string  `json:"unit"`
	// Ratio is the value as a multiple of the time of a single report, which says more on a busy machine; 0: no time.
	Ratio float64 `json:"ratio,omitempty"`
}

const (
	// repeats is the number of requests of which a bar has the median.
	repeats = 5
	// changedCampaigns is the number of campaigns that get new events.
	changedCampaigns = 100
	// changedSince is the number of campaigns that get new events before what has changed is asked for.
	changedSince = 30
	// mostSlowdown is the highest p99 latency of single reports beside requests for all, as a multiple of that without.
	mostSlowdown = 2
)

// bulkTables are the tables with the highest allowed times, in milliseconds: of the first request for series and
// segments, and of an unchanged table for the others.
var bulkTables = []struct {
	name string
	most float64
}{
	{"experiments", 1000},
	{"results", 1000},
	{"looks", 1000},
	{"decisions", 1000},
	{"worth", 1000},
	{"series", 20_000},
	{"segments", 30_000},
}

// isBulk reports whether a test measures the requests for all results against their bars.
func (o *Options) isBulk() bool { return !o.Ladder && o.Mix.String() == Presets["bulk"].String() }

// bulkTest measures requests for all results, one after the other.
type bulkTest struct {
	*client
	options *Options
	found   *targets
	single  float64 // median time of a single report, in milliseconds
	bars    []Bar
}

// measureBulk returns the bars of requests for all results. Without an address of the metrics, there are no bars of CPU
// and memory; without a token for events, none of changes.
func (c *client) measureBulk(ctx context.Context, o *Options, found *targets) ([]Bar, error) {
	b := &bulkTest{client: c, options: o, found: found}
	before, err := b.scrapeServer(ctx)
	if err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{
		b.measureFirst, b.measureSingle, b.measureWarm, b.measureTables, b.measureChanges,
	} {
		if err := step(ctx); err != nil {
			return b.bars, err
		}
	}
	after, err := b.scrapeServer(ctx)
	if err == nil && o.AdminURL != "" {
		const name = "process_resident_memory_bytes"
		b.bars = append(b.bars, Bar{Name: "memory", Value: (after[name] - before[name]) / (1 << 20), Most: 100, Unit: "MiB"})
	}
	for i := range b.bars {
		if b.bars[i].Unit == "ms" && b.single > 0 {
			b.bars[i].Ratio = b.bars[i].Value / b.single
		}
	}
	return b.bars, err
}

// scrapeServer reads the metrics of the server; nil: their address is not known.
func (b *bulkTest) scrapeServer(ctx context.Context) (scrape, error) {
	if b.options.AdminURL == "" {
		return nil, nil
	}
	return b.scrapeMetrics(ctx, b.options.AdminURL)
}

// addTime adds a bar of a time.
func (b *bulkTest) addTime(name string, took time.Duration, most float64) {
	b.bars = append(b.bars, Bar{Name: name, Value: milliseconds(took), Most: most, Unit: "ms"})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// timeRequest sends a request that must be answered with a status, and returns the time until the last byte and the header.
func (b *bulkTest) timeRequest(ctx context.Context, path, tag string, status int) (time.Duration, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+b.token)
	request.Header.Set("Accept-Encoding", "gzip")
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	started := time.Now()
	response, err := b.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		return 0, nil, fmt.Errorf("GET %s: %w", path, err)
	}
	if response.StatusCode != status {
		return 0, nil, fmt.Errorf("GET %s: %s, want %d: %.300s", path, response.Status, status, body.Bytes())
	}
	return time.Since(started), response.Header, nil
}

// medianTime returns the median time of several equal requests, and the header of the last answer.
func (b *bulkTest) medianTime(ctx context.Context, path, tag string, status int) (time.Duration, http.Header, error) {
	var times []time.Duration
	var last http.Header
	for range repeats {
		took, header, err := b.timeRequest(ctx, path, tag, status)
		if err != nil {
			return 0, nil, err
		}
		times = append(times, took)
		last = header
	}
	slices.Sort(times)
	return times[len(times)/2], last, nil
}

// measureFirst measures the first request, which computes what is not kept: all after a start of the server. If that
// takes longer than the server allows, it repeats the request, which goes on from there.
func (b *bulkTest) measureFirst(ctx context.Context) error {
	const attempts = 20
	started := time.Now()
	var err error
	for range attempts {
		_, _, err = b.timeRequest(ctx, allReports, "", http.StatusOK)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	b.addTime("first", time.Since(started), 15_000)
	return err
}

// measureSingle measures single reports that are kept.
func (b *bulkTest) measureSingle(ctx context.Context) error {
	var times []time.Duration
	for _, of := range b.found.campaigns[:min(len(b.found.campaigns), 20)] {
		took, _, err := b.medianTime(ctx, of.resultsPath("scorecard=true"), "", http.StatusOK)
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	slices.Sort(times)
	b.single = milliseconds(times[len(times)/2])
	return nil
}

// measureWarm measures requests whose results are kept.
func (b *bulkTest) measureWarm(ctx context.Context) error {
	before, err := b.scrapeServer(ctx)
	if err != nil {
		return err
	}
	took, header, err := b.medianTime(ctx, allReports, "", http.StatusOK)
	if err != nil {
		return err
	}
	b.addTime("report", took, 1000)
	after, err := b.scrapeServer(ctx)
	if err != nil {
		return err
	}
	if b.options.AdminURL != "" {
		const cpu, misses = "process_cpu_seconds_total", "lifthouse_results_total miss"
		b.bars = append(b.bars,
			Bar{Name: "report, CPU", Value: 1000 * (after[cpu] - before[cpu]) / repeats, Most: 300, Unit: "CPU ms"},
			Bar{Name: "report, computed", Value: after[misses] - before[misses], Most: 0, Unit: "results"})
	}
	unchanged, _, err := b.medianTime(ctx, allReports, header.Get("ETag"), http.StatusNotModified)
	if err != nil {
		return err
	}
	b.addTime("unchanged", unchanged, 20)
	compact, _, err := b.medianTime(ctx, "/v1/results", "", http.StatusOK)
	b.addTime("compact", compact, 150)
	return err
}

// measureTables measures the tables.
func (b *bulkTest) measureTables(ctx context.Context) error {
	for _, table := range bulkTables {
		path := "/v1/tables/" + table.name + ".parquet"
		took, _, err := b.timeRequest(ctx, path, "", http.StatusOK)
		if err == nil && table.most <= 1000 {
			took, _, err = b.medianTime(ctx, path, "", http.StatusOK)
		}
		if err != nil {
			return err
		}
		b.addTime("table "+table.name, took, table.most)
	}
	return nil
}

// measureChanges measures requests after new events of running campaigns.
func (b *bulkTest) measureChanges(ctx context.Context) error {
	if b.ingestToken == "" {
		return nil
	}
	if err := b.sendViews(ctx, changedCampaigns); err != nil {
		return err
	}
	took, err := b.readFresh(ctx)
	if err != nil {
		return err
	}
	b.addTime(fmt.Sprintf("after events in %d", changedCampaigns), took, 3000)

	since := time.Now().UTC()
	if err := b.sendViews(ctx, changedSince); err != nil {
		return err
	}
	if _, err := b.readFresh(ctx); err != nil {
		return err
	}
	took, _, err = b.medianTime(ctx, allReports+"&since="+since.Format(time.RFC3339), "", http.StatusOK)
	b.addTime(fmt.Sprintf("since, %d changed", changedSince), took, 400)
	return err
}

// readFresh returns the time until a request for all results has all accepted events.
func (b *bulkTest) readFresh(ctx context.Context) (time.Duration, error) {
	started := time.Now()
	for {
		_, header, err := b.timeRequest(ctx, allReports, "", http.StatusOK)
		if err != nil || header.Get("Warning") == "" {
			return time.Since(started), err
		}
	}
}

// busiestWebsite returns the website with most running campaigns, of which the token for events must be.
func (b *bulkTest) busiestWebsite() (busiest int64) {
	running := map[int64]int{}
	for _, of := range b.found.campaigns {
		if of.Active {
			running[of.websiteID]++
		}
		if running[of.websiteID] > running[busiest] {
			busiest = of.websiteID
		}
	}
	return busiest
}

// sendViews sends a view of a new visitor to each of a number of running campaigns.
func (b *bulkTest) sendViews(ctx context.Context, campaigns int) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	now := time.Now()
	sent := 0
	website := b.busiestWebsite()
	for _, of := range b.found.campaigns {
		if of.websiteID != website || !of.Active || sent == campaigns {
			continue
		}
		sent++
		_ = encoder.Encode(map[string]any{ // numbers and texts in memory: no error is possible
			"eventId": fmt.Sprintf("bulk/%d/%d", now.UnixNano(), of.ID), "time": now.UnixMilli(), "websiteId": website,
			"visitor": fmt.Sprintf("bulk-%d", now.UnixNano()), "campaignId": of.ID, "variationId": 0, "event": "view",
		})
	}
	if sent < campaigns {
		return fmt.Errorf("website %d has %d running campaigns; the bars need %d: use loadgen standard --campaigns 500, "+
			"and a token for events of its website 1", website, sent, campaigns)
	}
	o := b.sendRequest(ctx, &task{kind: Ingest, path: "/events", events: lines.Bytes()})
	if !o.isSuccess() {
		return fmt.Errorf("POST /events: %s", o.statusName())
	}
	return nil
}

// slowdown returns the bar of single reports beside requests for all results; none: one of the steps has no single
// reports.
func slowdown(alone, beside *Step) []Bar {
	p99 := func(of *Step) float64 {
		for i := range of.Kinds {
			if of.Kinds[i].Kind == Opened {
				return of.Kinds[i].Latency.P99
			}
		}
		return 0
	}
	if p99(alone) == 0 || p99(beside) == 0 {
		return nil
	}
	return []Bar{{Name: "single reports beside it, p99", Value: p99(beside) / p99(alone), Most: mostSlowdown, Unit: "times"}}
}

// barsText formats the bars as a table.
func (r *Result) barsText() string {
	if len(r.Bars) == 0 {
		return ""
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "bar\tmeasured\tat most\tunit\tsingle reports\t")
	for _, b := range r.Bars {
		ratio := ""
		if b.Ratio > 0 {
			ratio = fmt.Sprintf("%.1f", b.Ratio)
		}
		_, _ = fmt.Fprintf(table, "%s\t%.4g\t%g\t%s\t%s\t\n", b.Name, b.Value, b.Most, b.Unit, ratio)
	}
	_ = table.Flush()
	return text.String()
}

// missedBars returns the bars that are missed as an error.
func (r *Result) missedBars() error {
	var errs []error
	for _, b := range r.Bars {
		if b.Value > b.Most {
			errs = append(errs, fmt.Errorf("%s: %.4g %s; at most %g are allowed", b.Name, b.Value, b.Unit, b.Most))
		}
	}
	return errors.Join(errs...)
}
