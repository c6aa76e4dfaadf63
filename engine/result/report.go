// Package result computes the body of a report from its rows: metrics, comparisons, checks, power and the conclusion,
// with their texts.
package result

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/metric"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/stats"
)

// Report is the response body of a report. Fields are in output order.
type Report struct {
	schema.SubjectIDs
	CampaignKey       string           `json:"campaignKey,omitempty"` // from which the id is computed
	Goal              *GoalName        `json:"goal"`                  // null: all goals count
	CompareMetric     *query.Metric    `json:"compareMetric"`         // null: nothing is compared, or question has the metric
	Question          *Question        `json:"question,omitempty"`    // only if the request writes a metric or a condition of visitors
	Methodology       string           `json:"methodology"`
	SignificanceLevel int              `json:"significanceLevel"`
	Dimension         *query.Dimension `json:"dimension"`
	Filters           map[string]any   `json:"filters"`
	Window            Window           `json:"window"`
	ConversionWindow  *AgeRange        `json:"conversionWindow"` // null: events of all ages count
	Population        string           `json:"population"`
	GeneratedAt       time.Time        `json:"generatedAt"`
	DataThrough       *time.Time       `json:"dataThrough"` // null: the subject has no events, or no fold is complete
	NewestEvent       *time.Time       `json:"newestEvent"`
	Stale             bool             `json:"stale"`
	Waiting           *moments.Waiting `json:"waiting,omitempty"`  // accepted events that the report does not include yet; nil: none
	Looks             []Look           `json:"looks,omitzero"`     // only of the declared question about all visitors
	NextLook          *NextLook        `json:"nextLook,omitempty"` // null: none follows
	FollowUp          []FollowUp       `json:"followUp,omitempty"` // only of a campaign that declares it
	Slice
	Heterogeneity *Heterogeneity   `json:"heterogeneity,omitempty"` // only with a dimension, if something is compared
	Breakdown     []BreakdownSlice `json:"breakdown,omitzero"`      // only with a dimension
	Parts         *Parts           `json:"split,omitempty"`         // only with a split
	Series        []Point          `json:"series,omitzero"`         // only with an interval
	Curve         *Curve           `json:"curve,omitempty"`         // only if the request asks for it
	Distribution  *Distribution    `json:"distribution,omitempty"`  // only if the request asks for it
	Decision      *Decision        `json:"decision,omitempty"`      // only with a scorecard about the declared question and all visitors
	Scorecard     []*ScorecardRow  `json:"scorecard,omitzero"`
	// Worth is only in a report with a scorecard. It must be the last member: an answer adds it to a kept report.
	Worth *Worth `json:"worth,omitempty"`

	WorthReason stats.Reason `json:"-"` // why a report with a scorecard says nothing about worth; empty: it does
	Pulse       *Pulse       `json:"-"` // of the events; nil: without a scorecard or events

	computedLooks []LookFigures // at the declared question, which the ledger does not have
	novel         []int64       // variations with a finding of novelty
}

// New computes the report from the rows, without the series. a has the results of the looks at the declared question;
// nil: there are none.
func New(p *plan.Plan, found *moments.Rows, a *looks.Analysis) *Report {
	all := sumRows(found.Whole, p)
	of := all.compareVariations(p)
	of.Checks = all.runChecks(p, found)
	if found.Outliers != nil {
		of.Checks.Outliers = outliersCheck(found.Outliers, of.Totals.GoalsReached)
		if all.unknown > 0 {
			of.Checks.Outliers = &OutliersCheck{Reason: stats.ReasonRateUnknown}
		}
	}
	if a != nil && p.OfAllVisitors() {
		of.checkEarlierSplit(a.MismatchP)
		of.checkDays(p, a)
		of.checkReturns(p, a)
	}
	of.setConclusion(p, a, false)
	if found.Everyone != nil {
		everyone := sumRows(found.Everyone, p)
		of.compareWithOthers(p, &all, &everyone)
	}
	if len(p.Variations) > 1 && p.Rules.Compare {
		first := found.First
		if a != nil {
			first = a.FirstView.Start()
		}
		of.Power = of.sampleProgress(p, perDay(&of.total, first, found.Through))
	}
	r := newReport(p, found, of.Slice)
	if a != nil && p.Rules.Compare && !isDescriptive(p) {
		r.Looks = newLooks(a)
		r.NextLook = nextLook(a)
		r.FollowUp = newFollowUps(a)
	}
	if p.Dimension != "" {
		r.addBreakdown(p, found, &all)
	}
	return r
}

