package visitors

import (
	"context"
	"errors"

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
	if err := exposures.exposures(ctx, ""); err != nil {
		return nil, err
	}
	found := map[int64]*visit.Rows{}
	for _, goal := range goals {
		of := *x.Execution
		p := *x.Plan
		p.Goal = nil
		if goal != 0 {
			p.Goal = &catalogue.Goal{ID: goal}
		}
		of.Plan = &p
		r := Source{Execution: &of, Generation: x.Generation, Through: x.Through, Newest: x.Newest}.reading()
		for at, m := range exposures.sums {
			counted := m.Merge(visit.NoMoments()) // Subtract changes the sums
			r.sums[at] = &counted
		}
		if err := r.conversions(ctx, ""); err != nil {
			return nil, err
		}
		rows := &visit.Rows{Through: x.Through, Newest: x.Newest}
		rows.Whole, rows.Cells = r.rows()
		found[goal] = rows
	}
	return found, nil
}
