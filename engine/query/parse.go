package query

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/schema"
)

// maxValues is the maximum number of values of a list filter.
const maxValues = 100

// The parameters of a report other than filters.
const (
	paramWebsite   = "websiteId"
	ParamGoal      = "goal"
	paramDimension = "dimension"
	paramMetric    = "compareMetric"
	ParamInterval  = "interval"
	paramCap       = "cap"
	paramScorecard = "scorecard"
)

// parametersOf has the parameters of each operation other than filters.
var parametersOf = map[Operation][]string{
	CampaignResults:   {paramWebsite, ParamGoal, paramDimension, paramMetric, ParamInterval, paramCap, paramScorecard},
	WidgetResults:     {paramWebsite, ParamGoal, ParamInterval, paramCap},
	ExperimentResults: {paramWebsite, ParamGoal, paramDimension, paramMetric, ParamInterval, paramCap, paramScorecard},
}

// ParseReport parses the query string of an operation. It rejects unknown
// parameters. The error is an InvalidError with all faults. Metric is empty if
// it is not given and depends on the subject.
func ParseReport(operation Operation, rawQuery string) (Request, error) {
	return parseRequest(operation, rawQuery, parametersOf[operation])
}

// ParseVisitors parses the query string of a request for the visitors of a report: the parameters that select
// visitors and goal events. The error is an InvalidError with all faults.
func ParseVisitors(operation Operation, rawQuery string) (Request, error) {
	return parseRequest(operation, rawQuery, []string{paramWebsite, ParamGoal, paramCap})
}

func parseRequest(operation Operation, rawQuery string, names []string) (Request, error) {
	p := parser{Parameters: ReadParameters(rawQuery, append(slices.Clone(names), filterParameters()...)...)}
	p.request = Request{
		Operation: operation,
		WebsiteID: p.ID(paramWebsite),
		GoalID:    p.ID(ParamGoal),
		Dimension: Dimension(p.OneOf(paramDimension, Dimensions)),
		Metric:    Metric(p.OneOf(paramMetric, Comparable[operation])),
		Interval:  Interval(p.OneOf(ParamInterval, Intervals)),
		Scorecard: p.OneOf(paramScorecard, []string{"true", "false"}) == "true",
	}
	p.parseCap()
	p.parseFilters()
	return p.request, p.Err()
}

// parseCap parses the cap of the total values of visitors.
func (p *parser) parseCap() {
	text, given := p.SingleValue(paramCap)
	if !given {
		return
	}
	limit, err := schema.ParseCap(text)
	if err != nil {
		p.addFault(paramCap, text, err.Error())
		return
	}
	p.request.Cap = &limit
}

type parser struct {
	*Parameters
	request Request
}

// filterKey matches filters[name], filters[name][] and filters[name][7].
var filterKey = regexp.MustCompile(`^filters\[([A-Za-z]+)\](\[\d{0,3}\])?$`)

// filterOf returns the name of the filter that a parameter sets, and whether
// the parameter has a list index.
func filterOf(parameter string) (name string, listed bool) {
	key := filterKey.FindStringSubmatch(parameter)
	if key == nil {
		return "", false
	}
	return key[1], key[2] != ""
}

// filterParameters returns the parameter names of the filters.
func filterParameters() []string {
	names := make([]string, len(filterTable))
	for i, filter := range filterTable {
		names[i] = "filters[" + filter.name + "]"
		if filter.kind == listOfText {
			names[i] += "[]"
		}
	}
	return names
}