// dataThrough returns the time up to which all accepted events are in a report. Before the first fold of a store is
// complete, there is none, which is 1970 in the facts.
func dataThrough(at time.Time) *time.Time {
	if at.Unix() <= 0 {
		return nil
	}
	return &at
}

// newReport returns the report with what it is about.
func newReport(p *plan.Plan, found *moments.Rows, of Slice) *Report {
	r := &Report{
		SubjectIDs: p.Subject.IDs(), CampaignKey: p.CampaignKey,
		Methodology:       p.Rules.Methodology,
		SignificanceLevel: p.Rules.SignificanceLevel,
		Filters:           p.Filters.CanonicalForm(),
		Window:            Window{optionalTime(p.Filters.From), optionalTime(p.Filters.To)},
		ConversionWindow:  newAgeRange(p),
		Population:        "firstExposedInWindow",
		GeneratedAt:       time.Now().UTC().Truncate(time.Millisecond),
		DataThrough:       dataThrough(found.Through),
		NewestEvent:       optionalTime(found.Newest),
		Slice:             of,
	}
	if p.Rules.Compare && p.Expression == nil {
		r.CompareMetric = &p.Metric
	}
	r.Question = newQuestion(p)
	if p.GoalID != 0 {
		r.Goal = &GoalName{p.GoalID, p.GoalName}
	}
	return r
}

// newLooks returns the looks at the declared question.
func newLooks(a *looks.Analysis) []Look {
	all := []Look{}
	for _, rows := range a.Primary.Rows {
		look := Look{
			Number: rows[0].Number, End: rows[0].End, Tau: rows[0].Tau, Visitors: rows[0].Visitors,
			RecordedAt: optionalTime(rows[0].RecordedAt),
		}
		for i := range rows {
			look.Variations = append(look.Variations, NewLookVariation(&rows[i]))
		}
		all = append(all, look)
	}
	return all
}

// sampleProgress compares the visitors with the sample that the power and the minimum effect require, at a number of
// visitors per day. With a conversion window, the last visitors still need the time of the window.
func (j *sliceResult) sampleProgress(p *plan.Plan, daily float64) *stats.SampleProgress {
	size, reason := j.sampleSize(p, daily)
	if reason != "" {
		return &stats.SampleProgress{Reason: reason}
	}
	progress := size.ProgressTowards(p.Rules.MDE/100, j.total.Visitors, daily)
	maturity := p.ConversionWindow.Maturity()
	if days := progress.DaysRemaining; maturity > 0 && days != nil && *days > 0 {
		missing := *progress.RemainingVisitors - j.immature // immature visitors have come already
		wait := float64(max(missing, 0))/daily + maturity.Hours()/24
		progress.DaysRemaining = new(int64(math.Ceil(wait)))
	}
	return &progress
}

