// Package query defines the request for a report in terms of the API. Its parser is strict and returns all errors
// together. The package does not depend on tables.
package query

import (
	"time"

	"lifthouse/schema"
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
}

// The number of days of a curve by age.
const (
	LeastCurveDays   = 2
	MostCurveDays    = 60
	DefaultCurveDays = 14
)

// Metric is a metric on which variations are compared.
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

// Dimension is an attribute of the first view by which a report is broken down.
type Dimension string

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
