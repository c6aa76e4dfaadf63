package engine

import (
	"context"
	"log/slog"
	"time"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
)

// recordInterval is the time between two passes over all subjects. A pass records the looks
// that have become mature.
const recordInterval = 10 * time.Minute

// Recorder records over time what becomes final: looks, harm, and the messages about decisions and checks.
type Recorder struct {
	engine *Engine
	harm   map[schema.Subject]time.Time // the day on which each subject was last checked for harm
	judged map[schema.Subject]time.Time // the day on which it was last judged
	passes int                          // since this process started
}

// NewRecorder returns a recorder of an engine.
func NewRecorder(e *Engine) *Recorder {
	return &Recorder{engine: e, harm: map[schema.Subject]time.Time{}, judged: map[schema.Subject]time.Time{}}
}

// FollowLooks records what is due, in regular passes, until the context ends.
func (r *Recorder) FollowLooks(ctx context.Context) {
	tick := time.NewTicker(recordInterval)
	defer tick.Stop()
	for {
		r.RecordDue(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// RecordDue records the looks that are mature at a time and any harm so far. Then it judges the subjects with new records,
// and once a day all that can still change. It logs errors, and the next pass tries again.
func (r *Recorder) RecordDue(ctx context.Context, now time.Time) {
	e := r.engine
	for _, owned := range e.catalogue.Snapshot().AllAccounts() {
		for _, p := range declaredPlans(owned) {
			n, a, err := e.recordLooksOf(ctx, p, now, r.harm)
			if n > 0 {
				slog.InfoContext(ctx, "looks recorded", "subject", p.Subject, "rows", n)
				delete(r.judged, p.Subject)
				a = nil // the records are part of the results of the looks
			}
			today := now.UTC().Truncate(24 * time.Hour)
			if err == nil && r.judged[p.Subject].Before(today) && !isOver(p, now) {
				if err = r.judgeSubject(ctx, owned, p.Subject, a, now); err == nil {
					r.judged[p.Subject] = today
				}
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				slog.WarnContext(ctx, "record looks failed", "subject", p.Subject, "err", err)
			}
		}
	}
	r.passes++
}

// declaredPlans returns the plans of the declared questions of an account.
func declaredPlans(owned *catalogue.AccountResources) []*plan.Plan {
	var subjects []schema.Subject
	for _, c := range catalogue.ByID(owned.Campaigns) {
		subjects = append(subjects, schema.Subject{WebsiteID: c.WebsiteID, Kind: schema.SubjectCampaign, ID: c.ID})
	}
	for _, w := range catalogue.ByID(owned.Widgets) {
		for _, e := range w.Experiments {
			subjects = append(subjects, schema.Subject{WebsiteID: w.WebsiteID, Kind: schema.SubjectWidget, ID: w.ID, ExperimentID: e.ID})
		}
	}
	var plans []*plan.Plan
	for _, s := range subjects {
		if p, err := plan.New(plan.ResultsRequest(owned.ID, s), owned); err == nil && canDecide(p) {
			plans = append(plans, p)
		}
	}
	return plans
}

// recordLooksOf records the mature looks of a subject and the harm at the end of its days, and
// returns the number of rows. It reads the events only if a look is due or a day has ended, and then also returns the
// results of the looks.
func (e *Engine) recordLooksOf(ctx context.Context, p *plan.Plan, now time.Time, checked map[schema.Subject]time.Time) (int, *looks.Analysis, error) {
	x, err := e.prepareJudgement(ctx, p)
	if err != nil {
		return 0, nil, err
	}
	first, viewed := e.firstView(x.Subject)
	if !viewed {
		return 0, nil, nil
	}
	declaration := x.DeclaredPlan(time.Time{})
	recorded, err := e.ledger.RecordedLooks(ctx, looks.DeclarationOf(declaration))
	if err != nil {
		return 0, nil, err
	}
	if first.Imported && len(recorded) == 0 { // recorded looks have the start of the clock
		a, err := e.cachedAnalysis(ctx, withoutScorecard(x))
		if err != nil {
			return 0, nil, err
		}
		first = a.FirstView
	}
	due := looks.NewSchedule(declaration, first, now, x.Stored.Newest, recorded)
	known := map[int]bool{}
	for _, r := range recorded {
		known[r.Number] = true
	}
	isDue := false
	for _, l := range due.Looks {
		isDue = isDue || !known[l.Number] && l.End.After(first.Accepted)
	}
	ended := now.UTC().Truncate(24 * time.Hour)
	if !isDue && (p.Ended || due.FullDays() == 0 || !checked[p.Subject].Before(ended)) {
		return 0, nil, nil
	}
	until := *x
	until.Stored.Ingested = now // days end on time, whether or not events arrive
	found, err := e.readAnalysis(ctx, &until)
	if err != nil {
		return 0, nil, err
	}
	n, err := e.ledger.WriteRecords(ctx, found.UnrecordedLooks(now.UTC().Truncate(time.Millisecond)))
	if err == nil {
		checked[p.Subject] = ended
	}
	return n, found, err
}
