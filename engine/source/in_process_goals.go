package source

import (
	"context"

	"lifthouse/engine/visit"
)

// ReadGoals reads the events once, and returns the rows of the report for each of several
// goals. Goal 0 has the goal events of all goals. It declines a z-score and a cap, which
// depend on the goal.
func (x InProcess) ReadGoals(ctx context.Context, goals []int64) (found map[int64]*visit.Rows, declined string, err error) {
	if x.Filters.ZScore != 0 || x.Cap != nil {
		return nil, "goals are read one by one", nil
	}
	of, p := *x.Execution, *x.Plan
	p.Goal = nil
	of.Plan = &p
	found = map[int64]*visit.Rows{}
	if events, known := x.known(); known {
		for _, goal := range goals {
			found[goal] = of.aboutGoal(events, goal)
		}
		return found, "", nil
	}
	if fold, err := of.packedFold(ctx); fold != nil || err != nil {
		for _, goal := range goals {
			if err == nil {
				found[goal] = of.answer(of.countPacked(fold, goal))
			}
		}
		return found, "", err
	}
	query, reference := of.referenceQuery()
	if err := query.Render("in_process.sql", InProcessSlots{Slots: reference, Shows: needsAttributes(&p), AllEvents: !x.Filters.From.IsZero(), ByGoal: true}); err != nil {
		return nil, "", err
	}
	all := of.counting()
	defer all.release()
	if err := of.readEvents(ctx, query, true, all); err != nil {
		return nil, "", err
	}
	for _, goal := range goals {
		found[goal] = of.aboutGoal(all.events, goal)
	}
	return found, "", nil
}

// aboutGoal returns the rows of the report about a goal.
func (x *Execution) aboutGoal(events []eventRow, goal int64) *visit.Rows {
	return x.answer(x.countGoal(events, goal))
}

// answer returns the rows of counted events, and releases them.
func (x *Execution) answer(f *counting) *visit.Rows {
	defer f.release()
	if x.Interval == "" {
		return x.Answer(f.rows(), nil)
	}
	return x.Answer(f.rows(), f.steps())
}

// countGoal counts the events of a goal, and those that are of none. The caller must
// release the result.
func (x *Execution) countGoal(events []eventRow, goal int64) *counting {
	f := x.counting()
	for _, e := range events {
		if e.Kind == visit.Goal && goal != 0 && e.goal != goal {
			e.Kind = visit.NoKind // the visitor was active
		}
		f.events = append(f.events, e)
	}
	f.count()
	return f
}