func (p *parser) parseFilters() {
	for _, filter := range filterTable {
		if filter.kind == listOfText {
			p.parseList(filter.name)
			continue
		}
		name := "filters[" + filter.name + "]"
		for given := range p.values {
			if of, listed := filterOf(given); listed && of == filter.name {
				p.addFault(given, p.values.Get(given), "must be one value, written as "+name)
			}
		}
		text, ok := p.SingleValue(name)
		if !ok {
			continue
		}
		switch filter.kind {
		case oneInstant:
			p.parseWindowTime(name, text, filter.name == "dateTo")
		case oneText, oneVisitorType:
			if filter.kind == oneText || p.OneOf(name, []string{"new", "returning"}) != "" {
				p.request.Filters.Texts = append(p.request.Filters.Texts, TextFilter{filter.name, text})
			}
		case oneAmount:
			p.parseGoalValue(name, text)
		case oneDeviation:
			p.parseZScore(name, text)
		case listOfText:
		}
	}
	f := &p.request.Filters
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		p.addFault("filters[dateTo]", p.values.Get("filters[dateTo]"), "must be after dateFrom, "+FormatInstant(f.From))
	}
}

// parseList parses a list filter. The values are sorted and unique.
func (p *parser) parseList(name string) {
	var all []string
	for given, texts := range p.values {
		if of, _ := filterOf(given); of == name {
			for _, text := range texts {
				if p.checkValue(given, text) {
					all = append(all, p.normalizeValue(given, name, text))
				}
			}
		}
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxValues {
		p.addFault("filters["+name+"][]", fmt.Sprintf("%d values", len(all)), fmt.Sprintf("must have at most %d values", maxValues))
	}
	p.request.Filters.Lists = append(p.request.Filters.Lists, ListFilter{name, all})
}

var countryCode = regexp.MustCompile(`^([A-Z]{2})?$`)

// normalizeValue returns a value in the form of stored attributes.
func (p *parser) normalizeValue(given, name, text string) string {
	switch name {
	case "device", "browser", "os":
		return strings.ToLower(text)
	case "country":
		upper := strings.ToUpper(text)
		if !countryCode.MatchString(upper) {
			p.addFault(given, text, "must be two letters (ISO 3166), or empty for unknown")
		}
		return upper
	}
	return text
}

// parseWindowTime parses RFC 3339 with an offset, or a date. A date means its start in
// UTC, or the end of the day if it ends the window.
func (p *parser) parseWindowTime(name, text string, end bool) {
	t, ok := parseInstant(text, end)
	if !ok {
		p.addFault(name, text, "must be a date (2026-05-01) or RFC 3339 with an offset (2026-05-01T00:00:00Z), in a year from 1970 to 2199")
		return
	}
	if end {
		p.request.Filters.To = t
	} else {
		p.request.Filters.From = t
	}
}

func parseInstant(text string, end bool) (time.Time, bool) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		if end {
			return day.AddDate(0, 0, 1), schema.IsStorable(day)
		}
		return day, schema.IsStorable(day)
	}
	// A plus sign that is not percent-encoded arrives as a space.
	t, err := schema.ParseTime(strings.Replace(text, " ", "+", 1))
	if err != nil || !schema.IsStorable(t) {
		return time.Time{}, false
	}
	if whole := t.Truncate(time.Millisecond); whole.Before(t) {
		t = whole.Add(time.Millisecond) // event times are whole milliseconds, so the window has the same events
	}
	return t.UTC(), true
}

// FormatInstant formats a time in UTC, with milliseconds if there are any.
func FormatInstant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// decimal matches a decimal number, but not NaN, Inf or hexadecimal numbers,
// which the standard parsers accept.
var decimal = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$`)

func (p *parser) parseGoalValue(name, text string) {
	amount := new(big.Rat)
	near, err := strconv.ParseFloat(text, 64) // the response repeats the value as a float64
	ok := err == nil && decimal.MatchString(text)
	if ok {
		amount, ok = amount.SetString(text)
	}
	if !ok || near == 0 && amount.Sign() != 0 {
		p.addFault(name, text, "must be a number")
		return
	}
	p.request.Filters.GoalValue = amount
}

func (p *parser) parseZScore(name, text string) {
	z, err := strconv.ParseFloat(text, 64)
	if err != nil || !decimal.MatchString(text) || z <= 0 {
		p.addFault(name, text, "must be a number above 0")
		return
	}
	p.request.Filters.ZScore = z
}
