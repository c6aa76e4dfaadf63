package engine

import (
	"context"

	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// EstimatePlan estimates what the plan of a campaign can detect, from its own visitors, or
// else from those of the campaign of its website with the most events. It is nil if they
// show no rate and no mean.
func (e *Engine) EstimatePlan(ctx context.Context, owned *catalogue.Owned, campaign int64) (*result.PlanEstimate, error) {
	p, err := plan.New(query.Request{SubjectID: campaign}, owned)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // a dry run declares a goal that is not stored
	}
	if err := e.Totals.RefreshIfOld(ctx); err != nil {
		return nil, err
	}
	if p, err = e.asOfFirstView(ctx, p); err != nil {
		return nil, err
	}
	var traffic *plan.Plan
	most := uint64(0)
	for _, c := range owned.Campaigns {
		if c.WebsiteID != p.Subject.WebsiteID {
			continue
		}
		of := plan.Subject{WebsiteID: c.WebsiteID, Kind: schema.SubjectCampaign, ID: c.ID}
		stored, _ := e.Totals.Last(of)
		if of == p.Subject && stored.Events > 0 {
			traffic = p
			break
		}
		if stored.Events <= most {
			continue
		}
		request := of.Request(owned.ID)
		request.GoalID, request.Metric = p.Declared.GoalID, p.Declared.Metric
		if other, err := plan.New(request, owned); err == nil && other.Rules.Compare && other.Allocation > 0 {
			traffic, most = other, stored.Events
		}
	}
	if traffic == nil {
		return nil, nil //nolint:nilnil // there is nothing to say
	}
	x, s, err := e.prepare(ctx, traffic)
	if err != nil {
		return nil, err
	}
	first, viewed, err := e.store.FirstView(ctx, traffic.Subject)
	if err != nil || !viewed {
		return nil, err
	}
	found, _, err := read(ctx, x, s)
	if err != nil {
		return nil, err
	}
	return result.EstimatePlan(p, x.Plan, found, first.Time), nil
}
