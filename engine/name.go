package engine

import (
	"context"
	"log/slog"
	"time"

	"lifthouse/engine/conclusions"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

const (
	// namingInterval is the time between two looks at all subjects. A conclusion is
	// recorded if two looks in a row find it: an import that still runs changes it.
	namingInterval = 10 * time.Minute
	// maxNamedAge is the maximum age of a conclusion that is recorded. The conclusion of
	// an imported past campaign was not named when its day ended.
	maxNamedAge = 7 * 24 * time.Hour
)

// namer records conclusions.
type namer struct {
	*Engine
	looked map[plan.Subject]time.Time
	found  map[conclusions.Question]result.Recorded // at the last look
}

// FollowConclusions records the conclusions of all subjects until the context ends, and
// calls recorded after each.
func (e *Engine) FollowConclusions(ctx context.Context, recorded func(context.Context)) {
	n := newNamer(e)
	tick := time.NewTicker(namingInterval)
	defer tick.Stop()
	for {
		n.look(ctx, time.Now(), recorded)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func newNamer(e *Engine) *namer {
	return &namer{Engine: e, looked: map[plan.Subject]time.Time{}, found: map[conclusions.Question]result.Recorded{}}
}

// look looks at all subjects that have had a full day since the last look, or whose
// conclusion is to be confirmed.
func (n *namer) look(ctx context.Context, now time.Time, recorded func(context.Context)) {
	for _, owned := range n.catalogue.Snapshot().Accounts() {
		for _, p := range comparisons(owned) {
			wrote, err := n.lookAt(ctx, p, now)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				slog.WarnContext(ctx, "record conclusion failed", "subject", p.Subject, "err", err)
			case wrote:
				recorded(ctx)
			}
		}
	}
}

// comparisons returns the plans of the declared questions of an account.
func comparisons(owned *catalogue.Owned) []*plan.Plan {
	var subjects []plan.Subject
	for _, c := range catalogue.ByID(owned.Campaigns) {
		subjects = append(subjects, plan.Subject{WebsiteID: c.WebsiteID, Kind: schema.SubjectCampaign, ID: c.ID})
	}
	for _, w := range catalogue.ByID(owned.Widgets) {
		for _, e := range w.Experiments {
			subjects = append(subjects, plan.Subject{WebsiteID: w.WebsiteID, Kind: schema.SubjectWidget, ID: w.ID, ExperimentID: e.ID})
		}
	}
	var plans []*plan.Plan
	for _, s := range subjects {
		r := s.Request(owned.ID)
		if s.Kind == schema.SubjectCampaign {
			r.Metric = query.GoalConversionRate
		}
		if p, err := plan.New(r, owned); err == nil && decides(p) {
			plans = append(plans, p)
		}
	}
	return plans
}

func (n *namer) lookAt(ctx context.Context, p *plan.Plan, now time.Time) (wrote bool, err error) {
	x, s, err := n.prepare(ctx, p)
	if err != nil || s.events == 0 {
		return false, err
	}
	question := questionOf(x.Declaration())
	before, confirm := n.found[question]
	today := s.through.UTC().Truncate(24 * time.Hour)
	if !confirm && n.looked[p.Subject].Equal(today) {
		return false, nil
	}
	n.addPostponed(ctx, p.Subject, 0)
	if x, s, err = n.prepare(ctx, p); err != nil {
		return false, err
	}
	days, err := n.days(ctx, x, s)
	if err != nil {
		return false, err
	}
	n.looked[p.Subject] = today
	delete(n.found, question)
	named := days.Decide(time.Time{}).Named()
	switch {
	case named == nil || now.Sub(named.DecidedAt) > maxNamedAge:
		return false, nil
	case !confirm || !before.SameAs(named.Recorded) || before.Visitors != named.Visitors:
		n.found[question] = named.Recorded
		return false, nil
	}
	named.RecordedAt = now.UTC().Truncate(time.Millisecond)
	wrote, err = n.conclusions.Record(ctx, question, named)
	if wrote {
		slog.InfoContext(ctx, "conclusion recorded", "subject", p.Subject, "status", named.Status, "variation", named.VariationID, "decided", named.DecidedAt)
	}
	return wrote, err
}
