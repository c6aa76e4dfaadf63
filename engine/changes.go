package engine

import (
	"context"
	"time"

	"lifthouse/engine/plan"
	"lifthouse/engine/source"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// maxClockDifference is the largest expected difference between the clocks of the servers of a store, and the longest
// time for which an event is on its way into the store.
const maxClockDifference = 10 * time.Second

// AsOf returns the time up to which the results that are read after the call have everything: a client that later asks
// for what has changed since then misses nothing.
func (e *Engine) AsOf(now time.Time) time.Time {
	asOf := now.Add(-maxClockDifference)
	if through := e.facts.SyncedThrough(); through.Before(asOf) {
		asOf = through
	}
	return schema.LaterTime(asOf, time.Unix(0, 0)).UTC().Truncate(time.Millisecond)
}

// recentChanges is the time after the end of a subject and the maturity of its last visitors in which its results may
// change with the day: a week of which paces are estimated, a look at the end of a week, and a day.
const recentChanges = (7 + 7 + 1) * day

// ReadChanges returns when the results of each subject of an account last changed, or a later time. It is that of what
// was accepted or declared, not of what a process did, so that all processes agree.
func (e *Engine) ReadChanges(
	ctx context.Context, owned *catalogue.AccountResources, subjects []schema.Subject,
) ([]time.Time, error) {
	accepted, err := e.acceptances.ReadNewest(ctx, e.facts.Shards)
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	edited, err := e.catalogue.ReadFactsChanges(ctx, owned.ID)
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	moment, known := e.facts.ReadMoment(ctx)
	if !known {
		return nil, &source.StoreError{Fault: source.Down}
	}
	changes := make([]time.Time, len(subjects))
	for i, subject := range subjects {
		p, err := plan.New(plan.ResultsRequest(owned.ID, subject), owned)
		if err != nil {
			return nil, err
		}
		at := schema.LaterTime(accepted[subject], edited[subject.WebsiteID])
		at = schema.LaterTime(at, owned.SubjectChangedAt(subject))
		at = schema.LaterTime(at, e.interactions.changedAt(subject))
		at = schema.LaterTime(at, lastChangeOfDay(p, owned, moment.Midnight()))
		recorded, err := e.Ledger.SubjectRecords(ctx, subject)
		if err != nil {
			return nil, source.StoreFailure(ctx, err)
		}
		for k := range recorded {
			at = schema.LaterTime(at, recorded[k].RecordedAt)
		}
		changes[i] = at.UTC().Truncate(time.Millisecond)
	}
	return changes, nil
}

// lastChangeOfDay returns the last midnight at which the results of a plan may have changed without new events: the
// last one of all while it runs, and some time after its end.
func lastChangeOfDay(p *plan.Plan, owned *catalogue.AccountResources, midnight time.Time) time.Time {
	end, ended := p.EndedAt()
	if !ended {
		return midnight
	}
	longest := time.Duration(0)
	for _, goal := range owned.Goals {
		if goal.WebsiteID == p.Subject.WebsiteID {
			longest = max(longest, goal.Window().ValueOrNone().Maturity())
		}
	}
	for _, goal := range p.Declared.AllMeasures() {
		longest = max(longest, goal.Window.Maturity())
	}
	if last := end.Add(longest + recentChanges).UTC().Truncate(day); last.Before(midnight) {
		return last
	}
	return midnight
}
