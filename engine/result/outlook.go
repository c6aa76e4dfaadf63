package result

import (
	"fmt"
	"math"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/wording"
	"lifthouse/engine/worth"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// Traffic has the visitors of a campaign, from which plans of others are estimated.
type Traffic struct {
	plan     *plan.Plan
	name     string // of the campaign
	sums     sliceResult
	from, to time.Time // full days; zero: of the campaign as a whole
}

// NewTraffic returns the visitors of a campaign whose first views are in some full days, from the rows of these days. p
// is the plan of the report about the declared goal and metric, and name is that of the campaign.
func NewTraffic(p *plan.Plan, name string, found *moments.Rows, from, to time.Time) *Traffic {
	all := sumRows(found.Whole, p)
	return &Traffic{p, name, all.compareVariations(p), from, to}
}

// Visitors returns the number of visitors over all variations.
func (t *Traffic) Visitors() int64 { return t.sums.total.Visitors + t.sums.immature }

// perDay returns the number of visitors of a plan per day. It is a share of the visitors of the campaign if both
// declare their share of all traffic, and otherwise the same number.
func (t *Traffic) perDay(allocation *int) float64 {
	const hoursOfDay = 24
	daily := float64(t.Visitors()) / (t.to.Sub(t.from).Hours() / hoursOfDay)
	if allocation != nil && t.plan.Allocation != nil {
		daily *= float64(*allocation) / float64(*t.plan.Allocation)
	}
	return daily
}

// Basis returns what is known of the visitors of an experiment with a plan.
func (t *Traffic) Basis(p *plan.Plan) *worth.Basis {
	var o Outlook
	all := o.setTraffic(p, t, 0)
	return &worth.Basis{
		Control: t.sums.control, PerDay: o.Traffic.VisitorsPerDay, ValuePerMonth: t.monthlyValue(p, all),
	}
}

// monthlyValue returns the value a month of some visitors a day; 0: it is not known.
func (t *Traffic) monthlyValue(p *plan.Plan, daily float64) float64 {
	value, _ := t.meanValue(p)
	return value * daily * worth.DaysPerMonth
}

// meanValue returns the value of a visitor, or the reason why it is not known.
func (t *Traffic) meanValue(p *plan.Plan) (float64, stats.Reason) {
	return worth.MeanValue(&t.sums.total, worth.KindOf(p.Declared.Metric) == query.ValuePerVisitor)
}

// PlanEstimate says what the plan of a campaign can detect.
type PlanEstimate struct {
	VisitorsPerDay float64 // over all variations
	Days           int     // of the plan
	Detectable     float64 // the lift that the plan finds with its power, as a fraction

	Priors []PriorCost // what priors cost; none: the campaign is not Bayesian

	// Later is the lift that a reading of later orders finds with the power of the plan, as a fraction; nil: it is not
	// known, or the campaign has no follow-up.
	Later *float64
	later query.Metric // of the readings
}

// PriorCost is the sample that a Bayesian campaign needs with a prior to find its minimum effect with its power.
type PriorCost struct {
	Prior    catalogue.Prior `json:"prior"`            // in per cent
	Visitors int64           `json:"requiredVisitors"` // over all variations
	Days     int             `json:"days"`             // until they have come
	Text     string          `json:"text"`
}

// EstimatePlan estimates what a plan can detect. The estimate is nil without visitors, without conversions, or if no
// lift can be found. priors are those that a Bayesian campaign could have, in per cent.
func EstimatePlan(p *plan.Plan, t *Traffic, priors []catalogue.Prior) *PlanEstimate {
	daily := t.perDay(p.Allocation)
	if !(daily > 0) || math.IsInf(daily, 1) {
		return nil
	}
	size, reason := t.sums.sampleSize(p, daily)
	if reason != "" {
		return nil
	}
	planned := daily * float64(p.Rules.PlannedDays)
	days := p.Rules.PlannedDays
	if p.Rules.PlannedVisitors > 0 {
		planned = float64(p.Rules.PlannedVisitors)
		days = int(math.Ceil(planned / daily))
	}
	lift, reason := size.DetectableLift(planned)
	if reason != "" {
		return nil
	}
	estimate := &PlanEstimate{
		VisitorsPerDay: daily, Days: days, Detectable: *lift, Priors: t.costOf(p, daily, priors),
		Later: t.detectableLater(p, planned),
	}
	if estimate.Later != nil {
		estimate.later = p.Declared.FollowUp[0].Metric
	}
	return estimate
}

// detectableLater returns the lift that a reading of later orders of some visitors finds with the power of the plan;
// nil: there are no readings, or it is not known. It is estimated from the value or profit so far: relative to its
// mean, the standard error of that within a year is about the same.
func (t *Traffic) detectableLater(p *plan.Plan, visitors float64) *float64 {
	readings := len(p.Declared.FollowUp)
	if readings == 0 {
		return nil
	}
	o := statsOptions(p)
	size, reason := stats.NewSampleSize(stats.SamplePlan{
		Control: looks.SampleOf(&t.sums.total, p.Declared.FollowUp[0].Metric), Shares: o.Shares, Looks: 1,
		Power: float64(p.Rules.Power) / 100,
	}, stats.NewLookDesign(o.Alpha()/float64(readings), o.Shares))
	if reason != "" {
		return nil
	}
	lift, _ := size.DetectableLift(visitors)
	return lift
}

// costOf returns what priors cost a plan, without those under which its minimum effect cannot be found.
func (t *Traffic) costOf(p *plan.Plan, daily float64, priors []catalogue.Prior) []PriorCost {
	var costs []PriorCost
	for _, prior := range priors {
		size, reason := t.sums.sampleSize(p.WithPrior(prior), daily)
		if reason != "" {
			continue
		}
		if required, reason := size.RequiredVisitors(p.Rules.MDE / 100); reason == "" {
			costs = append(costs, newPriorCost(prior, *required, daily, p.Rules.MDE))
		}
	}
	return costs
}

// newPriorCost returns what a prior costs. mde is the minimum effect of the campaign in per cent.
func newPriorCost(prior catalogue.Prior, required int64, daily, mde float64) PriorCost {
	name := "the weak prior"
	if prior.Campaigns != nil {
		name = fmt.Sprintf("the prior learned from %s", wording.CountNoun(*prior.Campaigns, "campaign"))
	}
	days := int(math.Ceil(float64(required) / daily))
	text := fmt.Sprintf("%s (mean %s, standard deviation %s): %s visitors, or %s, find a lift of %v %%", name,
		wording.FormatPercent(prior.Mean/100, 1, true), wording.FormatPercent(prior.StandardDeviation/100, 1, false),
		wording.FormatCount(required), wording.CountNoun(days, "day"), mde)
	return PriorCost{prior, required, days, text}
}

// InWords returns a line for the declaration of the plan. mde is the minimum effect of the campaign in per cent.
func (e *PlanEstimate) InWords(mde float64) string {
	text := fmt.Sprintf("%d days detect a lift of %s at %s visitors a day", e.Days,
		wording.FormatPercent(e.Detectable, 1, true), wording.FormatCount(int64(math.Round(e.VisitorsPerDay))))
	if e.Detectable > mde/100 {
		return text + fmt.Sprintf(": too short for the minimum effect of %v %%", mde)
	}
	return text + fmt.Sprintf(", and the minimum effect is %v %%", mde)
}

// LaterInWords returns a line for the follow-up of the campaign; empty: there is none, or nothing is known.
func (e *PlanEstimate) LaterInWords() string {
	if e.Later == nil {
		return ""
	}
	name := "value"
	if e.later == query.ProfitPerVisitor {
		name = "profit"
	}
	return fmt.Sprintf("each reading of later orders detects a lift of about %s in %s per visitor",
		wording.FormatPercent(*e.Later, 1, true), name)
}

// Outlook says what experiments of several lengths would find, and what that is worth.
type Outlook struct {
	WebsiteID        int64          `json:"websiteId"`
	Goal             *GoalName      `json:"goal"` // null: the metric names its goals
	Metric           query.Metric   `json:"metric"`
	Currency         string         `json:"currency,omitempty"` // of the website; empty: not declared
	Rules            OutlookRules   `json:"rules"`
	Traffic          OutlookTraffic `json:"traffic"`
	Baseline         *float64       `json:"baseline"` // of control; null: see Reason
	Weeks            []WeeksOutlook `json:"weeks"`    // empty: see Reason
	Best             *int           `json:"best"`     // weeks of the plan of which a week adds most; null: see Reason
	RequiredVisitors *int64         `json:"requiredVisitors"`
	Days             *int64         `json:"days"`                  // until they have come
	Priors           []PriorCost    `json:"priors,omitzero"`       // only of a Bayesian experiment
	Reason           stats.Reason   `json:"reason,omitempty"`      // of the first null
	WorthReason      stats.Reason   `json:"worthReason,omitempty"` // why there is no worth per week
	Sentences        []string       `json:"sentences"`

	baseline   Estimate
	metricName string
}

// OutlookRules are the settings of an experiment, as a campaign declares them.
type OutlookRules struct {
	Shares            []float64 `json:"shares"` // of the traffic, in per cent, control first
	Methodology       string    `json:"methodology"`
	SignificanceLevel int       `json:"significanceLevel"`
	Power             int       `json:"power"` // per cent
	MDE               float64   `json:"mde"`   // per cent
}

// OutlookTraffic says how many visitors an experiment has, and how that is known.
type OutlookTraffic struct {
	VisitorsPerDay float64        `json:"visitorsPerDay"`       // in the experiment
	Of             worth.Visitors `json:"of"`                   // the visitors of the worth
	Allocation     *int           `json:"allocation,omitempty"` // share of all traffic, in per cent; nil: not known
	Basis          *OutlookBasis  `json:"basis"`                // null: no campaign has visitors
	From           *time.Time     `json:"from"`                 // full days of the basis; null: visitors were given
	To             *time.Time     `json:"to"`
}

// OutlookBasis is the campaign from whose visitors an outlook is estimated.
type OutlookBasis struct {
	CampaignID int64  `json:"campaignId"`
	Name       string `json:"name"`
	Visitors   int64  `json:"visitors"` // of the baseline
}

// WeeksOutlook is the outlook of an experiment of some weeks.
type WeeksOutlook struct {
	worth.PlanChance
	Visitors int64        `json:"visitors"`
	MDE      *float64     `json:"mde"` // the lift that is found with the power, as a fraction; null: see Reason
	Reason   stats.Reason `json:"reason,omitempty"`

	gain float64 // mean lift that is shipped, per week
}

// outlookWeeks are the lengths of experiments.
var outlookWeeks = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20, 26}

