package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"lifthouse/cmd/internal/app"
	"lifthouse/cmd/internal/terminal"
	"lifthouse/engine/metric"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/render"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema"

	"github.com/spf13/cobra"
)

// reportOptions are the flags of report that say what is written.
type reportOptions struct {
	asJSON, asCSV, exitCode bool
	visitorsFile            string // path of a Parquet file with the visitors
}

// parseParameters parses the parameters of the API for what is written.
func (o *reportOptions) parseParameters(operation query.Operation, text string) (query.Request, error) {
	if o.visitorsFile != "" {
		return query.ParseVisitors(operation, text)
	}
	return query.ParseReport(operation, text)
}

func (p *program) reportCommand() *cobra.Command {
	var o reportOptions
	cmd := newCommand("report", func(cmd *cobra.Command, args []string) error {
		_, err := parseRequest(cmd, args, o.parseParameters, acceptAnyKey)
		if err == nil {
			err = onlyOne(cmd, "json", "csv", "visitors-file")
		}
		if err != nil {
			return usageError{err}
		}
		return nil
	}, nil)
	flags := cmd.Flags()
	flags.String("goal", "", "id or key of the goal; default: the primary goal")
	flags.String("metric", "",
		"metric to compare: a name such as valuePerVisitor, or an expression such as 'sum(purchase.value)'")
	flags.String("visitors", "", "only visitors with this condition, such as \"device = 'mobile'\"")
	flags.String("split", "", "split the metric by a text of goals or lines, such as items.category")
	flags.String("top", "", "number of values of a split: 1 to 1000; default: 50")
	flags.String("dimension", "",
		"attribute of the first view, such as device, or two with a comma between them (dimension of the API)")
	flags.String("interval", "", "hour, day or week: add a series")
	flags.String("cap", "", "limit of the total value of a visitor: an amount, or a percentile such as p99")
	flags.String("conversion-window", "",
		"time since the first view in which events count, such as 7d, 72h, 7d..14d or none; default: that of the goal")
	flags.String("curve", "", "add the curve by the age of the visitors: the first 2 to 400 days after the first view")
	flags.Lookup("curve").NoOptDefVal = anyDays
	flags.Bool("scorecard", false,
		"also compare all goals and metrics, and decide: ship, roll back, no difference, no winner, or keep running")
	flags.BoolVar(&o.exitCode, "exit-code", false, "exit with the code of the decision; implies --scorecard")
	flags.Bool("complement", false, "also compare the filtered visitors with all others")
	flags.StringArray("filter", nil, "name=value (filters[name] of the API); can be repeated")
	flags.BoolVar(&o.asJSON, "json", false, "print the JSON of the API")
	flags.BoolVar(&o.asCSV, "csv", false, "print CSV")
	flags.StringVar(&o.visitorsFile, "visitors-file", "", "write the visitors of the report to a Parquet file instead")
	p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		request, err := parseRequest(cmd, args, o.parseParameters, s.owned.FindID)
		if err != nil {
			return err
		}
		request.AccountID = s.owned.ID
		if o.visitorsFile != "" {
			return inFlags(cmd, p.writeVisitors(ctx, s, request, o.visitorsFile))
		}
		results, err := computeReport(ctx, s.Store, request)
		if err != nil {
			return inFlags(cmd, err)
		}
		if err := p.printReport(results, &o); err != nil {
			return err
		}
		if o.exitCode {
			return exitOfDecision(results)
		}
		return nil
	})
	completeFlag(cmd, "metric", query.Comparable[query.ExperimentResults]...)
	completeFlag(cmd, "dimension", query.Dimensions...)
	completeFlag(cmd, "interval", query.Intervals...)
	return cmd
}

// printReport prints a report as CSV, as the JSON of the API, or for people.
func (p *program) printReport(results *result.Report, o *reportOptions) error {
	var text []byte
	var err error
	switch {
	case o.asCSV:
		if results.Waiting != nil { // CSV has no warnings
			p.printDiagnostic("%s", results.WarningText(result.WarningWaiting))
		}
		text, err = render.CSV(results)
	case o.asJSON:
		var indented bytes.Buffer
		text, err = render.JSON(results)
		if err == nil {
			err = json.Indent(&indented, text, "", "  ")
		}
		text = indented.Bytes()
	default:
		text = []byte(render.Report(results, terminal.ScreenOf(p.stdout, p.getenv)))
	}
	if err == nil {
		_, err = p.stdout.Write(text)
	}
	return err
}

