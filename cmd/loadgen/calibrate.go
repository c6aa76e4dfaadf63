package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"time"

	"lifthouse/api"
	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/engine/source"
	"lifthouse/loadgen/calibration"
	"lifthouse/loadgen/report"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/ingest"

	"github.com/spf13/cobra"
)

const calibrateHelp = `Calibrate generates synthetic experiments with known effects, sends their events over HTTP to a server
that it starts, and reads the reports with each methodology and significance level. It compares false
positive rates, power, wrong signs and interval coverage with their nominal levels: of the report, of its
weekly looks, and of the report read every day.

The acceptance bands hold simultaneously with 99.9 % confidence. "=" marks exact rates, "≈" rates of
asymptotic methods, whose error rates may differ by a fifth, and "≤" and "≥" one-sided bounds. Not
tested are reports that are read every day, numbers that the report itself restricts (there
the verdict is tested), and Bayesian reports of several variations, which do not control the
family-wise error rate. The exit status is 1 if a tested rate is outside its band.

The subcommand decisions measures the error rates of conclusions, without a server.`

func (p *program) calibrateCommand() *cobra.Command {
	o := calibration.Defaults
	var jsonFile string
	cmd := &cobra.Command{
		Use:   "calibrate",
		Short: "Measure error rates and interval coverage against their nominal levels",
		Long:  calibrateHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Null+o.Effect < calibration.MinExperiments {
				return usageError{fmt.Errorf("invalid --experiments-aa and --experiments-ab: their sum must be at least %d", calibration.MinExperiments)}
			}
			return p.runCalibration(cmd.Context(), &o, jsonFile)
		},
	}
	flags := cmd.Flags()
	bounds.Var(flags, &o.Null, "experiments-aa", o.Null, 0, 100_000, "number of experiments without an effect")
	bounds.Var(flags, &o.Effect, "experiments-ab", o.Effect, 0, 100_000, "number of experiments with an effect")
	bounds.Var(flags, &o.Visitors, "visitors", o.Visitors, 100, 15_000, "visitors of an experiment with two equal groups; other experiments have up to three times as many")
	bounds.Var(flags, &o.Seed, "seed", o.Seed, 0, math.MaxUint64, "seed of all random numbers; equal seeds give equal tables")
	flags.StringVar(&jsonFile, "json", "", "write the result to this JSON file")
	cmd.AddCommand(p.calibrateDecisionsCommand(), p.calibrateProgrammeCommand())
	return cmd
}