// usualWeeks is the length of a campaign that declares none.
const usualWeeks = catalogue.DefaultPlannedDays / daysOfWeek

const daysOfWeek = 7

// NewOutlook returns the outlook of an experiment with a plan. t has the visitors of its basis, nil: no campaign has
// any. given is the number of visitors a day of the website; 0: that of the basis counts. priors are those that a
// Bayesian campaign could have, in per cent.
func NewOutlook(p *plan.Plan, t *Traffic, given int, pool *worth.Pool, priors []catalogue.Prior) *Outlook {
	o := &Outlook{
		WebsiteID: p.Subject.WebsiteID, Metric: p.Metric, Currency: p.Currency,
		Rules: OutlookRules{
			Methodology: p.Rules.Methodology, SignificanceLevel: p.Rules.SignificanceLevel, Power: p.Rules.Power,
			MDE: p.Rules.MDE,
		},
		Weeks: []WeeksOutlook{},
	}
	o.metricName = metrics[p.Metric].name
	if p.Expression != nil {
		o.metricName = nameOfExpression(p)
	} else {
		o.Goal = &GoalName{p.GoalID, p.GoalName}
	}
	for _, share := range p.ExpectedShares {
		const percent, rounding = 100, 1e6
		o.Rules.Shares = append(o.Rules.Shares, math.Round(share*percent*rounding)/rounding)
	}
	all := o.setTraffic(p, t, given)
	if t == nil {
		o.Reason = stats.ReasonNoVisitors
		o.WorthReason = stats.ReasonNoVisitors
		o.setSentences(pool)
		return o
	}
	o.Traffic.Basis = &OutlookBasis{t.plan.Subject.ID, t.name, t.sums.total.Visitors}
	o.baseline = NewEstimate(t.sums.control, statsOptions(p))
	o.Baseline = o.baseline.Value
	_, o.WorthReason = t.meanValue(p)
	o.setWeeks(p, t, pool, t.monthlyValue(p, all))
	daily := o.Traffic.VisitorsPerDay
	size, reason := t.sums.sampleSize(ofWeeks(p, usualWeeks), daily)
	if reason == "" {
		o.RequiredVisitors, reason = size.RequiredVisitors(p.Rules.MDE / 100)
	}
	o.Reason = reason
	if o.RequiredVisitors != nil {
		o.Days = new(int64(math.Ceil(float64(*o.RequiredVisitors) / daily)))
	}
	if p.Rules.Methodology == catalogue.Bayesian {
		o.Priors = append([]PriorCost{}, t.costOf(ofWeeks(p, usualWeeks), daily, priors)...)
	}
	o.setSentences(pool)
	return o
}

