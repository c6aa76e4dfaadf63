package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"lifthouse/cmd/internal/compare"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/calculator"
	"lifthouse/engine/query"
	"lifthouse/engine/render"

	"github.com/spf13/cobra"
)

const compareHelp = `Compare is a calculator: it compares variations from counts, or from means and variances. It needs no store.

With flags, it compares one input. On a terminal it prints a table; otherwise it prints the JSON of the comparison. --table
and --json select the format. A rate is converted/visitors. A mean is visitors:mean:variance, where the variance is that
of one visitor's value (the squared standard deviation):

  lifthouse compare --control 500/10000 --treatment 560/10000 --treatment 545/10000
  lifthouse compare --control 10000:4.2:81 --treatment 10000:4.6:90 --level 95 --nonnegative

Such a comparison describes: it has no winner and no loser. A conclusion needs the sums at each weekly look, as JSON below.
All looks together have the error rate of one test, so decide on plannedDays before the start. --tau states that the
numbers are the first look, at that time: 1 is the planned end, and 0.25 is a week of four.

Without these flags, it reads one JSON object per line from standard input, and prints one line of JSON per input with the
same fields as the results of a campaign, or tables as above:

  echo '{"metric":"binary","variations":[{"n":10000,"converted":500},{"n":10000,"converted":560}]}' | lifthouse compare

  metric             binary (n and converted) or mean (n, mean and variance)
  variations         2 to 21 of {"id", "control", "share", "n", "converted"} or {…, "n", "mean", "variance"};
                     the first is control unless another one is marked; default ids are 0, 1, 2 …;
                     shares are relative weights (50 and 50, or 1 and 1), for all variations or none
  significanceLevel  80, 90, 95 or 100 per cent; default 90
  methodology        frequentist or bayesian; default frequentist
  power              60 to 99 per cent; default 80
  mde                minimum detectable effect, 1 to 100 per cent of control; default 20
  plannedDays        days to the planned end, for looks; default 28
  plannedVisitors    visitors at the planned end, over all variations, which measure the time in place of days
  looks              [{"days", "variations": [{"n", "converted"}, …]}, …]: the sums so far at the end of each week, in
                     order, earlier looks first; {"tau"} in place of days is the time as a fraction of the plan;
                     neither with plannedVisitors
  prior              of lifts, for bayesian: "flat", or {"mean", "standardDeviation"} in per cent; by default 95 % of the
                     lifts are expected within mde
  nonnegative        true if no visitor's value is below zero; default false

Inputs and tables have percentages (20 is 20 %). JSON output has fractions (0.2), as in the results of a campaign;
significanceLevel and share are repeated as given.

An invalid line is answered by {"line", "error", "errors": [{"field", "value", "detail"}]} and a message. The other lines
are answered, and the exit status is 3. Invalid flags give exit status 2.`

func (p *program) compareCommand() *cobra.Command {
	var f compare.Flags
	var asJSON, asTable bool
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Compare variations by their counts or means, without a store",
		Long:  compareHelp,
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON && asTable {
				return usageError{errors.New("compare: --table and --json: must be only one of them")}
			}
			asJSON = asJSON || !asTable && !terminal.Is(p.stdout)
			if f.Control != "" || len(f.Treatments) > 0 {
				return p.compareFlags(&f, cmd.Flags().Changed, asJSON)
			}
			if err := f.CheckAlone(cmd.Flags().Changed); err != nil {
				return usageError{fmt.Errorf("compare: %w", err)}
			}
			return p.compareLines(cmd.Context(), asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Control, "control", "", "`numbers` of control: converted/visitors (500/10000) or visitors:mean:variance (10000:4.2:81)")
	flags.StringArrayVar(&f.Treatments, "treatment", nil, "`numbers` of a variation, in the same form; repeat the flag for more variations")
	flags.StringSliceVar(&f.Shares, "share", nil, "`shares` of the traffic, control first: 50,50 or 1,1")
	flags.IntVar(&f.Level, "level", 90, "significance level in `percent`: 80, 90, 95 or 100")
	flags.StringVar(&f.Methodology, "methodology", "frequentist", "`name` of the methodology: frequentist or bayesian")
	flags.IntVar(&f.Power, "power", 80, "statistical power in `percent`: 60 to 99")
	flags.Float64Var(&f.MDE, "mde", 20, "minimum detectable effect in `percent` of control: 1 to 100")
	flags.Float64Var(&f.Tau, "tau", 0, "`time` at which the numbers are the first look: above 0, where 1 is the planned end (default no look)")
	flags.StringVar(&f.Prior, "prior", "", "`prior` of lifts, for bayesian: flat, or mean:deviation in percent (0:5) (default by --mde)")
	flags.BoolVar(&f.NonNegative, "nonnegative", false, "no visitor's value is below zero")
	flags.BoolVar(&asTable, "table", false, "print tables, also into a pipe")
	flags.BoolVar(&asJSON, "json", false, "print JSON lines, also on a terminal")
	registerCompletion(cmd, "methodology", fixedCompletions("frequentist", "bayesian"))
	registerCompletion(cmd, "level", fixedCompletions("80", "90", "95", "100"))
	return cmd
}