func (p *program) runCalibration(ctx context.Context, o *calibration.Options, jsonFile string) (err error) {
	store, err := os.MkdirTemp("", "lifthouse-calibrate-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(store)) }()
	slog.SetDefault(slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn})))
	s, err := app.OpenStore(ctx, schema.Address{Dir: store}, app.Options{Limits: source.DefaultLimits, Times: ingest.DefaultTimes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	system, stop, err := startServer(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	o.Progress = p.phaseProgress()
	result, err := calibration.Run(ctx, system, o)
	if err != nil {
		return err
	}
	err = (&report.Benchmarks{Calibration: result}).WriteTables(p.out, "calibration")
	if jsonFile != "" {
		err = errors.Join(err, writeJSON(jsonFile, result))
	}
	return errors.Join(err, result.Err())
}

// startServer serves the store on a free port. The server does not cache
// results, because no report is requested twice.
func startServer(ctx context.Context, s *app.Store) (system *calibration.System, stop func(), err error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	options := api.DefaultOptions
	options.TokenRate, options.ResultsAge, options.ResultsMemory = 0, 0, 0
	collectorCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	server := &http.Server{Handler: s.API(collectorCtx, options), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // returns http.ErrServerClosed after Close
	}()
	system = &calibration.System{
		URL:  "http://" + listener.Addr().String(),
		HTTP: &http.Client{},
		Apply: func(ctx context.Context, file catalogue.File) error {
			_, err := s.Catalogue.ApplyFile(ctx, file, false)
			return err
		},
		Fold: s.Facts.RefreshFacts,
		Tokens: func(ctx context.Context) (calibration.Tokens, error) {
			read, _, readErr := s.Catalogue.CreateToken(ctx, catalogue.Token{AccountID: calibration.AccountID, Scopes: []catalogue.Scope{catalogue.ScopeRead}})
			send, _, sendErr := s.Catalogue.CreateToken(ctx, catalogue.Token{AccountID: calibration.AccountID, WebsiteID: calibration.WebsiteID, Scopes: []catalogue.Scope{catalogue.ScopeIngest}})
			return calibration.Tokens{Read: read, Ingest: send}, errors.Join(readErr, sendErr)
		},
	}
	return system, func() {
		_ = server.Close()
		<-done
		cancel()
	}, nil
}

const calibrateProgrammeHelp = `Programme simulates websites with several campaigns through the looks of the program, and compares
what is stated of the shipped variations with what is true: as observed, by the estimates of GrowthBook and Datadog, and by
worth. The exit status is 1 if a bar is missed. docs/benchmarks/programme.md has its tables.`

func (p *program) calibrateProgrammeCommand() *cobra.Command {
	o := calibration.ProgrammeDefaults
	o.Workers = runtime.GOMAXPROCS(0)
	cmd := &cobra.Command{
		Use: "programme", Short: "Measure how far worth is from the truth, by simulation", Long: calibrateProgrammeHelp, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			progress := p.phaseProgress()
			o.Progress = func(done, all int) { progress("programme", done, all) }
			rows, err := calibration.RunProgrammes(cmd.Context(), &o)
			if err != nil {
				return err
			}
			harm, err := calibration.RunHarm(cmd.Context(), &o)
			if err != nil {
				return err
			}
			return errors.Join(calibration.WriteProgrammes(p.out, rows), calibration.WriteHarm(p.out, harm))
		},
	}
	bounds.Var(cmd.Flags(), &o.Campaigns, "campaigns", o.Campaigns, 60, 10_000_000, "number of campaigns of each row")
	bounds.Var(cmd.Flags(), &o.Seed, "seed", o.Seed, 0, math.MaxUint64, "seed of all random numbers; equal seeds give equal tables")
	return cmd
}

const calibrateDecisionsHelp = `Decisions simulates campaigns with a clock of their own, without events and without a server: daily sums are
drawn, and the schedule, the looks, the ledger and the report of the program decide. It compares the rates
with their limits:

  A/A        how often any weekly look names a winner or a loser, without an effect: by traffic, split, metric and
             methodology, and with weekdays, outages, pauses, stops, late conversions, visitors of two variations
             and changed shares
  Power      how often the first four looks find an effect of the minimum size at the required sample
  Guardrails how often a guardrail is safe or harmed, and how often the report says ship, roll back or no
             difference where it should not
  Ratio      how often a sample ratio mismatch is reported, with and without one
  Breakdown  how often lifts seem to differ between slices where they are equal
  Campaigns that disturb each other
             how often they are found, and how often they seem to where they do not
  Questions  how often any answer to an analyst holds, without an effect, and how often effects are found
  Later orders
             how often any reading shows a difference without an effect

A band is the limit and two standard errors. About one correct rate of 40 that is exactly at its limit
is outside its band. The exit status is 1 if a rate is outside its band.`

func (p *program) calibrateDecisionsCommand() *cobra.Command {
	o := calibration.DecisionDefaults
	o.Workers = runtime.GOMAXPROCS(0)
	var only, jsonFile string
	cmd := &cobra.Command{
		Use:   "decisions",
		Short: "Measure error rates and power of conclusions by simulation",
		Long:  calibrateDecisionsHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			o.Only, err = regexp.Compile(only)
			if err != nil {
				return usageError{fmt.Errorf("invalid --only %q: must be a regular expression: %w", only, err)}
			}
			return p.calibrateDecisions(cmd.Context(), &o, jsonFile)
		},
	}
	flags := cmd.Flags()
	bounds.Var(flags, &o.Experiments, "experiments", o.Experiments, 1, 1_000_000, "number of campaigns of each scenario; some have fewer, or 2.5 times as many")
	bounds.Var(flags, &o.Seed, "seed", o.Seed, 0, math.MaxUint64, "seed of all random numbers; equal seeds give equal tables")
	flags.StringVar(&only, "only", "", `regular expression for the scenarios to run, such as "A/A.*bayesian" (default all)`)
	flags.StringVar(&jsonFile, "json", "", "write the result to this JSON file")
	return cmd
}

func (p *program) calibrateDecisions(ctx context.Context, o *calibration.DecisionOptions, jsonFile string) error {
	o.Progress = p.phaseProgress()
	result, err := calibration.RunDecisions(ctx, o)
	if err != nil {
		return err
	}
	err = (&report.Benchmarks{Decisions: result}).WriteTables(p.out, "decisions")
	if jsonFile != "" {
		err = errors.Join(err, writeJSON(jsonFile, result))
	}
	return errors.Join(err, result.Err())
}
