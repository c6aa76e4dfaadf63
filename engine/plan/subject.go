package plan

import (
	"cmp"
	"slices"
	"time"

	"lifthouse/engine/query"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

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
	Power             int          // per cent
	MDE               float64      // per cent
	Prior             *stats.Prior // of lifts, as fractions; nil: flat priors
	LookRules
}

// LookRules define the times of the looks and the end of the plan.
type LookRules struct {
	PlannedDays       int           // a whole number of weeks
	PlannedVisitors   int64         // measures the time instead of days; 0: none
	Maturity          time.Duration // from the end of a look until it is recorded
	EquivalenceMargin float64       // a lift, as a fraction; 0: none
}

const daysPerWeek = 7

// lookRules returns the rules with their defaults. Days are rounded up to whole weeks.
func lookRules(p *catalogue.LookPlan) LookRules {
	r := LookRules{
		PlannedDays: cmp.Or(p.PlannedDays, catalogue.DefaultPlannedDays), PlannedVisitors: p.PlannedVisitors,
		Maturity: catalogue.DefaultMaturity * time.Hour, EquivalenceMargin: p.EquivalenceMargin / 100,
	}
	if p.Maturity != nil {
		r.Maturity = time.Duration(*p.Maturity) * time.Hour
	}
	r.PlannedDays = (r.PlannedDays + daysPerWeek - 1) / daysPerWeek * daysPerWeek
	return r
}

// widgetRules are the rules for the intervals of a widget's own results.
var widgetRules = Rules{Methodology: catalogue.Frequentist, SignificanceLevel: 95}

// resolveSubject sets the subject and its variations, and returns its primary goal. The
// error is a NotFoundError.
func resolveSubject(p *Plan, owned *catalogue.AccountResources) (primaryGoal int64, err error) {
	r := &p.asked
	if _, known := owned.Websites[r.WebsiteID]; r.WebsiteID != 0 && !known {
		return 0, &query.NotFoundError{Kind: "website", ID: r.WebsiteID}
	}
	if r.Operation == query.CampaignResults {
		campaign, known := owned.Campaigns[r.SubjectID]
		if !known || r.WebsiteID != 0 && campaign.WebsiteID != r.WebsiteID {
			return 0, &query.NotFoundError{Kind: "campaign", ID: r.SubjectID}
		}
		ofCampaign(p, &campaign)
		return campaign.PrimaryGoalID, nil
	}
	widget, known := owned.Widgets[r.SubjectID]
	if !known || r.WebsiteID != 0 && widget.WebsiteID != r.WebsiteID {
		return 0, &query.NotFoundError{Kind: "widget", ID: r.SubjectID}
	}
	p.Subject = widget.Subject(r.ExperimentID)
	if r.Operation == query.WidgetResults {
		ofWidget(p, &widget)
		return 0, nil
	}
	at := slices.IndexFunc(widget.Experiments, func(e catalogue.Experiment) bool { return e.ID == r.ExperimentID })
	if at < 0 {
		return 0, &query.NotFoundError{Kind: "experiment", ID: r.ExperimentID}
	}
	ofExperiment(p, &widget, &widget.Experiments[at])
	return widget.PrimaryGoalID, nil
}

// priorOf returns the prior of the lifts; nil: flat priors.
func priorOf(d *catalogue.Plan) *stats.Prior {
	switch {
	case d.Methodology != catalogue.Bayesian:
		return nil
	case d.Prior == nil:
		return stats.DefaultPrior(d.MDE / 100)
	case d.Prior.Flat:
		return nil
	}
	return &stats.Prior{Mean: d.Prior.Mean / 100, StandardDeviation: d.Prior.StandardDeviation / 100}
}

func ofCampaign(p *Plan, c *catalogue.LiveCampaign) {
	p.Subject = c.Subject()
	p.Allocation = float64(c.TrafficAllocation) / 100
	p.Ended, p.Running, p.Runs = !c.Active && c.EndDate != nil, c.Active, c.Runs
	declared := slices.Clone(c.Variations)
	slices.SortStableFunc(declared, func(a, b catalogue.Variation) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID))
	})
	for _, v := range declared {
		p.Variations = append(p.Variations, Variation{ID: v.ID, Name: v.Name, Share: v.Share})
	}
	setControlAndShares(p, c.ControlShare, c.ShareHistory[0])
	p.history = c.PlanHistory[0]
	p.setDeclared(c.DeclaredPlan(nil), p.ExpectedShares())
}

// ofWidget sets the variations of a widget itself. No visitor is excluded, and there is no
// control.
func ofWidget(p *Plan, w *catalogue.LiveWidget) {
	p.Rules = widgetRules
	p.MultipleExposures = catalogue.FirstVariation
	for _, v := range widgetVariations(w.Variations) {
		p.Variations = append(p.Variations, Variation{ID: v.ID, Name: v.Name, Share: v.Share})
	}
}

func ofExperiment(p *Plan, w *catalogue.LiveWidget, e *catalogue.Experiment) {
	p.Allocation = 1
	p.Ended, p.Running, p.Runs = !w.Active && w.EndDate != nil, w.Active && e.Active, w.Runs
	for _, v := range widgetVariations(e.Variations) {
		p.Variations = append(p.Variations, Variation{ID: v.ID, Name: v.Name, Share: v.Share})
	}
	setControlAndShares(p, e.ControlShare, w.ShareHistory[e.ID])
	p.history = w.PlanHistory[e.ID]
	p.setDeclared(e.DeclaredPlan(w.PrimaryGoalID, nil), p.ExpectedShares())
}

func widgetVariations(declared []catalogue.WidgetVariation) []catalogue.WidgetVariation {
	return slices.SortedStableFunc(slices.Values(declared), func(a, b catalogue.WidgetVariation) int {
		return cmp.Compare(a.ID, b.ID)
	})
}

// setControlAndShares determines control and the shares. Control is variation 0 if it has or
// had a share of the traffic, and otherwise the first variation.
func setControlAndShares(p *Plan, controlShare int, history []catalogue.SharesSince) {
	p.ControlShare = controlShare
	hadControl := controlShare > 0 || slices.ContainsFunc(history, func(s catalogue.SharesSince) bool { return s.Shares[0] > 0 })
	if hadControl {
		p.Variations = slices.Insert(p.Variations, 0, Variation{ID: 0, Name: "Control", Share: controlShare})
	}
	if len(p.Variations) > 0 {
		p.Variations[0].Control = true
	}
	for _, since := range history {
		p.SharePeriods = append(p.SharePeriods, SharePeriod{Since: since.Since, Shares: p.dividedShares(since.Shares)})
	}
	if len(history) == 0 {
		p.SharePeriods = []SharePeriod{{Shares: p.ExpectedShares()}}
	}
	p.SharePeriods[0].Since = OpenFrom
}

// SharePeriod is a period of equal shares, as fractions in the order of the variations. It ends
// when the next period begins.
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
