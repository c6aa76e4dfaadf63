package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/bounds"
	"lifthouse/cmd/internal/report"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"

	"github.com/spf13/cobra"
)

const reportHelp = `Report prints the results of a campaign, a widget, or an experiment of a widget. On a terminal it prints a table
with the lifts and their intervals; otherwise it prints the JSON of the API. Flags select another format. --watch
repeats the report until interrupted: it updates the table on a terminal, or prints one line of JSON each time. NO_COLOR
disables colours. --visitors writes a Parquet file with one row for each visitor of the report, from which all its numbers
can be computed.

  lifthouse report campaign 12 --dimension device --filter country=US --filter country=CA
  lifthouse report campaign 12 --metric valuePerVisitor --filter dateFrom=2026-05-01 --filter dateTo=2026-05-31
  lifthouse report widget 7 --goal 3
  lifthouse report experiment 7/2 --interval day
  lifthouse report campaign 12 --dimension device --csv > by-device.csv
  lifthouse report campaign 12 --watch --every 10s
  lifthouse report campaign 12 --scorecard
  lifthouse report campaign 12 --filter device=mobile --visitors mobile.parquet

With --exit-code, the exit code is the decision of the scorecard:

  0 ship · 10 keepRunning · 11 noDifference · 12 rollBack · 13 invalid · 14 noWinner

An error still has exit code 1, and an invalid command line 2.`

func (p *program) reportCommand() *cobra.Command {
	var q report.Flags
	var account int64
	var as report.Form
	cmd := &cobra.Command{
		Use:   "report campaign ID | widget ID | experiment WIDGET/ID",
		Short: "Print the results of a campaign, a widget or an experiment",
		Long:  reportHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Scorecard = q.Scorecard || as.ExitCode
			parse := query.ParseReport
			if as.Visitors != "" {
				parse = query.ParseVisitors
			}
			request, err := q.ParseRequest(args, parse)
			if err != nil {
				return usageError{err}
			}
			if err := as.CheckCombinations(); err != nil {
				return usageError{err}
			}
			p.orDemo()
			err = p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				request.AccountID = account
				return p.printReport(ctx, s, request, as)
			})
			if as.Watch && cmd.Context().Err() != nil {
				err = nil // the user ended the command
			}
			return err
		},
	}
	flags := cmd.Flags()
	accountFlag(cmd, &account)
	flags.StringVar(&q.Goal, "goal", "", "id of the goal; default: the primary goal")
	flags.StringVar(&q.Metric, "metric", "", "metric to compare (compareMetric of the API)")
	flags.StringVar(&q.Dimension, "dimension", "", "attribute of the first view, such as device, country or utmSource (dimension of the API)")
	flags.StringVar(&q.Interval, "interval", "", "hour, day or week: add a series")
	flags.StringVar(&q.Cap, "cap", "", "limit of the total value of a visitor: an amount, or a percentile such as p99")
	flags.BoolVar(&q.Scorecard, "scorecard", false, "also compare all goals and metrics, and decide: ship, roll back, no difference, no winner, or keep running")
	flags.BoolVar(&as.ExitCode, "exit-code", false, "exit with the code of the decision; implies --scorecard")
	flags.StringArrayVar(&q.Filters, "filter", nil, "name=value (filters[name] of the API); can be repeated")
	flags.BoolVar(&as.Table, "table", false, "print a table, also into a pipe")
	flags.BoolVar(&as.JSON, "json", false, "print JSON, also on a terminal")
	flags.BoolVar(&as.CSV, "csv", false, "print CSV")
	flags.StringVar(&as.Visitors, "visitors", "", "write the visitors of the report to a Parquet file instead")
	flags.BoolVar(&as.Watch, "watch", false, "repeat the report until interrupted")
	bounds.Var(flags, &as.Every, "every", report.DefaultEvery, report.ShortestEvery, bounds.MaxWait, "interval of --watch")
	p.completeReport(cmd)
	return cmd
}

func (p *program) printReport(ctx context.Context, s *app.Store, request query.Request, form report.Form) error {
	var err error
	if request.AccountID, err = accountOr(request.AccountID, s.Catalogue.Snapshot()); err != nil {
		return err
	}
	form.Table = form.Table || !form.JSON && !form.CSV && terminal.Is(p.stdout)
	if form.Visitors != "" {
		return p.writeVisitors(ctx, s, request, form.Visitors)
	}
	if form.Watch {
		return p.watchReport(ctx, s, request, form)
	}
	text, decision, err := p.computeReport(ctx, s, request, form)
	if err != nil {
		return err
	}
	if _, err = p.stdout.WriteString(text); err != nil || !form.ExitCode {
		return err
	}
	switch code := exitDecisions[decision]; {
	case decision == "":
		return errors.New("report: there is no decision: --exit-code needs a report about the primary goal and metric and all visitors")
	case code != exitOK:
		return &exitError{code}
	}
	return nil
}

