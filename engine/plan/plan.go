// Package plan resolves a request against the catalogue into a plan: what is counted, for which visitors, and which
// variations are compared.
package plan

import (
	"cmp"
	"slices"
	"time"

	"lifthouse/engine/metric"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// Plan is a request resolved against the catalogue: a question, and what decides it. It is immutable, and does not
// depend on the stored events.
type Plan struct {
	Question
	Asked    query.Request // what the request left open has its zero value
	GoalName string        // "" if all goals count
	Rules    Rules
	// ExpectedShares has the declared share of the traffic of each variation, as a fraction; nil: nothing is compared.
	ExpectedShares []float64
	Runs           []catalogue.Run // periods in which the subject was active; none: not known
	Ended          bool            // no more events are expected
	Running        bool            // events are expected
	DeclaredAt     time.Time       // of a campaign; zero: of another subject
	CampaignKey    string          // empty: a campaign without one, or another subject
	Currency       string          // of the website; empty: not declared
	Declared       Declared        // declarations for the conclusion
	// Allocation is the declared share of all traffic that takes part, in per cent; nil: it is not declared, or it is
	// that of a widget.
	Allocation *int

	// Written is Expression as the request or the declaration writes it, without the ranges and conditions that goals
	// and the other parameters add; nil: there is none.
	Written *metric.Metric

	// MetricName is the name of a declared metric that the question is about; empty: it is about another one.
	MetricName string

	terms   *catalogue.Terms         // of the website
	goals   map[int64]catalogue.Goal // of the account
	learned *catalogue.Prior         // that the catalogue has; nil: none
	history []catalogue.PlanSince    // of the subject's declarations; empty: they never changed
}

// HasNoTraffic reports whether the declared share of the traffic is 0.
func (p *Plan) HasNoTraffic() bool { return p.Allocation != nil && *p.Allocation == 0 }

// IndexOfVariation returns the index of a variation in Variations, or -1.
func (p *Plan) IndexOfVariation(id int64) int {
	return slices.IndexFunc(p.Variations, func(v Variation) bool { return v.ID == id })
}

// Question is what a report asks of the facts: sums over the visitors of a subject, by variation. A copy with other
// fields is another question.
type Question struct {
	Subject schema.Subject
	GoalID  int64        // the goal whose events count; 0: those of all goals count
	Metric  query.Metric // on which variations are compared
	// Expression is a declared metric, or that of a request that writes one; nil: Metric and GoalID say what is
	// compared. The ranges of ages are in its quantities, and ConversionWindow is the longest one.
	Expression        *metric.Metric
	Split             *metric.Field // text by whose values the metric is split; nil: it is not
	SplitTop          int           // number of values with rows of their own
	Filters           query.Filters
	Dimension         query.Dimension // empty: no breakdown
	Top               int             // number of dimension values with separate slices
	Interval          query.Interval  // empty: no series
	Cap               *schema.Cap     // limit of the total value of each visitor; nil: none
	ConversionWindow  schema.ConversionWindow
	Timing            Timing        // of a conversion window
	Variations        []Variation   // control first
	MultipleExposures string        // catalogue.ExcludeMultiExposed or FirstVariation
	SharePeriods      []SharePeriod // periods of equal shares, in order; with visitors, those since the first view

	// Crossings makes only views before the end of the window, or of a bucket of the series, expose a visitor to
	// several variations. Looks have it: a later view must not move them.
	Crossings bool
}

// Timing says which visitors a conversion window includes, and when its sums change a series. Without a window, an
// event counts at its own time.
type Timing int

// The timings.
const (
	// WhenMature includes the visitors whose window has ended and settled. All sums of a visitor count from then on.
	WhenMature Timing = iota
	// OnFirstView includes all visitors. The events of the window count at the time of the first view, whenever they
	// happened. Looks have it: all visitors of a look are mature when it is published.
	OnFirstView
	// OnEvent includes all visitors, and each event counts at its own time. Harm has it: it must be found early.
	OnEvent
	// ByAge includes the visitors whose window has ended, and each event counts at its age. A curve by age has it.
	ByAge
)

// Variation is a variation of the report.
type Variation struct {
	ID      int64
	Name    string
	Control bool
	Share   int  // relative weight
	Added   bool // declared after the first accepted view: it has no looks
}

// OpenFrom and openTo replace the open ends of a window. They are the limits of the time column.
var (
	OpenFrom = schema.FirstTime
	openTo   = schema.EndOfTime
)

// MaxBreakdown is the maximum number of dimension values with separate slices.
const MaxBreakdown = 50

// MaxPairs is the maximum number of pairs of values of two attributes with separate slices. Each of the values is one
// of the MaxBreakdown most visited ones of its attribute.
const MaxPairs = 200

// New resolves a request against the resources of its account. The error is an InvalidError or a NotFoundError.
func New(r query.Request, owned *catalogue.AccountResources) (*Plan, error) {
	if _, known := owned.Goals[r.GoalID]; r.GoalID != 0 && !known {
		return nil, query.GoalFault(r.GoalID)
	}
	if _, known := owned.Websites[r.WebsiteID]; r.WebsiteID != 0 && !known {
		return nil, &query.NotFoundError{Kind: "website", ID: r.WebsiteID}
	}
	p := &Plan{Asked: r, goals: owned.Goals}
	p.Question = Question{
		GoalID: r.GoalID, Metric: r.Metric, Filters: r.Filters, Dimension: r.Dimension, Interval: r.Interval,
		Top: MaxBreakdown,
	}
	if len(r.Dimension.Attributes()) > 1 {
		p.Top = MaxPairs
	}

	declared, err := p.setSubject(r, owned)
	if err != nil {
		return nil, err
	}
	website := owned.Websites[p.Subject.WebsiteID]
	p.Currency = website.Currency
	if err := p.parseNames(&r); err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(website.Timezone)
	if err != nil {
		zone = time.UTC // no name in the catalogue is unknown
	}
	if err := p.Filters.ResolveDates(zone); err != nil {
		return nil, err
	}
	if p.asksDeclared() {
		return p, p.setPrimaryMetric()
	}
	if p.Expression != nil {
		declared.PrimaryGoalID = 0 // the expression names its goals
	}
	if err := p.setGoal(r.Cap, declared.PrimaryGoalID); err != nil {
		return nil, err
	}
	return p, p.resolveExpression()
}

// RecentDays is the number of full days from which the visitors per day are estimated. They end before the last
// acceptance time. Seven days include each weekday once.
const RecentDays = 7

// RecentPeriod returns the period of RecentDays before the last acceptance time.
func RecentPeriod(through time.Time) (from, to time.Time) {
	to = cmp.Or(through, OpenFrom).UTC().Truncate(24 * time.Hour)
	return to.AddDate(0, 0, -RecentDays), to
}

// WindowStart returns the start of the window.
func (q *Question) WindowStart() time.Time { return cmp.Or(q.Filters.From, OpenFrom) }

// WindowEnd returns the end of the window.
func (q *Question) WindowEnd() time.Time { return cmp.Or(q.Filters.To, openTo) }

// OfAllVisitors reports whether the question is about all visitors up to the end of its window.
func (q *Question) OfAllVisitors() bool {
	return q.Filters.From.IsZero() && !q.Filters.SelectsVisitors()
}

// WithMetric returns the plan with another metric.
func (p *Plan) WithMetric(m query.Metric) *Plan {
	with := *p
	with.Metric = m
	return &with
}
