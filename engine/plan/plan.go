// Package plan resolves a request against the catalogue into a plan: what is counted, for which visitors, and which
// variations are compared.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/metric"
	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
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

// setSubject sets the subject of a request, its variations and what it declares, which it returns.
func (p *Plan) setSubject(r query.Request, owned *catalogue.AccountResources) (catalogue.Plan, error) {
	var none catalogue.Plan
	if r.Operation == query.CampaignResults {
		campaign, known := owned.Campaigns[r.SubjectID]
		if !known || !isOfWebsite(r, campaign.WebsiteID) {
			return none, &query.NotFoundError{Kind: "campaign", ID: r.SubjectID}
		}
		p.terms = owned.TermsOf(campaign.WebsiteID)
		return p.setCampaign(&campaign), nil
	}
	widget, known := owned.Widgets[r.SubjectID]
	if !known || !isOfWebsite(r, widget.WebsiteID) {
		return none, &query.NotFoundError{Kind: "widget", ID: r.SubjectID}
	}
	p.terms = owned.TermsOf(widget.WebsiteID)
	if r.Operation == query.WidgetResults {
		p.setWidget(&widget)
		return none, nil
	}
	at := slices.IndexFunc(widget.Experiments, func(e catalogue.Experiment) bool { return e.ID == r.ExperimentID })
	if at < 0 {
		return none, &query.NotFoundError{Kind: "experiment", ID: r.ExperimentID}
	}
	return p.setExperiment(&widget, &widget.Experiments[at]), nil
}

// isOfWebsite reports whether a request may ask for a subject of a website.
func isOfWebsite(r query.Request, websiteID int64) bool {
	return r.WebsiteID == 0 || r.WebsiteID == websiteID
}

// setCampaign makes the plan that of a campaign, and returns what it declares.
func (p *Plan) setCampaign(campaign *catalogue.LiveCampaign) catalogue.Plan {
	p.Subject = campaign.Subject()
	p.Allocation = campaign.TrafficAllocation
	p.DeclaredAt = campaign.CreateDate
	p.CampaignKey = campaign.Key
	p.Ended = !campaign.Active && campaign.EndDate != nil
	p.Running = campaign.Active
	p.Runs = campaign.Runs
	p.history = campaign.PlanHistory[0]
	p.learned = campaign.LearnedPrior
	variations := slices.Clone(campaign.Variations)
	slices.SortStableFunc(variations, func(a, b catalogue.Variation) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID))
	})
	for _, v := range variations {
		p.Variations = append(p.Variations, Variation{ID: v.ID, Name: v.Name, Share: v.Share})
	}
	p.setControlAndShares(campaign.ControlShare, campaign.ShareHistory[0])
	declared := campaign.DeclaredPlan(p.terms)
	p.setDeclared(declared, p.ExpectedShares)
	return declared
}

// setWidget makes the plan that of a widget without an experiment: no visitor is excluded, and there is no control.
func (p *Plan) setWidget(widget *catalogue.LiveWidget) {
	p.Subject = widget.Subject(0)
	p.Rules = widgetRules
	p.MultipleExposures = catalogue.FirstVariation
	p.Variations = widgetVariations(widget.Variations)
}

// setExperiment makes the plan that of an experiment of a widget, and returns what it declares.
func (p *Plan) setExperiment(widget *catalogue.LiveWidget, experiment *catalogue.Experiment) catalogue.Plan {
	p.Subject = widget.Subject(experiment.ID)
	p.Ended = !widget.Active && widget.EndDate != nil
	p.Running = widget.Active && experiment.Active
	p.Runs = widget.Runs
	p.history = widget.PlanHistory[experiment.ID]
	p.Variations = widgetVariations(experiment.Variations)
	p.setControlAndShares(experiment.ControlShare, widget.ShareHistory[experiment.ID])
	declared := experiment.DeclaredPlan(widget.PrimaryGoalID, p.terms)
	p.setDeclared(declared, p.ExpectedShares)
	return declared
}

