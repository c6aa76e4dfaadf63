package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/worth"
	"lifthouse/schema/catalogue"
	"lifthouse/schema/faults"
)

// EstimatePlans estimates what the plans of campaigns can detect, by campaign id. The estimate uses the campaign's own
// recent visitors, or else those of the basis, see findTraffic. A campaign is missing from the map if there are none,
// or if no rate or mean can be estimated from them.
func (e *Engine) EstimatePlans(
	ctx context.Context, owned *catalogue.AccountResources, campaigns []int64,
) (map[int64]*result.PlanEstimate, error) {
	if _, err := e.facts.AwaitNoted(ctx); err != nil {
		return nil, err
	}
	read := map[question]*result.Traffic{} // many new campaigns share one
	estimates := map[int64]*result.PlanEstimate{}
	for _, id := range campaigns {
		p, err := plan.New(query.Request{SubjectID: id}, owned)
		if err != nil {
			continue // a dry run may declare a goal that is not stored
		}
		p, err = e.PlanInForce(ctx, p)
		if err != nil {
			return nil, err
		}
		days := e.basisDays(ctx)
		traffic, err := e.readTraffic(ctx, p, days)
		if err != nil {
			return nil, err
		}
		of := question{p.Subject.WebsiteID, p.Declared.GoalID, p.Declared.Metric}
		if _, isRead := read[of]; traffic == nil && !isRead {
			read[of], err = e.findTraffic(ctx, owned, of, days)
			if err != nil {
				return nil, err
			}
		}
		traffic = cmp.Or(traffic, read[of])
		if traffic == nil {
			continue
		}
		priors, err := e.possiblePriors(ctx, p)
		if err != nil {
			return nil, err
		}
		if found := result.EstimatePlan(p, traffic, priors); found != nil {
			estimates[id] = found
		}
	}
	return estimates, nil
}

// possiblePriors returns the priors that a Bayesian campaign could have: the weak one, and the one that it would learn.
func (e *Engine) possiblePriors(ctx context.Context, p *plan.Plan) ([]catalogue.Prior, error) {
	if p.Rules.Methodology != catalogue.Bayesian {
		return nil, nil
	}
	learned, err := e.withPrior(ctx, p)
	if err != nil {
		return nil, err
	}
	return []catalogue.Prior{plan.WeakPrior(p.Rules.MDE), learned.Rules.StatedPrior}, nil
}

// question is what an experiment on a website is decided on.
type question struct {
	website, goal int64
	metric        query.Metric
}

// period is a period of full days.
type period struct{ from, to time.Time }

// basisDays returns the last full days (UTC) whose visitors plans are estimated from.
func (e *Engine) basisDays(ctx context.Context) period {
	const days = 56
	moment, known := e.facts.ReadMoment(ctx)
	if !known {
		moment = facts.Moment{Day: fold.DayOf(time.Now().UnixMilli())}
	}
	to := moment.Midnight()
	return period{to.AddDate(0, 0, -days), to}
}

// findTraffic returns the visitors of the basis of plans with a question: the campaign with this goal that has most
// visitors in a period, or else the campaign of the website that has; nil: none has any.
func (e *Engine) findTraffic(
	ctx context.Context, owned *catalogue.AccountResources, of question, days period,
) (*result.Traffic, error) {
	sameGoal, others := e.basisCandidates(owned, of)
	for _, candidates := range [][]candidate{sameGoal, others} {
		var most *result.Traffic
		for _, c := range candidates { // by their visitors ever, so the first ones usually have most
			if most != nil && most.Visitors() >= c.visitors {
				break
			}
			traffic, err := e.readTraffic(ctx, c.plan, days)
			if err != nil {
				return nil, err
			}
			if traffic != nil && (most == nil || traffic.Visitors() > most.Visitors()) {
				most = traffic
			}
		}
		if most != nil {
			return most, nil
		}
	}
	return nil, nil
}

// candidate is a campaign from whose visitors plans could be estimated.
type candidate struct {
	plan     *plan.Plan // of the question of these plans
	visitors int64      // ever
}

