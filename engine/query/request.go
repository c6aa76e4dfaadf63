// Package query defines the request for a report in terms of the API. Its parser is strict and returns all errors
// together. The package does not depend on tables.
package query

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/metric"
	"lifthouse/schema"
	"lifthouse/schema/faults"
)

// Operation is the kind of results that a request asks for.
type Operation int

// The operations, with their numbers in the API contract: results of a campaign (7), of a widget (10), and of an
// experiment of a widget (11).
const (
	CampaignResults Operation = iota
	WidgetResults
	ExperimentResults
)

// Request describes a report in terms of the API.
type Request struct {
	Operation    Operation
	AccountID    int64
	WebsiteID    int64 // 0: any website of the account
	SubjectID    int64 // the campaign or the widget
	ExperimentID int64 // only for ExperimentResults
	GoalID       int64 // 0: the primary goal of the subject, or all goals for WidgetResults
	Metric       Metric
	Expression   string      `json:",omitempty"` // a metric as package metric reads it; empty: Metric
	Visitors     string      `json:",omitempty"` // condition of visitors, as package metric reads it; empty: all
	Split        string      `json:",omitempty"` // text by whose values the metric is split; empty: it is not
	SplitTop     int         `json:",omitempty"` // number of values of a split with rows of their own; 0: DefaultSplitTop
	Dimension    Dimension   // empty: no breakdown
	Interval     Interval    // empty: no series
	Scorecard    bool        // also compare the other goals and metrics, and decide
	Cap          *schema.Cap // limit of each visitor's total value; nil: the cap of the goal
	// ConversionWindow limits the age of the events that count; nil: the window of the goal
	ConversionWindow *schema.ConversionWindow
	Curve            bool // also by the visitors' age
	CurveDays        int  // of the curve; 0: as many as the data allow, at most DefaultCurveDays
	Distribution     bool // also of the values of goal events
	Complement       bool // also compare the filtered visitors with all others
	Filters          Filters

	// Names are those of the website. Who resolves the request sets them, if it needs them.
	Names *metric.Names `json:"-"`
}

// NeedsNames reports whether the request has texts that only the names of the website explain.
func (r *Request) NeedsNames() bool {
	isOwn := func(attribute string) bool { return !slices.Contains(Dimensions, attribute) }
	hasOwn := slices.ContainsFunc(r.Dimension.Attributes(), isOwn)
	return r.Expression != "" || r.Visitors != "" || r.Split != "" || hasOwn
}

// The number of values of a split with rows of their own.
const (
	DefaultSplitTop = 50
	MostSplitTop    = 1000
)

// The number of days of a curve by age.
const (
	LeastCurveDays   = 2
	MostCurveDays    = 400
	DefaultCurveDays = 14
)

// Metric is a metric on which variations are compared: a name, or the text that identifies a declared metric, see
// catalogue.DeclaredMetric.
type Metric string

// The metrics. All except AverageValue are per visitor. A rate is a share of the visitors.
const (
	GoalConversionRate   Metric = "goalConversionRate"
	ConversionRate       Metric = "conversionRate"
	CompletionRate       Metric = "completionRate"
	GoalsPerVisitor      Metric = "goalsPerVisitor"
	ValuePerVisitor      Metric = "valuePerVisitor"
	ProfitPerVisitor     Metric = "profitPerVisitor"
	ExtraValuePerVisitor Metric = "extraValuePerVisitor"
	AverageValue         Metric = "averageValue" // value of a goal event
)

// IsRate reports whether a metric is a share of the visitors.
func (m Metric) IsRate() bool {
	if of := m.Expression(); of != nil {
		return of.Kind() == metric.Rate
	}
	return m == GoalConversionRate || m == ConversionRate || m == CompletionRate
}

// ReadsAmounts reports whether a metric reads amounts of money.
func (m Metric) ReadsAmounts() bool {
	if of := m.Expression(); of != nil {
		return of.Numerator.ReadsAmounts() || of.Denominator != nil && of.Denominator.ReadsAmounts()
	}
	return m == ValuePerVisitor || m == ProfitPerVisitor || m == ExtraValuePerVisitor || m == AverageValue
}

