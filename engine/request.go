package engine

import (
	"math/big"
	"time"
)

// Operation is which results a request asks for.
type Operation int

// The operations, by their numbers in the API contract: results of a campaign
// (7), of a widget (10), of an experiment of a widget (11).
const (
	CampaignResults Operation = iota
	WidgetResults
	ExperimentResults
)

// Request asks for a report. It names nothing of tables or columns.
type Request struct {
	Operation    Operation
	AccountID    int64
	WebsiteID    int64 // 0: any website of the account
	SubjectID    int64 // the campaign or the widget
	ExperimentID int64 // of ExperimentResults
	GoalID       int64 // 0: the subject's primary goal; of a widget's own results all goals
	Metric       Metric
	Dimension    Dimension // empty: no breakdown
	Interval     Interval  // empty: no series
	Filters      Filters
	Fresh        bool `json:",omitempty"` // with every event that is stored, not only those that are settled
}

// Metric is what variations are compared on.
type Metric string

// The metrics. All but AverageValue are per visitor; a rate is a share of the
// visitors.
const (
	GoalConversionRate   Metric = "goalConversionRate"
	ConversionRate       Metric = "conversionRate"
	CompletionRate       Metric = "completionRate"
	GoalsPerVisitor      Metric = "goalsPerVisitor"
	ValuePerVisitor      Metric = "valuePerVisitor"
	ProfitPerVisitor     Metric = "profitPerVisitor"
	ExtraValuePerVisitor Metric = "extraValuePerVisitor"
	AverageValue         Metric = "averageValue" // value per goal event
)

// comparable are the metrics that a request may compare, by operation.
var comparable = map[Operation][]string{
	CampaignResults: {string(GoalConversionRate), string(ValuePerVisitor), string(ProfitPerVisitor)},
	ExperimentResults: {
		string(ConversionRate), string(CompletionRate), string(GoalConversionRate),
		string(ValuePerVisitor), string(ProfitPerVisitor), string(ExtraValuePerVisitor),
	},
}

// experimentMetric maps an experiment's primary metric to what is compared.
var experimentMetric = map[string]Metric{
	"":             ConversionRate,
	"conversions":  ConversionRate,
	"completions":  CompletionRate,
	"goalsReached": GoalConversionRate,
	"value":        ValuePerVisitor,
	"profit":       ProfitPerVisitor,
	"extraValue":   ExtraValuePerVisitor,
}

// Dimension breaks a report down by an attribute of each visitor's first view.
type Dimension string

// The dimensions.
const (
	ByDevice   Dimension = "device"
	ByCountry  Dimension = "country"
	ByChannel  Dimension = "channel"
	ByReferrer Dimension = "referrer"
)

var dimensions = []string{string(ByDevice), string(ByCountry), string(ByChannel), string(ByReferrer)}

// Interval is the width of the buckets of a series. They lie on UTC's grid;
// weeks start on Monday.
type Interval string

// The intervals.
const (
	Hourly Interval = "hour"
	Daily  Interval = "day"
	Weekly Interval = "week"
)

var intervals = []string{string(Hourly), string(Daily), string(Weekly)}

// grid returns the width of the buckets, and how far before 1970 one starts.
func (i Interval) grid() (width, shift time.Duration) {
	const day = 24 * time.Hour
	switch i {
	case Hourly:
		return time.Hour, 0
	case Weekly:
		return 7 * day, 3 * day // 1970 began on a Thursday
	case Daily:
	}
	return day, 0
}

// Filters narrow a report. From, Lists and Texts choose visitors by their
// first view; To also ends the events that count. GoalValue and ZScore choose
// goal events; a visitor whose goals are all left out stays, unconverted.
type Filters struct {
	From      time.Time // zero: open
	To        time.Time // zero: open; itself outside the window
	Lists     []ListFilter
	Texts     []TextFilter
	GoalValue *big.Rat // least value of a goal event, in the sender's unit; nil: none
	ZScore    float64  // most standard deviations from the mean value; 0: none
}

// ListFilter keeps visitors whose attribute is one of the values; an empty
// value stands for an attribute that is not set.
type ListFilter struct {
	Attribute string // one of device, browser, os, country, region, city
	Values    []string
}

// TextFilter keeps visitors whose attribute equals the pattern, in which *
// stands for any text; an empty pattern for an attribute that is not set.
type TextFilter struct {
	Attribute string // one of the utm…, referrer, firstVisitPage, visitorType
	Pattern   string
}

// filterKind is how a filter's value is written in a request.
type filterKind int

const (
	listOfText filterKind = iota
	oneText
	oneVisitorType
	oneInstant
	oneAmount
	oneDeviation
)

// filterTable is every filter of the API, in the order in which they are
// read.
var filterTable = []struct {
	name string
	kind filterKind
}{
	{"dateFrom", oneInstant},
	{"dateTo", oneInstant},
	{"device", listOfText},
	{"browser", listOfText},
	{"os", listOfText},
	{"country", listOfText},
	{"region", listOfText},
	{"city", listOfText},
	{"utmSource", oneText},
	{"utmMedium", oneText},
	{"utmCampaign", oneText},
	{"utmContent", oneText},
	{"utmTerm", oneText},
	{"referrer", oneText},
	{"firstVisitPage", oneText},
	{"visitorType", oneVisitorType},
	{"goalValue", oneAmount},
	{"zScore", oneDeviation},
}