// indexOfResults returns the index of the results of a variation, or -1.
func indexOfResults(of []VariationResults, id int64) int {
	return slices.IndexFunc(of, func(v VariationResults) bool { return v.ID == id })
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Look has the results of all comparisons at the end of a week of full days, or of a full day.
type Look struct {
	Number     int             `json:"number"`
	End        time.Time       `json:"end"`
	Tau        float64         `json:"tau"` // time on the clock of the plan, whose end is 1
	Visitors   int64           `json:"visitors"`
	RecordedAt *time.Time      `json:"recordedAt,omitempty"` // nil: computed from the events
	Variations []LookVariation `json:"variations"`           // without control
}

// LookVariation is the result of a look for one variation.
type LookVariation struct {
	ID                  int64        `json:"id"`
	CriticalValue       *float64     `json:"criticalValue"` // that |z| must reach
	Z                   *float64     `json:"z"`
	PValue              *float64     `json:"pValue"`
	Difference          stats.Effect `json:"difference"`
	Improvement         stats.Effect `json:"improvement"`
	ChanceToBeatControl *float64     `json:"chanceToBeatControl,omitempty"` // only Bayesian
	Significant         bool         `json:"significant"`
	Reason              stats.Reason `json:"reason,omitempty"`
	Recomputed          *Recomputed  `json:"recomputed,omitempty"` // nil: today's events give the same result
}

// Recomputed is the result of a recorded look from today's events. The recorded figures do not change.
type Recomputed struct {
	Difference  stats.Effect `json:"difference"`
	Improvement stats.Effect `json:"improvement"`
	Significant bool         `json:"significant"`
}

// NextLook is the next look of a running subject.
type NextLook struct {
	Number      int       `json:"number"`
	End         time.Time `json:"end"`         // the earliest possible time
	PublishedAt time.Time `json:"publishedAt"` // after late events have arrived
}

// Point is the report of a window that ends at Time.
type Point struct {
	Time       time.Time          `json:"time"`
	Variations []VariationResults `json:"variations"`
}

// GoalName is the goal of the report.
type GoalName struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Window is the half-open period of first views. null is an open end.
type Window struct {
	From *time.Time `json:"from"`
	To   *time.Time `json:"to"`
}

// AgeRange is the conversion window of a report: the half-open range of the time from a visitor's first view to the
// events that count, in hours such as 168h.
type AgeRange struct {
	From   string `json:"from"`
	To     string `json:"to,omitempty"`     // empty: no limit
	Settle string `json:"settle,omitempty"` // the time after it, or after the order, in which orders still change
	Source string `json:"source"`           // goal, metric (of a secondary metric or a guardrail) or request
	Text   string `json:"text"`             // the words that follow the name of a metric, such as "within 7 days"
}

// hours writes an age in hours, such as 168h.
func hours(age time.Duration) string { return fmt.Sprintf("%dh", age/time.Hour) }

// newAgeRange returns the conversion window of a plan; nil: it has none.
func newAgeRange(p *plan.Plan) *AgeRange {
	w := p.ConversionWindow
	if w.Maturity() == 0 {
		return nil
	}
	shown := &AgeRange{From: hours(w.From), Source: "goal", Text: w.InWords()}
	if w.IsSet() {
		shown.To = hours(w.To)
	}
	if w.Settle > 0 {
		shown.Settle = hours(w.Settle)
	}
	switch {
	case p.Asked.ConversionWindow != nil:
		shown.Source = "request"
	case w != p.WindowOf(p.GoalID):
		shown.Source = "metric"
	}
	return shown
}

// afterName returns the words that follow the name of a metric, such as " within 7 days". A nil range has none.
func (r *AgeRange) afterName() string {
	if r == nil {
		return ""
	}
	return " " + r.Text
}

// Compares reports whether the report compares variations.
func (r *Report) Compares() bool { return r.Conclusion != nil }

// HasExpression reports whether the request writes a metric.
func (r *Report) HasExpression() bool { return r.Question != nil && r.Question.Metric != "" }

// EstimateOf returns the value of the metric of the report; if nothing is compared, that of the goal conversion rate.
func (r *Report) EstimateOf(v *VariationResults) Estimate {
	return v.estimateOf(*cmp.Or(r.CompareMetric, new(query.GoalConversionRate)))
}

// IsShare reports whether the metric of the report is a share; if nothing is compared, the goal conversion rate is.
func (r *Report) IsShare() bool {
	if r.HasExpression() {
		return r.Question.Unit == metric.Share
	}
	return cmp.Or(r.CompareMetric, new(query.GoalConversionRate)).IsRate()
}

// MetricInWords returns the name of the compared metric, with the conversion window; empty: nothing is compared.
func (r *Report) MetricInWords() string {
	if r.HasExpression() {
		return r.Question.Name
	}
	if r.CompareMetric == nil {
		return ""
	}
	return MetricInWords(*r.CompareMetric) + r.ConversionWindow.afterName()
}

// Slice has the results for all visitors, or for the visitors with one dimension value.
type Slice struct {
	Totals     Counts                `json:"totals"`
	Variations []VariationResults    `json:"variations"`
	Conclusion *Conclusion           `json:"conclusion"` // null: nothing is compared
	Checks     Checks                `json:"checks"`
	Power      *stats.SampleProgress `json:"power,omitempty"` // null in slices of a breakdown
}

// Conclusion is the overall result of the comparison.
type Conclusion struct {
	Status      stats.Status   `json:"status"`
	VariationID *int64         `json:"variationId"`         // winner or loser
	Look        *int           `json:"look,omitempty"`      // number of the look that concluded
	DecidedAt   *time.Time     `json:"decidedAt,omitempty"` // end of that look
	Reasons     []stats.Reason `json:"reasons"`
	Text        string         `json:"text"` // one sentence
}

// BreakdownSlice has the results of the visitors with one value of the dimension.
type BreakdownSlice struct {
	Value  string   `json:"value"`
	Values []string `json:"values,omitempty"` // of two attributes
	Slice

	of string // value of the dimension
}

// setValue sets the value of the dimension, or the pair of the values of two attributes.
func (b *BreakdownSlice) setValue(of string, isPair bool) {
	b.of = of
	if !isPair {
		b.Value = ShownValue(of)
		return
	}
	for _, value := range moments.SplitValues(of) {
		b.Values = append(b.Values, ShownValue(value))
	}
	b.Value = strings.Join(b.Values, " · ")
}

// Counts are sums over the visitors and their counted events.
type Counts struct {
	Visitors          int64 `json:"visitors"`
	Views             int64 `json:"views"`
	ConvertedVisitors int64 `json:"convertedVisitors"`
	GoalsReached      int64 `json:"goalsReached"`
	Value             Money `json:"value"`
	Profit            Money `json:"profit"`
	ExtraValue        Money `json:"extraValue"`
}

// VariationResults has the results of one variation.
type VariationResults struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Control bool   `json:"control"`
	Share   int    `json:"share"`
	Counts
	*moments.Actions               // only for widgets
	Metrics          Metrics       `json:"metrics"`
	Metric           *MetricResult `json:"metric,omitempty"` // only if the request writes a metric
	Comparison       *Comparison   `json:"comparison"`       // null for control, and if nothing is compared
}

