// Package report parses the flags of the report command.
package report

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"lifthouse/engine/query"
)

// Flags are the flags of a request.
type Flags struct {
	Goal, Metric, Dimension, Interval, Cap string
	Scorecard                              bool
	Filters                                []string // name=value
}

var operations = map[string]query.Operation{
	"campaign": query.CampaignResults, "widget": query.WidgetResults, "experiment": query.ExperimentResults,
}

// ParseRequest parses the arguments, such as campaign 12, and the flags, using a
// parser of the API. An error names the argument or the flag.
func (q *Flags) ParseRequest(
	args []string, parse func(query.Operation, string) (query.Request, error),
) (query.Request, error) {
	subject, err := ParseSubject("report", args)
	if err != nil {
		return query.Request{}, err
	}
	values := url.Values{}
	for name, value := range map[string]string{"goal": q.Goal, "compareMetric": q.Metric, "dimension": q.Dimension, "interval": q.Interval, "cap": q.Cap} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Scorecard {
		values.Set("scorecard", "true")
	}
	for _, filter := range q.Filters {
		name, value, ok := strings.Cut(filter, "=")
		if !ok {
			return query.Request{}, fmt.Errorf("report: --filter %q: must be name=value", filter)
		}
		values.Add("filters["+name+"]", value)
	}
	request, err := parse(subject.Operation, values.Encode())
	request.SubjectID, request.ExperimentID = subject.SubjectID, subject.ExperimentID
	return request, err
}

// ParseSubject parses the arguments of a command that name a campaign, a widget or an
// experiment. It sets only the fields of the request that identify the subject.
func ParseSubject(command string, args []string) (query.Request, error) {
	if len(args) != 2 {
		return query.Request{}, fmt.Errorf("%s: must be followed by campaign ID, widget ID or experiment WIDGET/ID", command)
	}
	operation, known := operations[args[0]]
	if !known {
		return query.Request{}, fmt.Errorf("%s: %q: must be campaign, widget or experiment", command, args[0])
	}
	request := query.Request{Operation: operation}
	id, experiment, nested := strings.Cut(args[1], "/")
	var ok, both bool
	request.SubjectID, ok = query.ParseID(id)
	if operation == query.ExperimentResults {
		request.ExperimentID, both = query.ParseID(experiment)
		ok = ok && both
	}
	if !ok || nested != (operation == query.ExperimentResults) {
		return query.Request{}, fmt.Errorf("%s: %q: must be the id of a %s", command, args[1], args[0])
	}
	return request, nil
}

// Form is the format of a report, and how it is repeated. At most one format is set.
type Form struct {
	Table, JSON, CSV bool
	Visitors         string // path of a Parquet file with the visitors
	Watch            bool
	Every            time.Duration
	ExitCode         bool // the exit code expresses the decision
}

const (
	// DefaultEvery is the default interval of a repeated report.
	DefaultEvery = 5 * time.Second
	// ShortestEvery is the shortest interval, because the data are refreshed every second.
	ShortestEvery = time.Second
)

// CheckCombinations rejects invalid combinations.
func (f *Form) CheckCombinations() error {
	var asked []string
	for _, form := range []struct {
		name  string
		asked bool
	}{{"--table", f.Table}, {"--json", f.JSON}, {"--csv", f.CSV}, {"--visitors", f.Visitors != ""}} {
		if form.asked {
			asked = append(asked, form.name)
		}
	}
	var faults []error
	if len(asked) > 1 {
		faults = append(faults, fmt.Errorf("report: %s: must be only one of them", strings.Join(asked, " and ")))
	}
	if f.Watch && (f.CSV || f.Visitors != "") {
		faults = append(faults, errors.New("report: --watch prints a table or JSON, not --csv or --visitors"))
	}
	if f.ExitCode && (f.Watch || f.Visitors != "") {
		faults = append(faults, errors.New("report: --exit-code needs one report, without --watch and --visitors"))
	}
	return errors.Join(faults...)
}
