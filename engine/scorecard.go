package engine

import (
	"context"
	"maps"
	"slices"

	"lifthouse/engine/facts"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/schema/catalogue"
)

// readGoals returns the rows of a plan without a dimension for each goal. Goals with a cap are
// read one by one. With a series or a z-score, all goals are.
func (e *Engine) readGoals(ctx context.Context, x *source.ReportQuery, goals []int64) (map[int64]*moments.Rows, error) {
	found := map[int64]*moments.Rows{}
	interval := x.Interval
	about := func(goal int64) *source.ReportQuery {
		of := *x
		p := x.AboutGoal(goal)
		p.Interval = interval
		of.Plan, of.Outliers, of.CapLimit = p, nil, nil
		return &of
	}
	var together []int64
	for _, goal := range goals {
		if of := about(goal); of.Cap == nil && of.Interval == "" && of.Filters.ZScore == 0 {
			together = append(together, goal)
		}
	}
	if len(together) > 1 {
		several, err := facts.Source{ReportQuery: about(together[0]), Shards: e.shards}.ReadGoals(ctx, together)
		if err != nil {
			return nil, err
		}
		maps.Copy(found, several)
	}
	for _, goal := range goals {
		if found[goal] != nil {
			continue
		}
		var err error
		if found[goal], err = e.readRows(ctx, about(goal)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// goalsOf returns the goals of a scorecard: the goals that the subject declares, the goal of
// the report, and all goals of the website with events of the subject.
func (e *Engine) goalsOf(p *plan.Plan) []int64 {
	goals := []int64{p.CountedGoal(), p.Declared.GoalID}
	for _, s := range p.Declared.Secondary {
		goals = append(goals, s.GoalID)
	}
	for _, g := range p.Declared.Guardrails {
		goals = append(goals, g.GoalID)
	}
	for id := range e.shards.SubjectCounters(p.Subject).Goals {
		if slices.ContainsFunc(p.Goals, func(g catalogue.Goal) bool { return g.ID == id }) {
			goals = append(goals, id)
		}
	}
	slices.Sort(goals)
	return slices.Compact(goals)
}

// scorecardReport computes a report with its scorecard. Without breakdown and series,
// the rows of the report are those of its goal.
func (e *Engine) scorecardReport(ctx context.Context, x *source.ReportQuery, a *looks.Analysis) (*result.Report, error) {
	goals := e.goalsOf(x.Plan)
	whole := *x
	whole.Plan = x.AboutGoal(x.CountedGoal())
	found, err := e.readGoals(ctx, &whole, goals)
	if err != nil {
		return nil, err
	}
	rows := found[x.CountedGoal()]
	if x.Dimension != "" || x.Interval != "" {
		if rows, err = e.readRows(ctx, x); err != nil {
			return nil, err
		}
	}
	r, err := e.reportFrom(ctx, x, rows, a)
	if err != nil {
		return nil, err
	}
	var all []result.GoalRows
	for _, goal := range goals {
		all = append(all, result.GoalRows{Plan: x.AboutGoal(goal), Rows: found[goal]})
	}
	r.AddScorecard(x.Plan, all, a)
	return r, nil
}
