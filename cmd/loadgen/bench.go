package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"lifthouse/loadgen/bench"

	"github.com/spf13/cobra"
)

const benchHelp = `Bench sends requests to a running server, whether or not earlier ones are answered, as many people do, and tells how
long the answers took from when each request was due. What cannot be sent, since too many are under way, is counted.

--mix is one of cached, uncached, analyst and mixed, or kinds with weights, such as dashboard=70,filtered=10,list=20:
  dashboard  the same results again and again, with the ETag that the page has
  opened     the same without one
  uncached   results of small campaigns, computed anew for each request
  filtered   an analyst's questions, seldom the same twice
  breakdown, series, list
  ingest     small batches of events; needs --ingest-token; they stay in the store

--ladder raises the rate from --rate on, by half at each step, until the p99 of a step exceeds --target-p99 or more than
0.1 % of its requests fail, and then looks between: the highest rate that will do is the point of saturation.`

func (p *program) benchCommand() *cobra.Command {
	o, mix := bench.Defaults, "mixed"
	var jsonFile, reportFile string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put a load on a running server and tell how long its answers take",
		Long:  benchHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			o.Mix, err = bench.ParseMix(mix)
			if err = errors.Join(err, o.Fault()); err != nil {
				return usageError{err}
			}
			return p.bench(cmd.Context(), o, jsonFile, reportFile)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.URL, "url", o.URL, "of the server")
	flags.StringVar(&o.Token, "token", "", "of the scope read")
	flags.StringVar(&o.IngestToken, "ingest-token", "", "of the scope ingest; none: no events are sent")
	flags.StringVar(&o.AdminURL, "admin-url", "", "of /metrics, such as http://127.0.0.1:8081; none: the server's own figures are left out")
	flags.StringVar(&mix, "mix", mix, "a preset, or kinds with weights")
	flags.Int64SliceVar(&o.Campaigns, "campaign", nil, "campaigns to ask about; none: all")
	flags.Int64Var(&o.IngestCampaign, "ingest-campaign", 0, "campaign that events are sent to; 0: the smallest")
	flags.Float64Var(&o.Rate, "rate", o.Rate, "requests a second; of a ladder the first")
	flags.DurationVar(&o.Duration, "duration", o.Duration, "how long, or each step of a ladder")
	flags.DurationVar(&o.WarmUp, "warm-up", o.WarmUp, "how long before anything is measured")
	flags.DurationVar(&o.Timeout, "timeout", o.Timeout, "how long an answer may take before the request has failed")
	flags.IntVar(&o.MostUnderWay, "most-under-way", o.MostUnderWay, "requests under way at most; those due beyond are not sent")
	flags.BoolVar(&o.Ladder, "ladder", false, "find the highest rate that meets the target")
	flags.DurationVar(&o.TargetP99, "target-p99", o.TargetP99, "of a ladder")
	flags.Uint64Var(&o.Seed, "seed", o.Seed, "of arrivals and requests")
	flags.StringVar(&jsonFile, "json", "", "file for the figures as JSON")
	flags.StringVar(&reportFile, "report", "", "file for a page with the figures and curves, HTML that needs nothing else")
	return cmd
}

// bench runs the load and shows it. What was measured is written even if it is
// no success, or was interrupted.
func (p *program) bench(ctx context.Context, o bench.Options, jsonFile, reportFile string) error {
	display := &bench.Display{To: p.out, Progress: p.err, Terminal: isTerminal(p.out)}
	o.Show, o.ShowEvery = display.Live, display.Every()
	o.Done = func(s bench.Step) { display.Step(s, o.Ladder) }
	result, err := bench.Run(ctx, o)
	if err != nil && len(result.Steps) == 0 {
		return err
	}
	display.End(result)
	if jsonFile != "" {
		err = errors.Join(err, writeJSON(jsonFile, result))
	}
	if reportFile != "" {
		page, drawErr := result.Report()
		err = errors.Join(err, drawErr, writeDrawn(reportFile, page))
	}
	return errors.Join(err, result.Err())
}

// writeJSON writes a result for programs.
func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// writeDrawn writes a page or a picture, if there is one.
func writeDrawn(path string, drawn []byte) error {
	if drawn == nil {
		return nil
	}
	return os.WriteFile(path, drawn, 0o600)
}
