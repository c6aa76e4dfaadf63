package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"lifthouse/engine/cache"
	"lifthouse/engine/looks"
	"lifthouse/engine/moments"
	"lifthouse/engine/plan"
	"lifthouse/engine/result"
	"lifthouse/engine/source"
)

// Judgement is what the events of a subject say about its declared question up to a time: the looks and, from them, the
// decision.
type Judgement struct {
	Plan      *plan.Plan // of the subject, in force at the first view
	FirstView looks.FirstView
	Schedule  *looks.Schedule
	Recorded  []looks.Record
	Looks     *looks.Analysis // nil: not read yet, see AnalyzeLooks

	engine *Engine
	series map[int64]map[int64][]moments.Step // what was read, by the start of the series in milliseconds, and by goal
}

// canDecide reports whether there is something to decide.
func canDecide(p *plan.Plan) bool { return p.Rules.Compare && len(p.Variations) > 1 }

// OpenJudgement returns the judgement of a subject up to a time, before the sums of the looks are read. Days end on time,
// whether or not events arrive. It returns nil if there is nothing to decide, or no view. It is an error if events wait to
// be folded.
func (e *Engine) OpenJudgement(ctx context.Context, p *plan.Plan, now time.Time) (*Judgement, error) {
	version, err := e.ReadVersion(ctx, p.Subject)
	if err == nil && version.Waiting.Events > 0 {
		err = fmt.Errorf("%d events wait to be folded", version.Waiting.Events)
	}
	if _, viewed := e.firstView(p.Subject); err != nil || !viewed || !canDecide(p) {
		return nil, err
	}
	return e.openJudgement(ctx, e.AsOfFirstView(p), version, now)
}

// openJudgement returns the judgement of a plan in force at the first view, up to a time; zero: the last acceptance time.
func (e *Engine) openJudgement(ctx context.Context, p *plan.Plan, version Version, through time.Time) (*Judgement, error) {
	declared := p.DeclaredPlan()
	recorded, err := e.Ledger.RecordedLooks(ctx, looks.DeclarationOf(declared))
	if err != nil {
		return nil, source.StoreFailure(ctx, err)
	}
	stored, err := e.facts.StoredEvents(ctx, p.Subject)
	if err != nil {
		return nil, err
	}
	first, _ := e.firstView(p.Subject)
	if first.Imported && len(recorded) == 0 { // recorded looks have the start of the clock
		if first, err = e.withHistory(ctx, declared, version, first); err != nil {
			return nil, err
		}
	}
	if through.IsZero() {
		through = stored.Ingested
	}
	if end := p.Filters.To; !end.IsZero() {
		recorded = slices.DeleteFunc(slices.Clone(recorded), func(r looks.Record) bool { return r.End.After(end) })
		if end.Before(through) {
			through = end
		}
	}
	return &Judgement{
		Plan: p, FirstView: first, Recorded: recorded, engine: e, series: map[int64]map[int64][]moments.Step{},
		Schedule: looks.NewSchedule(declared, first, through, stored.Newest, recorded),
	}, nil
}

// withHistory returns the first view of imported data with the start of their clock.
func (e *Engine) withHistory(ctx context.Context, declared *plan.Plan, version Version, first looks.FirstView) (looks.FirstView, error) {
	type history struct{ question string }
	return valueAt(e, history{questionKey(declared)}, version, func() (looks.FirstView, int64, error) {
		found, err := e.facts.ReadRows(ctx, declared.Question)
		if err != nil {
			return first, 0, err
		}
		return first.WithHistory(found.Steps), 0, nil
	})
}

// judgeAt returns the judgement of a plan in force at the first view, with its looks, at a version.
func (e *Engine) judgeAt(ctx context.Context, p *plan.Plan, version Version) (*Judgement, error) {
	type judged struct{ question string }
	return valueAt(e, judged{questionKey(p)}, version, func() (*Judgement, int64, error) {
		j, err := e.openJudgement(ctx, p, version, time.Time{})
		if err == nil {
			err = j.AnalyzeLooks(ctx)
		}
		if err != nil {
			return nil, 0, err
		}
		j.series = nil
		return j, j.Looks.Bytes(), nil
	})
}

// valueAt returns what was computed from a version of the data, from the cache if possible.
func valueAt[V any](e *Engine, key any, version Version, compute func() (value V, bytes int64, err error)) (V, error) {
	if !version.Known {
		value, _, err := compute()
		return value, err
	}
	return cache.ValueAt(e.cache, key, version.Data, compute)
}

