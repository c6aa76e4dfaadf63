package query

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"

	"lifthouse/engine/metric"
	"lifthouse/schema/faults"
)

// Question is a question of a batch.
type Question struct {
	Request
	IfVersion string // version of the answer that the client has; empty: none
}

// The fields of a question that name its subject.
const (
	fieldCampaign   = "campaignId"
	fieldWidget     = "widgetId"
	fieldExperiment = "experimentId"
	// FieldIfVersion is the field with the version that the client has.
	FieldIfVersion = "ifVersion"
)

// reportFields are the fields of a question with the parameters of a report that they set.
var reportFields = []struct{ field, parameter string }{
	{paramExpression, paramExpression},
	{paramVisitors, paramVisitors},
	{ParamDimension, ParamDimension},
	{paramSplit, paramSplit},
	{paramTop, paramTop},
	{paramWindow, paramWindow},
	{paramCap, paramCap},
	{"from", "filters[dateFrom]"},
	{"to", "filters[dateTo]"},
	{ParamInterval, ParamInterval},
}

// QuestionFields returns the names of the fields of a question.
func QuestionFields() []string {
	names := []string{fieldCampaign, fieldWidget, fieldExperiment}
	for _, of := range reportFields {
		names = append(names, of.field)
	}
	return append(names, FieldIfVersion)
}

// fieldOf returns the field of a question that sets a parameter of a report.
func fieldOf(parameter string) string {
	for _, of := range reportFields {
		if of.parameter == parameter {
			return of.field
		}
	}
	return parameter
}

// ParseQuestion reads the fields of a question. findCampaign returns the id of a campaign from its id or its key. The
// error is an InvalidError with all faults, whose names are those of parameters; see InFields.
func ParseQuestion(fields map[string]string, findCampaign func(text string) (int64, error)) (Question, error) {
	p := &Parameters{values: url.Values{}}
	for name, value := range fields {
		p.values.Set(name, value)
		if !slices.Contains(QuestionFields(), name) {
			p.addFault(name, value, "unknown field; "+faults.SuggestName(name, QuestionFields()))
		}
	}
	q := Question{Request: p.readSubject(findCampaign)}
	q.IfVersion, _ = p.SingleValue(FieldIfVersion)
	of := &Parameters{values: url.Values{}}
	for _, field := range reportFields {
		if value, given := fields[field.field]; given {
			of.values.Set(field.parameter, value)
		}
	}
	subject := q.Request
	q.Request = of.readRequest(subject.Operation)
	q.SubjectID = subject.SubjectID
	q.ExperimentID = subject.ExperimentID
	if _, given := of.values[ParamDimension]; given && subject.Operation == WidgetResults {
		of.addFault(ParamDimension, fields[ParamDimension],
			"a widget's own results have no breakdown: omit dimension, or add experimentId")
	}
	p.Append(of.List...)
	return q, p.Err()
}

// readSubject returns a request for the subject of a question, without anything else.
func (p *Parameters) readSubject(findCampaign func(text string) (int64, error)) (r Request) {
	widget := p.ID(fieldWidget)
	r.ExperimentID = p.ID(fieldExperiment)
	campaign, hasCampaign := p.SingleValue(fieldCampaign)
	switch {
	case hasCampaign && (widget != 0 || r.ExperimentID != 0):
		p.addFault(fieldCampaign, campaign, "omit campaignId, or widgetId and experimentId")
	case hasCampaign:
		id, err := findCampaign(campaign)
		if err != nil {
			p.addFault(fieldCampaign, campaign, err.Error())
		}
		r.SubjectID = cmp.Or(id, NoID)
		return r
	case widget == 0 && len(p.values[fieldWidget]) == 0 && len(p.values[fieldCampaign]) == 0:
		p.AddField(fieldCampaign, "must be the id or the key of a campaign; or give widgetId")
	}
	r.Operation = WidgetResults
	r.SubjectID = widget
	if r.ExperimentID != 0 {
		r.Operation = ExperimentResults
	}
	return r
}

// SetAsk makes a request about a campaign or an experiment ask a question that is written in one line.
func (r *Request) SetAsk(ask *metric.Ask) {
	r.Expression = ask.Metric.String()
	r.Dimension = Dimension(strings.Join(ask.Dimensions, ","))
	r.Visitors = ""
	if ask.Visitors != nil {
		r.Visitors = ask.Visitors.String()
	}
	r.Split = ""
	if ask.Split != nil {
		r.Split = ask.Split.Name
	}
}

// InFields returns an error of a question with the names of its fields.
func InFields(err error) error {
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		return err
	}
	named := &InvalidError{Code: invalid.Code, Faults: slices.Clone(invalid.Faults)}
	for i := range named.Faults {
		named.Faults[i].Name = fieldOf(named.Faults[i].Name)
	}
	return named
}

// JoinFaults returns the error of a request: that of its parser with the faults that were found later, if both are
// about parameters, and otherwise the first one.
func JoinFaults(parsed, later error) error {
	var first, second *InvalidError
	areFaults := errors.As(parsed, &first) && errors.As(later, &second)
	switch {
	case parsed == nil:
		return later
	case !areFaults || first.Code != InvalidParameter || second.Code != InvalidParameter:
		return parsed
	}
	all := slices.Clone(first.Faults)
	for _, f := range second.Faults {
		isSame := func(known faults.Fault) bool { return known.Name == f.Name && known.Detail == f.Detail }
		if !slices.ContainsFunc(all, isSame) {
			all = append(all, f)
		}
	}
	return &InvalidError{Code: InvalidParameter, Faults: all}
}