// ofWeeks returns a plan with another length.
func ofWeeks(p *plan.Plan, weeks int) *plan.Plan {
	of := *p
	of.Rules.PlannedDays = weeks * daysOfWeek
	of.Rules.PlannedVisitors = 0
	return &of
}

// setTraffic sets the visitors of an experiment, and returns the number of visitors a day that a shipped variation has.
func (o *Outlook) setTraffic(p *plan.Plan, t *Traffic, given int) (all float64) {
	const percent = 100
	of := &o.Traffic
	of.Of = worth.AllTraffic
	if given > 0 {
		of.Allocation = new(percent)
		if p.Allocation != nil {
			of.Allocation = p.Allocation
		}
		of.VisitorsPerDay = float64(given) * float64(*of.Allocation) / percent
		return float64(given)
	}
	of.VisitorsPerDay = t.perDay(p.Allocation)
	of.From, of.To = &t.from, &t.to
	if t.plan.Allocation == nil {
		of.Of = worth.Tested
		return of.VisitorsPerDay
	}
	of.Allocation = t.plan.Allocation
	if p.Allocation != nil {
		of.Allocation = p.Allocation
	}
	return of.VisitorsPerDay * percent / float64(*of.Allocation)
}

// setWeeks sets the outlook of each length, and the best one. value is the value a month of all visitors; 0: it is not
// known.
func (o *Outlook) setWeeks(p *plan.Plan, t *Traffic, pool *worth.Pool, value float64) {
	daily := o.Traffic.VisitorsPerDay
	all := make([]*WeeksOutlook, len(outlookWeeks))
	onAllCores(len(all), func(i int) {
		weeks := outlookWeeks[i]
		size, reason := t.sums.sampleSize(ofWeeks(p, weeks), daily)
		if reason != "" {
			return
		}
		visitors := daily * daysOfWeek * float64(weeks)
		of := WeeksOutlook{Visitors: int64(math.Round(visitors))}
		of.MDE, of.Reason = size.DetectableLift(visitors)
		of.PlanChance, of.gain = pool.ChanceOf(weeks, size.PowerCurve(visitors, of.MDE), value)
		all[i] = &of
	})
	best := 0.0
	for _, of := range all {
		if of == nil {
			continue
		}
		o.Weeks = append(o.Weeks, *of)
		if of.gain > best {
			best = of.gain
			o.Best = new(of.Weeks)
		}
	}
}

