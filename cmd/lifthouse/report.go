package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"lifthouse/engine"
)

const reportHelp = `Report prints the results of a campaign, of a widget, or of an experiment of a widget, as the API
gives them, in JSON. With --sql it prints the SQL that they come from, runnable as it stands.

  lifthouse report campaign 12 --dimension device --filter country=US --filter country=CA
  lifthouse report campaign 12 --metric valuePerVisitor --filter dateFrom=2026-05-01 --filter dateTo=2026-05-31
  lifthouse report widget 7 --goal 3
  lifthouse report experiment 7/2 --interval day
  lifthouse report campaign 12 --sql`

func (p *program) reportCommand() *cobra.Command {
	var q reportQuery
	var account int64
	var showSQL bool
	cmd := &cobra.Command{
		Use:   "report campaign ID | widget ID | experiment WIDGET/ID",
		Short: "Print the results of a campaign, a widget or an experiment",
		Long:  reportHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := q.request(args)
			if err != nil {
				return usageError{err}
			}
			return p.withStore(cmd.Context(), func(ctx context.Context, s *store) error {
				request.AccountID = account
				return p.report(ctx, s, request, showSQL)
			})
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&account, "account", 0, "account it is of; may be left out where there is only one")
	flags.StringVar(&q.goal, "goal", "", "id of the goal; else the primary one")
	flags.StringVar(&q.metric, "metric", "", "what the variations are compared on, as compareMetric of the API")
	flags.StringVar(&q.dimension, "dimension", "", "device, country, channel or referrer")
	flags.StringVar(&q.interval, "interval", "", "hour, day or week: adds a series")
	flags.StringArrayVar(&q.filters, "filter", nil, "name=value, as filters[name] of the API; again for more values or filters")
	flags.BoolVar(&showSQL, "sql", false, "print the SQL in place of the results")
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

func (p *program) report(ctx context.Context, s *store, request engine.Request, showSQL bool) error {
	if request.AccountID == 0 {
		account, err := onlyAccount(s.Catalogue.Snapshot())
		if err != nil {
			return err
		}
		request.AccountID = account
	}
	if showSQL {
		text, err := s.Engine.SQL(ctx, request)
		if err != nil {
			return err
		}
		_, err = p.out.WriteString(text)
		return err
	}
	results, err := s.Engine.Report(ctx, request)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(p.out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(results)
}