// basisCandidates returns the campaigns of a website that have visitors, those with most first: those that are decided
// on the goal of a question, and the others.
func (e *Engine) basisCandidates(owned *catalogue.AccountResources, of question) (sameGoal, others []candidate) {
	for _, c := range catalogue.ByID(owned.Campaigns) {
		subject := c.Subject()
		visitors := e.facts.SubjectCounters(subject).Visitors
		if c.WebsiteID != of.website || visitors == 0 {
			continue
		}
		request := plan.ResultsRequest(owned.ID, subject)
		isNamed := of.metric.Expression() == nil
		if isNamed {
			request.GoalID = of.goal
			request.Metric = of.metric
		} else {
			request.Expression = string(of.metric)
			request.Names = owned.TermsOf(of.website).DeclaredNames()
		}
		p, err := plan.New(request, owned)
		isDecidedOn := c.PrimaryGoalID == of.goal
		if err == nil && !isNamed {
			isDecidedOn = p.IsDeclared()
		}
		switch {
		case err != nil || p.HasNoTraffic():
		case isDecidedOn:
			sameGoal = append(sameGoal, candidate{p, visitors})
		case of.goal != 0 || !isNamed: // else the report would be about the other goal
			others = append(others, candidate{p, visitors})
		}
	}
	byVisitors := func(a, b candidate) int { return cmp.Compare(b.visitors, a.visitors) }
	slices.SortStableFunc(sameGoal, byVisitors)
	slices.SortStableFunc(others, byVisitors)
	return sameGoal, others
}

// readTraffic returns the visitors of a plan in the full days of a period in which the campaign ran; nil: it has none.
func (e *Engine) readTraffic(ctx context.Context, p *plan.Plan, days period) (*result.Traffic, error) {
	const day = 24 * time.Hour
	first := e.firstView(p.Subject).Start()
	if first.IsZero() {
		return nil, nil
	}
	if firstFull := first.Add(day - 1).Truncate(day); firstFull.After(days.from) {
		days.from = firstFull
	}
	if end, ended := p.EndedAt(); ended && end.Before(days.to) {
		days.to = end.Truncate(day)
	}
	if !days.from.Before(days.to) {
		return nil, nil
	}
	traffic, err := e.readTrafficIn(ctx, p, days)
	if err != nil || traffic.Visitors() == 0 {
		return nil, err
	}
	return traffic, nil
}

// readTrafficIn returns the visitors of a plan in a period, which may be open.
func (e *Engine) readTrafficIn(ctx context.Context, p *plan.Plan, days period) (*result.Traffic, error) {
	p, err := e.PlanInForce(ctx, p)
	if err != nil {
		return nil, err
	}
	within := *p
	within.Filters.From, within.Filters.To = days.from, days.to
	rows, err := e.facts.ReadRows(ctx, within.Question)
	if err != nil {
		return nil, err
	}
	name := e.ownerOf(p.Subject.WebsiteID).SubjectName(p.Subject)
	return result.NewTraffic(&within, name, rows, days.from, days.to), nil
}

// ReadOutlook returns what experiments of several lengths would find. The error is an InvalidError or a StoreError.
func (e *Engine) ReadOutlook(ctx context.Context, asked query.Outlook) (*result.Outlook, error) {
	if _, err := e.facts.AwaitNoted(ctx); err != nil {
		return nil, err
	}
	owned := e.ownerOf(asked.WebsiteID)
	p, err := e.planAsked(ctx, owned, asked)
	if err != nil {
		return nil, err
	}
	version, err := e.WorthVersion(ctx, asked.WebsiteID)
	if err != nil {
		return nil, err
	}
	type outlookOf struct {
		asked string
		days  period
	}
	days := e.basisDays(ctx)
	const bytes = 8 << 10
	at := Version{Known: true, Data: version, Recorded: e.facts.LastAttempt()}
	return valueAt(e, outlookOf{fmt.Sprint(asked), days}, at, func() (*result.Outlook, int64, error) {
		found, err := e.computeOutlook(ctx, owned, p, asked.VisitorsPerDay, days)
		return found, bytes, err
	})
}

