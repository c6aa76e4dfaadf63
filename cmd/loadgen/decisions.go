package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"

	"lifthouse/cmd/internal/bounds"
	"lifthouse/loadgen/calibration"
	"lifthouse/loadgen/report"

	"github.com/spf13/cobra"
)

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
  Breakdown  how often any look finds an effect in any cell, without one

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
			if o.Only, err = regexp.Compile(only); err != nil {
				return usageError{fmt.Errorf("invalid --only %q: must be a regular expression: %w", only, err)}
			}
			return p.calibrateDecisions(cmd.Context(), &o, jsonFile)
		},
	}
	flags := cmd.Flags()
	bounds.Var(flags, &o.Experiments, "experiments", o.Experiments, 1, 1_000_000, "number of campaigns of each scenario; some have 2.5 times as many")
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
