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
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
)

const reportHelp = `Report prints the results of a campaign, a widget, or an experiment of a widget. On a terminal it prints a table
with the lifts and their intervals as bars; otherwise it prints the JSON of the API. Flags select another format. --sql
prints the SQL that computes the results from the events. --watch repeats the report until interrupted: it updates the table
on a terminal, or prints one line of JSON each time. NO_COLOR disables colours.

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
				err = nil // the user ended it
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&account, "account", 0, "id of the account; required if there are several")
	flags.StringVar(&q.goal, "goal", "", "id of the goal; default: the primary goal")
	flags.StringVar(&q.metric, "metric", "", "metric to compare (compareMetric of the API)")
	flags.StringVar(&q.dimension, "dimension", "", "device, country, channel or referrer")
	flags.StringVar(&q.interval, "interval", "", "hour, day or week: add a series")
	flags.StringArrayVar(&q.filters, "filter", nil, "name=value (filters[name] of the API); can be repeated")
	flags.BoolVar(&as.table, "table", false, "print a table, also into a pipe")
	flags.BoolVar(&as.json, "json", false, "print JSON, also on a terminal")
	flags.BoolVar(&as.csv, "csv", false, "print CSV")
	flags.BoolVar(&as.sql, "sql", false, "print the SQL instead of the results")
	flags.BoolVar(&as.watch, "watch", false, "repeat the report until interrupted")
	flags.DurationVar(&as.every, "every", defaultEvery, "interval of --watch")
	return cmd
}

// reportQuery has the flags of a request.
type reportQuery struct {
	goal, metric, dimension, interval string
	filters                           []string
}

var reportOperations = map[string]query.Operation{
	"campaign": query.CampaignResults, "widget": query.WidgetResults, "experiment": query.ExperimentResults,
}

// request parses the flags with the parser of the API.
func (q *reportQuery) request(args []string) (query.Request, error) {
	if len(args) != 2 {
		return query.Request{}, errors.New("report: must be followed by campaign ID, widget ID or experiment WIDGET/ID")
	}
	operation, known := reportOperations[args[0]]
	if !known {
		return query.Request{}, fmt.Errorf("report: %q: must be campaign, widget or experiment", args[0])
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
			return query.Request{}, fmt.Errorf("report: --filter %q: must be name=value", filter)
		}
		values.Add("filters["+name+"]", value)
	}
	request, err := query.ParseReport(operation, values.Encode())
	if err != nil {
		return request, err
	}
	id, experiment, nested := strings.Cut(args[1], "/")
	var ok, both bool
	request.SubjectID, ok = query.ParseID(id)
	if operation == query.ExperimentResults {
		request.ExperimentID, both = query.ParseID(experiment)
		ok = ok && both
	}
	if !ok || nested != (operation == query.ExperimentResults) {
		return request, fmt.Errorf("report: %q: must be the id of a %s", args[1], args[0])
	}
	return request, nil
}

// reportForm has the format of a report and its repetition.
type reportForm struct {
	table, json, csv, sql bool
	watch                 bool
	every                 time.Duration
}

const (
	defaultEvery  = 5 * time.Second
	shortestEvery = time.Second // the data are refreshed every second
)

// check rejects invalid combinations.
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
		faults = append(faults, fmt.Errorf("report: %s: must be only one of them", strings.Join(asked, " and ")))
	}
	if f.watch && (f.csv || f.sql) {
		faults = append(faults, errors.New("report: --watch prints a table or JSON, not --csv or --sql"))
	}
	if f.every < shortestEvery {
		faults = append(faults, fmt.Errorf("report: --every %s: must be at least %s", f.every, shortestEvery))
	}
	return errors.Join(faults...)
}

func (p *program) report(ctx context.Context, s *app.Store, request query.Request, as reportForm) error {
	if request.AccountID == 0 {
		account, err := onlyAccount(s.Catalogue.Snapshot())
		if err != nil {
			return err
		}
		request.AccountID = account
	}
	as.table = as.table || !as.json && !as.csv && !as.sql && terminal.Is(p.out)
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

// written computes a report and returns it in the selected format.
func (p *program) written(ctx context.Context, s *app.Store, request query.Request, as reportForm) (string, error) {
	plan, err := s.Engine.Plan(request)
	if err != nil {
		return "", err
	}
	if as.sql {
		return s.Engine.SQL(ctx, plan)
	}
	results, err := s.Engine.Report(ctx, plan)
	if err != nil {
		return "", err
	}
	switch {
	case as.csv:
		text, err := render.CSV(results)
		return string(text), err
	case as.table:
		return render.Report(results, terminal.Screen(p.out, p.getenv)), nil
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

// watch repeats the report until the context ends. The last report remains on the
// terminal.
func (p *program) watch(ctx context.Context, s *app.Store, request query.Request, as reportForm) error {
	if p.running == nil && s.Dir != "" {
		return errors.New("--watch: this store is not served, so nothing can change; start 'lifthouse serve' first")
	}
	over := as.table && terminal.Is(p.out)
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
			text = render.Frame(text, foot, terminal.Screen(p.out, p.getenv).Height)
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
