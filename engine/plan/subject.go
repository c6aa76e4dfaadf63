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

// EndedAt returns when the subject ended. It returns false if the subject has not ended.
func (p *Plan) EndedAt() (time.Time, bool) {
	if !p.Ended || len(p.Runs) == 0 || p.Runs[len(p.Runs)-1].To == nil {
		return time.Time{}, false
	}
	return *p.Runs[len(p.Runs)-1].To, true
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
