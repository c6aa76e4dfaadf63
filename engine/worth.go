package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/facts"
	"lifthouse/engine/fold"
	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/worth"
	"lifthouse/schema"
	"lifthouse/schema/catalogue"
	"lifthouse/stats"
)

// ReadWorth returns what the treatments of a plan in force are worth, see PlanInForce; nil: there is nothing to
// compare. reason is that of the report.
func (e *Engine) ReadWorth(ctx context.Context, p *plan.Plan, reason stats.Reason) (*result.Worth, error) {
	if !canDecide(p) {
		return nil, nil
	}
	pool, err := e.ReadPool(ctx, worth.PoolOf(p))
	if err != nil {
		return nil, err
	}
	return e.worthIn(pool, p, reason), nil
}

// LastWorth is like ReadWorth, but reads nothing. It returns false if the campaigns of the pool must be read.
func (e *Engine) LastWorth(ctx context.Context, p *plan.Plan, reason stats.Reason) (*result.Worth, bool, error) {
	if !canDecide(p) {
		return nil, true, nil
	}
	pool, err := e.lastPool(ctx, worth.PoolOf(p))
	if err != nil || pool == nil {
		return nil, false, err
	}
	return e.worthIn(pool, p, reason), true, nil
}

// LastTotal returns what all that was shipped of a pool is worth, and reads nothing; nil: the campaigns of the pool
// must be read.
func (e *Engine) LastTotal(ctx context.Context, key worth.PoolKey) (*worth.Total, error) {
	pool, err := e.lastPool(ctx, key)
	if err != nil || pool == nil {
		return nil, err
	}
	return &pool.NewProgramme("", "").Total, nil
}

// lastPool returns a pool that is kept; nil: it must be read.
func (e *Engine) lastPool(ctx context.Context, key worth.PoolKey) (*worth.Pool, error) {
	version, err := e.WorthVersion(ctx, key.WebsiteID)
	if err != nil {
		return nil, err
	}
	last, madeFrom := e.pools.LastValue(fit{key})
	pool, has := last.(*worth.Pool)
	if !has || madeFrom != (versionKey{version, 0}) {
		return nil, nil
	}
	return pool, nil
}

// worthIn returns what the treatments of a plan are worth in a pool.
func (e *Engine) worthIn(pool *worth.Pool, p *plan.Plan, reason stats.Reason) *result.Worth {
	website := p.Subject.WebsiteID
	currency := e.ownerOf(website).Websites[website].Currency
	return result.NewWorth(p, reason, pool, currency)
}

// ownerOf returns the resources of the account of a website.
func (e *Engine) ownerOf(website int64) *catalogue.AccountResources {
	snapshot := e.catalogue.Snapshot()
	account, _ := snapshot.AccountOfWebsite(website)
	return snapshot.AccountResources(account)
}

// fit is the key of a pool in the cache.
type fit struct{ worth.PoolKey }

// ReadPool returns a pool: all campaigns and experiments of its kind.
func (e *Engine) ReadPool(ctx context.Context, key worth.PoolKey) (*worth.Pool, error) {
	version, err := e.WorthVersion(ctx, key.WebsiteID)
	if err != nil {
		return nil, err
	}
	return cache.ValueAt(e.pools, fit{key}, versionKey{version, 0}, func() (*worth.Pool, int64, error) {
		campaigns, err := e.readCampaigns(ctx, key.WebsiteID)
		return worth.NewPool(key, campaigns), int64(len(campaigns)) * campaignBytes, err
	})
}

// campaignBytes is the approximate size of a campaign in a pool.
const campaignBytes = 1 << 10

// storedCampaign is a campaign or an experiment with something to decide, and its rows of the ledger.
type storedCampaign struct {
	plan     *plan.Plan // of the declared question, as of the first view; a prior may still have to be learned
	recorded []looks.Record
}