// setSentences sets what the outlook says in words. pool has what is known of true effects.
func (o *Outlook) setSentences(pool *worth.Pool) {
	say := func(format string, values ...any) { o.Sentences = append(o.Sentences, fmt.Sprintf(format, values...)) }
	if o.Traffic.Basis == nil {
		say("No campaign of the website has visitors, so no rate is known to plan with.")
		return
	}
	o.Sentences = append(o.Sentences, o.trafficInWords()...)
	if o.RequiredVisitors == nil {
		say("What an experiment finds is not known: %s.", wording.ExplainReason(o.Reason))
		return
	}
	say("To find a lift of %v %%, an experiment needs %s visitors, or %s.", o.Rules.MDE,
		wording.FormatCount(*o.RequiredVisitors), wording.CountNoun(*o.Days, "day"))
	for i := range o.Weeks {
		if w := &o.Weeks[i]; w.Weeks == usualWeeks {
			say("%s", chanceInWords(&w.PlanChance))
		}
	}
	for i := range o.Weeks {
		if w := &o.Weeks[i]; o.Best != nil && w.Weeks == *o.Best {
			say("%s", w.bestInWords(o.Currency))
		}
	}
	for i := range o.Priors {
		say("With %s.", o.Priors[i].Text)
	}
	say("%s", pool.Summary.InWords(o.metricName, "campaign"))
}

// trafficInWords returns sentences about the visitors of an outlook.
func (o *Outlook) trafficInWords() []string {
	of := &o.Traffic
	daily := wording.FormatCount(int64(math.Round(of.VisitorsPerDay)))
	basis := fmt.Sprintf("campaign %d, %s", of.Basis.CampaignID, of.Basis.Name)
	known := "not known"
	if o.Baseline != nil {
		known = wording.FormatValue(*o.Baseline, o.baseline.Interval, o.Metric.IsRate())
	}
	first := fmt.Sprintf("%s visitors a day are given; %s in control is that of %s: %s.", daily,
		o.metricName, basis, known)
	if of.From != nil {
		first = fmt.Sprintf("%s visitors a day, as in %s, from %s to %s; %s in control: %s.", daily, basis,
			of.From.Format(time.DateOnly), of.To.AddDate(0, 0, -1).Format(time.DateOnly), o.metricName, known)
	}
	said := []string{first}
	if of.Of == worth.Tested {
		said = append(said, "That campaign does not declare its share of all traffic, so the visitors are its own.")
	}
	return said
}

// bestInWords returns what the best length adds. currency is that of the website.
func (w *WeeksOutlook) bestInWords(currency string) string {
	text := "A week of testing adds most in experiments of " + wording.CountNoun(w.Weeks, "week")
	if w.WorthPerWeek == nil {
		return text + "."
	}
	unit := "of value a month"
	if currency != "" {
		unit = currency + " " + unit
	}
	return fmt.Sprintf("%s: %s %s, if what wins is shipped and the rest is dropped.", text,
		FormatRounded(*w.WorthPerWeek), unit)
}

// chanceInWords returns how often ideas win in a plan.
func chanceInWords(of *worth.PlanChance) string {
	return fmt.Sprintf("In %s, about %.0f of 100 ideas win, %.0f of them truly.", wording.CountNoun(of.Weeks, "week"),
		100*of.WinRate.Observed, 100*of.WinRate.Expected)
}