// Metrics are all metrics of a variation.
type Metrics struct {
	GoalConversionRate   Estimate `json:"goalConversionRate"`
	ConversionRate       Estimate `json:"conversionRate"`
	CompletionRate       Estimate `json:"completionRate"`
	GoalsPerVisitor      Estimate `json:"goalsPerVisitor"`
	ValuePerVisitor      Estimate `json:"valuePerVisitor"`
	ProfitPerVisitor     Estimate `json:"profitPerVisitor"`
	ExtraValuePerVisitor Estimate `json:"extraValuePerVisitor"`
	AverageValue         Estimate `json:"averageValue"`
}

// Estimate is the value of a metric with its standard error and interval. Values that cannot be computed are null, with
// a reason.
type Estimate = stats.Estimate

// Comparison compares a variation with control on the metric of the report.
type Comparison struct {
	Difference  stats.Effect       `json:"difference"`
	Improvement stats.Effect       `json:"improvement"`
	Frequentist *stats.Frequentist `json:"frequentist,omitempty"`
	Sequential  *Sequential        `json:"sequential,omitempty"`
	Bayesian    *stats.Bayesian    `json:"bayesian,omitempty"`
	Significant bool               `json:"significant"`
	Verdict     stats.Verdict      `json:"verdict"`
	Conclusive  *bool              `json:"conclusive,omitempty"` // whether a look supports the verdict; nil: the verdict only describes
	Reasons     []stats.Reason     `json:"reasons"`
	Complement  *Complement        `json:"complement,omitempty"` // nil: not in a breakdown, and not asked for
	Evidence    *Evidence          `json:"evidence,omitempty"`   // nil: the comparison has looks, or a z-score removed values
}