// listCampaigns returns the campaigns and experiments of a website that have something to decide.
func (e *Engine) listCampaigns(ctx context.Context, owned *catalogue.AccountResources, website int64) (
	campaigns []storedCampaign, err error,
) {
	for _, subject := range owned.Subjects() {
		if subject.WebsiteID != website {
			continue
		}
		p, err := plan.New(plan.ResultsRequest(owned.ID, subject), owned)
		if err != nil {
			return nil, err
		}
		recorded, err := e.Ledger.SubjectRecords(ctx, subject)
		if err != nil {
			return nil, source.StoreFailure(ctx, err)
		}
		if len(recorded) > 0 && e.firstView(subject).Time.IsZero() { // its events are deleted
			p = p.AsOf(recorded[0].FirstDay, recorded[0].FirstDay)
		} else {
			p = e.AsOfFirstView(p)
		}
		if canDecide(p) {
			campaigns = append(campaigns, storedCampaign{p, recorded})
		}
	}
	return campaigns, nil
}

// readCampaigns returns the campaigns and experiments of a website with their states.
func (e *Engine) readCampaigns(ctx context.Context, website int64) (campaigns []worth.Campaign, err error) {
	owned := e.ownerOf(website)
	stored, err := e.listCampaigns(ctx, owned, website)
	if err != nil {
		return nil, err
	}
	for _, c := range stored {
		if c.plan.Rules.MustLearn() {
			c.plan, err = e.withPrior(ctx, c.plan)
			if err != nil {
				return nil, err
			}
		}
		of, err := e.withState(ctx, owned, c)
		if err != nil {
			return nil, err
		}
		campaigns = append(campaigns, of)
	}
	return campaigns, nil
}

// readEndedCampaigns returns the campaigns and experiments of a website that had ended by a time, to learn from them.
// Nothing that a pool learns depends on a prior, so theirs are not learned: they have the prior of an empty pool.
func (e *Engine) readEndedCampaigns(ctx context.Context, website int64, by time.Time) (
	campaigns []worth.Campaign, err error,
) {
	owned := e.ownerOf(website)
	stored, err := e.listCampaigns(ctx, owned, website)
	if err != nil {
		return nil, err
	}
	for _, c := range stored {
		if end, ended := c.plan.EndedAt(); !ended || end.After(by) {
			continue
		}
		if c.plan.Rules.MustLearn() {
			c.plan = c.plan.WithPrior(worth.LearnPrior(worth.PoolOf(c.plan), nil, c.plan.Rules.MDE/100))
		}
		of, err := e.withState(ctx, owned, c)
		if err != nil {
			return nil, err
		}
		campaigns = append(campaigns, of)
	}
	return campaigns, nil
}

// withState returns a campaign with its state and what was done after it.
func (e *Engine) withState(
	ctx context.Context, owned *catalogue.AccountResources, c storedCampaign,
) (worth.Campaign, error) {
	state, winner, err := e.readState(ctx, c.plan, c.recorded)
	if err != nil {
		return worth.Campaign{}, err
	}
	return worth.Campaign{
		Plan: c.plan, Name: owned.SubjectName(c.plan.Subject), State: state, Outcome: outcomeOf(c.plan, owned, winner),
	}, nil
}

// withPrior returns a plan with the prior that it learns from the campaigns of its pool that had ended by its first
// view.
func (e *Engine) withPrior(ctx context.Context, p *plan.Plan) (*plan.Plan, error) {
	version, err := e.WorthVersion(ctx, p.Subject.WebsiteID)
	if err != nil {
		return nil, err
	}
	by := schema.EndOfTime
	if first := e.firstView(p.Subject); !first.Time.IsZero() {
		by = first.Time
	}
	type learned struct {
		question string
		by       time.Time
	}
	of, at := learned{questionKey(p), by}, versionKey{version, 0}
	prior, err := cache.ValueAt(e.pools, of, at, func() (catalogue.Prior, int64, error) {
		ended, err := e.readEndedCampaigns(ctx, p.Subject.WebsiteID, by)
		return worth.LearnPrior(worth.PoolOf(p), ended, p.Rules.MDE/100), 0, err
	})
	if err != nil {
		return nil, err
	}
	return p.WithPrior(prior), nil
}