// exitOfDecision returns the exit code of the decision as an error, unless it is 0.
func exitOfDecision(results *result.Report) error {
	if results.Decision == nil {
		return errors.New("report: there is no decision: --exit-code needs a report about the primary goal " +
			"and metric and all visitors")
	}
	if code := exitDecisions[results.Decision.Status]; code != exitOK {
		return &exitError{code}
	}
	return nil
}

// writeVisitors writes the visitors of a report to a file, or leaves no file.
func (p *program) writeVisitors(ctx context.Context, s ownedStore, request query.Request, path string) error {
	planned, err := s.Engine.PlanWithNames(ctx, request, s.owned)
	if err == nil {
		err = s.Facts.RefreshFacts(ctx)
	}
	if err != nil {
		return err
	}
	file, err := os.Create(p.absolutePath(path))
	if err != nil {
		return err
	}
	if err := errors.Join(s.Engine.WriteVisitors(ctx, planned, file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// anyDays is the value of --curve without a number of days.
const anyDays = "DAYS"

// parameterOfFlag maps flags of report to parameters of the API.
var parameterOfFlag = map[string]string{
	"goal": "goal", "metric": nameOfMetric, "visitors": "visitors", "split": "split", "top": "top",
	"dimension": "dimension", "interval": "interval", "cap": "cap",
	"scorecard": "scorecard", "complement": "complement", "conversion-window": "conversionWindow",
	"from": "filters[dateFrom]", "to": "filters[dateTo]",
}

// The parameters of a metric with a name, and of one that is written.
const (
	nameOfMetric = "compareMetric"
	textOfMetric = "metric"
)

// namesOfMetrics returns the names of the metrics that have one.
func namesOfMetrics() (names []string) {
	for _, alias := range metric.Aliases {
		names = append(names, alias.Name)
	}
	return names
}

// parseRequest parses the arguments, such as campaign 12, and the flags, using a parser of the API. An error names the
// argument, the flag or the parameter.
func parseRequest(
	cmd *cobra.Command, args []string, parse func(query.Operation, string) (query.Request, error), find findID,
) (query.Request, error) {
	subject, err := parseSubject(cmd.Name(), args, find)
	if err != nil {
		return query.Request{}, err
	}
	values := url.Values{}
	for name, parameter := range parameterOfFlag {
		if cmd.Flags().Changed(name) {
			values.Set(parameter, cmd.Flags().Lookup(name).Value.String())
		}
	}
	if text := values.Get(nameOfMetric); text != "" && !metric.IsAlias(text) { // an expression, or the key of a metric
		values.Del(nameOfMetric)
		values.Set(textOfMetric, text)
	}
	if cmd.Flags().Changed("curve") {
		values.Set("curve", "exposureDay")
		if days := cmd.Flags().Lookup("curve").Value.String(); days != anyDays {
			values.Set("curveDays", days)
		}
	}
	if goal := values.Get("goal"); goal != "" {
		id, err := find(schema.NameGoal, goal)
		if err != nil {
			return query.Request{}, fmt.Errorf("%s: --goal: %w", cmd.Name(), err)
		}
		values.Set("goal", strconv.FormatInt(id, 10))
	}
	if cmd.Flags().Changed("exit-code") {
		values.Set("scorecard", "true")
	}
	filters, _ := cmd.Flags().GetStringArray("filter") // none: another command
	for _, filter := range filters {
		name, value, ok := strings.Cut(filter, "=")
		if !ok {
			return query.Request{}, fmt.Errorf("report: --filter %q: must be name=value", filter)
		}
		values.Add("filters["+name+"]", value)
	}
	request, err := parse(plan.ResultsRequest(0, subject).Operation, values.Encode())
	request.SubjectID, request.ExperimentID = subject.ID, subject.ExperimentID
	return request, inFlags(cmd, err)
}

// filterName matches the parameter of a filter.
var filterName = regexp.MustCompile(`filters\[(\w+)\](\[\])?`)

// inFlags writes the parameters that an error names as the flags of the command that set them.
func inFlags(cmd *cobra.Command, err error) error {
	var invalid *query.InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	for i := range invalid.Faults {
		f := &invalid.Faults[i]
		for flag, parameter := range parameterOfFlag {
			if f.Name == parameter && cmd.Flags().Lookup(flag) != nil {
				f.Name = "--" + flag
			}
		}
		if f.Name == textOfMetric {
			if isWord := !strings.Contains(f.Value, "("); isWord {
				f.Detail += "; or " + strings.Join(namesOfMetrics(), ", ")
			}
			f.Name = "--metric"
			f.Detail = strings.Replace(f.Detail, "omit compareMetric and goal, or metric:", "omit --goal:", 1)
		}
		f.Name, f.Detail = filterName.ReplaceAllString(f.Name, "--filter $1"),
			filterName.ReplaceAllString(f.Detail, "--filter $1")
		if strings.HasPrefix(f.Name, "curve") {
			f.Name = "--curve"
		}
	}
	return usageError{err}
}

// findID returns the id of a campaign or a goal from its id or its key.
type findID func(kind schema.NameKind, text string) (int64, error)

// subjectArgs checks the arguments of a command that name a subject.
func subjectArgs(cmd *cobra.Command, args []string) error {
	if _, err := parseSubject(cmd.Name(), args, acceptAnyKey); err != nil {
		return usageError{err}
	}
	return nil
}

// acceptAnyKey is a findID that accepts every key, to check arguments before the store is open.
func acceptAnyKey(kind schema.NameKind, text string) (int64, error) {
	id, _, err := schema.IDOf(0, kind, text)
	return id, err
}

// parseSubject parses the arguments of a command that name a campaign, a widget or an experiment.
func parseSubject(command string, args []string, find findID) (s schema.Subject, err error) {
	if len(args) != 2 {
		return s, fmt.Errorf("%s: must be followed by campaign ID or KEY, widget ID or experiment WIDGET/ID", command)
	}
	isNested := args[0] == "experiment"
	switch {
	case args[0] == "campaign":
		s.Kind = schema.SubjectCampaign
		s.ID, err = find(schema.NameCampaign, args[1])
		if err != nil {
			err = fmt.Errorf("%s: %w", command, err)
		}
		return s, err
	case args[0] != "widget" && !isNested:
		return s, fmt.Errorf("%s: %q: must be campaign, widget or experiment", command, args[0])
	}
	s.Kind = schema.SubjectWidget
	id, experiment, nested := strings.Cut(args[1], "/")
	var isID, hasExperiment bool
	s.ID, isID = query.ParseID(id)
	s.ExperimentID, hasExperiment = query.ParseID(experiment)
	if !isID || nested != isNested || nested != hasExperiment {
		return s, fmt.Errorf("%s: %q: must be the id of a %s", command, args[1], args[0])
	}
	return s, nil
}

// computeReport computes a report of all stored events.
func computeReport(ctx context.Context, s *app.Store, request query.Request) (*result.Report, error) {
	owned := s.Catalogue.Snapshot().AccountResources(request.AccountID)
	plan, err := s.Engine.PlanWithNames(ctx, request, owned)
	if err == nil {
		err = foldEvents(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	return s.Engine.ComputeReport(ctx, plan)
}

// foldEvents folds the stored events, unless a server does, for whose fold reports and tables wait. If the disk of an
// embedded store is full, they are of the events that are folded.
func foldEvents(ctx context.Context, s *app.Store) error {
	if s.Facts.IsFollowing() {
		return nil
	}
	err := s.Facts.RefreshFacts(ctx)
	if isEmbedded := s.Dir != ""; isEmbedded && source.IsFull(err) {
		return nil // reports say so
	}
	return err
}

func (p *program) looksCommand() *cobra.Command {
	var asJSON bool
	cmd := newCommand("looks", subjectArgs, nil)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return p.onAccount(cmd, func(ctx context.Context, s ownedStore, args []string) error {
		request, err := parseRequest(cmd, args, query.ParseReport, s.owned.FindID)
		if err != nil {
			return err
		}
		request.AccountID = s.owned.ID
		results, err := computeReport(ctx, s.Store, request)
		switch {
		case err != nil:
			return err
		case results.Looks == nil:
			return errors.New("looks: nothing is compared: it needs a campaign or an experiment with at least " +
				"two variations")
		case asJSON:
			return p.writeJSON(results.Looks)
		}
		_, err = p.stdout.WriteString(render.Looks(results))
		return err
	})
}
