package engine

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lifthouse/schema"
)

// maxValues bounds one list filter.
const maxValues = 100

// The parameters of a report beside its filters.
const (
	paramWebsite   = "websiteId"
	paramGoal      = "goal"
	paramDimension = "dimension"
	paramMetric    = "compareMetric"
	paramInterval  = "interval"
)

// parametersOf are the parameters of an operation beside its filters.
var parametersOf = map[Operation][]string{
	CampaignResults:   {paramWebsite, paramGoal, paramDimension, paramMetric, paramInterval},
	WidgetResults:     {paramWebsite, paramGoal, paramInterval},
	ExperimentResults: {paramWebsite, paramGoal, paramMetric, paramInterval},
}

// ParseReport reads the query of an operation. Unknown parameters are refused;
// the error is an InvalidError with all faults. A metric that is not named is
// left empty where it depends on the subject.
func ParseReport(operation Operation, rawQuery string) (Request, error) {
	p := parser{Parameters: &Parameters{
		known: func(name string) bool { return slices.Contains(parametersOf[operation], name) || isFilter(name) },
		names: append(slices.Clone(parametersOf[operation]), filterParameters()...),
	}}
	p.read(rawQuery)
	p.request = Request{
		Operation: operation,
		WebsiteID: p.ID(paramWebsite),
		GoalID:    p.ID(paramGoal),
		Dimension: Dimension(p.OneOf(paramDimension, dimensions)),
		Metric:    Metric(p.OneOf(paramMetric, comparable[operation])),
		Interval:  Interval(p.OneOf(paramInterval, intervals)),
	}
	if operation == CampaignResults {
		p.request.Metric = cmp.Or(p.request.Metric, GoalConversionRate)
	}
	p.filters()
	return p.request, p.Err()
}

type parser struct {
	*Parameters
	request Request
}

// filterKey reads filters[name], filters[name][] and filters[name][7].
var filterKey = regexp.MustCompile(`^filters\[([A-Za-z]+)\](\[\d{0,3}\])?$`)

// filterOf returns the name of the filter that a parameter sets, and whether
// the parameter is written as one of a list.
func filterOf(parameter string) (name string, listed bool) {
	key := filterKey.FindStringSubmatch(parameter)
	if key == nil {
		return "", false
	}
	return key[1], key[2] != ""
}

func isFilter(parameter string) bool {
	name, _ := filterOf(parameter)
	for _, filter := range filterTable {
		if filter.name == name {
			return true
		}
	}
	return false
}

// filterParameters are the filters as a request spells them.
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

func (p *parser) filters() {
	for _, filter := range filterTable {
		if filter.kind == listOfText {
			p.list(filter.name)
			continue
		}
		name := "filters[" + filter.name + "]"
		for given := range p.values {
			if of, listed := filterOf(given); listed && of == filter.name {
				p.fault(given, p.values.Get(given), "want one value, as "+name)
			}
		}
		text, ok := p.One(name)
		if !ok {
			continue
		}
		switch filter.kind {
		case oneInstant:
			p.instant(name, text, filter.name == "dateTo")
		case oneVisitorType:
			if p.OneOf(name, []string{"new", "returning"}) != "" {
				p.request.Filters.Texts = append(p.request.Filters.Texts, TextFilter{filter.name, text})
			}
		case oneText:
			p.request.Filters.Texts = append(p.request.Filters.Texts, TextFilter{filter.name, text})
		case oneAmount:
			p.amount(name, text)
		case oneDeviation:
			p.deviation(name, text)
		case listOfText:
		}
	}
	f := &p.request.Filters
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		p.fault("filters[dateTo]", p.values.Get("filters[dateTo]"), "want an instant after dateFrom, "+formatInstant(f.From))
	}
}

// list collects every spelling of a list filter, sorted and without repeats.
func (p *parser) list(name string) {
	var all []string
	for given, texts := range p.values {
		if of, _ := filterOf(given); of == name {
			for _, text := range texts {
				if p.clean(given, text) {
					all = append(all, p.normalised(given, name, text))
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
		p.fault("filters["+name+"][]", fmt.Sprintf("%d values", len(all)), fmt.Sprintf("want at most %d", maxValues))
	}
	p.request.Filters.Lists = append(p.request.Filters.Lists, ListFilter{name, all})
}

var countryCode = regexp.MustCompile(`^([A-Z]{2})?$`)

// normalised writes a value as events hold it.
func (p *parser) normalised(given, name, text string) string {
	switch name {
	case "device", "browser", "os":
		return strings.ToLower(text)
	case "country":
		upper := strings.ToUpper(text)
		if !countryCode.MatchString(upper) {
			p.fault(given, text, "want two letters, as in ISO 3166, or nothing for unknown")
		}
		return upper
	}
	return text
}

// instant reads RFC 3339 with an offset, or a date, which stands for its
// start in UTC, or as the end of a window for the whole day.
func (p *parser) instant(name, text string, end bool) {
	t, ok := parseInstant(text, end)
	if !ok {
		p.fault(name, text, "want a date (2026-05-01) or RFC 3339 with an offset (2026-05-01T00:00:00Z)")
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
			day = day.AddDate(0, 0, 1)
		}
		return day, storable(day)
	}
	// A + that was not percent-encoded arrives as a space.
	t, err := schema.ParseTime(strings.Replace(text, " ", "+", 1))
	if cubes := t.Truncate(time.Millisecond); cubes.Before(t) {
		t = cubes.Add(time.Millisecond) // events lie on whole milliseconds: the same ones are in the window
	}
	return t.UTC(), err == nil && storable(t)
}

// storable: what the time column can hold, and a parameter of its type.
func storable(t time.Time) bool { return t.Year() >= 1970 && t.Year() <= 2199 }

func formatInstant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// decimal is a number as people and programs write it; not NaN, Inf or
// hexadecimal, which the standard parsers also take.
var decimal = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$`)

func (p *parser) amount(name, text string) {
	amount := new(big.Rat)
	near, err := strconv.ParseFloat(text, 64) // no answer can repeat what it cannot hold
	ok := err == nil && decimal.MatchString(text)
	if ok {
		amount, ok = amount.SetString(text)
	}
	if !ok || near == 0 && amount.Sign() != 0 {
		p.fault(name, text, "want a number")
		return
	}
	p.request.Filters.GoalValue = amount
}

func (p *parser) deviation(name, text string) {
	z, err := strconv.ParseFloat(text, 64)
	if err != nil || !decimal.MatchString(text) || z <= 0 {
		p.fault(name, text, "want a number above 0")
		return
	}
	p.request.Filters.ZScore = z
}