// readState returns the state of a campaign, that of the ledger, or, if it has none, that of the events; and its winner
// that harms no guardrail, or nil.
func (e *Engine) readState(
	ctx context.Context, p *plan.Plan, recorded []looks.Record,
) (state []looks.LookRow, winner *plan.Variation, err error) {
	declared := p.DeclaredPlan()
	rows, harmed := looks.RecordedState(declared, recorded)
	mayJudge, err := e.mayJudge(ctx, p.Subject, p.Ended)
	if err != nil {
		return nil, nil, err
	}
	if mayJudge {
		at, err := e.ReadVersion(ctx, p.Subject)
		if err != nil {
			return nil, nil, err
		}
		found, err := e.judgeAt(ctx, p, at)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, found.Looks.State()...)
		harmed = append(harmed, found.Looks.Harmed()...)
	}
	winner = looks.WinnerOf(declared, rows)
	if winner != nil && slices.Contains(harmed, winner.ID) {
		winner = nil
	}
	return worth.LatestState(rows), winner, nil
}

// mayJudge reports whether the state of a campaign is that of its events: it has ended or is old enough for a look, and
// the ledger has none.
func (e *Engine) mayJudge(ctx context.Context, subject schema.Subject, ended bool) (bool, error) {
	const week = 7 * 24 * time.Hour
	if first := e.firstView(subject); first.Time.IsZero() || !ended && time.Since(first.Time) < week {
		return false, nil
	}
	recorded, err := e.Ledger.SubjectRecords(ctx, subject)
	hasState := slices.ContainsFunc(recorded, func(r looks.Record) bool { return r.Kind.IsState() })
	return !hasState, source.StoreFailure(ctx, err)
}

// outcomeOf returns what was done after a campaign: what people recorded; or else, that a winner of an ended campaign
// was shipped, that a variation which has all traffic was, or that an ended campaign was dropped.
func outcomeOf(p *plan.Plan, owned *catalogue.AccountResources, winner *plan.Variation) worth.Outcome {
	subject := p.Subject
	state := owned.StateOf(p.Subject)
	if o, declared := state.Outcomes[subject.ExperimentID]; declared {
		return worth.Outcome{Outcome: o, Declared: true}
	}
	made := func(outcome string, variation int64, at time.Time) worth.Outcome {
		date := at.UTC().Format(time.DateOnly)
		return worth.Outcome{Outcome: catalogue.Outcome{Outcome: outcome, VariationID: variation, Date: date}}
	}
	if history := state.ShareHistory[subject.ExperimentID]; len(history) > 1 {
		now := history[len(history)-1]
		var all []int64
		for variation, share := range now.Shares {
			if share > 0 {
				all = append(all, variation)
			}
		}
		if len(all) == 1 && all[0] != 0 {
			return made(catalogue.Shipped, all[0], now.Since)
		}
	}
	switch end, ended := p.EndedAt(); {
	case !ended:
		return worth.Outcome{Outcome: catalogue.Outcome{Outcome: worth.Undecided}}
	case winner != nil:
		return made(catalogue.Shipped, winner.ID, end)
	default:
		return made(catalogue.Dropped, 0, end)
	}
}

// ReadProgramme returns the programme that a request asks for: that of the pool with most campaigns that has the goal
// and the metric.
func (e *Engine) ReadProgramme(ctx context.Context, asked query.Programme) (*worth.Programme, error) {
	owned := e.ownerOf(asked.WebsiteID)
	all, err := e.readCampaigns(ctx, asked.WebsiteID)
	if err != nil {
		return nil, err
	}
	campaigns := map[worth.PoolKey]int{}
	for i := range all {
		key := worth.PoolOf(all[i].Plan)
		hasGoal := asked.GoalID == 0 || key.GoalID == asked.GoalID
		hasMetric := asked.Metric == "" || key.Metric == worth.KindOf(asked.Metric)
		if hasGoal && hasMetric {
			campaigns[key]++
		}
	}
	key := worth.PoolKey{
		WebsiteID: asked.WebsiteID, GoalID: asked.GoalID,
		Metric: worth.KindOf(cmp.Or(asked.Metric, query.ValuePerVisitor)),
	}
	most := slices.SortedFunc(maps.Keys(campaigns), func(a, b worth.PoolKey) int {
		return cmp.Or(cmp.Compare(campaigns[b], campaigns[a]), cmp.Compare(a.GoalID, b.GoalID),
			cmp.Compare(a.Metric, b.Metric))
	})
	if len(most) > 0 {
		key = most[0]
	}
	pool, err := e.ReadPool(ctx, key)
	if err != nil {
		return nil, err
	}
	programme := pool.NewProgramme(asked.From, asked.To)
	programme.Advice, err = e.advise(ctx, owned, pool)
	if err != nil {
		return nil, err
	}
	programme.Currency, programme.GoalName = owned.Websites[key.WebsiteID].Currency, owned.Goals[key.GoalID].Name
	programme.Sentences = result.ProgrammeInWords(programme)
	return programme, nil
}

