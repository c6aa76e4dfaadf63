package engine

import "time"

// Request asks for the report of a campaign. It names nothing of tables or
// columns.
type Request struct {
	AccountID  int64
	WebsiteID  int64 // 0: any website of the account
	CampaignID int64
	GoalID     int64 // 0: the campaign's primary goal
	Metric     Metric
	Dimension  Dimension // empty: no breakdown
	Filters    Filters
}

// Metric is what variations are compared on.
type Metric string

// The metrics. All are per visitor; a rate is a share of the visitors.
const (
	GoalConversionRate   Metric = "goalConversionRate"
	GoalsPerVisitor      Metric = "goalsPerVisitor"
	ValuePerVisitor      Metric = "valuePerVisitor"
	ProfitPerVisitor     Metric = "profitPerVisitor"
	ExtraValuePerVisitor Metric = "extraValuePerVisitor"
	AverageValue         Metric = "averageValue" // value per goal event
)

var campaignMetrics = []string{string(GoalConversionRate), string(ValuePerVisitor), string(ProfitPerVisitor)}

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

// Filters narrow a report. From, Lists and Texts choose visitors by their
// first view; To also ends the events that count.
type Filters struct {
	From  time.Time // zero: open
	To    time.Time // zero: open; itself outside the window
	Lists []ListFilter
	Texts []TextFilter
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
	oneNumber
)

// filterTable is every filter of the API, in the order in which they are
// echoed.
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
	{"goalValue", oneNumber},
	{"zScore", oneNumber},
}