// computeReport computes a report and returns it in the selected format, with its decision.
func (p *program) computeReport(ctx context.Context, s *app.Store, request query.Request, form report.Form) (text string, decision result.DecisionStatus, err error) {
	plan, err := s.Engine.PlanReport(request)
	if err != nil {
		return "", "", err
	}
	if !s.Facts.IsFollowing() { // else the report waits for the server's fold
		if err := s.Facts.RefreshFacts(ctx); err != nil {
			return "", "", err
		}
	}
	results, err := s.Engine.ComputeReport(ctx, plan)
	if err != nil {
		return "", "", err
	}
	if results.Waiting != nil && form.CSV { // which has no warnings
		p.printDiagnostic("%s", results.WarningText(result.WarningWaiting))
	}
	if results.Decision != nil {
		decision = results.Decision.Status
	}
	text, err = p.formatReport(results, form)
	return text, decision, err
}

// writeVisitors writes the visitors of a report to a file, or leaves no file.
func (p *program) writeVisitors(ctx context.Context, s *app.Store, request query.Request, name string) error {
	plan, err := s.Engine.PlanReport(request)
	if err != nil {
		return err
	}
	if err := s.Facts.RefreshFacts(ctx); err != nil {
		return err
	}
	file, err := os.Create(p.absolutePath(name))
	if err != nil {
		return err
	}
	if err := errors.Join(s.Engine.WriteVisitors(ctx, plan, file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// formatReport returns the report in the selected format.
func (p *program) formatReport(results *result.Report, form report.Form) (string, error) {
	switch {
	case form.CSV:
		text, err := render.CSV(results)
		return string(text), err
	case form.Table:
		return render.Report(results, terminal.ScreenOf(p.stdout, p.getenv)), nil
	}
	text, err := render.JSON(results)
	if err != nil || form.Watch {
		return string(text), err
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, text, "", "  ")
	return indented.String(), err
}

// watchReport repeats the report until the context ends. The last report remains on the
// terminal.
func (p *program) watchReport(ctx context.Context, s *app.Store, request query.Request, form report.Form) error {
	if p.running == nil && s.Dir != "" {
		return errors.New("--watch: this store is not served, so nothing can change; start 'lifthouse serve' first")
	}
	over := form.Table && terminal.Is(p.stdout)
	if over {
		_, _ = p.stdout.WriteString(render.ClearScreen)
	}
	tick := time.NewTicker(form.Every)
	defer tick.Stop()
	for {
		text, _, err := p.computeReport(ctx, s, request, form)
		if err != nil {
			return err
		}
		if over {
			foot := fmt.Sprintf("%s · every %s · Ctrl-C ends", time.Now().UTC().Format(time.TimeOnly+" UTC"), form.Every)
			text = render.Frame(text, foot, terminal.ScreenOf(p.stdout, p.getenv).Height)
		}
		if _, err := p.stdout.WriteString(text); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

const looksHelp = `Looks prints what each look at a campaign or an experiment found: the lift with its interval, z with the bound that it must
reach, and the p-value. A server records a look once, a day after its end, and later data do not change it. A look that no
server recorded is computed from the events.

  lifthouse looks campaign 12
  lifthouse looks experiment 7/2 --json`

func (p *program) looksCommand() *cobra.Command {
	var account int64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "looks campaign ID | experiment WIDGET/ID",
		Short: "Print what each look at a campaign or an experiment found",
		Long:  looksHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := (&report.Flags{}).ParseRequest(args, query.ParseReport)
			if err != nil {
				return usageError{err}
			}
			p.orDemo()
			return p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				if request.AccountID, err = accountOr(account, s.Catalogue.Snapshot()); err != nil {
					return err
				}
				plan, err := s.Engine.PlanReport(request)
				if err != nil {
					return err
				}
				if err := s.Facts.RefreshFacts(ctx); err != nil {
					return err
				}
				results, err := s.Engine.ComputeReport(ctx, plan)
				if err != nil {
					return err
				}
				if results.Looks == nil {
					return errors.New("looks: nothing is compared: it needs a campaign or an experiment with at least two variations")
				}
				if asJSON || !terminal.Is(p.stdout) {
					return json.NewEncoder(p.stdout).Encode(results.Looks)
				}
				_, err = p.stdout.WriteString(render.Looks(results))
				return err
			})
		},
	}
	flags := cmd.Flags()
	accountFlag(cmd, &account)
	flags.BoolVar(&asJSON, "json", false, "print JSON, also on a terminal")
	return cmd
}
