package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lifthouse/cmd/internal/app"
	"lifthouse/engine"
	"lifthouse/engine/render"
)

const reportHelp = `Report prints the results of a campaign, of a widget, or of an experiment of a widget, as the API
gives them. On a terminal they are a table, with the lifts and their intervals as bars; into a pipe or a
file JSON, unless a flag says otherwise. --sql prints the SQL that they come from, runnable as it stands.
--watch looks again and again, until interrupted: the table is drawn over the last one, and into a pipe
goes a line of JSON each time. NO_COLOR keeps colours away.

  lifthouse report campaign 12 --dimension device --filter country=US --filter country=CA
  lifthouse report campaign 12 --metric valuePerVisitor --filter dateFrom=2026-05-01 --filter dateTo=2026-05-31
  lifthouse report widget 7 --goal 3
  lifthouse report experiment 7/2 --interval day
  lifthouse report campaign 12 --dimension device --csv > by-device.csv
  lifthouse report campaign 12 --watch --every 10s
  lifthouse report campaign 12 --sql`

func (p *program) reportCommand() *cobra.Command {
	var q reportQuery
	var account int64
	var as reportForm
	cmd := &cobra.Command{
		Use:   "report campaign ID | widget ID | experiment WIDGET/ID",
		Short: "Print the results of a campaign, a widget or an experiment",
		Long:  reportHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := q.request(args)
			if err != nil {
				return usageError{err}
			}
			if err := as.check(); err != nil {
				return usageError{err}
			}
			err = p.withStore(cmd.Context(), func(ctx context.Context, s *app.Store) error {
				request.AccountID = account
				return p.report(ctx, s, request, as)
			})
			if as.watch && cmd.Context().Err() != nil {
				err = nil // so it is ended
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&account, "account", 0, "account it is of; may be left out where there is only one")
	flags.StringVar(&q.goal, "goal", "", "id of the goal; else the primary one")
	flags.StringVar(&q.metric, "metric", "", "what the variations are compared on, as compareMetric of the API")
	flags.StringVar(&q.dimension, "dimension", "", "device, country, channel or referrer")
	flags.StringVar(&q.interval, "interval", "", "hour, day or week: adds a series")
	flags.StringArrayVar(&q.filters, "filter", nil, "name=value, as filters[name] of the API; again for more values or filters")
	flags.BoolVar(&as.table, "table", false, "a table, also into a pipe")
	flags.BoolVar(&as.json, "json", false, "JSON, also on a terminal")
	flags.BoolVar(&as.csv, "csv", false, "CSV, as Accept: text/csv of the API")
	flags.BoolVar(&as.sql, "sql", false, "the SQL in place of the results")
	flags.BoolVar(&as.watch, "watch", false, "again and again, until interrupted")
	flags.DurationVar(&as.every, "every", defaultEvery, "how often --watch looks")
	return cmd
}

// reportQuery is a request as the flags say it.
type reportQuery struct {
	goal, metric, dimension, interval string
	filters                           []string
}

var reportOperations = map[string]engine.Operation{
	"campaign": engine.CampaignResults, "widget": engine.WidgetResults, "experiment": engine.ExperimentResults,
}

// request reads the flags as the API reads its query.
func (q *reportQuery) request(args []string) (engine.Request, error) {
	if len(args) != 2 {
		return engine.Request{}, errors.New("report: of what? campaign ID, widget ID or experiment WIDGET/ID")
	}
	operation, known := reportOperations[args[0]]
	if !known {
		return engine.Request{}, fmt.Errorf("report: %q: want campaign, widget or experiment", args[0])
	}
	values := url.Values{}
	for name, value := range map[string]string{"goal": q.goal, "compareMetric": q.metric, "dimension": q.dimension, "interval": q.interval} {
		if value != "" {
			values.Set(name, value)
		}
	}
	for _, filter := range q.filters {
		name, value, ok := strings.Cut(filter, "=")
		if !ok {
			return engine.Request{}, fmt.Errorf("report: --filter %q: want name=value", filter)
		}
		values.Add("filters["+name+"]", value)
	}
	request, err := engine.ParseReport(operation, values.Encode())
	if err != nil {
		return request, err
	}
	id, experiment, nested := strings.Cut(args[1], "/")
	var ok, both bool
	request.SubjectID, ok = engine.ParseID(id)
	if operation == engine.ExperimentResults {
		request.ExperimentID, both = engine.ParseID(experiment)
		ok = ok && both
	}
	if !ok || nested != (operation == engine.ExperimentResults) {
		return request, fmt.Errorf("report: %q: want the id of a %s", args[1], args[0])
	}
	return request, nil
}

// reportForm is how a report is written, and how often.
type reportForm struct {
	table, json, csv, sql bool
	watch                 bool
	every                 time.Duration
}

const (
	defaultEvery  = 5 * time.Second
	shortestEvery = time.Second // the data are looked at no more often
)

// check refuses what does not go together.
func (f *reportForm) check() error {
	var asked []string
	for _, form := range []struct {
		name  string
		asked bool
	}{{"--table", f.table}, {"--json", f.json}, {"--csv", f.csv}, {"--sql", f.sql}} {
		if form.asked {
			asked = append(asked, form.name)
		}
	}
	var faults []error
	if len(asked) > 1 {
		faults = append(faults, fmt.Errorf("report: %s: want one of them", strings.Join(asked, " and ")))
	}
	if f.watch && (f.csv || f.sql) {
		faults = append(faults, errors.New("report: --watch shows a table or JSON, not --csv or --sql"))
	}
	if f.every < shortestEvery {
		faults = append(faults, fmt.Errorf("report: --every %s: want at least %s", f.every, shortestEvery))
	}
	return errors.Join(faults...)
}

func (p *program) report(ctx context.Context, s *app.Store, request engine.Request, as reportForm) error {
	if request.AccountID == 0 {
		account, err := onlyAccount(s.Catalogue.Snapshot())
		if err != nil {
			return err
		}
		request.AccountID = account
	}
	as.table = as.table || !as.json && !as.csv && !as.sql && isTerminal(p.out)
	if as.watch {
		return p.watch(ctx, s, request, as)
	}
	text, err := p.written(ctx, s, request, as)
	if err != nil {
		return err
	}
	_, err = p.out.WriteString(text)
	return err
}

// written computes a report and writes it as asked for.
func (p *program) written(ctx context.Context, s *app.Store, request engine.Request, as reportForm) (string, error) {
	if as.sql {
		return s.Engine.SQL(ctx, request)
	}
	results, err := s.Engine.Report(ctx, request)
	if err != nil {
		return "", err
	}
	switch {
	case as.csv:
		text, err := results.CSV()
		return string(text), err
	case as.table:
		return render.Report(results, p.screen()), nil
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if !as.watch {
		encoder.SetIndent("", "  ")
	}
	err = encoder.Encode(results)
	return text.String(), err
}

// watch writes the report anew until the context ends. A terminal is left as
// it stands, with the last report on it.
func (p *program) watch(ctx context.Context, s *app.Store, request engine.Request, as reportForm) error {
	if p.running == nil && s.Dir != "" {
		return errors.New("--watch: nothing changes, since this store is not served; start 'lifthouse serve' first")
	}
	over := as.table && isTerminal(p.out)
	if over {
		_, _ = p.out.WriteString(render.ClearScreen)
	}
	tick := time.NewTicker(as.every)
	defer tick.Stop()
	for {
		text, err := p.written(ctx, s, request, as)
		if err != nil {
			return err
		}
		if over {
			foot := fmt.Sprintf("%s · every %s · Ctrl-C ends", time.Now().UTC().Format(time.TimeOnly+" UTC"), as.every)
			text = render.Frame(text, foot, p.screen().Height)
		}
		if _, err := p.out.WriteString(text); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
