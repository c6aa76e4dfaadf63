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
	declined, err = x.read(func(q *reading) (declined string, err error) {
		q.goals = goals
		found, declined, err = q.answerGoals(ctx, x)
		return declined, err
	})
	if err != nil || declined != "" {
		return nil, declined, err
	}
	return found, "", nil
}

func (q *reading) answerGoals(ctx context.Context, x Source) (found map[int64]*visit.Rows, declined string, err error) {
	sums, declined, err := q.read(ctx, x.Store)
	if err != nil || declined != "" {
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
			visit.AddTo(of, key, m)
		}
		found[goal] = q.found(of)
	}
	return found, "", nil
}