// questionKey identifies a declared question and the window's end of a report about it.
func questionKey(p *plan.Plan) string {
	d := &p.Declared
	key, err := json.Marshal([]any{
		p.Subject, p.Rules, d.GoalID, d.Metric, d.Guardrails, d.Secondary, d.Cap,
		p.Variations, p.MultipleExposures, p.SharePeriods, p.Runs, p.Running, p.Ended, p.Filters.To,
	})
	if err != nil {
		panic(err) // only for an infinite number or NaN, which the catalogue rejects
	}
	return string(key)
}

// IsDue reports whether a look has ended that is not recorded. Looks before the first view was accepted are of imported
// data, and are not recorded.
func (j *Judgement) IsDue() bool {
	return slices.ContainsFunc(j.Schedule.Looks, func(l looks.Look) bool {
		isRecorded := slices.ContainsFunc(j.Recorded, func(r looks.Record) bool { return r.Number == l.Number })
		return !isRecorded && l.End.After(j.FirstView.Accepted)
	})
}

// AnalyzeLooks reads the daily sums for the declared question, the guardrails and the secondary goals, and analyzes the
// looks. It reads sums only once, so another call after looks were recorded reads none.
func (j *Judgement) AnalyzeLooks(ctx context.Context) (err error) {
	declared := j.Plan.DeclaredPlan()
	j.Looks, err = j.engine.analyzer.AnalyzeLooks(declared, j.Schedule, j.Recorded, func(since time.Time, goals []int64) (map[int64][]moments.Step, error) {
		if read, has := j.series[since.UnixMilli()]; has {
			return read, nil
		}
		from := *declared
		from.Filters.From = since
		found, err := j.engine.readGoals(ctx, &from, goals)
		steps := make(map[int64][]moments.Step, len(found))
		for goal, rows := range found {
			steps[goal] = rows.Steps
		}
		j.series[since.UnixMilli()] = steps
		return steps, err
	})
	return err
}

// RecordLooks writes the looks and the harm that are not recorded yet, and returns their number. Records are part of the
// results of the looks, which it analyzes again.
func (j *Judgement) RecordLooks(ctx context.Context, now time.Time) (int, error) {
	records := j.Looks.UnrecordedLooks(now.UTC().Truncate(time.Millisecond))
	n, err := j.engine.Ledger.WriteRecords(ctx, records)
	if err != nil || n == 0 {
		return n, err
	}
	if j.Recorded, err = j.engine.Ledger.RecordedLooks(ctx, looks.DeclarationOf(j.Looks.Plan)); err != nil {
		return n, err
	}
	return n, j.AnalyzeLooks(ctx)
}

// ReportDecision returns the report of the declared question with its decision. Its scorecard has only the primary goal.
func (j *Judgement) ReportDecision(ctx context.Context) (*result.Report, error) {
	rows, err := j.engine.facts.ReadRows(ctx, j.Plan.Question)
	if err != nil {
		return nil, err
	}
	report := result.New(j.Plan, rows, j.Looks)
	report.AddScorecard(j.Plan, []result.GoalRows{{Plan: j.Plan.AboutGoal(j.Plan.GoalID), Rows: rows}}, j.Looks)
	return report, nil
}

// ComputeStatus returns the status of a subject at a version of its data. It is empty if there is nothing to compare.
func (e *Engine) ComputeStatus(ctx context.Context, p *plan.Plan, version Version) (*result.Status, error) {
	if p = e.AsOfFirstView(p); !canDecide(p) {
		return result.NewStatus(nil, nil), nil
	}
	j, err := e.judgeAt(ctx, p, version)
	if err != nil {
		return nil, err
	}
	report, err := j.ReportDecision(ctx)
	if err != nil {
		return nil, err
	}
	return result.NewStatus(report, j.Looks), nil
}

// readGoals returns the rows of a plan without a dimension for each goal. Goals with a cap are
// read one by one. With a z-score, all goals are.
func (e *Engine) readGoals(ctx context.Context, p *plan.Plan, goals []int64) (map[int64]*moments.Rows, error) {
	found := map[int64]*moments.Rows{}
	about := func(goal int64) plan.Question {
		q := p.AboutGoal(goal).Question
		q.Interval = p.Interval
		return q
	}
	var together []int64
	for _, goal := range goals {
		if q := about(goal); q.Cap == nil && q.Interval == "" && q.Filters.ZScore == 0 {
			together = append(together, goal)
		}
	}
	if len(together) > 1 {
		var err error
		if found, err = e.facts.ReadGoals(ctx, about(together[0]), together); err != nil {
			return nil, err
		}
	}
	for _, goal := range goals {
		if found[goal] != nil {
			continue
		}
		rows, err := e.facts.ReadRows(ctx, about(goal))
		if err != nil {
			return nil, err
		}
		found[goal] = rows
	}
	return found, nil
}