// Sequential is the result of the last look.
type Sequential struct {
	Look              *int            `json:"look"` // its number; null: there was none
	End               *time.Time      `json:"end"`
	PValue            *float64        `json:"pValue"`
	Difference        *stats.Interval `json:"difference"`
	Improvement       *stats.Interval `json:"improvement"`
	Significant       bool            `json:"significant"`
	Reason            stats.Reason    `json:"reason,omitempty"`
	ImprovementReason stats.Reason    `json:"improvementReason,omitempty"`
}

// Checks report whether the data are valid.
type Checks struct {
	SampleRatio       *stats.SampleRatioCheck `json:"sampleRatio"`          // null: nothing is compared
	SplitCause        *SplitCause             `json:"splitCause,omitempty"` // only of a whole report with a mismatch
	Leak              []Leak                  `json:"leak"`
	MultipleExposures MultipleExposures       `json:"multipleExposures"`
	Automated         *Automated              `json:"automated,omitempty"` // only if there are any
	UnknownVariations []UnknownVariation      `json:"unknownVariations"`
	Outliers          *OutliersCheck          `json:"outliers"`             // null: no z-score
	Cap               *CapCheck               `json:"cap,omitempty"`        // only with a cap
	Currencies        *CurrenciesCheck        `json:"currencies,omitempty"` // only if amounts are in other currencies
	Customers         *CustomersCheck         `json:"customers,omitempty"`  // only if orders without a visitor count
	Window            WindowCheck             `json:"window"`
	ConversionWindow  *MaturityCheck          `json:"conversionWindow,omitempty"` // only with a conversion window
	Returns           []ReturnsCheck          `json:"returns,omitempty"`          // only if orders change unequally
	FullWeeks         *FullWeeks              `json:"fullWeeks,omitempty"`        // only with a scorecard
	Interactions      []Interaction           `json:"interactions,omitempty"`     // only of the declared question about all visitors
	Warnings          []Warning               `json:"warnings"`
}

// MultipleExposures counts the visitors who were exposed to more than one variation.
type MultipleExposures struct {
	Rule     string  `json:"rule"` // exclude or first
	Visitors int64   `json:"visitors"`
	Share    float64 `json:"share"` // of the visitors before exclusion
	stats.ShareComparison
	Warning bool `json:"warning"`
}

// Automated counts the visitors with more events than people have, by the variation of the first view. They are in no
// other number of the report. Filters and the window do not apply.
type Automated struct {
	Visitors   int64                `json:"visitors"`
	Variations []AutomatedVariation `json:"variations"`
	stats.ShareComparison
	Warning bool `json:"warning"`
}

// AutomatedVariation counts the automated visitors of a variation.
type AutomatedVariation struct {
	ID       int64 `json:"id"`
	Visitors int64 `json:"visitors"`
}

// Leak is a variation that has visitors but no share of the traffic.
type Leak struct {
	VariationID int64 `json:"variationId"`
	Visitors    int64 `json:"visitors"`
}

// UnknownVariation is a variation that events name and the catalogue does not declare.
type UnknownVariation struct {
	VariationID int64 `json:"variationId"`
	Visitors    int64 `json:"visitors"`
	Events      int64 `json:"events"` // counted views and goals
}

// OutliersCheck reports the goal events that the z-score removed.
type OutliersCheck struct {
	Removed int64        `json:"removed"` // goal events
	Lower   *float64     `json:"lower"`   // minimum counted value
	Upper   *float64     `json:"upper"`   // maximum counted value
	Reason  stats.Reason `json:"reason,omitempty"`
}

