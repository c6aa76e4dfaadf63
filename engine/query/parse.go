package query

import (
	"cmp"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"lifthouse/engine/metric"
	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// maxValues is the maximum number of values of a list filter.
const maxValues = 100

// The parameters of a report other than filters.
const (
	paramWebsite   = "websiteId"
	ParamGoal      = "goal"
	ParamDimension = "dimension"
	paramMetric    = "compareMetric"
	ParamInterval  = "interval"
	paramCap       = "cap"
	paramWindow    = "conversionWindow"
	paramScorecard = "scorecard"
	paramCurve     = "curve"
	ParamCurveDays = "curveDays"

	paramExpression   = "metric"
	paramVisitors     = "visitors"
	paramSplit        = "split"
	paramTop          = "top"
	paramDistribution = "distribution"
	paramComplement   = "complement"

	// ParamText is a text to complete.
	ParamText = "text"
)

// comparingParameters are the parameters of reports that compare, other than filters.
var comparingParameters = []string{
	paramWebsite, ParamGoal, ParamDimension, paramMetric, paramExpression, paramVisitors, paramSplit, paramTop,
	ParamInterval, paramCap, paramWindow, paramScorecard,
	paramCurve, ParamCurveDays, paramDistribution, paramComplement,
}

// parametersOf has the parameters of each operation other than filters.
var parametersOf = map[Operation][]string{
	CampaignResults: comparingParameters, ExperimentResults: comparingParameters,
	WidgetResults: {
		paramWebsite, ParamGoal, paramExpression, paramVisitors, paramSplit, paramTop, ParamInterval, paramCap,
		paramWindow, paramDistribution,
	},
}

// ParseReport parses the query string of an operation. It rejects unknown parameters. The error is an InvalidError with
// all faults. Metric is empty if it is not given and depends on the subject.
func ParseReport(operation Operation, rawQuery string) (Request, error) {
	return parseRequest(operation, rawQuery, parametersOf[operation])
}

// ParseVisitors parses the query string of a request for the visitors of a report: the parameters that select visitors
// and goal events. The error is an InvalidError with all faults.
func ParseVisitors(operation Operation, rawQuery string) (Request, error) {
	return parseRequest(operation, rawQuery, []string{
		paramWebsite, ParamGoal, paramExpression, paramVisitors, paramCap, paramWindow,
	})
}

func parseRequest(operation Operation, rawQuery string, names []string) (Request, error) {
	names = slices.Clone(names)
	for _, filter := range filterTable {
		names = append(names, filter.parameter)
	}
	p := ReadParameters(rawQuery, names...)
	r := p.readRequest(operation)
	return r, p.Err()
}

// readRequest returns the request that parameters describe.
func (p *Parameters) readRequest(operation Operation) Request {
	r := Request{
		Operation: operation,
		WebsiteID: p.ID(paramWebsite),
		GoalID:    p.ID(ParamGoal),
		Dimension: p.parseDimension(),
		Metric:    Metric(p.OneOf(paramMetric, Comparable[operation])),
		Interval:  Interval(p.OneOf(ParamInterval, Intervals)),
		Scorecard: p.OneOf(paramScorecard, []string{"true", "false"}) == "true",
		Curve:     p.OneOf(paramCurve, []string{"exposureDay"}) != "",
		CurveDays: p.ParseInteger(ParamCurveDays, LeastCurveDays, MostCurveDays, 0),

		Distribution: p.OneOf(paramDistribution, []string{"goalValue"}) != "",
		Complement:   p.OneOf(paramComplement, []string{"true", "false"}) == "true",
	}
	r.Expression = p.parseText(paramExpression)
	r.Visitors = p.parseText(paramVisitors)
	r.Split = p.parseText(paramSplit)
	r.SplitTop = p.ParseInteger(paramTop, 1, MostSplitTop, 0)
	p.checkSplit(&r)
	r.Cap = p.parseCap()
	r.ConversionWindow = p.parseWindow()
	for _, filter := range filterTable {
		p.parseFilter(filter, &r.Filters)
	}
	p.checkCurve(&r)
	p.checkDates(&r.Filters)
	p.checkComplement(&r)
	if isNamed := r.Metric != "" || r.GoalID != 0; isNamed && r.Expression != "" {
		p.addFault(paramExpression, r.Expression, "omit compareMetric and goal, or metric: a metric names its goals")
	}
	return r
}

// checkSplit refuses a split of a breakdown, and a number of values without a split.
func (p *Parameters) checkSplit(r *Request) {
	switch {
	case r.Split != "" && r.Dimension != "":
		p.addFault(paramSplit, r.Split, "a split has no breakdown: omit split or "+ParamDimension)
	case r.SplitTop > 0 && r.Split == "":
		p.addFault(paramTop, p.values.Get(paramTop), "needs split, such as split=items.category")
	}
}

// parseDimension returns the attribute of a breakdown: one of the 15, or one that may be an own one of the website.
func (p *Parameters) parseDimension() Dimension {
	value, given := p.SingleValue(ParamDimension)
	if !given {
		return ""
	}
	attributes := Dimension(value).Attributes()
	for i, attribute := range attributes {
		isKnown := slices.Contains(Dimensions, attribute) || schema.LabelFault(attribute) == ""
		switch {
		case !isKnown:
			p.addFault(ParamDimension, value, faults.OneOf(Dimensions...)+", or an own attribute; or two of them")
			return ""
		case slices.Contains(attributes[:i], attribute):
			p.addFault(ParamDimension, value, "must not have "+attribute+" twice")
			return ""
		}
	}
	if len(attributes) == 0 || len(attributes) > MostDimensions {
		p.addFault(ParamDimension, value, "must be one attribute, or two with a comma between them")
		return ""
	}
	return Dimension(value)
}

// parseText returns a text that must not be empty.
func (p *Parameters) parseText(name string) string {
	text, given := p.SingleValue(name)
	if given && strings.TrimSpace(text) == "" {
		p.addFault(name, text, "must not be empty")
	}
	return text
}

// parseCap returns the cap of a report; nil: it is not given.
func (p *Parameters) parseCap() *schema.Cap {
	text, given := p.SingleValue(paramCap)
	if !given {
		return nil
	}
	limit, err := schema.ParseCap(text)
	if err != nil {
		p.addFault(paramCap, text, err.Error())
	}
	return &limit
}

// parseWindow returns the conversion window of a report; nil: it is not given.
func (p *Parameters) parseWindow() *schema.ConversionWindow {
	text, given := p.SingleValue(paramWindow)
	if !given {
		return nil
	}
	// A plus sign that is not percent-encoded arrives as a space.
	window, err := schema.ParseConversionWindow(strings.Replace(text, " ", "+", 1))
	if err != nil {
		p.addFault(paramWindow, text, err.Error())
	}
	return &window
}

// checkCurve refuses a curve of a breakdown, and days without a curve.
func (p *Parameters) checkCurve(r *Request) {
	switch {
	case r.Curve && r.Dimension != "":
		p.addFault(paramCurve, p.values.Get(paramCurve), "a curve has no breakdown: omit curve or "+ParamDimension)
	case r.CurveDays > 0 && !r.Curve:
		p.addFault(ParamCurveDays, p.values.Get(ParamCurveDays), "needs curve=exposureDay")
	}
}

// checkDates refuses a window that ends before it starts. A date and an instant can be compared when the time zone is
// known.
func (p *Parameters) checkDates(f *Filters) {
	isWindow := !f.From.IsZero() && !f.To.IsZero()
	isComparable := f.fromDate == f.toDate
	if isWindow && isComparable && !f.From.Before(f.To) {
		p.addFault("filters[dateTo]", p.values.Get("filters[dateTo]"),
			"must be after the start of the dates, "+FormatInstant(f.From))
	}
}

// checkComplement refuses the complement of a report whose filters cannot be inverted.
func (p *Parameters) checkComplement(r *Request) {
	switch {
	case r.Complement && !r.Filters.SelectsVisitors():
		p.addFault(paramComplement, "true", "needs a filter of visitors, such as filters[device][]")
	case r.Complement && r.Filters.ZScore != 0:
		p.addFault(paramComplement, "true", "cannot be combined with filters[zScore], whose bounds are those of the "+
			"visitors of the report")
	}
}

// listIndex matches the index in filters[name][] and filters[name][7].
var listIndex = regexp.MustCompile(`^(filters\[[A-Za-z]+\])\[\d{0,3}\]$`)

// decimal matches a decimal number, but not NaN, Inf or hexadecimal numbers, which the standard parsers accept.
var decimal = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$`)

var countryCode = regexp.MustCompile(`^([A-Z]{2})?$`)

// parseFilter adds a filter, if it is given.
func (p *Parameters) parseFilter(filter filter, filters *Filters) {
	if filter.kind == listOfText {
		p.parseList(filter, filters)
		return
	}
	p.refuseIndex(filter)
	text, given := p.SingleValue(filter.parameter)
	if !given {
		return
	}
	switch filter.kind {
	case oneInstant:
		p.parseDate(filter, text, filters)
	case oneText:
		filters.Texts = append(filters.Texts, TextFilter{filter.name, text})
	case oneVisitorType:
		if p.OneOf(filter.parameter, []string{"new", "returning"}) != "" {
			filters.Texts = append(filters.Texts, TextFilter{filter.name, text})
		}
	case oneAmount:
		filters.GoalValue = p.parseAmount(filter, text)
	case oneDeviation:
		filters.ZScore = p.parseDeviation(filter, text)
	case listOfText:
	}
}

// isGivenAs reports whether a parameter has the name of the filter, with or without an index.
func (f filter) isGivenAs(parameter string) bool {
	return listIndex.ReplaceAllString(parameter, "$1") == "filters["+f.name+"]"
}

// parseList adds a filter by a list of values. They have the form of stored attributes, are sorted and unique.
func (p *Parameters) parseList(filter filter, filters *Filters) {
	var all []string
	for given, texts := range p.values {
		if !filter.isGivenAs(given) {
			continue
		}
		for _, text := range texts {
			if p.checkValue(given, text) {
				all = append(all, p.normalizeAttribute(filter.name, given, text))
			}
		}
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxValues {
		p.addFault(filter.parameter, fmt.Sprintf("%d values", len(all)),
			fmt.Sprintf("must have at most %d values", maxValues))
	}
	filters.Lists = append(filters.Lists, ListFilter{filter.name, all})
}

// normalizeAttribute returns a value of an attribute in the form in which it is stored. given is its parameter.
func (p *Parameters) normalizeAttribute(attribute, given, text string) string {
	switch attribute {
	case "device", "browser", "os":
		return strings.ToLower(text)
	case "country":
		country := strings.ToUpper(text)
		if !countryCode.MatchString(country) {
			p.addFault(given, text, "must be two letters (ISO 3166), or empty for unknown")
		}
		return country
	}
	return text
}

// refuseIndex refuses a filter by one value that is written as a list.
func (p *Parameters) refuseIndex(filter filter) {
	for given := range p.values {
		if filter.isGivenAs(given) && given != filter.parameter {
			p.addFault(given, p.values.Get(given), "must be one value, written as "+filter.parameter)
		}
	}
}

// parseDate sets a bound of the dates.
func (p *Parameters) parseDate(filter filter, text string, filters *Filters) {
	at, isDate, ok := parseInstant(text, filter.name == "dateTo")
	switch {
	case !ok:
		p.addFault(filter.parameter, text,
			"must be a date (2026-05-01) or RFC 3339 with an offset (2026-05-01T00:00:00Z), in a year from 1970 "+
				"to 2199")
	case filter.name == "dateTo":
		filters.To = at
		filters.toDate = isDate
	default:
		filters.From = at
		filters.fromDate = isDate
	}
}

// parseAmount returns a decimal number, or nil if it is invalid. A number that a float64 rounds to 0 is invalid,
// because the response repeats the value as one.
func (p *Parameters) parseAmount(filter filter, text string) *big.Rat {
	if number, isNumber := parseDecimal(text); isNumber {
		amount, isAmount := new(big.Rat).SetString(text)
		if isAmount && (number != 0 || amount.Sign() == 0) {
			return amount
		}
	}
	p.addFault(filter.parameter, text, "must be a number")
	return nil
}

// parseDeviation returns a number of standard deviations, or 0 if it is invalid.
func (p *Parameters) parseDeviation(filter filter, text string) float64 {
	number, isNumber := parseDecimal(text)
	if !isNumber || number <= 0 {
		p.addFault(filter.parameter, text, "must be a number above 0")
		return 0
	}
	return number
}

// parseDecimal parses a decimal number. It returns false for any other text.
func parseDecimal(text string) (number float64, ok bool) {
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil && decimal.MatchString(text)
}

// parseInstant parses RFC 3339 with an offset, or a date. A date is its start in UTC, or the start of the next day if
// it ends the window, until the time zone is known.
func parseInstant(text string, end bool) (at time.Time, isDate, ok bool) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		ok = schema.IsStorable(day)
		if end {
			day = day.AddDate(0, 0, 1)
		}
		return day, true, ok
	}
	// A plus sign that is not percent-encoded arrives as a space.
	t, err := schema.ParseTime(strings.Replace(text, " ", "+", 1))
	if err != nil || !schema.IsStorable(t) {
		return time.Time{}, false, false
	}
	if whole := t.Truncate(time.Millisecond); whole.Before(t) {
		t = whole.Add(time.Millisecond) // event times are whole milliseconds, so the window has the same events
	}
	return t.UTC(), false, true
}

// FormatInstant formats a time in UTC, with milliseconds if there are any.
func FormatInstant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// Limits of a query string. Real requests are far smaller.
const (
	maxQuery = 8 << 10 // bytes
	maxValue = 512     // bytes of a value, as for attributes of events
	// maxExpression is the maximum of bytes of a metric or a condition of visitors, whose characters are limited when
	// it is read.
	maxExpression = 4 * metric.MaxCharacters
)

// Parameters parses a query string strictly and collects all errors.
type Parameters struct {
	values url.Values
	faults.Collector
}

// ReadParameters parses a query string. Only the given names are valid, and filters[x][7] if filters[x][] is.
func ReadParameters(rawQuery string, names ...string) *Parameters {
	p := &Parameters{}
	if len(rawQuery) > maxQuery {
		p.addFault("query", rawQuery[:64]+"…",
			fmt.Sprintf("must have at most %d bytes; it has %d", maxQuery, len(rawQuery)))
		return p
	}
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		p.addFault("query", rawQuery,
			"cannot be parsed ("+err.Error()+"); separate parameters by & and percent-encode special characters")
		return p
	}
	p.values = values
	for name := range values {
		withoutIndex := listIndex.ReplaceAllString(name, "$1")
		isKnown := func(known string) bool { return listIndex.ReplaceAllString(known, "$1") == withoutIndex }
		switch {
		case slices.ContainsFunc(names, isKnown):
		case len(names) == 0:
			p.addFault(name, values.Get(name), "unknown parameter; this operation has no parameters")
		case name == "filters" || name == "filters[]":
			p.addFault(name, values.Get(name), "unknown parameter; write filters as filters[name]=value")
		default:
			p.addFault(name, values.Get(name), "unknown parameter; "+faults.SuggestName(name, names))
		}
	}
	return p
}

func (p *Parameters) addFault(name, value, detail string) {
	p.Add(name, strings.ToValidUTF8(value, "�"), detail)
}

// maxFaults is the maximum number of faults that an error lists. Real requests have far fewer.
const maxFaults = 20

// Err returns an InvalidError with all faults, or nil. Of more than maxFaults, it has the first ones and the number of
// the others.
func (p *Parameters) Err() error {
	if len(p.List) == 0 {
		return nil
	}
	slices.SortFunc(p.List, func(a, b faults.Fault) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Detail, b.Detail))
	})
	first := faults.Collector{Most: maxFaults}
	first.Append(p.List...)
	return InvalidParameters(first.WithRest("query", "%d more faults")...)
}

// SingleValue returns the value of a parameter. It returns false if the parameter is absent or invalid.
func (p *Parameters) SingleValue(name string) (string, bool) {
	given := p.values[name]
	if len(given) > 1 {
		p.addFault(name, strings.Join(given, ", "), "must be given once")
		return "", false
	}
	if len(given) == 0 {
		return "", false
	}
	return given[0], p.checkValue(name, given[0])
}

// checkValue rejects values that no attribute can have.
func (p *Parameters) checkValue(name, value string) bool {
	most := maxValue
	if name == paramExpression || name == paramVisitors || name == ParamText {
		most = maxExpression
	}
	switch {
	case len(value) > most:
		p.addFault(name, value[:64]+"…", fmt.Sprintf("must have at most %d bytes; it has %d", most, len(value)))
	case !utf8.ValidString(value):
		p.addFault(name, value, "must be UTF-8")
	default:
		return true
	}
	return false
}

// OneOf returns the value of a parameter, or "" if it is absent or not one of the allowed values.
func (p *Parameters) OneOf(name string, allowed []string) string {
	value, ok := p.SingleValue(name)
	if !ok {
		return ""
	}
	if !slices.Contains(allowed, value) {
		p.addFault(name, value, faults.OneOf(allowed...))
		return ""
	}
	return value
}

var digits = regexp.MustCompile(`^\d+$`)

// NoID is returned for a valid id that no resource can have: 0, or beyond int64.
const NoID = -1

// ID returns the id in a parameter, 0 if it is absent, or NoID.
func (p *Parameters) ID(name string) int64 {
	text, ok := p.SingleValue(name)
	if !ok {
		return 0
	}
	id, ok := ParseID(text)
	if !ok {
		p.addFault(name, text, "must be a number; digits only")
	}
	return id
}

// ParseID parses \d+. It returns false for any other text.
func ParseID(text string) (int64, bool) {
	if !digits.MatchString(text) {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id == 0 {
		return NoID, true
	}
	return id, true
}

// ParseInteger returns the value of a parameter, or the default if it is absent.
func (p *Parameters) ParseInteger(name string, least, most, otherwise int) int {
	text, ok := p.SingleValue(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	isInteger := err == nil && digits.MatchString(text) // Atoi accepts a sign
	if !isInteger || n < least || n > most {
		p.addFault(name, text, fmt.Sprintf("must be an integer from %d to %d", least, most))
		return otherwise
	}
	return n
}

// InvalidError has all errors of a request.
type InvalidError struct {
	Code   string // invalid_parameter or unknown_goal
	Faults faults.List
}

// Error returns the faults as text.
func (e *InvalidError) Error() string { return e.Faults.Join("; ") }

// InvalidParameters returns an InvalidError with the faults, or nil if there are none.
func InvalidParameters(all ...faults.Fault) error {
	if len(all) == 0 {
		return nil
	}
	return &InvalidError{Code: InvalidParameter, Faults: all}
}

// GoalFault returns the error of a goal that the website does not have.
func GoalFault(id int64) error {
	value := fmt.Sprint(id)
	if id == NoID {
		value = "0, or larger than any id"
	}
	return &InvalidError{
		Code:   UnknownGoal,
		Faults: faults.List{{Name: ParamGoal, Value: value, Detail: "must be the id of a goal of the same website"}},
	}
}

// The values of InvalidError.Code.
const (
	InvalidParameter = "invalid_parameter"
	UnknownGoal      = "unknown_goal"
)

// NotFoundError reports that the account has no such resource.
type NotFoundError struct {
	Kind string // website, campaign
	ID   int64
}

// Error returns the kind and the id of the resource.
func (e *NotFoundError) Error() string {
	if e.ID == NoID {
		return e.Kind + " not found"
	}
	return fmt.Sprintf("%s %d not found", e.Kind, e.ID)
}

// Programme asks what the shipped variations of a website are worth.
type Programme struct {
	WebsiteID int64
	GoalID    int64  // 0: that of most campaigns
	Metric    Metric // one of the pool; empty: that of most campaigns
	From, To  string // days that bound the dates of shipping; empty: open
}

// ParseProgramme parses the parameters of a programme.
func ParseProgramme(rawQuery string) (Programme, error) {
	p := ReadParameters(rawQuery, "goal", "metric", paramFrom, paramTo)
	return ReadProgramme(p), p.Err()
}

// ReadProgramme returns the programme that parameters ask for, without the website.
func ReadProgramme(p *Parameters) Programme {
	asked := Programme{
		GoalID: p.ID("goal"), Metric: Metric(p.OneOf("metric", Comparable[ExperimentResults])), From: p.day(paramFrom),
		To: p.day(paramTo),
	}
	p.checkDays(&asked)
	return asked
}

// checkDays refuses a period that ends before it starts.
func (p *Parameters) checkDays(of *Programme) {
	if of.From != "" && of.To != "" && of.To < of.From {
		p.addFault(paramTo, of.To, "must not be before from, "+of.From)
	}
}

// day returns the day in a parameter, or an empty text if it is absent.
func (p *Parameters) day(name string) string {
	text, ok := p.SingleValue(name)
	if !ok {
		return ""
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		p.addFault(name, text, "must be a day such as 2026-03-02")
		return ""
	}
	return text
}