// setGoal sets the goal, that of the request or else the primary one, with its window and its cap. limit is the cap of
// the request; nil: that of the goal.
func (p *Plan) setGoal(limit *schema.Cap, primaryGoalID int64) error {
	p.Cap = limit
	p.GoalID = cmp.Or(p.GoalID, primaryGoalID)
	p.ConversionWindow = p.WindowOf(p.GoalID)
	if p.GoalID == 0 {
		return nil
	}
	goal, known := p.FindGoal(p.GoalID)
	if !known {
		return query.GoalFault(p.GoalID)
	}
	p.GoalName = goal.Name
	p.Cap = cmp.Or(limit, goal.ValueCap)
	return nil
}

// WindowOf returns the conversion window of reports about a goal: that of the request, or else that of the goal, which
// the plan fixes for the primary goal.
func (p *Plan) WindowOf(goal int64) schema.ConversionWindow {
	switch own, known := p.FindGoal(goal); {
	case p.Asked.ConversionWindow != nil:
		return *p.Asked.ConversionWindow
	case p.Rules.Compare && goal == p.Declared.GoalID:
		return p.Declared.ConversionWindow
	case known:
		return own.Window().ValueOrNone()
	}
	return schema.ConversionWindow{}
}

// ObservedSplit returns the visitors in a period of equal shares, with the split of the period. Variation 0 is first,
// even if it is not in the report. visitors returns those whose first view is of a variation.
func (p *Plan) ObservedSplit(period int, visitors func(variation int64) int64) stats.SharePeriod {
	shares := p.SharePeriods[period].Shares
	rest := 1.0
	found := stats.SharePeriod{Split: stats.Split{Control: 0}, Observed: []int64{visitors(0)}}
	for i, v := range p.Variations {
		if v.ID == 0 {
			found.Split.Control = 100 * shares[i]
			rest = 1 - shares[i]
		}
	}
	for i, v := range p.Variations {
		if v.ID != 0 {
			found.Split.Variations = append(found.Split.Variations, shares[i]/max(rest, 1e-300))
			found.Observed = append(found.Observed, visitors(v.ID))
		}
	}
	return found
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

// Declared has the catalogue's declarations for the conclusion of a subject.
type Declared struct {
	Metric           query.Metric // of a declared one, the text that identifies it
	GoalID           int64        // 0: all goals count
	Cap              *schema.Cap  // nil: none
	ConversionWindow schema.ConversionWindow
	Superseded       []string // fields whose declaration has changed since the first view
	Secondary        []Secondary
	Guardrails       []Guardrail
	MinDays          int      // full days before a decision to ship
	Questions        []string // whose answers need less evidence, in the language of metrics

	plan catalogue.Plan
}

// equalShares is the maximum difference of shares that count as equal. Thirds, for example, are written as 34, 33 and
// 33 per cent.
const equalShares = 0.015

// setDeclared sets everything that the plan of a campaign or an experiment declares. The variations must already be
// set. shares are those that decide the default rule for multi-exposed visitors.
func (p *Plan) setDeclared(d catalogue.Plan, shares []float64) {
	// The rules. Planned days are rounded up to whole weeks.
	const week = 7
	p.Rules = Rules{
		Compare: true, Methodology: d.Methodology, SignificanceLevel: d.SignificanceLevel, Power: d.Power, MDE: d.MDE,
		LookRules: LookRules{
			PlannedDays:     (cmp.Or(d.PlannedDays, catalogue.DefaultPlannedDays) + week - 1) / week * week,
			PlannedVisitors: d.PlannedVisitors, EquivalenceMargin: d.EquivalenceMargin / 100,
			Maturity: time.Duration(*cmp.Or(d.Maturity, new(catalogue.DefaultMaturity))) * time.Hour,
		},
	}
	if d.Methodology == catalogue.Bayesian {
		prior := d.Prior
		switch {
		case prior == nil:
			prior = new(WeakPrior(d.MDE))
		case prior.IsLearned:
			prior = p.learned
		}
		if prior != nil {
			p.Rules = p.WithPrior(*prior).Rules
		}
	}

	// The primary metric, and the metrics with another role. The default margin of a guardrail is the minimum effect.
	primary := cmp.Or(query.Metric(d.PrimaryMetric), query.GoalConversionRate)
	if p.Subject.ExperimentID != 0 {
		primary = cmp.Or(query.ExperimentMetric[d.PrimaryMetric], query.Metric(d.PrimaryMetric))
	}
	p.Declared = Declared{
		Metric: primary, GoalID: d.PrimaryGoalID, Cap: d.ValueCap, ConversionWindow: d.ConversionWindow.ValueOrNone(),
		MinDays: *cmp.Or(d.MinDays, new(catalogue.DefaultMinDays)), Questions: d.Questions, plan: d,
	}
	goals := *cmp.Or(d.Goals, &catalogue.Goals{})
	for _, g := range goals.Secondary {
		of := query.Metric(g.Metric)
		p.Declared.Secondary = append(p.Declared.Secondary, Secondary{
			newMeasure(g.GoalID, of, g.Window), of, g.Direction == catalogue.Down,
		})
	}
	for _, g := range goals.Guardrails {
		isDown := g.Direction == catalogue.Down
		margin := stats.Margin{Relative: g.Margin / 100, Absolute: g.AbsoluteMargin, Down: isDown}
		if g.Margin == 0 && g.AbsoluteMargin == 0 {
			margin.Relative = d.MDE / 100
		}
		of := query.Metric(g.Metric)
		p.Declared.Guardrails = append(p.Declared.Guardrails, Guardrail{newMeasure(g.GoalID, of, g.Window), of, margin})
	}
	if p.Asked.Metric == "" {
		p.Metric = primary
		if primary.Expression() != nil { // which names its goals, and does not suit another one
			p.Metric = query.GoalConversionRate
		}
	}

	// Multi-exposed visitors are excluded if the expected shares are equal. With unequal shares, that would bias the
	// comparison.
	p.MultipleExposures = d.MultipleExposures
	if p.MultipleExposures == "" {
		p.MultipleExposures = catalogue.FirstVariation
		taken := slices.DeleteFunc(slices.Clone(shares), func(share float64) bool { return share == 0 })
		if len(taken) > 0 && slices.Max(taken)-slices.Min(taken) <= equalShares {
			p.MultipleExposures = catalogue.ExcludeMultiExposed
		}
	}
}

// AsOf returns the plan with the rules, the primary goal and the shares that were in force when the first view was
// accepted. Later changes must not move the looks, because people may make them after seeing the results. Variations
// that had no share then are Added. Shares that were replaced before the first view, at its own time, do not matter.
func (p *Plan) AsOf(viewed, accepted time.Time) *Plan {
	if !p.Rules.Compare || viewed.IsZero() { // a change before the first view counts
		return p
	}
	first := p.Declared.plan
	var superseded []string
	if len(p.history) > 0 {
		first = catalogue.PlanAt(p.history, accepted)
		superseded = first.ChangedFields(p.Declared.plan)
	}
	asOf := *p
	shares := p.SharePeriods[PeriodAt(p.SharePeriods, accepted)].Shares
	asOf.setDeclared(first, shares)
	asOf.Declared.Superseded = superseded
	asOf.Variations = slices.Clone(p.Variations)
	for i := range asOf.Variations {
		asOf.Variations[i].Added = i > 0 && shares[i] == 0 && slices.Max(shares) > 0
	}
	asOf.SharePeriods = slices.Clone(p.SharePeriods[PeriodAt(p.SharePeriods, viewed):])
	asOf.SharePeriods[0].Since = OpenFrom
	if asOf.GoalID != 0 && asOf.GoalID == first.PrimaryGoalID && asOf.Asked.Cap == nil {
		asOf.Cap = first.ValueCap
	}
	asOf.ConversionWindow = asOf.WindowOf(asOf.GoalID)
	switch {
	case asOf.asksDeclared():
		_ = asOf.setPrimaryMetric() // its faults were found when the plan was made
	case asOf.leavesOpen() && asOf.Written != nil: // the primary metric in force has a name
		asOf.setMeasure(asOf.Declared.PrimaryMeasure())
		asOf.Metric = asOf.Declared.Metric
	case asOf.Written != nil: // the windows of its quantities are those of the plan in force
		asOf.Expression = asOf.Written
		_ = asOf.resolveExpression() // its faults were found when the plan was made
	}
	return &asOf
}

// IsDeclared reports whether the report is about the declared goal, metric and cap. Only such a report has a
// conclusion. Filters of visitors may restrict it.
func (p *Plan) IsDeclared() bool {
	isPart := p.Filters.GoalValue != nil || p.Filters.ZScore != 0 || p.Split != nil
	if !p.Rules.Compare || isPart {
		return false
	}
	isOfMetric := p.Measure() == p.Declared.PrimaryMeasure() && p.Metric == p.Declared.Metric
	return isOfMetric && p.Cap.Equal(p.Declared.Cap)
}

// OfAllVisitors reports whether the question is about all visitors up to the end of its window.
func (q *Question) OfAllVisitors() bool {
	return q.Filters.From.IsZero() && !q.Filters.SelectsVisitors()
}

// DeclaredPlan returns the plan of the daily series of the declared question.
func (p *Plan) DeclaredPlan() *Plan {
	asked := *p
	asked.Asked.Cap = nil
	asked.Asked.ConversionWindow = nil
	declared := asked.AboutMeasure(p.Declared.PrimaryMeasure()).WithMetric(p.Declared.Metric)
	declared.Cap = p.Declared.Cap
	declared.Filters = query.Filters{}
	declared.Interval = query.Daily
	declared.Crossings = true
	declared.Timing = OnFirstView
	return declared
}

// DeclaredReport returns the plan of the report about the declared question.
func (p *Plan) DeclaredReport() *Plan {
	declared := p.DeclaredPlan()
	declared.Interval = ""
	declared.Crossings = false
	declared.Timing = WhenMature
	return declared
}

// ResultsRequest returns a request for the results of a subject.
func ResultsRequest(account int64, s schema.Subject) query.Request {
	r := query.Request{AccountID: account, WebsiteID: s.WebsiteID, SubjectID: s.ID, ExperimentID: s.ExperimentID}
	switch {
	case s.Kind == schema.SubjectCampaign:
	case s.ExperimentID == 0:
		r.Operation = query.WidgetResults
	default:
		r.Operation = query.ExperimentResults
	}
	return r
}

// Rules are the statistical settings of a subject. A widget's own variations are not compared.
type Rules struct {
	Compare           bool
	Methodology       string
	SignificanceLevel int
	Power             int             // per cent
	MDE               float64         // per cent
	Prior             *stats.Prior    // of lifts, as fractions; nil: frequentist, or it must be learned
	StatedPrior       catalogue.Prior // the same in per cent; zero: there is none
	LookRules
}

// MustLearn reports whether the prior must be learned from past campaigns.
func (r *Rules) MustLearn() bool { return r.Methodology == catalogue.Bayesian && r.Prior == nil }

// WeakPrior returns the prior of a Bayesian campaign that declares none: N(0, (mde / 1.96)²), in per cent. So lifts
// within the minimum effect are expected in 95 % of campaigns, and no idea starts ahead. A prior that is learned from
// campaigns of small effects needs 2 to 6 times the visitors.
func WeakPrior(mde float64) catalogue.Prior {
	const quantile = 1.96 // of the standard normal distribution, at .975
	return catalogue.Prior{StandardDeviation: mde / quantile}
}

// WithPrior returns the plan with a prior.
func (p *Plan) WithPrior(prior catalogue.Prior) *Plan {
	with := *p
	with.Rules.Prior = &stats.Prior{
		Mean: prior.Mean / 100, StandardDeviation: prior.StandardDeviation / 100, Campaigns: prior.Campaigns,
	}
	with.Rules.StatedPrior = prior
	return &with
}

// LookRules define the times of the looks and the end of the plan.
type LookRules struct {
	PlannedDays       int           // a whole number of weeks
	PlannedVisitors   int64         // measures the time instead of days; 0: none
	Maturity          time.Duration // from the end of a look until it is recorded
	EquivalenceMargin float64       // a lift, as a fraction; 0: none
}

// widgetRules are the rules for the intervals of a widget's own results.
var widgetRules = Rules{Methodology: catalogue.Frequentist, SignificanceLevel: 95}

// widgetVariations returns the variations ordered by id.
func widgetVariations(declared []catalogue.WidgetVariation) (variations []Variation) {
	for _, v := range declared {
		variations = append(variations, Variation{ID: v.ID, Name: v.Name, Share: v.Share})
	}
	slices.SortStableFunc(variations, func(a, b Variation) int { return cmp.Compare(a.ID, b.ID) })
	return variations
}

// setControlAndShares determines control and the periods of equal shares. Control is variation 0 if it has or had a
// share of the traffic, and otherwise the first variation. All shares are 0 if the configured shares are invalid.
func (p *Plan) setControlAndShares(controlShare int, history []catalogue.SharesSince) {
	hadControl := controlShare > 0 ||
		slices.ContainsFunc(history, func(s catalogue.SharesSince) bool { return s.Shares[0] > 0 })
	if hadControl {
		p.Variations = slices.Insert(p.Variations, 0, Variation{ID: 0, Name: "Control", Share: controlShare})
	}
	if len(p.Variations) > 0 {
		p.Variations[0].Control = true
	}
	declared := catalogue.Shares{}
	for _, v := range p.Variations {
		declared[v.ID] = v.Share
	}
	var periods []SharePeriod
	for _, since := range append(slices.Clip(history), catalogue.SharesSince{Shares: declared}) {
		split := stats.Split{Control: float64(since.Shares[0])}
		for _, v := range p.Variations {
			if v.ID != 0 {
				split.Variations = append(split.Variations, float64(since.Shares[v.ID]))
			}
		}
		shares := make([]float64, len(p.Variations))
		if all := split.ExpectedShares(); all != nil { // variation 0 is first, even if it is not in the report
			shares = all[len(all)-len(shares):]
		}
		periods = append(periods, SharePeriod{Since: since.Since, Shares: shares})
	}
	p.ExpectedShares = periods[len(history)].Shares
	p.SharePeriods = periods[:max(len(history), 1)]
	p.SharePeriods[0].Since = OpenFrom
}

// EndedAt returns when the subject ended. It returns false if the subject has not ended.
func (p *Plan) EndedAt() (time.Time, bool) {
	if !p.Ended || len(p.Runs) == 0 || p.Runs[len(p.Runs)-1].To == nil {
		return time.Time{}, false
	}
	return *p.Runs[len(p.Runs)-1].To, true
}

// SharePeriod is a period of equal shares, as fractions in the order of the variations. It ends when the next period
// begins.
type SharePeriod struct {
	Since  time.Time
	Shares []float64
}

// PeriodAt returns the index of the period in force at a time.
func PeriodAt(periods []SharePeriod, at time.Time) int {
	i := len(periods) - 1
	for i > 0 && periods[i].Since.After(at) {
		i--
	}
	return i
}

// Measure is what sums over visitors measure: the events of a goal within a conversion window, or the quantities of a
// metric. All metrics of a goal with a name are made of the same sums.
type Measure struct {
	GoalID     int64 // 0: all goals; of a metric without a name, which has this goal only, or names others
	Window     schema.ConversionWindow
	Expression string // the text that identifies a metric without a name; empty: the events of the goal
}

// OfGoal returns the measure of the events of the goal, which are counted beside the quantities of a metric.
func (m Measure) OfGoal() Measure { return Measure{GoalID: m.GoalID, Window: m.Window} }

// newMeasure returns the measure of a metric, of a goal if it has a name.
func newMeasure(goal int64, of query.Metric, window *schema.ConversionWindow) Measure {
	m := Measure{GoalID: goal, Window: window.ValueOrNone()}
	if expression := of.Expression(); expression != nil {
		m.GoalID = expression.SingleGoal()
		m.Expression = string(of)
	}
	return m
}

// Secondary is a metric of a goal that should improve but does not decide.
type Secondary struct {
	Measure
	Metric query.Metric
	Down   bool // lower values are good
}

// Guardrail is a metric of a goal that must not be harmed.
type Guardrail struct {
	Measure
	Metric query.Metric
	stats.Margin
}

// AboutMeasure returns the plan of the report about another measure, without breakdown and series. A cap of the request
// applies to all measures; otherwise each has its own. The plan as of the first view may refer to a goal that was
// removed from the catalogue. The name of such a goal is its number.
func (p *Plan) AboutMeasure(of Measure) *Plan {
	about := *p
	about.Split = nil
	about.Dimension = ""
	about.Interval = ""
	about.setMeasure(of)
	return &about
}

// setMeasure makes the plan one about a measure.
func (p *Plan) setMeasure(of Measure) {
	p.GoalID = of.GoalID
	p.ConversionWindow = of.Window
	p.Expression = nil
	p.Written = nil
	p.MetricName = ""
	p.Cap = p.Asked.Cap
	if of.Expression != "" {
		p.setDeclaredMetric(query.Metric(of.Expression))
	}
	p.GoalName = ""
	if p.GoalID != 0 {
		p.GoalName = fmt.Sprint("goal ", p.GoalID)
	}
	if g, known := p.FindGoal(p.GoalID); known {
		p.GoalName = g.Name
		if p.Expression == nil {
			p.Cap = cmp.Or(p.Asked.Cap, g.ValueCap)
		}
	}
	if of == p.Declared.PrimaryMeasure() {
		p.Cap = cmp.Or(p.Asked.Cap, p.Declared.Cap)
	}
}

// FindGoal returns a goal of the website of the subject.
func (p *Plan) FindGoal(id int64) (catalogue.Goal, bool) {
	goal, known := p.goals[id]
	return goal, known && goal.WebsiteID == p.Subject.WebsiteID
}

// PrimaryMeasure returns the measure of the primary metric.
func (d *Declared) PrimaryMeasure() Measure {
	return newMeasure(d.GoalID, d.Metric, &d.ConversionWindow)
}

// AllMeasures returns the measures of the metrics with a role, in order.
func (d *Declared) AllMeasures() []Measure {
	all := []Measure{d.PrimaryMeasure()}
	for _, g := range d.Guardrails {
		all = append(all, g.Measure)
	}
	for _, g := range d.Secondary {
		all = append(all, g.Measure)
	}
	return SortedMeasures(all)
}

// SortedMeasures returns measures in order, each once.
func SortedMeasures(all []Measure) []Measure {
	slices.SortFunc(all, func(a, b Measure) int {
		return cmp.Or(cmp.Compare(a.GoalID, b.GoalID), cmp.Compare(a.Window.From, b.Window.From),
			cmp.Compare(a.Window.To, b.Window.To), cmp.Compare(a.Window.Settle, b.Window.Settle),
			cmp.Compare(a.Expression, b.Expression))
	})
	return slices.Compact(all)
}

// Measure returns what the question measures.
func (q *Question) Measure() Measure {
	m := Measure{GoalID: q.GoalID, Window: q.ConversionWindow}
	if q.Expression != nil {
		m.Expression = q.Expression.WithGoalIDs().String()
	}
	return m
}

// GoalIDs returns the goals whose events the question counts; none: all goals.
func (q *Question) GoalIDs() []int64 {
	ids := []int64{}
	if q.Expression == nil {
		if q.GoalID != 0 {
			ids = append(ids, q.GoalID)
		}
		return ids
	}
	goals, all := q.Expression.ReadGoals()
	for _, goal := range goals {
		if !all {
			ids = append(ids, goal.ID)
		}
	}
	return ids
}

// WithMetric returns the plan with another metric.
func (p *Plan) WithMetric(m query.Metric) *Plan {
	with := *p
	with.Metric = m
	return &with
}
