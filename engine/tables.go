package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"lifthouse/engine/facts"
	"lifthouse/engine/plan"
	"lifthouse/engine/query"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/worth"
	"lifthouse/schema"
)

// ReadAcceptances returns when the newest folded event of each subject was accepted.
func (e *Engine) ReadAcceptances(ctx context.Context) (map[schema.Subject]time.Time, error) {
	accepted, err := e.acceptances.ReadNewest(ctx, e.facts.Shards)
	return accepted, source.StoreFailure(ctx, err)
}

// GoalDays is what each day adds to the counts of a goal that a metric with a role measures.
type GoalDays struct {
	plan.Measure
	Days []result.Increment
}

// ReadDays returns what each day (UTC) adds to the counts of the goals whose metrics have a role in a plan in force.
// With a conversion window, a visitor counts on the day on which the window has ended.
func (e *Engine) ReadDays(ctx context.Context, p *plan.Plan) ([]GoalDays, error) {
	q := p.DeclaredReport().Question
	q.Interval = query.Daily
	var goals []plan.Measure
	for _, of := range p.Declared.AllMeasures() {
		goals = append(goals, of.OfGoal())
	}
	goals = plan.SortedMeasures(goals)
	questions := make([]facts.Measure, len(goals)) // a cap changes no count
	for i := range goals {
		questions[i].Measure = goals[i]
	}
	steps, err := e.facts.ReadSteps(ctx, q, questions)
	if err != nil {
		return nil, err
	}
	found := make([]GoalDays, len(goals))
	for i := range goals {
		found[i] = GoalDays{goals[i], result.NewIncrements(p, steps[i])}
	}
	return found, nil
}

// ReadProgrammes returns the programmes of all pools of a website, without advice.
func (e *Engine) ReadProgrammes(ctx context.Context, website int64) ([]*worth.Programme, error) {
	owned := e.ownerOf(website)
	stored, err := e.listCampaigns(ctx, owned, website)
	if err != nil {
		return nil, err
	}
	keys := map[worth.PoolKey]bool{}
	for i := range stored {
		keys[worth.PoolOf(stored[i].plan)] = true
	}
	sorted := slices.SortedFunc(maps.Keys(keys), func(a, b worth.PoolKey) int {
		return cmp.Or(cmp.Compare(a.GoalID, b.GoalID), cmp.Compare(a.Metric, b.Metric))
	})
	programmes := make([]*worth.Programme, len(sorted))
	for i, key := range sorted {
		pool, err := e.ReadPool(ctx, key)
		if err != nil {
			return nil, err
		}
		programmes[i] = pool.NewProgramme("", "")
		programmes[i].Currency = owned.Websites[website].Currency
	}
	return programmes, nil
}

// ReadBreakdown returns the report of a plan in force with a breakdown, without the results of looks, which change no
// breakdown.
func (e *Engine) ReadBreakdown(ctx context.Context, p *plan.Plan) (*result.Report, error) {
	rows, err := e.facts.ReadRows(ctx, p.Question)
	if err != nil {
		return nil, err
	}
	return result.New(p, rows, nil), nil
}