// IsRatio reports whether a metric is the ratio of two sums over visitors, so that no visitor has a value of it.
func (m Metric) IsRatio() bool {
	if of := m.Expression(); of != nil {
		return of.Denominator != nil
	}
	return m == AverageValue
}

// Expression returns the metric that the text of a declared metric writes; nil: the metric has a name. It does not know
// the keys of the goals.
func (m Metric) Expression() *metric.Metric {
	if m == "" || metric.IsAlias(string(m)) {
		return nil
	}
	of, err := metric.ParseRecorded(string(m), nil)
	if err != nil { // no such text is declared
		return nil
	}
	return of
}

// Comparable has the metrics that a request may compare, by operation.
var Comparable = map[Operation][]string{
	CampaignResults: {
		string(GoalConversionRate), string(ValuePerVisitor), string(ProfitPerVisitor), string(GoalsPerVisitor),
		string(AverageValue),
	},
	ExperimentResults: {
		string(ConversionRate), string(CompletionRate), string(GoalConversionRate),
		string(ValuePerVisitor), string(ProfitPerVisitor), string(ExtraValuePerVisitor), string(GoalsPerVisitor),
		string(AverageValue),
	},
}

// GoalMetrics are the metrics of each goal in a scorecard.
var GoalMetrics = []Metric{GoalConversionRate, GoalsPerVisitor, ValuePerVisitor, ProfitPerVisitor, AverageValue}

// ExperimentMetric maps the primary metric of a widget's experiment to a metric.
var ExperimentMetric = map[string]Metric{
	"":             ConversionRate,
	"conversions":  ConversionRate,
	"completions":  CompletionRate,
	"goalsReached": GoalConversionRate,
	"value":        ValuePerVisitor,
	"profit":       ProfitPerVisitor,
	"extraValue":   ExtraValuePerVisitor,
}

// Dimension is an attribute of the first view by which a report is broken down, or two, separated by a comma.
type Dimension string

// MostDimensions is the maximum number of attributes of a breakdown.
const MostDimensions = 2

// Attributes returns the attributes; none: there is no breakdown.
func (d Dimension) Attributes() []string {
	if d == "" {
		return nil
	}
	return strings.Split(string(d), ",")
}

// Some dimensions.
const (
	ByDevice   Dimension = "device"
	ByCountry  Dimension = "country"
	ByChannel  Dimension = "channel"
	ByReferrer Dimension = "referrer"
)

// Dimensions are all dimensions: all attributes of a first view.
var Dimensions = []string{
	"browser", "channel", "city", "country", "device", "firstVisitPage", "os", "referrer", "region",
	"utmCampaign", "utmContent", "utmMedium", "utmSource", "utmTerm", "visitorType",
}

// Interval is the width of the buckets of a series. Buckets are aligned to UTC. Weeks start on Monday.
type Interval string

// The intervals.
const (
	Hourly Interval = "hour"
	Daily  Interval = "day"
	Weekly Interval = "week"
)

// Intervals are all intervals.
var Intervals = []string{string(Hourly), string(Daily), string(Weekly)}

// BucketGrid returns the width of the buckets, and the offset of the bucket start before 1970.
func (i Interval) BucketGrid() (width, shift time.Duration) {
	const day = 24 * time.Hour
	switch i {
	case Hourly:
		return time.Hour, 0
	case Weekly:
		return 7 * day, 3 * day // January 1, 1970 was a Thursday
	case Daily:
	}
	return day, 0
}

// Filters restrict a report. From, To, Lists, Texts and Visitors select visitors by their first view. To also ends the
// counted events. GoalValue and ZScore select goal events; a visitor without remaining goals counts as not converted.
type Filters struct {
	From      time.Time // zero: open
	To        time.Time // exclusive; zero: open
	Lists     []ListFilter
	Texts     []TextFilter
	Visitors  *metric.Condition `json:",omitempty"` // of the attributes of a first view; nil: all
	GoalValue *big.Rat          // minimum value of a goal event, in the sender's unit; nil: none
	ZScore    float64           // maximum distance from the mean in standard deviations; 0: none

	fromDate, toDate bool // From, To are the start of a date, not an instant
}

