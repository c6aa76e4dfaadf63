package competitors

import (
	"context"
	"errors"
	"fmt"
)

// copies are the tables that a comparison creates, and drops at the end.
var copies = []struct {
	table expr
	files []string // statements that create and fill it
}{
	{timeOrderedTable, []string{"by_time.sql", "by_time_rows.sql"}},
	{"loadgen_growthbook_units", []string{"growthbook_units.sql"}},
	{"loadgen_growthbook_metrics", []string{"growthbook_metrics.sql"}},
	{"loadgen_posthog_exposures", []string{"posthog_exposures.sql"}},
	{"loadgen_posthog_metric_events", []string{"posthog_metric_events.sql"}},
}

// createCopies creates the tables that the competitors' queries read, and merges their
// parts.
func (r *runner) createCopies(ctx context.Context) error {
	if err := r.dropCopies(ctx); err != nil { // an earlier run may have been killed
		return err
	}
	for _, c := range copies {
		r.Progress("creating " + string(c.table))
		for _, file := range c.files {
			text, err := sqlText(file, &slots{Events: c.table, Goals: r.goalNames()})
			if err != nil {
				return err
			}
			if err := r.Conn.Exec(ctx, text, r.questionParameters(MeanValue)...); err != nil {
				return fmt.Errorf("create %s: %w", c.table, err)
			}
		}
		if err := r.Conn.Exec(ctx, "OPTIMIZE TABLE "+string(c.table)+" FINAL"); err != nil {
			return fmt.Errorf("merge the parts of %s: %w", c.table, err)
		}
	}
	return nil
}

func (r *runner) dropCopies(ctx context.Context) error {
	var errs []error
	for _, c := range copies {
		errs = append(errs, r.Conn.Exec(ctx, "DROP TABLE IF EXISTS "+string(c.table)+" SYNC"))
	}
	return errors.Join(errs...)
}

// goalNames returns the names of the parameters with the ids of all goals.
func (r *runner) goalNames() []expr {
	var names []expr
	for n := range r.GoalIDs {
		names = append(names, goalColumn(n+1))
	}
	return names
}