// computeOutlook returns what experiments with a plan would find in several lengths. given is the number of visitors of
// the website a day; 0: that of the basis counts.
func (e *Engine) computeOutlook(
	ctx context.Context, owned *catalogue.AccountResources, p *plan.Plan, given int, days period,
) (*result.Outlook, error) {
	of := question{p.Subject.WebsiteID, p.Declared.GoalID, p.Declared.Metric}
	traffic, err := e.readTraffic(ctx, p, days)
	if traffic == nil && err == nil {
		traffic, err = e.findTraffic(ctx, owned, of, days)
	}
	if err != nil {
		return nil, err
	}
	if traffic == nil && given == 0 {
		return nil, query.InvalidParameters(faults.Fault{
			Name: "visitorsPerDay", WithoutValue: true,
			Detail: "is required: no campaign of the website had visitors in the last 56 full days",
		})
	}
	if traffic == nil { // a rate of earlier visitors is better than none
		traffic, err = e.readFormerTraffic(ctx, owned, of)
		if err != nil {
			return nil, err
		}
	}
	pool, err := e.ReadPool(ctx, worth.PoolOf(p))
	if err != nil {
		return nil, err
	}
	priors, err := e.possiblePriors(ctx, p)
	if err != nil {
		return nil, err
	}
	return result.NewOutlook(p, traffic, given, pool, priors), nil
}

// readFormerTraffic returns all visitors of the campaign that ever had most, of those with the goal of a question or
// else of the website; nil: none has any.
func (e *Engine) readFormerTraffic(
	ctx context.Context, owned *catalogue.AccountResources, of question,
) (*result.Traffic, error) {
	sameGoal, others := e.basisCandidates(owned, of)
	for _, c := range append(sameGoal, others...) {
		traffic, err := e.readTrafficIn(ctx, c.plan, period{})
		if err != nil || traffic.Visitors() > 0 {
			return traffic, err
		}
	}
	return nil, nil
}

// usualGoal returns the primary goal of most campaigns of a website; 0: none has one.
func usualGoal(owned *catalogue.AccountResources, website int64) int64 {
	campaigns := map[int64]int{}
	for _, c := range owned.Campaigns {
		if c.WebsiteID == website && c.PrimaryGoalID != 0 {
			campaigns[c.PrimaryGoalID]++
		}
	}
	most := slices.SortedFunc(maps.Keys(campaigns), func(a, b int64) int {
		return cmp.Or(cmp.Compare(campaigns[b], campaigns[a]), cmp.Compare(a, b))
	})
	if len(most) == 0 {
		return 0
	}
	return most[0]
}

// planAsked returns the plan of the campaign, or of the experiment, that a request asks for.
func (e *Engine) planAsked(
	ctx context.Context, owned *catalogue.AccountResources, asked query.Outlook,
) (*plan.Plan, error) {
	if asked.CampaignID != 0 {
		p, err := plan.New(query.Request{WebsiteID: asked.WebsiteID, SubjectID: asked.CampaignID}, owned)
		if _, isMissing := errors.AsType[*query.NotFoundError](err); isMissing || err == nil && len(p.Variations) < 2 {
			return nil, query.InvalidParameters(faults.Fault{
				Name: "campaign", Value: fmt.Sprint(asked.CampaignID),
				Detail: "must be the id of a campaign of the website with at least two variations",
			})
		}
		if err != nil {
			return nil, err
		}
		return e.PlanInForce(ctx, p)
	}
	if asked.GoalID == 0 {
		asked.GoalID = usualGoal(owned, asked.WebsiteID)
	}
	if asked.GoalID == 0 {
		return nil, query.InvalidParameters(faults.Fault{
			Name: query.ParamGoal, WithoutValue: true,
			Detail: "is required: no campaign of the website has a primary goal",
		})
	}
	return plannedExperiment(owned, asked)
}

// plannedExperiment returns the plan of a campaign that nobody has declared, with the rules that a request asks for.
func plannedExperiment(known *catalogue.AccountResources, asked query.Outlook) (*plan.Plan, error) {
	c := catalogue.NewCampaign()
	c.ID = query.NoID // no campaign has it
	c.WebsiteID = asked.WebsiteID
	c.PrimaryGoalID = asked.GoalID
	c.PrimaryMetric = string(asked.Metric)
	c.Methodology = asked.Methodology
	c.SignificanceLevel = asked.SignificanceLevel
	c.Power = asked.Power
	c.MDE = asked.MDE
	if asked.Traffic > 0 {
		c.TrafficAllocation = &asked.Traffic
	}
	c.ControlShare = asked.Shares[0]
	for i, share := range asked.Shares[1:] {
		id := i + 1
		c.Variations = append(c.Variations, catalogue.Variation{ID: int64(id), Share: share, Order: id})
	}
	owned := *known
	owned.Campaigns = maps.Clone(known.Campaigns)
	owned.Campaigns[c.ID] = catalogue.LiveCampaign{Campaign: c}
	return plan.New(query.Request{SubjectID: c.ID}, &owned)
}