// compareFlags answers the question that the flags describe.
func (p *program) compareFlags(f *compare.Flags, changed func(name string) bool, asJSON bool) error {
	line, err := f.JSON(changed)
	if err != nil {
		return usageError{fmt.Errorf("compare: %w", err)}
	}
	input, err := calculator.ParseInput(line)
	var invalid *query.InvalidError
	if errors.As(err, &invalid) {
		var faults []string
		for _, fault := range invalid.Faults {
			// If the numbers are also those of a look, each fault occurs twice.
			if text := f.FlagOf(fault.Name, fault.Value) + ": " + fault.Detail; !slices.Contains(faults, text) {
				faults = append(faults, text)
			}
		}
		return usageError{fmt.Errorf("compare: %s", strings.Join(faults, "; "))}
	}
	answer := input.ComputeAnswer()
	answer.Line = 1
	if asJSON {
		return p.writeJSON(answer)
	}
	_, err = io.WriteString(p.stdout, render.Comparison(input, answer, terminal.ScreenOf(p.stdout, p.getenv)))
	return err
}

// compareLines answers the lines of standard input one by one.
func (p *program) compareLines(ctx context.Context, inJSON bool) error {
	if terminal.Is(p.stdin) {
		p.printDiagnostic("type an input as one line of JSON; Ctrl-D ends; 'lifthouse compare --help' describes the format")
	}
	lines := make(chan compare.Line)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go compare.ReadLines(ctx, p.stdin, lines)
	rejected := false
	for {
		var line compare.Line
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line = <-lines:
		}
		switch {
		case errors.Is(line.Err, io.EOF) && rejected:
			return &exitError{exitRejected}
		case errors.Is(line.Err, io.EOF):
			return nil
		case line.Err != nil:
			return line.Err
		}
		answered, err := p.answerLine(line, inJSON)
		if err != nil {
			return err
		}
		rejected = rejected || !answered
	}
}

// answerLine answers one line. It returns false if the line is invalid.
func (p *program) answerLine(line compare.Line, inJSON bool) (answered bool, err error) {
	input, err := calculator.ParseInput(line.Text)
	var invalid *query.InvalidError
	if errors.As(err, &invalid) {
		p.printDiagnostic("line %d: %v", line.Number, invalid)
		if inJSON {
			return false, p.writeJSON(calculator.RefuseLine(line.Number, invalid))
		}
		return false, nil
	}
	answer := input.ComputeAnswer()
	answer.Line = line.Number
	if inJSON {
		return true, p.writeJSON(answer)
	}
	_, err = fmt.Fprintf(p.stdout, "line %d\n\n%s\n", line.Number, render.Comparison(input, answer, terminal.ScreenOf(p.stdout, p.getenv)))
	return true, err
}

func (p *program) writeJSON(body any) error {
	text, err := render.JSON(body)
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(text)
	return err
}