// ResolveDates turns dates into instants: midnight in a time zone. The error is an InvalidError.
func (f *Filters) ResolveDates(zone *time.Location) error {
	if f.fromDate {
		f.From = startOfDate(f.From, zone)
		f.fromDate = false
	}
	if f.toDate {
		f.To = startOfDate(f.To, zone)
		f.toDate = false
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		detail := "must be after the start of the dates, " + FormatInstant(f.From)
		return InvalidParameters(faults.Fault{Name: "filters[dateTo]", Value: FormatInstant(f.To), Detail: detail})
	}
	return nil
}

// startOfDate returns the first instant of a date in a time zone. Where the clock changes at midnight, midnight may be
// missing, or may occur twice.
func startOfDate(date time.Time, zone *time.Location) time.Time {
	year, month, day := date.Date()
	at := time.Date(year, month, day, 0, 0, 0, 0, zone)
	since, until := at.ZoneBounds()
	if at.Day() != day {
		return until.UTC()
	}
	if last := since.Add(-time.Second); !since.IsZero() && last.Format(time.DateOnly) == at.Format(time.DateOnly) {
		_, before := last.Zone()
		_, after := at.Zone()
		at = at.Add(time.Duration(after-before) * time.Second)
	}
	return at.UTC()
}

// SelectsVisitors reports whether the filters select visitors by an attribute of their first view.
func (f *Filters) SelectsVisitors() bool { return len(f.Lists)+len(f.Texts) > 0 || f.Visitors != nil }

// OfAllVisitors returns the filters without those that select visitors by an attribute.
func (f Filters) OfAllVisitors() Filters {
	f.Lists = nil
	f.Texts = nil
	f.Visitors = nil
	return f
}

// CanonicalForm returns the filters in canonical form; encoding/json sorts the keys of a map.
func (f *Filters) CanonicalForm() map[string]any {
	echo := map[string]any{}
	for _, filter := range f.Lists {
		echo[filter.Attribute] = filter.Values
	}
	for _, filter := range f.Texts {
		echo[filter.Attribute] = filter.Pattern
	}
	if f.GoalValue != nil {
		value, _ := f.GoalValue.Float64()
		echo["goalValue"] = value
	}
	if f.ZScore != 0 {
		echo["zScore"] = f.ZScore
	}
	return echo
}

// ListFilter selects visitors whose attribute is one of the values. An empty value means not set.
type ListFilter struct {
	Attribute string // one of device, browser, os, country, region, city
	Values    []string
}

// TextFilter selects visitors whose attribute matches the pattern. * matches any text. An empty pattern means not set.
type TextFilter struct {
	Attribute string // one of the utm…, referrer, firstVisitPage, visitorType
	Pattern   string
}

// filterKind is the syntax of a filter in a request.
type filterKind int

const (
	listOfText filterKind = iota
	oneText
	oneVisitorType
	oneInstant
	oneAmount
	oneDeviation
)

// filter is a filter of the API.
type filter struct {
	name      string
	parameter string // that sets it
	kind      filterKind
}

// filterTable has all filters of the API in parse order.
var filterTable = []filter{
	{"dateFrom", "filters[dateFrom]", oneInstant},
	{"dateTo", "filters[dateTo]", oneInstant},
	{"device", "filters[device][]", listOfText},
	{"browser", "filters[browser][]", listOfText},
	{"os", "filters[os][]", listOfText},
	{"country", "filters[country][]", listOfText},
	{"region", "filters[region][]", listOfText},
	{"city", "filters[city][]", listOfText},
	{"utmSource", "filters[utmSource]", oneText},
	{"utmMedium", "filters[utmMedium]", oneText},
	{"utmCampaign", "filters[utmCampaign]", oneText},
	{"utmContent", "filters[utmContent]", oneText},
	{"utmTerm", "filters[utmTerm]", oneText},
	{"referrer", "filters[referrer]", oneText},
	{"firstVisitPage", "filters[firstVisitPage]", oneText},
	{"visitorType", "filters[visitorType]", oneVisitorType},
	{"goalValue", "filters[goalValue]", oneAmount},
	{"zScore", "filters[zScore]", oneDeviation},
}
