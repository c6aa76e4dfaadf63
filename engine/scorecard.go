package engine

import (
	"context"
	"maps"
	"slices"

	"lifthouse/engine/looks"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
	"lifthouse/engine/visit"
	"lifthouse/schema/catalogue"
)

// goalReader is a source that reads several goals at once.
type goalReader interface {
	ReadGoals(ctx context.Context, goals []int64) (found map[int64]*visit.Rows, declined string, err error)
}

// readGoals returns the rows of a plan without a dimension for each goal. Goals with a
// cap are read one by one, and all of them if the source cannot read several at once.
func readGoals(ctx context.Context, x *source.Execution, s state, goals []int64) (found map[int64]*visit.Rows, from string, err error) {
	found = map[int64]*visit.Rows{}
	var together []int64
	interval := x.Interval
	about := func(goal int64) *source.Execution {
		of := *x
		p := x.About(goal)
		p.Interval = interval
		of.Plan, of.Outliers, of.Limited = p, nil, nil
		return &of
	}
	for _, goal := range goals {
		if about(goal).Cap == nil {
			together = append(together, goal)
		}
	}
	if len(together) > 1 {
		read := about(together[0])
		chosen, _ := choose(read, &s, x.Store.Limits)
		if several, can := chosen.(goalReader); can {
			of, declined, err := several.ReadGoals(ctx, together)
			switch {
			case s.lostReplica(err):
				s = s.afterLoss(err)
			case err != nil:
				return nil, "", err
			case declined == "":
				maps.Copy(found, of)
				from = chosen.Name()
			}
		}
	}
	for _, goal := range goals {
		if found[goal] != nil {
			continue
		}
		if found[goal], from, err = read(ctx, about(goal), s); err != nil {
			return nil, "", err
		}
	}
	return found, from, nil
}

// goalsOf returns the goals of a scorecard: those that the subject declares, that of the
// report, and all goals of the website with events of the subject.
func (e *Engine) goalsOf(ctx context.Context, p *plan.Plan) ([]int64, error) {
	observed, err := e.observedGoals(ctx, p.Subject)
	if err != nil {
		return nil, err
	}
	goals := []int64{p.CountedGoal(), p.Declared.GoalID}
	for _, s := range p.Declared.Secondary {
		goals = append(goals, s.GoalID)
	}
	for _, g := range p.Declared.Guardrails {
		goals = append(goals, g.GoalID)
	}
	for _, id := range observed {
		if slices.ContainsFunc(p.Goals, func(g catalogue.Goal) bool { return g.ID == id }) {
			goals = append(goals, id)
		}
	}
	slices.Sort(goals)
	return slices.Compact(goals), nil
}

// scorecardReport computes a report with its scorecard. Without breakdown and series,
// the rows of the report are those of its goal.
func (e *Engine) scorecardReport(ctx context.Context, x *source.Execution, s state, a *looks.Analysis) (*result.Report, string, error) {
	goals, err := e.goalsOf(ctx, x.Plan)
	if err != nil {
		return nil, "", err
	}
	whole := *x
	whole.Plan = x.About(x.CountedGoal())
	found, from, err := readGoals(ctx, &whole, s, goals)
	if err != nil {
		return nil, "", err
	}
	rows := found[x.CountedGoal()]
	if x.Dimension != "" || x.Interval != "" {
		if rows, from, err = read(ctx, x, s); err != nil {
			return nil, "", err
		}
	}
	r, err := reportFrom(ctx, x, s, rows, a)
	if err != nil {
		return nil, "", err
	}
	var all []result.GoalRows
	for _, goal := range goals {
		all = append(all, result.GoalRows{Plan: x.About(goal), Rows: found[goal]})
	}
	r.AddScorecard(x.Plan, all, a)
	return r, from, nil
}
