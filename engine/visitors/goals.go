package visitors

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"lifthouse/engine/visit"
	"lifthouse/schema/catalogue"
)

// ReadGoals reads the rows of the report for each of several goals. Exposures are read
// once. Goal 0 has the goal events of all goals. The plan must have no dimension, no
// series, no z-score and no cap.
func (x Source) ReadGoals(ctx context.Context, goals []int64) (found map[int64]*visit.Rows, declined string, err error) {
	if x.Dimension != "" || x.Interval != "" || x.Filters.ZScore != 0 || x.Cap != nil {
		return nil, "goals are read one by one", nil
	}
	found, err = x.readGoals(ctx, goals)
	if errors.Is(err, errTorn) {
		return nil, err.Error(), nil
	}
	return found, "", err
}

func (x Source) readGoals(ctx context.Context, goals []int64) (map[int64]*visit.Rows, error) {
	exposures := x.reading()
	if err := exposures.each(ctx, func(c *counting, ctx context.Context) error { return c.exposures(ctx, "") }); err != nil {
		return nil, err
	}
	read := make([]*visit.Rows, len(goals))
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(concurrentGoals)
	for i, goal := range goals {
		reading.Go(func() (err error) {
			read[i], err = x.readGoal(ctx, exposures, goal)
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	found := map[int64]*visit.Rows{}
	for i, goal := range goals {
		found[goal] = read[i]
	}
	return found, nil
}

// concurrentGoals is the number of goals that are read at the same time. One statement
// uses few threads, because it reads the rows of one goal.
const concurrentGoals = 4

// readGoal adds the conversions of a goal to the exposures.
func (x Source) readGoal(ctx context.Context, exposures *reading, goal int64) (*visit.Rows, error) {
	of, p := *x.Execution, *x.Plan
	p.Goal = nil
	if goal != 0 {
		p.Goal = &catalogue.Goal{ID: goal}
	}
	of.Plan = &p
	r := Source{Execution: &of, Shards: x.Shards, Through: x.Through, Newest: x.Newest}.reading()
	for at, m := range exposures.sums {
		counted := m.Merge(visit.NoMoments()) // Subtract changes the sums
		r.sums[at] = &counted
	}
	if err := r.each(ctx, func(c *counting, ctx context.Context) error { return c.conversions(ctx, "") }); err != nil {
		return nil, err
	}
	rows := &visit.Rows{Through: x.Through, Newest: x.Newest}
	rows.Whole, rows.Cells = r.rows()
	return rows, nil
}
