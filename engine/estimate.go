package engine

import (
	"context"
	"time"

	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema/catalogue"
)

// EstimatePlans estimates what the plans of campaigns can detect, by campaign id. The estimate uses the campaign's own
// visitors, or else the visitors of the website's campaign with the most events. A campaign is missing from the map if
// its website has no visitors, or if no rate or mean can be estimated from them.
func (e *Engine) EstimatePlans(
	ctx context.Context, owned *catalogue.AccountResources, campaigns []int64,
) (map[int64]*result.PlanEstimate, error) {
	if _, err := e.facts.AwaitNoted(ctx); err != nil {
		return nil, err
	}
	type question struct {
		campaign, goal int64
		metric         query.Metric
	}
	type traffic struct { // the visitors of a campaign, from which plans are estimated
		plan  *plan.Plan
		rows  *moments.Rows
		first time.Time
	}
	read := map[question]*traffic{} // many new campaigns share one
	estimates := map[int64]*result.PlanEstimate{}
	for _, id := range campaigns {
		p, err := plan.New(query.Request{SubjectID: id}, owned)
		if err != nil {
			continue // a dry run may declare a goal that is not stored
		}
		if p, err = e.PlanInForce(ctx, p); err != nil {
			return nil, err
		}
		of := e.mostVisited(p, owned)
		if of == nil {
			continue
		}
		at := question{of.Subject.ID, p.Declared.GoalID, p.Declared.Metric}
		if read[at] == nil {
			if of, err = e.PlanInForce(ctx, of); err != nil {
				return nil, err
			}
			first, _ := e.firstView(of.Subject)
			found, err := e.facts.ReadRows(ctx, of.Question)
			if err != nil {
				return nil, err
			}
			read[at] = &traffic{of, found, first.Start()}
		}
		if found := result.EstimatePlan(p, read[at].plan, read[at].rows, read[at].first); found != nil {
			estimates[id] = found
		}
	}
	return estimates, nil
}

// mostVisited returns a report plan for the declared question of p: for the campaign itself, or else for the website's
// campaign with the most events. It returns nil if there is none.
func (e *Engine) mostVisited(p *plan.Plan, owned *catalogue.AccountResources) *plan.Plan {
	var most *plan.Plan
	events := uint64(0)
	for _, c := range catalogue.ByID(owned.Campaigns) {
		if c.WebsiteID != p.Subject.WebsiteID {
			continue
		}
		subject := c.Subject()
		counters := e.facts.SubjectCounters(subject)
		if subject == p.Subject && counters.AllEvents() > 0 {
			return p
		}
		if counters.AllEvents() <= events {
			continue
		}
		request := plan.ResultsRequest(owned.ID, subject)
		request.GoalID, request.Metric = p.Declared.GoalID, p.Declared.Metric
		if other, err := plan.New(request, owned); err == nil && other.Allocation > 0 {
			most, events = other, counters.AllEvents()
		}
	}
	return most
}
