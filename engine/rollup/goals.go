package rollup

import (
	"context"

	"lifthouse/engine/visit"
)

// ReadGoals reads the rows of the report for each of several goals in one statement.
// Goal 0 has the goal events of all goals. The plan must have no dimension.
func (x Source) ReadGoals(ctx context.Context, goals []int64) (found map[int64]*visit.Rows, declined string, err error) {
	if x.Dimension != "" {
		return nil, "goals are not broken down", nil
	}
	const tries = 3
	state := x.Current.State
	for range tries {
		q, expressible := newReading(x.Plan, state)
		if !expressible {
			return nil, NoCubes, nil
		}
		q.goals = goals
		found, declined, err = q.answerGoals(ctx, x)
		if declined == isDeleted {
			x.Current.index.unsure.Store(true)
		}
		if err != nil || declined != "" || !q.moved {
			return found, declined, err
		}
		state = q.state
	}
	return nil, "the rollup is refreshed all the time", nil
}

func (q *reading) answerGoals(ctx context.Context, x Source) (found map[int64]*visit.Rows, declined string, err error) {
	query, err := q.compile()
	if err != nil {
		return nil, "", err
	}
	sums := map[cellKey]*visit.Moments{}
	if declined, err = q.read(ctx, x.Store, query, sums); err != nil || declined != "" {
		return nil, declined, err
	}
	found = map[int64]*visit.Rows{}
	for _, goal := range q.goals {
		of := map[cellKey]*visit.Moments{}
		for key, m := range sums {
			if key.goal != noGoal && key.goal != goal {
				continue
			}
			key.goal = 0
			if had := of[key]; had != nil {
				merged := had.Merge(*m)
				m = &merged
			}
			of[key] = m
		}
		found[goal] = q.found(of)
	}
	return found, "", nil
}
