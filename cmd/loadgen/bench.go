package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/loadgen/bench"

	"github.com/spf13/cobra"
)

const benchHelp = `Bench sends requests to a running server at a given rate, whether or not earlier requests have been
answered, and reports latency percentiles. The latency of a request counts from its scheduled start.
Requests that would exceed --max-in-flight are not sent and are counted separately.

--mix is a preset (cached, uncached, analyst, mixed, bulk) or a list of kinds with weights, such as
dashboard=70,filtered=10,list=20. The kinds are:
  dashboard  polls the same results with If-None-Match
  opened     requests the same results without If-None-Match
  uncached   requests results of small campaigns that bypass the cache
  filtered   requests results with filters that rarely repeat
  breakdown  requests results by dimension
  series     requests results by day or week
  list       requests lists of campaigns, widgets and goals
  bulk       requests the reports of all campaigns and experiments at once
  bulkShort  requests all results without fields of reports
  bulkPoll   polls the reports of all with If-None-Match
  ingest     sends small batches of events to the smallest campaign; needs --ingest-token; the events remain

--ladder searches the saturation rate. It multiplies the rate by 1.5 until a step misses the target
twice, and then bisects. A step misses the target if its p99 latency exceeds --target-p99 or more than
0.1 % of its requests fail.

With the preset bulk and without --ladder, requests for all results and tables are first measured one
after the other, and single reports without and beside them. Each has a bar, and a missed bar is an error:
exit status 1. A time is also shown as a multiple of that of a single report, which says more on a busy
machine. The bars are for 500 campaigns (loadgen standard --campaigns 500) on a machine that does nothing
else. The first request computes all results if the server has just started. CPU and memory need
--admin-url; the time after events of 100 campaigns needs --ingest-token of website 1, and its events remain.`

func (p *program) benchCommand() *cobra.Command {
	o := bench.Defaults
	mix := "mixed"
	var jsonFile string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Load-test a server and report latency percentiles",
		Long:  benchHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if at := slices.IndexFunc(o.Campaigns, func(id int64) bool { return id < 1 }); at >= 0 {
				return usageError{fmt.Errorf("--campaign \"%d\": must be an id, an integer from 1", o.Campaigns[at])}
			}
			var err error
			o.Mix, err = bench.ParseMix(mix)
			err = errors.Join(err, o.Validate())
			if err != nil {
				return usageError{err}
			}
			return p.runBench(cmd.Context(), o, jsonFile)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.URL, "url", o.URL, "URL of the server")
	flags.StringVar(&o.Token, "token", "", "token with scope read (required)")
	flags.StringVar(&o.IngestToken, "ingest-token", "", "token with scope ingest, for a mix with ingest")
	flags.StringVar(&o.AdminURL, "admin-url", "", "URL of the admin listener with /metrics, such as http://127.0.0.1:8081; without it the server's metrics are not reported")
	flags.StringVar(&mix, "mix", mix, "preset, or kinds with weights")
	flags.Int64SliceVar(&o.Campaigns, "campaign", nil, "ids of the campaigns to request; without it, all")
	bounds.Var(flags, &o.Rate, "rate", o.Rate, 0.001, 1_000_000, "requests per second; with --ladder, of the first step")
	bounds.Var(flags, &o.Duration, "duration", o.Duration, time.Millisecond, bounds.MaxWait, "duration of each step")
	bounds.Var(flags, &o.WarmUp, "warm-up", o.WarmUp, 0, bounds.MaxWait, "duration of the load before the first measured step")
	bounds.Var(flags, &o.Timeout, "timeout", o.Timeout, time.Millisecond, bounds.MaxWait, "timeout of a request")
	bounds.Var(flags, &o.MaxInFlight, "max-in-flight", o.MaxInFlight, 1, 1_000_000, "maximum number of requests in flight")
	flags.BoolVar(&o.Ladder, "ladder", false, "search the highest rate that meets --target-p99")
	bounds.Var(flags, &o.TargetP99, "target-p99", o.TargetP99, time.Microsecond, bounds.MaxWait, "target p99 latency of --ladder")
	bounds.Var(flags, &o.Seed, "seed", o.Seed, 0, math.MaxUint64, "seed of the arrivals and requests")
	flags.StringVar(&jsonFile, "json", "", "write the result to this JSON file")
	return cmd
}

// runBench runs a load test and writes its result. If the test fails or is
// interrupted after the first step, the result so far is written too.
func (p *program) runBench(ctx context.Context, o bench.Options, jsonFile string) error {
	o.Progress = func(now bench.Progress) { p.printDiagnostic("%v", now) }
	o.StepDone = func(s *bench.Step) {
		text := s.String()
		if o.Ladder {
			text = s.LadderText()
		}
		_, _ = fmt.Fprint(p.out, text)
	}
	result, err := bench.Run(ctx, o)
	if err != nil && len(result.Steps) == 0 {
		return err
	}
	_, _ = fmt.Fprint(p.out, result)
	if jsonFile != "" {
		err = errors.Join(err, writeJSON(jsonFile, result))
	}
	return errors.Join(err, result.Err())
}