// advise returns the advice of a pool. It is based on the same visitors as the plans of its goal.
func (e *Engine) advise(
	ctx context.Context, owned *catalogue.AccountResources, pool *worth.Pool,
) (*worth.Advice, error) {
	last := pool.LastPlan()
	if last == nil || last.Subject.Kind != schema.SubjectCampaign {
		return pool.Advise(nil), nil
	}
	version, err := e.WorthVersion(ctx, pool.Key.WebsiteID)
	if err != nil {
		return nil, err
	}
	type adviceOf struct {
		question
		days period
	}
	of := question{pool.Key.WebsiteID, pool.Key.GoalID, last.Declared.Metric}
	days := e.basisDays(ctx)
	const bytes = 1 << 10
	at := Version{Known: true, Data: version, Recorded: e.facts.LastAttempt()}
	return valueAt(e, adviceOf{of, days}, at, func() (*worth.Advice, int64, error) {
		traffic, err := e.findTraffic(ctx, owned, of, days)
		if err != nil || traffic == nil {
			return pool.Advise(nil), bytes, err
		}
		return pool.Advise(traffic.Basis(last)), bytes, nil
	})
}

// WorthVersion returns a number that changes with what a website's campaigns are worth: with the catalogue, with the
// ledger, and with the events of campaigns whose state is that of their events. It is computed again only after a
// refresh. It differs between processes.
func (e *Engine) WorthVersion(ctx context.Context, website int64) (uint64, error) {
	recorded, err := e.Ledger.Version(ctx)
	if err != nil {
		return 0, source.StoreFailure(ctx, err)
	}
	moment, known := e.facts.ReadMoment(ctx)
	if !known {
		moment.Day = fold.DayOf(time.Now().UnixMilli())
	}
	owned := e.ownerOf(website)
	type ofWebsite struct{ id int64 }
	type basis struct {
		defined, recorded, attempt uint64
		day                        int64
	}
	from := basis{owned.Version, recorded, e.facts.LastAttempt(), moment.Day}
	return cache.ValueAt(e.pools, ofWebsite{website}, from, func() (uint64, int64, error) {
		version := owned.Version + recorded
		for _, subject := range owned.Subjects() {
			if subject.WebsiteID != website {
				continue
			}
			of, err := e.WorthVersionOf(ctx, owned, subject, moment)
			if err != nil {
				return 0, 0, err
			}
			version += of
		}
		return version, 0, nil
	})
}

// WorthVersionOf returns a number that changes with the events of a campaign whose state is that of its events; 0: the
// ledger has its state. What a running campaign is worth is as of midnight.
func (e *Engine) WorthVersionOf(
	ctx context.Context, owned *catalogue.AccountResources, subject schema.Subject, moment facts.Moment,
) (uint64, error) {
	mayJudge, err := e.mayJudge(ctx, subject, !owned.StateOf(subject).Active)
	if err != nil || !mayJudge {
		return 0, err
	}
	p, err := plan.New(plan.ResultsRequest(owned.ID, subject), owned)
	if err != nil {
		return 0, err
	}
	if p.Ended && needsLaterFacts(e.AsOfFirstView(p)) {
		return e.facts.VersionAt(moment, subject), nil
	}
	return e.facts.SettledVersionOn(moment.Day, subject), nil
}