// CapCheck reports what the cap of the total values of visitors removed.
type CapCheck struct {
	Rule         string       `json:"rule"`         // a percentile such as p99, or an amount
	Amount       *Money       `json:"amount"`       // null: nothing is capped
	Visitors     int64        `json:"visitors"`     // with a total value above the amount
	ValueRemoved Money        `json:"valueRemoved"` // sum of the parts of their values above the amount
	Reason       stats.Reason `json:"reason,omitempty"`
}

// CurrenciesCheck counts the counted goal events whose amounts have no rate to the website's currency. All sums of
// amounts are withheld.
type CurrenciesCheck struct {
	Orders  int64    `json:"orders"`
	Unknown []string `json:"unknown"` // these currencies
}

// CustomersCheck counts the orders without a visitor that belong to customers won in the test, and the orders of
// visitors that such a row revises. Filters and the window do not apply.
type CustomersCheck struct {
	CarriedSums
	Variations []CarriedVariation `json:"variations"`
}

// CarriedSums are sums of orders without a visitor.
type CarriedSums struct {
	Orders  int64 `json:"carriedOrders"`
	Value   Money `json:"carriedValue"`
	Revised int64 `json:"revisedOrders"`
}

// CarriedVariation has the sums of a variation.
type CarriedVariation struct {
	ID int64 `json:"id"`
	CarriedSums
}

// WindowCheck counts the visitors that the window excludes.
type WindowCheck struct {
	EarlierVisitors int64 `json:"earlierVisitors"` // active in the window, but first exposed before it
}

// MaturityCheck counts the visitors of the report's period whose conversion window has not ended. They count in the
// checks of the split only.
type MaturityCheck struct {
	ImmatureVisitors int64               `json:"immatureVisitors"`
	Variations       []ImmatureVariation `json:"variations"`
	// when the window of the first visitor ends; only if no visitor is mature
	FirstMature *time.Time `json:"firstMature,omitempty"`
}

// ImmatureVariation counts the immature visitors of a variation.
type ImmatureVariation struct {
	ID       int64 `json:"id"`
	Immature int64 `json:"immature"`
}

// Warning is a message about the validity of the results.
type Warning struct {
	Code    WarningCode `json:"code"`
	Message string      `json:"message"`
}

// Money is an exact sum in 1/schema.MoneyScale. It is encoded as a decimal number, and as null if it is withheld.
type Money struct {
	Units    *big.Int
	Withheld bool // some amounts are in a currency without a rate
}

// MarshalJSON writes all decimals.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON parses the output of MarshalJSON. More than 4 decimals are an error.
func (m *Money) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		m.Withheld = true
		return nil
	}
	amount, ok := new(big.Rat).SetString(string(text))
	if !ok {
		return fmt.Errorf("money: %q is not a number", text)
	}
	amount.Mul(amount, new(big.Rat).SetInt64(schema.MoneyScale))
	if !amount.IsInt() {
		return fmt.Errorf("money: %s has more than 4 decimals", text)
	}
	m.Units = new(big.Int).Set(amount.Num())
	return nil
}

// String formats the amount in the sender's unit: 470.56.
func (m Money) String() string {
	if m.Withheld {
		return "null"
	}
	text := new(big.Rat).SetFrac(cmp.Or(m.Units, new(big.Int)), big.NewInt(schema.MoneyScale)).FloatString(4)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// NewEstimate returns the estimate of a sample for the response body.
func NewEstimate(sample stats.Sample, o stats.Options) Estimate {
	switch s := sample.(type) {
	case stats.Rate:
		return stats.EstimateRate(s, o)
	case stats.Mean:
		return stats.EstimateMean(s, o)
	}
	return Estimate{}
}

// NewComparison returns the comparison for the response body.
func NewComparison(c stats.Comparison) *Comparison {
	return &Comparison{
		Difference: c.Difference, Improvement: c.Lift, Frequentist: c.Frequentist, Bayesian: c.Bayesian,
		Significant: c.Significant, Verdict: c.Verdict, Reasons: append([]stats.Reason{}, c.Reasons...),
	}
}
